//! How long an ablation takes, measured in a few games of every combination.

use std::time::Instant;

use super::super::{EndgameConfig, Oracle, evaluate};
use super::{AblateError, InMemoryLearner, Plan, first_equal, single_thread};
use selfmate_chess::Seed;
use selfmate_selfplay::Ending;
use selfmate_train::TrainingError;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Combinations with different settings.
    pub combinations: usize,
    pub runs: u64,
    /// Seconds of one core.
    pub core_seconds: f64,
}

/// Games of self-play, and won positions of the evaluation, that are measured.
const GAMES: u64 = 16;
const POSITIONS: u64 = 2;

/// `None` when it was cancelled.
pub fn estimate(
    plan: &Plan,
    cancel: &(dyn Fn() -> bool + Sync),
) -> Result<Option<Estimate>, AblateError> {
    let cells = plan.cells()?;
    let first_equal = first_equal(&cells);
    let (mut combinations, mut core_seconds) = (0, 0.0);
    for (index, (_, config)) in cells.iter().enumerate() {
        if first_equal[index] != index {
            continue;
        }
        if cancel() {
            return Ok(None);
        }
        combinations += 1;
        core_seconds += plan.seeds as f64 * seconds(plan, config, cancel)?;
    }
    let runs = plan.seeds * combinations as u64;
    Ok(Some(Estimate { combinations, runs, core_seconds }))
}

/// The time of one run.
fn seconds(
    plan: &Plan,
    config: &EndgameConfig,
    cancel: &(dyn Fn() -> bool + Sync),
) -> Result<f64, AblateError> {
    let pool = single_thread()?;
    let mut config = config.clone();
    config.selfplay.generation_games = GAMES;
    let oracle = Oracle::solve(config.selfplay.ending.unwrap_or(Ending::Krk))
        .map_err(TrainingError::from)?;
    let mut learner = InMemoryLearner::new(&config, 1)?;
    let started = Instant::now();
    let games = learner.play(cancel);
    pool.install(|| learner.learn(&games))?;
    let learning = started.elapsed().as_secs_f64() / learner.simulations.max(1) as f64;
    let started = Instant::now();
    let mut evaluation = plan.evaluation;
    evaluation.positions = POSITIONS;
    let network = learner.model.network();
    pool.install(|| {
        evaluate(&config.selfplay, &evaluation, &oracle, &network, Seed::new(0), cancel)
    });
    let evaluation = started.elapsed().as_secs_f64() / POSITIONS as f64;
    let positions = (plan.evaluation.positions * plan.evaluations.max(1)) as f64;
    Ok(learning * plan.budget as f64 + evaluation * positions)
}
