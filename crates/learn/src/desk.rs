//! What every learner does with its run: the clock, the metrics and the checkpoints.

use std::collections::HashSet;
use std::time::Instant;

use selfmate_run::{Checkpoint, Record, Run, RunError};

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
    /// Sits down at a run; also the last checkpoint with these files, if there is one.
    pub fn open(
        run: &'a mut Run,
        session: &'a Session<'a>,
        watch: &'a mut dyn Watch,
        files: &[&str],
    ) -> Result<(Desk<'a>, Option<Checkpoint>), LearnError> {
        let (checkpoint, damages) = run.recover_checkpoint(files)?;
        let notes = damages
            .iter()
            .map(|damage| format!("{damage}; set aside, going on from the checkpoint before"))
            .collect();
        let desk = Desk {
            run,
            watch,
            session,
            began: (Instant::now(), 0.0),
            saved_s: 0.0,
            saved_step: checkpoint.as_ref().map(|checkpoint| checkpoint.step),
            thinned: HashSet::new(),
            notes,
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
        let metrics = self.run.metrics()?;
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
        let is_new = self.run.metrics()?.is_empty() && self.began.1 == 0.0;
        let Session { seed, hardware: Hardware { threads, .. }, .. } = *self.session;
        self.append(&if is_new {
            let version = env!("CARGO_PKG_VERSION").to_owned();
            Record::Start { version, seed, threads: threads as u64 }
        } else {
            Record::Resume { elapsed_s: self.began.1, step, generation, notes }
        })
    }

    /// Seconds of training, earlier sessions included.
    pub fn elapsed_s(&self) -> f64 {
        self.began.1 + self.began.0.elapsed().as_secs_f64()
    }

    /// True when the budget is spent after so many games and steps.
    pub fn is_spent(&self, games: u64, steps: u64) -> bool {
        let budget = self.session.budget;
        budget.minutes.is_some_and(|minutes| self.elapsed_s() >= 60.0 * minutes)
            || budget.games.is_some_and(|most| games >= most)
            || budget.steps.is_some_and(|most| steps >= most)
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
        self.run.save_checkpoint(step, files)?;
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
