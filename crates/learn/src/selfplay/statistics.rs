//! What the games of a generation look like.

use std::collections::BTreeMap;

use selfmate_chess::Reason;
use selfmate_run::GameRecord;
use serde::{Deserialize, Serialize};

use super::config::SelfPlayConfig;
use super::game::would_resign;

/// What the games of a generation look like. All of it follows from the stored games, so that a
/// run that was killed counts the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Statistics {
    /// Games.
    pub games: u64,
    /// Recorded positions.
    pub positions: u64,
    /// The share of draws among the games that were not cut off.
    pub draws: f64,
    /// The share of games cut off.
    pub capped: f64,
    /// The share of games given up.
    pub resigned: f64,
    /// Among the games played on although they could have been given up, the share that the
    /// favourite did not win.
    pub wrong_resignations: f64,
    /// The mean length in plies.
    pub plies: f64,
    /// The standard deviation of search values.
    pub value_spread: f64,
    /// The mean entropy of policy targets, in nats.
    pub entropy: f64,
}

impl Statistics {
    /// Looks at games.
    pub fn of(games: &[GameRecord], config: &SelfPlayConfig) -> Statistics {
        let count = |test: &dyn Fn(&GameRecord) -> bool| {
            games.iter().filter(|game| test(game)).count() as f64
        };
        let capped = count(&|game| game.outcome.is_truncated());
        let drawn = count(&|game| game.outcome.winner.is_none() && !game.outcome.is_truncated());
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
        let judged = || games.iter().flat_map(|game| &game.positions);
        let positions = judged().count() as f64;
        let mean = judged().map(|j| f64::from(j.value)).sum::<f64>() / positions.max(1.0);
        let variance = judged().map(|j| (f64::from(j.value) - mean).powi(2)).sum::<f64>();
        let plies: usize = games.iter().map(|game| game.moves.len()).sum();
        let all = games.len() as f64;
        Statistics {
            games: games.len() as u64,
            positions: positions as u64,
            draws: drawn / (all - capped).max(1.0),
            capped: capped / all.max(1.0),
            resigned: resigned / all.max(1.0),
            wrong_resignations: controls.1 / f64::max(controls.0, 1.0),
            plies: plies as f64 / all.max(1.0),
            value_spread: (variance / positions.max(1.0)).sqrt(),
            entropy: judged().map(|j| entropy(&j.policy)).sum::<f64>() / positions.max(1.0),
        }
    }

    /// The curves that a run keeps.
    pub fn values(&self) -> BTreeMap<String, f64> {
        [
            ("draw_share", self.draws),
            ("capped_share", self.capped),
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
    policy.iter().map(|&p| f64::from(p)).filter(|&p| p > 0.0).map(|p| -p * p.ln()).sum()
}
