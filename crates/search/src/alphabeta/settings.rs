//! The tunable numbers of the search: margins, reductions, windows, depths and shares of the clock,
//! in one table.

use serde::{Deserialize, Serialize};

use crate::phase::Phase;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SettingInfo {
    /// For example `null_move_base`.
    pub name: &'static str,
    /// The value in [`Settings::default`].
    pub default: i32,
    /// The smallest sensible value.
    pub min: i32,
    /// The largest sensible value.
    pub max: i32,
}

macro_rules! settings {
    ($($(#[$doc:meta])* $name:ident = $default:literal in $min:literal..=$max:literal;)*) => {
        /// Search parameters, in centipawns or plies unless stated otherwise.
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct Settings {
            $($(#[$doc])* pub $name: i32,)*
        }

        impl Default for Settings {
            fn default() -> Settings {
                Settings { $($name: $default,)* }
            }
        }

        impl Settings {
            /// Name, default and bounds of every setting, in the order of the flat view.
            pub const TABLE: &'static [SettingInfo] = &[
                $(SettingInfo { name: stringify!($name), default: $default, min: $min, max: $max },)*
            ];

            /// All settings in the order of [`Settings::TABLE`].
            pub fn flat(&self) -> Vec<i32> {
                vec![$(self.$name,)*]
            }

            /// Mutable references to all settings in the order of [`Settings::TABLE`].
            pub fn flat_mut(&mut self) -> Vec<&mut i32> {
                vec![$(&mut self.$name,)*]
            }
        }
    };
}

settings! {
    /// Half the width of the first window around the last iteration's score.
    aspiration_window = 18 in 5..=100;
    /// Reverse futility: margin above beta for each remaining ply.
    reverse_futility_margin = 75 in 20..=200;
    /// Razoring: margin below alpha for each remaining ply; such nodes go straight to quiescence.
    razor_margin = 220 in 50..=600;
    /// Null move: the constant part of the reduction, in plies.
    null_move_base = 4 in 2..=6;
    /// Null move: one more ply of reduction for this many plies of depth.
    null_move_divisor = 4 in 2..=8;
    /// Late-move reductions: the constant part, in hundredths of a ply.
    reduction_base = 65 in 0..=200;
    /// Late-move reductions: the divisor of ln(depth) · ln(move), in hundredths.
    reduction_divisor = 215 in 120..=400;
    /// Late-move reductions: history score that removes one ply of reduction.
    reduction_history = 8000 in 2000..=30000;
    /// Futility: margin below alpha at which quiet moves are skipped …
    futility_base = 110 in 20..=300;
    /// … plus this for each remaining ply.
    futility_margin = 85 in 20..=200;
    /// Quiet moves with a history below minus this for each remaining ply are skipped.
    history_pruning = 3500 in 1000..=10000;
    /// Quiet moves that lose more than this times the remaining plies squared are skipped.
    see_quiet_margin = 22 in 5..=80;
    /// Captures that lose more than this for each remaining ply are skipped.
    see_capture_margin = 95 in 20..=200;
    /// Quiescence: a capture must bring the evaluation within this of alpha.
    delta_margin = 180 in 50..=500;
    /// Singular extension: margin below the hash score for all other moves, per ply.
    singular_margin = 2 in 1..=6;
    /// History: bonus of a cutoff for each ply of depth.
    history_bonus = 150 in 50..=400;
    /// Correction history: the most that one of its tables can change the evaluation.
    correction = 64 in 8..=256;
    /// A network as evaluator: centipawns per unit of log odds. It decides how much is pruned. The best
    /// value grows with the strength of the network: after five minutes of training, 107 was better than
    /// 296 by about 200 Elo; after 36 minutes, 370 was better than 220 by 107 ± 64 and better than 107 by
    /// 95 ± 90.
    network_scale = 370 in 50..=1500;
    /// Players: the most plies of a search in the opening; the largest value means no limit.
    depth_opening = 32 in 1..=32;
    /// The same in the middlegame.
    depth_middlegame = 32 in 1..=32;
    /// The same in the endgame.
    depth_endgame = 32 in 1..=32;
    /// Players with a clock: the assumed number of moves left in a game.
    time_moves_left = 40 in 10..=100;
    /// The time at which a search must stop, in percent of the time it aims at.
    time_maximum = 400 in 100..=1000;
    /// The largest share of the clock to aim at, in percent.
    time_optimum_cap = 25 in 5..=50;
    /// The largest share of the clock for one move, in percent.
    time_maximum_cap = 50 in 10..=90;
}

impl Settings {
    /// The settings that decide how much a player searches, by name.
    pub const PLAY: [&str; 7] = [
        "depth_opening",
        "depth_middlegame",
        "depth_endgame",
        "time_moves_left",
        "time_maximum",
        "time_optimum_cap",
        "time_maximum_cap",
    ];

    /// The most plies of a search in this phase; `None` for no limit.
    pub fn max_depth(&self, phase: Phase) -> Option<u32> {
        /// The largest value of these settings.
        const NO_LIMIT: i32 = 32;
        let depth = match phase {
            Phase::Opening => self.depth_opening,
            Phase::Middlegame => self.depth_middlegame,
            Phase::Endgame => self.depth_endgame,
        };
        (depth < NO_LIMIT).then_some(depth.max(1) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_matches_the_fields() {
        let defaults: Vec<i32> = Settings::TABLE.iter().map(|row| row.default).collect();
        assert_eq!(Settings::default().flat(), defaults);
        assert!(Settings::TABLE.iter().all(|row| (row.min..=row.max).contains(&row.default)));
        let mut settings = Settings::default();
        *settings.flat_mut()[0] += 1;
        assert_eq!(settings.aspiration_window, defaults[0] + 1);
        for name in Settings::PLAY {
            assert!(Settings::TABLE.iter().any(|row| row.name == name), "{name}");
        }
    }

    #[test]
    fn depths_are_limited_by_phase() {
        let settings = Settings { depth_endgame: 9, ..Settings::default() };
        assert_eq!(Phase::ALL.map(|phase| settings.max_depth(phase)), [None, None, Some(9)]);
    }
}
