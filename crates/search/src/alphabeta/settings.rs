//! The search's own numbers: margins, reductions and windows, in one table.

use serde::{Deserialize, Serialize};

/// One row of the table of settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SettingInfo {
    /// Such as `null_move_base`.
    pub name: &'static str,
    /// The value in [`Settings::default`].
    pub default: i32,
    /// The least value that makes sense.
    pub min: i32,
    /// The greatest value that makes sense.
    pub max: i32,
}

macro_rules! settings {
    ($($(#[$doc:meta])* $name:ident = $default:literal in $min:literal..=$max:literal;)*) => {
        /// Numbers that shape the search, centipawns and plies unless they say otherwise.
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

            /// All settings in the order of [`Settings::TABLE`], to be changed in place.
            pub fn flat_mut(&mut self) -> Vec<&mut i32> {
                vec![$(&mut self.$name,)*]
            }
        }
    };
}

settings! {
    /// Half the first window around the last iteration's score.
    aspiration_window = 18 in 5..=100;
    /// Reverse futility: a node this far above beta for each ply left is given up as won.
    reverse_futility_margin = 75 in 20..=200;
    /// Razoring: a node this far below alpha for each ply left goes straight to quiescence.
    razor_margin = 220 in 50..=600;
    /// Null move: plies taken off before the depth's own share.
    null_move_base = 4 in 2..=6;
    /// Null move: one more ply for this many plies of depth.
    null_move_divisor = 4 in 2..=8;
    /// Late-move reductions: the constant part, in hundredths of a ply.
    reduction_base = 65 in 0..=200;
    /// Late-move reductions: what ln(depth) · ln(move) is divided by, in hundredths.
    reduction_divisor = 215 in 120..=400;
    /// Late-move reductions: history that takes off one ply.
    reduction_history = 8000 in 2000..=30000;
    /// Futility: quiet moves are skipped when this far below alpha …
    futility_base = 110 in 20..=300;
    /// … and this much more for each ply left.
    futility_margin = 85 in 20..=200;
    /// Quiet moves with a history below minus this for each ply left are skipped.
    history_pruning = 3500 in 1000..=10000;
    /// Quiet moves that lose more than this for each squared ply left are skipped.
    see_quiet_margin = 22 in 5..=80;
    /// Captures that lose more than this for each ply left are skipped.
    see_capture_margin = 95 in 20..=200;
    /// Quiescence: a capture must come within this of alpha.
    delta_margin = 180 in 50..=500;
    /// Singular extension: how far below the table's score all other moves must be, per ply.
    singular_margin = 2 in 1..=6;
    /// History: what a cut-off earns for each ply of depth.
    history_bonus = 150 in 50..=400;
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
    }
}
