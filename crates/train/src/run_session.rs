//! One session of training a run: its clock, metrics and checkpoints.

use std::collections::HashSet;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use selfmate_run::{CONFIG, Checkpoint, Record, Run, RunError};

use selfmate_selfplay::Watch;

use crate::config_change::{ConfigChange, config_changes};
use crate::error::TrainingError;
use crate::options::{End, Hardware, TrainOptions};

pub struct RunSession<'a> {
    pub run: &'a mut Run,
    pub watch: &'a mut dyn Watch,
    pub options: &'a TrainOptions<'a>,
    /// The training time at the last rating.
    pub rated_s: f64,
    /// The start of this session, and the seconds of training before it.
    began: (Instant, f64),
    /// The training time and the step of the last checkpoint.
    saved_s: f64,
    saved_step: Option<u64>,
    /// Old checkpoints whose training files have been removed.
    thinned: HashSet<u64>,
    /// Messages to report at the start.
    notes: Vec<String>,
    /// The run's config; every checkpoint has a copy.
    config: Option<String>,
}

#[derive(Clone, Copy, Debug)]
pub struct Retention {
    /// Steps between checkpoints that are kept permanently.
    pub steps: u64,
    /// The files that are removed from old checkpoints.
    pub training_files: &'static [&'static str],
}

/// The number of newest checkpoints that keep all their files.
const COMPLETE: usize = 3;

impl<'a> RunSession<'a> {
    /// Opens a run and its latest checkpoint that has all `files`. It is an error if settings have
    /// changed that the checkpoint depends on (`fixed`).
    pub fn open(
        run: &'a mut Run,
        options: &'a TrainOptions<'a>,
        watch: &'a mut dyn Watch,
        files: &[&str],
        fixed: &[&str],
    ) -> Result<(RunSession<'a>, Option<Checkpoint>), TrainingError> {
        let unreadable = run.recover_metrics()?.into_iter();
        let mut notes: Vec<String> =
            unreadable.map(|damage| format!("{damage}; set aside in metrics.damaged")).collect();
        let latest = run.recover_checkpoint(files)?;
        let checkpoint = latest.checkpoint;
        let continuing = match &checkpoint {
            Some(checkpoint) => format!("continuing from step {}", checkpoint.step),
            None => "there is no earlier one".to_owned(),
        };
        let damages = latest.damages.iter();
        notes.extend(damages.map(|damage| format!("{damage}; set aside, {continuing}")));
        let config = run.config()?;
        if let (Some(checkpoint), Some(config)) = (&checkpoint, &config) {
            notes.extend(changed_settings(checkpoint, config, fixed)?);
        }
        let session = RunSession {
            run,
            watch,
            options,
            rated_s: 0.0,
            began: (Instant::now(), 0.0),
            saved_s: 0.0,
            saved_step: checkpoint.as_ref().map(|checkpoint| checkpoint.step),
            thinned: HashSet::new(),
            notes,
            config,
        };
        Ok((session, checkpoint))
    }

    /// Adds a message that is reported at the start.
    pub fn note(&mut self, text: String) {
        self.notes.push(text);
    }

    /// Removes metrics that are newer than the checkpoint, which was made after this generation and
    /// time.
    pub fn rewind(&mut self, generation: u64, elapsed_s: f64) -> Result<(), TrainingError> {
        // Time that was spent counts even if its results were lost.
        let (metrics, _) = self.run.metrics()?;
        let last_s = metrics.iter().filter_map(Record::elapsed_s).fold(elapsed_s, f64::max);
        self.began = (Instant::now(), last_s);
        self.saved_s = last_s;
        if !metrics.is_empty() && self.saved_step.is_none() {
            self.note("no complete checkpoint yet; learning from the beginning".to_owned());
        }
        self.run.rewind_metrics(generation)?;
        let (metrics, _) = self.run.metrics()?;
        let rated_s = metrics.iter().rev().find_map(|record| match record {
            Record::Rating(rating) => Some(rating.elapsed_s),
            _ => None,
        });
        self.rated_s = rated_s.unwrap_or(0.0);
        Ok(())
    }

    /// Records that the training starts, or resumes from a step of a generation.
    pub fn begin(&mut self, step: u64, generation: u64) -> Result<(), TrainingError> {
        let notes = std::mem::take(&mut self.notes);
        for note in &notes {
            self.watch.note(note);
        }
        let is_new = self.run.metrics()?.0.is_empty() && self.began.1 == 0.0;
        let TrainOptions { seed, budget, hardware: Hardware { threads, .. }, .. } = *self.options;
        let (threads, budget) = (threads as u64, Some(budget));
        self.append(&if is_new {
            let version = env!("CARGO_PKG_VERSION").to_owned();
            Record::Start { version, seed, threads, budget }
        } else {
            let (elapsed_s, threads) = (self.began.1, Some(threads));
            Record::Resume { elapsed_s, step, generation, notes, threads, budget }
        })
    }

    /// Seconds of training, including earlier sessions.
    pub fn elapsed_s(&self) -> f64 {
        self.began.1 + self.began.0.elapsed().as_secs_f64()
    }

    /// When the time budget is spent; `None` without one.
    pub fn deadline(&self) -> Option<Instant> {
        let left = 60.0 * self.options.budget.minutes? - self.elapsed_s();
        Instant::now().checked_add(Duration::try_from_secs_f64(left.max(0.0)).ok()?)
    }

    /// True when a stop is requested or the time budget is spent.
    pub fn is_cancelled(&self) -> bool {
        let minutes = self.options.budget.minutes;
        self.options.stop.load(Relaxed)
            || minutes.is_some_and(|most| self.elapsed_s() >= 60.0 * most)
    }

    /// True when the budget is spent after this many games and steps.
    pub fn is_spent(&self, games: u64, steps: u64) -> bool {
        self.options.budget.is_spent(self.elapsed_s(), games, steps)
    }

    /// Adds a record to the metrics and reports it.
    pub fn append(&mut self, record: &Record) -> Result<(), TrainingError> {
        self.run.append_metric(record)?;
        self.watch.record(record);
        Ok(())
    }

    /// True when the last checkpoint is at least this old.
    pub fn is_due(&self, seconds: f64) -> bool {
        self.elapsed_s() >= self.saved_s + seconds
    }

    pub fn is_saved(&self, step: u64) -> bool {
        self.saved_step == Some(step)
    }

    /// Saves a checkpoint and removes old ones.
    pub fn save(
        &mut self,
        step: u64,
        files: &[(&str, &[u8])],
        retention: Retention,
    ) -> Result<(), TrainingError> {
        let config = self.config.as_ref().map(|text| (CONFIG, text.as_bytes()));
        let files: Vec<(&str, &[u8])> = files.iter().copied().chain(config).collect();
        self.run.save_checkpoint(step, &files)?;
        (self.saved_step, self.saved_s) = (Some(step), self.elapsed_s());
        self.remove_old(step, retention)
    }

    /// Keeps the newest checkpoints complete. Of older ones only some are kept, without their
    /// training files.
    fn remove_old(&mut self, newest: u64, retention: Retention) -> Result<(), TrainingError> {
        let mut steps = self.run.steps()?;
        // Checkpoints with later steps are left over from before the run was rewound.
        steps.retain(|&step| step <= newest);
        let old = steps.len().saturating_sub(COMPLETE);
        let mut kept = None;
        for &step in &steps[..old] {
            if kept.is_some_and(|kept| step < kept + retention.steps) {
                self.run.remove_checkpoint(step)?;
                continue;
            }
            kept = Some(step);
            if !self.thinned.insert(step) {
                continue;
            }
            match self.run.thin_checkpoint(step, retention.training_files) {
                Err(RunError::Damaged(damage)) => {
                    self.watch
                        .note(&format!("{damage}; ignored, because there are newer checkpoints"));
                }
                result => result?,
            }
        }
        Ok(())
    }

    /// Records why the training ends.
    pub fn end(&mut self, end: End) -> Result<End, TrainingError> {
        let reason = match &end {
            End::Finished => "the budget is spent".to_owned(),
            End::Stopped => "stopped".to_owned(),
            End::Done(reason) | End::Collapsed(reason) => reason.clone(),
        };
        self.run.hide_live()?;
        self.append(&Record::End { elapsed_s: self.elapsed_s(), reason })?;
        Ok(end)
    }
}

/// Notes about settings that have changed since the checkpoint was made. A change of a setting that
/// the checkpoint depends on is an error.
fn changed_settings(
    checkpoint: &Checkpoint,
    config: &str,
    fixed: &[&str],
) -> Result<Vec<String>, TrainingError> {
    let Some(then) = checkpoint.files.get(CONFIG) else { return Ok(Vec::new()) };
    let changes = config_changes(&String::from_utf8_lossy(then), config)?;
    let step = checkpoint.step;
    if let Some(change) = changes.iter().find(|change| change.is_refused(fixed)) {
        let ConfigChange { name, then, now } = change.clone();
        return Err(TrainingError::Changed { name, then, now, step });
    }
    let describe = |ConfigChange { name, then, now }: ConfigChange| {
        format!("run.toml: {name} was {then} at step {step} and is {now} now; going on with {now}")
    };
    Ok(changes.into_iter().map(describe).collect())
}
