//! What every learner does with its run: the clock, the metrics and the checkpoints.

use std::collections::HashSet;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use selfmate_run::{CONFIG, Checkpoint, Record, Run, RunError};

use crate::config::{Change, changes};
use crate::learner::{End, Hardware, LearnError, Session};
use crate::watch::Watch;

/// A learner's place at its run.
pub struct Desk<'a> {
    /// The run.
    pub run: &'a mut Run,
    /// Who watches.
    pub watch: &'a mut dyn Watch,
    /// How long to train, and with what.
    pub session: &'a Session<'a>,
    /// When this session began, and how much had been trained before.
    began: (Instant, f64),
    /// The training time of the last checkpoint.
    saved_s: f64,
    /// The step of the last checkpoint.
    saved_step: Option<u64>,
    /// Old checkpoints that have lost what only training needs.
    thinned: HashSet<u64>,
    /// What was found wrong before the start.
    notes: Vec<String>,
    /// The run's config, of which every checkpoint keeps a copy.
    config: Option<String>,
}

/// Which checkpoints are kept.
#[derive(Clone, Copy, Debug)]
pub struct Keep {
    /// Steps between those that are kept for good.
    pub steps: u64,
    /// The files that only training needs: old ones lose them.
    pub training: &'static [&'static str],
}

/// Checkpoints that stay whole.
const WHOLE: usize = 3;

impl<'a> Desk<'a> {
    /// Sits down at a run; also the last checkpoint with these files, if there is one. Refuses
    /// settings that cannot be those of the checkpoint.
    pub fn open(
        run: &'a mut Run,
        session: &'a Session<'a>,
        watch: &'a mut dyn Watch,
        files: &[&str],
    ) -> Result<(Desk<'a>, Option<Checkpoint>), LearnError> {
        let unreadable = run.recover_metrics()?.into_iter();
        let mut notes: Vec<String> =
            unreadable.map(|damage| format!("{damage}; set aside in metrics.damaged")).collect();
        let latest = run.recover_checkpoint(files)?;
        let checkpoint = latest.checkpoint;
        let going_on = match &checkpoint {
            Some(checkpoint) => format!("going on from step {}", checkpoint.step),
            None => "there is none before it".to_owned(),
        };
        let damages = latest.damages.iter();
        notes.extend(damages.map(|damage| format!("{damage}; set aside, {going_on}")));
        let config = run.config()?;
        if let (Some(checkpoint), Some(config)) = (&checkpoint, &config) {
            notes.extend(changed_settings(checkpoint, config)?);
        }
        let desk = Desk {
            run,
            watch,
            session,
            began: (Instant::now(), 0.0),
            saved_s: 0.0,
            saved_step: checkpoint.as_ref().map(|checkpoint| checkpoint.step),
            thinned: HashSet::new(),
            notes,
            config,
        };
        Ok((desk, checkpoint))
    }

    /// Remembers something to be said at the start.
    pub fn note(&mut self, text: String) {
        self.notes.push(text);
    }

    /// Takes the metrics back to where the checkpoint was, after so many generations and seconds.
    pub fn go_back(&mut self, generation: u64, elapsed_s: f64) -> Result<(), LearnError> {
        // Time is never given back, even when the work of it was lost.
        let (metrics, _) = self.run.metrics()?;
        let last_s = metrics.iter().filter_map(Record::elapsed_s).fold(elapsed_s, f64::max);
        self.began = (Instant::now(), last_s);
        self.saved_s = last_s;
        if !metrics.is_empty() && self.saved_step.is_none() {
            self.note("no whole checkpoint yet; learning from the beginning".to_owned());
        }
        Ok(self.run.rewind_metrics(generation)?)
    }

    /// Says that the training begins, or goes on from a step of a generation.
    pub fn begin(&mut self, step: u64, generation: u64) -> Result<(), LearnError> {
        let notes = std::mem::take(&mut self.notes);
        for note in &notes {
            self.watch.note(note);
        }
        let is_new = self.run.metrics()?.0.is_empty() && self.began.1 == 0.0;
        let Session { seed, budget, hardware: Hardware { threads, .. }, .. } = *self.session;
        let (threads, budget) = (threads as u64, Some(budget));
        self.append(&if is_new {
            let version = env!("CARGO_PKG_VERSION").to_owned();
            Record::Start { version, seed, threads, budget }
        } else {
            let (elapsed_s, threads) = (self.began.1, Some(threads));
            Record::Resume { elapsed_s, step, generation, notes, threads, budget }
        })
    }

    /// Seconds of training, earlier sessions included.
    pub fn elapsed_s(&self) -> f64 {
        self.began.1 + self.began.0.elapsed().as_secs_f64()
    }

    /// When the budget of time is spent; `None` when there is none.
    pub fn deadline(&self) -> Option<Instant> {
        let left = 60.0 * self.session.budget.minutes? - self.elapsed_s();
        Instant::now().checked_add(Duration::try_from_secs_f64(left.max(0.0)).ok()?)
    }

    /// True when the session is told to stop or its time is over: whatever takes long asks.
    pub fn is_halted(&self) -> bool {
        let minutes = self.session.budget.minutes;
        self.session.stop.load(Relaxed)
            || minutes.is_some_and(|most| self.elapsed_s() >= 60.0 * most)
    }

    /// True when the budget is spent after so many games and steps.
    pub fn is_spent(&self, games: u64, steps: u64) -> bool {
        self.session.budget.is_spent(self.elapsed_s(), games, steps)
    }

    /// Adds to the metrics.
    pub fn append(&mut self, record: &Record) -> Result<(), LearnError> {
        self.run.append_metric(record)?;
        self.watch.record(record);
        Ok(())
    }

    /// True when the last checkpoint is older than so many seconds.
    pub fn is_due(&self, seconds: f64) -> bool {
        self.elapsed_s() >= self.saved_s + seconds
    }

    /// True when there is a checkpoint of this step.
    pub fn is_saved(&self, step: u64) -> bool {
        self.saved_step == Some(step)
    }

    /// Saves a checkpoint and forgets old ones.
    pub fn save(
        &mut self,
        step: u64,
        files: &[(&str, &[u8])],
        keep: Keep,
    ) -> Result<(), LearnError> {
        let config = self.config.as_ref().map(|text| (CONFIG, text.as_bytes()));
        let files: Vec<(&str, &[u8])> = files.iter().copied().chain(config).collect();
        self.run.save_checkpoint(step, &files)?;
        (self.saved_step, self.saved_s) = (Some(step), self.elapsed_s());
        self.forget(step, keep)
    }

    /// Keeps the last checkpoints whole, of older ones now and then the network.
    fn forget(&mut self, newest: u64, keep: Keep) -> Result<(), LearnError> {
        let mut steps = self.run.steps()?;
        // Later ones are left from before the run had to go back.
        steps.retain(|&step| step <= newest);
        let old = steps.len().saturating_sub(WHOLE);
        let mut kept = None;
        for &step in &steps[..old] {
            if kept.is_some_and(|kept| step < kept + keep.steps) {
                self.run.remove_checkpoint(step)?;
                continue;
            }
            kept = Some(step);
            if !self.thinned.insert(step) {
                continue;
            }
            match self.run.thin_checkpoint(step, keep.training) {
                Err(RunError::Damaged(damage)) => {
                    self.watch.note(&format!("{damage}; no matter, there are newer ones"));
                }
                result => result?,
            }
        }
        Ok(())
    }

    /// Says why the training ends here.
    pub fn end(&mut self, end: End) -> Result<End, LearnError> {
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

/// What is said of settings that have changed since a checkpoint was made; those that it depends on
/// must not.
fn changed_settings(checkpoint: &Checkpoint, config: &str) -> Result<Vec<String>, LearnError> {
    // Checkpoints of earlier versions keep no copy.
    let Some(then) = checkpoint.files.get(CONFIG) else { return Ok(Vec::new()) };
    let changes = changes(&String::from_utf8_lossy(then), config)?;
    let step = checkpoint.step;
    if let Some(Change { name, then, now, .. }) = changes.iter().find(|change| change.is_refused) {
        let (name, then, now) = (name.clone(), then.clone(), now.clone());
        return Err(LearnError::Changed { name, then, now, step });
    }
    let say = |Change { name, then, now, .. }: Change| {
        format!("run.toml: {name} was {then} at step {step} and is {now} now; going on with {now}")
    };
    Ok(changes.into_iter().map(say).collect())
}
