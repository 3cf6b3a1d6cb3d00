//! Evaluation of the network by games without random moves of its own.

use rayon::prelude::*;
use selfmate_chess::Color;
use selfmate_nn::valuenet::{BatchNetwork, Network};
use selfmate_train::{RoundContext, TrainingError};
use serde::{Deserialize, Serialize};

use super::config::{EvaluationGames, ValueConfig};
use super::game::{self, PlayConfig};
use super::player::kind;
use crate::opponent::GameOpponent;

/// The results of an evaluation. Truncated games score half a point and are among the draws.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Results {
    pub wins: u64,
    pub draws: u64,
    pub losses: u64,
}

impl Results {
    fn games(self) -> f64 {
        (self.wins + self.draws + self.losses).max(1) as f64
    }

    /// A drawn game is half a point.
    pub fn score(self) -> f64 {
        (self.wins as f64 + 0.5 * self.draws as f64) / self.games()
    }

    pub fn win_rate(self) -> f64 {
        self.wins as f64 / self.games()
    }
}

/// Plays the games of an evaluation; `None` when there was no time for all of them.
pub fn evaluate(
    config: &ValueConfig,
    network: &Network,
    context: &RoundContext<'_>,
) -> Result<Option<Results>, TrainingError> {
    let seed = context.seed.derive("evaluation");
    if config.evaluation_games == EvaluationGames::Match {
        let player = |name| kind(name, network);
        let report =
            selfmate_train::evaluation::evaluate(&config.evaluation, player, seed, context)?;
        return Ok(report.map(|report| Results {
            wins: report.wins,
            draws: report.draws,
            losses: report.losses,
        }));
    }
    let play_config = PlayConfig {
        epsilon: 0.0,
        opening_plies: 0,
        late_share: 0.0,
        late_plies: 0,
        max_plies: config.evaluation.max_plies,
        discount: 1.0,
    };
    let (network, seed) = (BatchNetwork::new(network), seed.index(context.totals.rounds));
    let cancel = context.cancel;
    let game = |number: u64| {
        if cancel.is_cancelled() {
            return None;
        }
        let mut rng = seed.index(number).rng();
        let game = game::play(&network, GameOpponent::Random, Color::White, &play_config, &mut rng);
        Some(game.outcome.winner)
    };
    let numbers = 0..config.evaluation.games;
    let winners: Option<Vec<Option<Color>>> =
        context.pool.install(|| numbers.into_par_iter().map(game).collect());
    Ok(winners.map(|winners| {
        let count = |winner| winners.iter().filter(|other| **other == winner).count() as u64;
        Results {
            wins: count(Some(Color::White)),
            draws: count(None),
            losses: count(Some(Color::Black)),
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drawn_game_is_half_a_point_and_no_win() {
        let results = Results { wins: 2, draws: 1, losses: 1 };
        assert_eq!((results.score(), results.win_rate()), (0.625, 0.5));
        assert_eq!(Results::default().score(), 0.0);
    }
}
