//! The final phase of a run: self-play has ended, and the network learns once more from all games
//! that are good enough, at a learning rate that falls to almost nothing.

use std::f64::consts::PI;

use selfmate_chess::{Game, MoveList, Position, Seed};
use selfmate_run::PositionRecord;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FinalConfig {
    /// The first games of the run, as a share of all, are too weak to learn from.
    pub skipped_share: f64,
    /// The most positions to learn from; the latest ones count.
    pub positions: usize,
    /// How often each position is used, on average; 0 for no final phase.
    pub reuse: f64,
    /// Positions per batch.
    pub batch: usize,
    /// The learning rate falls from this …
    pub rate: f64,
    /// … to this, along a cosine.
    pub last_rate: f64,
    /// The weight of the game's result in the value target.
    pub result_weight: f64,
    /// Learn only from quiet positions; see [`Selection`].
    pub quiet: bool,
    /// The share of positions that teach the policy as well as the value.
    pub policy_share: f64,
}

impl Default for FinalConfig {
    fn default() -> FinalConfig {
        FinalConfig {
            skipped_share: 0.2,
            positions: 20_000_000,
            reuse: 0.0,
            batch: 4096,
            rate: 1e-3,
            last_rate: 1e-5,
            result_weight: 0.4,
            quiet: true,
            policy_share: 0.25,
        }
    }
}

impl FinalConfig {
    pub fn is_planned(&self) -> bool {
        self.reuse > 0.0
    }

    /// The learning rate when this share of the phase is done.
    pub fn rate_at(&self, done: f64) -> f64 {
        let left = (1.0 + libm::cos(PI * done.clamp(0.0, 1.0))) / 2.0;
        self.last_rate + (self.rate - self.last_rate) * left
    }

    pub fn selection(&self) -> Selection {
        Selection { quiet: self.quiet, policy_share: self.policy_share }
    }

    /// The number of batches for this many positions.
    pub fn steps(&self, positions: usize) -> u64 {
        (positions as f64 * self.reuse / self.batch as f64).ceil() as u64
    }
}

/// Which positions of a game are learned from, and which of them teach the policy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Selection {
    /// Only positions that are not in check and whose best move is neither a capture nor a
    /// promotion: a search resolves the others before it evaluates them.
    pub quiet: bool,
    pub policy_share: f64,
}

impl Selection {
    pub fn includes(&self, game: &Game, legal: &MoveList, recorded: &PositionRecord) -> bool {
        let best = || {
            let shares = recorded.policy.iter().enumerate();
            let best = shares.max_by(|a, b| a.1.total_cmp(b.1).then(b.0.cmp(&a.0)));
            best.map(|(index, _)| legal[index])
        };
        let is_tactical = || best().is_some_and(|m| m.is_capture() || m.is_promotion());
        !self.quiet || !(game.position().is_check() || is_tactical())
    }

    /// Whether the position at this ply of this game teaches the policy: the same on every machine.
    pub fn teaches_policy(&self, game: u64, ply: u16) -> bool {
        self.policy_share >= 1.0
            || Seed::new(game).index(u64::from(ply)).rng().unit() < self.policy_share
    }
}

#[cfg(test)]
mod tests {
    use selfmate_chess::fen::parse_game;
    use selfmate_chess::notation::parse_move;

    use super::*;

    #[test]
    fn the_learning_rate_falls_along_a_cosine() {
        let config = FinalConfig { rate: 3.0, last_rate: 1.0, ..FinalConfig::default() };
        let rates = [0.0, 0.25, 0.5, 1.0, 2.0].map(|done| config.rate_at(done));
        for (rate, expected) in rates.into_iter().zip([3.0, 2.707_106_8, 2.0, 1.0, 1.0]) {
            assert!((rate - expected).abs() < 1e-6, "{rate} {expected}");
        }
    }

    #[test]
    fn quiet_positions_have_no_check_and_no_capture_to_play() {
        let quiet = Selection { quiet: true, policy_share: 1.0 };
        let includes = |selection: Selection, fen: &str, best: &str| {
            let game = parse_game(fen).unwrap();
            let legal = game.legal_moves();
            let best = parse_move(game.position(), best).unwrap();
            let policy = legal.iter().map(|m| if *m == best { 0.5 } else { 0.01 }).collect();
            let recorded = PositionRecord { ply: 0, value: 0.0, draw: 0.0, policy };
            selection.includes(&game, &legal, &recorded)
        };
        let capture = ("4k3/8/8/3p4/4P3/8/8/4K3 w - - 0 1", "e4d5");
        let promotion = ("8/4P1k1/8/8/8/8/8/4K3 w - - 0 1", "e7e8q");
        let check = ("4k3/8/8/8/8/8/8/r3K3 w - - 0 1", "e1e2");
        for (fen, best) in [capture, promotion, check] {
            assert!(!includes(quiet, fen, best), "{fen}");
            assert!(includes(Selection { quiet: false, ..quiet }, fen, best), "{fen}");
        }
        assert!(includes(quiet, capture.0, "e4e5"));
    }

    #[test]
    fn a_share_of_positions_teaches_the_policy() {
        let teaching = |policy_share| {
            let selection = Selection { quiet: false, policy_share };
            let games = (0..100).flat_map(|game| (0..100).map(move |ply| (game, ply)));
            games.filter(|(game, ply)| selection.teaches_policy(*game, *ply)).count()
        };
        assert_eq!([0.0, 1.0].map(teaching), [0, 10_000]);
        assert!((2300..2700).contains(&teaching(0.25)), "{}", teaching(0.25));
    }
}
