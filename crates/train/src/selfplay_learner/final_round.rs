//! The rounds of the final phase: see [`FinalConfig`](crate::FinalConfig).

use rayon::prelude::*;
use selfmate_run::Run;
use selfmate_selfplay::Stage;
use serde::{Deserialize, Serialize};

use super::{Config, GenerationProgress, LossSums, SelfPlayLearner};
use crate::error::TrainingError;
use crate::learner::{Round, RoundContext};
use crate::model::SelfPlayModel;
use crate::replay::ReplayBuffer;
use crate::targets::Targets;

/// Steps of the final phase per round: a second or two.
const FINAL_ROUND: u64 = 200;

/// About this share of the positions of a game is quiet.
const QUIET_SHARE: f64 = 0.65;

/// The time per sample, as a share of that in the generations before, because most samples teach
/// only the value. Measured 0.5 in an hour of `zero`; the rest is for reading the games.
const SAMPLE_TIME_SHARE: f64 = 0.6;

/// The progress of the final phase.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct FinalProgress {
    /// The number of generations before it.
    generations: u64,
    /// The model's step at its start.
    first_step: u64,
    /// Its number of steps, once its games have been read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    steps: Option<u64>,
    /// Of the current round.
    #[serde(flatten)]
    losses: LossSums,
}

impl FinalProgress {
    pub(super) fn is_done(&self, step: u64) -> bool {
        self.steps.is_some_and(|steps| step >= self.first_step + steps)
    }
}

impl<M: SelfPlayModel> SelfPlayLearner<M> {
    /// True when all planned games have been played, or when the time left is needed for the final
    /// phase.
    pub(super) fn is_final_due(
        &self,
        config: &Config<M>,
        context: &RoundContext<'_>,
        generation: &GenerationProgress,
    ) -> bool {
        let final_phase = &config.learning.final_phase;
        if !final_phase.is_planned() {
            return false;
        }
        let stats = &generation.stats;
        if context.totals.games + stats.games >= config.plan_games {
            return true;
        }
        let Some(left_s) = context.seconds_left() else { return false };
        let positions = (context.totals.positions + stats.positions) as f64;
        let quiet = if final_phase.quiet { QUIET_SHARE } else { 1.0 };
        let positions = positions * (1.0 - final_phase.skipped_share) * quiet;
        let samples = positions.min(final_phase.positions as f64) * final_phase.reuse;
        let sample_s = self.state.sample_s * SAMPLE_TIME_SHARE;
        left_s < samples * sample_s + generation.play_s + generation.learn_s
    }

    pub(super) fn start_final_phase(
        &mut self,
        config: &Config<M>,
        context: &mut RoundContext<'_>,
    ) -> Result<(), TrainingError> {
        self.state.final_phase = Some(FinalProgress {
            generations: context.totals.rounds + 1,
            first_step: self.model.step(),
            steps: None,
            losses: LossSums::default(),
        });
        self.state.replay.clear();
        self.fill_final_replay(config, context.run, context.pool)
    }

    /// Reads the games of the final phase from the run, the latest first.
    pub(super) fn fill_final_replay(
        &mut self,
        config: &Config<M>,
        run: &Run,
        pool: &rayon::ThreadPool,
    ) -> Result<(), TrainingError> {
        self.replay = ReplayBuffer::default();
        let final_phase = &config.learning.final_phase;
        let Some(progress) = &mut self.state.final_phase else { return Ok(()) };
        let targets =
            Targets::new(&config.learning, final_phase.result_weight, config.selfplay.discount);
        let skipped = (progress.generations as f64 * final_phase.skipped_share) as u64;
        for generation in (skipped..progress.generations).rev() {
            // Generations that cannot be read were set aside, with a note, when they were needed.
            let Ok(games) = run.read_chunk(generation) else { continue };
            let selected = pool.install(|| {
                let games = games.par_iter();
                let samples =
                    games.map(|game| M::selected_samples(game, targets, final_phase.selection()));
                samples.collect::<Result<Vec<_>, _>>()
            })?;
            self.replay.push(selected.into_iter().flatten().collect());
            if self.replay.len() >= final_phase.positions {
                break;
            }
        }
        progress.steps.get_or_insert(final_phase.steps(self.replay.len()));
        Ok(())
    }

    /// Some steps of the final phase; `None` when there was no time for all of them. Each batch
    /// depends only on its number, so interruptions do not change the result.
    pub(super) fn final_round(
        &mut self,
        config: &Config<M>,
        context: &mut RoundContext<'_>,
    ) -> Result<Option<Round>, TrainingError> {
        let final_phase = &config.learning.final_phase;
        let Some(mut progress) = self.state.final_phase else { return Ok(None) };
        let seed = context.seed.derive("final phase");
        let (first, steps) = (progress.first_step, progress.steps.unwrap_or(0));
        let done_at = |step: u64| (step - first) as f64 / steps.max(1) as f64;
        let begin = self.model.step() - progress.losses.batches;
        let end = (begin + FINAL_ROUND).min(first + steps);
        for step in self.model.step()..end {
            if context.cancel.is_cancelled() || context.max_steps.is_some_and(|most| step >= most) {
                self.state.final_phase = Some(progress);
                return Ok(None);
            }
            let samples = self.replay.draw(final_phase.batch, &mut seed.index(step).rng());
            let rate = final_phase.rate_at(done_at(step)) as f32;
            progress.losses.add(self.model.learn(&samples, rate)?);
            if step % 16 == 0 {
                let mut status = context.status(Stage::Learn, done_at(step));
                status.steps = self.model.step();
                context.report_status(&status);
            }
        }
        let losses = std::mem::take(&mut progress.losses);
        self.state.final_phase = Some(progress);
        let mut round = Round { steps: losses.batches, ..Round::default() };
        // The mean over the positions that teach the policy.
        let share = final_phase.policy_share.max(f64::MIN_POSITIVE);
        LossSums { policy_loss: losses.policy_loss / share, ..losses }.report(&mut round);
        round.add("learning_rate", final_phase.rate_at(done_at(end)));
        round.add("replay_positions", self.replay.len() as f64);
        round.add("final_phase", done_at(end));
        Ok(Some(round))
    }
}
