//! How well a network imitates its teacher on held-out games.

use rayon::prelude::*;
use selfmate_run::{GameRecord, RecordError};
use selfmate_search::{Evaluation, Leaf, Need};
use selfmate_selfplay::Evaluators;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Validation {
    pub positions: u64,
    /// The share of positions where the network's first move is the teacher's.
    pub top1: f64,
    /// The share of positions where the teacher's move is among the network's first five.
    pub top5: f64,
    /// Cross entropy with the teacher's policy, in nats.
    pub policy: f64,
    /// The mean squared difference from the teacher's value.
    pub value: f64,
}

impl Validation {
    /// Decides which pass is best; a player uses both heads.
    pub fn loss(&self) -> f64 {
        self.policy + self.value
    }
}

/// Compares the network with all recorded positions of the games.
pub fn validate(games: &[GameRecord], network: &Evaluators) -> Result<Validation, RecordError> {
    let each: Result<Vec<Sums>, RecordError> =
        games.par_iter().map(|game| game_sums(game, network)).collect();
    // Added in the order of the games, so that the result does not depend on threads.
    let sums = each?.into_iter().fold(Sums::default(), Sums::plus);
    let count = (sums.positions as f64).max(1.0);
    Ok(Validation {
        positions: sums.positions,
        top1: sums.top1 / count,
        top5: sums.top5 / count,
        policy: sums.policy / count,
        value: sums.value / count,
    })
}

#[derive(Clone, Copy, Default)]
struct Sums {
    positions: u64,
    top1: f64,
    top5: f64,
    policy: f64,
    value: f64,
}

impl Sums {
    fn plus(self, other: Sums) -> Sums {
        Sums {
            positions: self.positions + other.positions,
            top1: self.top1 + other.top1,
            top5: self.top5 + other.top5,
            policy: self.policy + other.policy,
            value: self.value + other.value,
        }
    }
}

fn game_sums(record: &GameRecord, network: &Evaluators) -> Result<Sums, RecordError> {
    let mut evaluator = network();
    let mut sums = Sums::default();
    let mut answer = [Evaluation::default()];
    record.replay(|game, legal, recorded| {
        let leaf = Leaf { game: game.clone(), legal: legal.clone(), need: Need::Both };
        answer[0].logits.clear();
        evaluator.evaluate(&[leaf], &mut answer);
        let logits = &answer[0].logits;
        let target = &recorded.policy;
        let best = target.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1).then(b.0.cmp(&a.0)));
        let Some((best, _)) = best.filter(|_| logits.len() == target.len()) else { return };
        let rank = logits.iter().filter(|logit| **logit > logits[best]).count();
        let most = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let total: f64 = logits.iter().map(|logit| libm::exp(f64::from(logit - most))).sum();
        let loss = |(share, logit): (&f32, &f32)| {
            f64::from(*share) * (libm::log(total) - f64::from(logit - most))
        };
        sums = sums.plus(Sums {
            positions: 1,
            top1: f64::from(u8::from(rank == 0)),
            top5: f64::from(u8::from(rank < 5)),
            policy: target.iter().zip(logits).map(loss).sum(),
            value: f64::from(answer[0].wdl.value() - recorded.value).powi(2),
        });
    })?;
    Ok(sums)
}

#[cfg(test)]
mod tests {
    use selfmate_chess::{Game, Outcome, Reason, notation};
    use selfmate_run::PositionRecord;
    use selfmate_search::evaluator::Uniform;
    use selfmate_search::{Evaluator, Wdl};

    use super::*;

    /// Prefers the move at this index.
    struct Fixed(usize);

    impl Evaluator for Fixed {
        fn evaluate(&mut self, leaves: &[Leaf], evaluations: &mut [Evaluation]) {
            for (leaf, evaluation) in leaves.iter().zip(evaluations) {
                evaluation.wdl = Wdl::WIN;
                let logit = |index| if index == self.0 { 5.0 } else { -(index as f32) };
                evaluation.logits = (0..leaf.legal.len()).map(logit).collect();
            }
        }
    }

    fn record(index: usize) -> GameRecord {
        let game = Game::new();
        let mut policy = vec![0.0; 20];
        policy[index] = 1.0;
        GameRecord {
            number: 0,
            network: 0,
            start: None,
            moves: vec![notation::parse_san(game.position(), "e4").unwrap()],
            outcome: Outcome { winner: None, reason: Reason::Adjudication },
            positions: vec![PositionRecord { ply: 0, value: 0.5, draw: 0.0, policy }],
        }
    }

    #[test]
    fn agreement_is_counted_by_rank() {
        let network: Evaluators = Box::new(|| Box::new(Fixed(7)));
        let at = |index| validate(&[record(index)], &network).unwrap();
        assert_eq!((at(7).top1, at(7).top5, at(7).positions), (1.0, 1.0, 1));
        assert_eq!((at(0).top1, at(0).top5), (0.0, 1.0));
        assert_eq!((at(3).top5, at(4).top5), (1.0, 0.0));
        assert!((at(7).value - 0.25).abs() < 1e-6);
        let uniform: Evaluators = Box::new(|| Box::new(Uniform));
        let same = validate(&[record(3)], &uniform).unwrap();
        assert!((same.policy - 20f64.ln()).abs() < 1e-5, "{same:?}");
    }
}
