//! Statistics of the games of a generation.

use std::collections::BTreeMap;

use selfmate_chess::Reason;
use selfmate_run::GameRecord;
use serde::{Deserialize, Serialize};

use crate::config::SelfPlayConfig;
use crate::resign::would_resign;

/// All of it follows from the stored games, so that a run that was killed counts the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GenerationStats {
    pub games: u64,
    /// Recorded positions.
    pub positions: u64,
    /// The share of draws among the games that were not truncated.
    pub draws: f64,
    /// The share of games that ended in mate.
    pub mates: f64,
    /// The share of truncated games.
    pub truncated: f64,
    /// The share of resigned games.
    pub resigned: f64,
    /// Among the games that were played out although they could have been resigned, the share that
    /// the favourite did not win.
    pub wrong_resignations: f64,
    /// The mean length in plies.
    pub plies: f64,
    /// The standard deviation of search values.
    pub value_spread: f64,
    /// The mean entropy of policy targets, in nats.
    pub entropy: f64,
}

impl GenerationStats {
    pub fn of(games: &[GameRecord], config: &SelfPlayConfig) -> GenerationStats {
        let count = |test: &dyn Fn(&GameRecord) -> bool| {
            games.iter().filter(|game| test(game)).count() as f64
        };
        let truncated = count(&|game| game.outcome.is_truncated());
        let drawn = count(&|game| game.outcome.winner.is_none() && !game.outcome.is_truncated());
        let mates = count(&|game| game.outcome.reason == Reason::Checkmate);
        let resigned = count(&|game| game.outcome.reason == Reason::Adjudication);
        let mut controls = (0.0, 0.0);
        let played_out = |game: &&GameRecord| {
            game.outcome.reason != Reason::Adjudication && !game.outcome.is_truncated()
        };
        for game in games.iter().filter(played_out) {
            if let Some(favourite) = would_resign(game, config) {
                controls.0 += 1.0;
                controls.1 += f64::from(u8::from(game.outcome.winner != Some(favourite)));
            }
        }
        let recorded = || games.iter().flat_map(|game| &game.positions);
        let positions = recorded().count() as f64;
        let mean = recorded().map(|p| f64::from(p.value)).sum::<f64>() / positions.max(1.0);
        let variance = recorded().map(|p| (f64::from(p.value) - mean).powi(2)).sum::<f64>();
        let plies: usize = games.iter().map(|game| game.moves.len()).sum();
        let all = games.len() as f64;
        GenerationStats {
            games: games.len() as u64,
            positions: positions as u64,
            draws: drawn / (all - truncated).max(1.0),
            mates: mates / all.max(1.0),
            truncated: truncated / all.max(1.0),
            resigned: resigned / all.max(1.0),
            wrong_resignations: controls.1 / f64::max(controls.0, 1.0),
            plies: plies as f64 / all.max(1.0),
            value_spread: (variance / positions.max(1.0)).sqrt(),
            entropy: recorded().map(|p| entropy(&p.policy)).sum::<f64>() / positions.max(1.0),
        }
    }

    pub fn values(&self) -> BTreeMap<String, f64> {
        [
            ("draw_share", self.draws),
            ("checkmate_share", self.mates),
            ("truncated_share", self.truncated),
            ("resigned_share", self.resigned),
            ("wrong_resignations", self.wrong_resignations),
            ("plies", self.plies),
            ("value_spread", self.value_spread),
            ("target_entropy", self.entropy),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }
}

fn entropy(policy: &[f32]) -> f64 {
    policy.iter().map(|&p| f64::from(p)).filter(|&p| p > 0.0).map(|p| -p * libm::log(p)).sum()
}
