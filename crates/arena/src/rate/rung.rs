//! The rungs: opponents of known strength for `rate`.

use serde::{Deserialize, Serialize};

use crate::players::EloRange;

/// The built-in rungs at and below Stockfish's lowest level, on the scale of Stockfish 15.1's
/// `UCI_Elo` at 100 ms per move. docs/arena.md describes how they were measured. They must be
/// measured again when alpha-beta or the tree search changes its play.
///
/// Below 800 Elo one number cannot order such different kinds of players: a rating there is rough,
/// and the error that [`run_rate`](super::run_rate) reports does not include the errors of the
/// rungs.
pub const OWN_RUNGS: [(&str, f64); 9] = [
    ("random", 0.0),
    ("rollout:playout=material,plies=40,sims=50", 95.0),
    ("alphabeta:depth=1,blunder=50", 490.0),
    ("rollout:playout=material,plies=40,sims=400", 525.0),
    ("greedy", 640.0),
    ("alphabeta:depth=1,blunder=30", 810.0),
    ("alphabeta:depth=1,blunder=15", 1055.0),
    ("alphabeta:depth=1,blunder=6", 1265.0),
    ("alphabeta:depth=1", 1430.0),
];

/// Stronger built-in rungs on the same scale, for machines without Stockfish. Stockfish's own
/// levels are better where they are available. Games of these rungs do not depend on time.
pub const DEPTH_RUNGS: [(&str, f64); 5] = [
    ("alphabeta:depth=2", 1545.0),
    ("alphabeta:depth=3", 1550.0),
    ("alphabeta:depth=4", 1620.0),
    ("alphabeta:depth=5", 1720.0),
    ("alphabeta:depth=6", 1890.0),
];

/// The Elo difference between two Stockfish levels.
const STEP: i64 = 100;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rung {
    pub player: String,
    pub elo: f64,
}

impl From<(&str, f64)> for Rung {
    fn from((player, elo): (&str, f64)) -> Rung {
        Rung { player: player.to_owned(), elo }
    }
}

/// The built-in rungs and Stockfish's levels, lowest first.
pub fn standard_rungs(range: &EloRange) -> Vec<Rung> {
    let mut levels: Vec<i64> = (range.min..=range.max).step_by(STEP as usize).collect();
    if levels.last().is_some_and(|last| *last < range.max) {
        levels.push(range.max);
    }
    let level = |elo: i64| Rung { player: format!("stockfish:elo={elo}"), elo: elo as f64 };
    let own = OWN_RUNGS.into_iter().map(Rung::from);
    let mut rungs: Vec<Rung> = own.chain(levels.into_iter().map(level)).collect();
    rungs.sort_by(|a, b| a.elo.total_cmp(&b.elo));
    rungs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Registry;

    #[test]
    fn rungs_cover_the_scale_in_order() {
        let range = EloRange { engine: "Stockfish 15.1".to_owned(), min: 1350, max: 2850 };
        let standard = standard_rungs(&range);
        assert_eq!(standard.last().unwrap().player, "stockfish:elo=2850");
        assert!(standard.iter().any(|rung| rung.player == "stockfish:elo=1350"));
        let own: Vec<Rung> = OWN_RUNGS.into_iter().chain(DEPTH_RUNGS).map(Rung::from).collect();
        let registry = Registry::standard();
        for rungs in [standard, own] {
            assert!(rungs.is_sorted_by(|a, b| a.elo < b.elo), "{rungs:?}");
            assert!(rungs.iter().all(|rung| registry.parse(&rung.player).is_ok()));
        }
    }
}
