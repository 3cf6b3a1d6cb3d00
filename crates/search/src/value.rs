//! Values with their point of view in the type, and the functions that change it.
//!
//! A [`Wdl`] is for one side: the side to move, unless a function names another, as
//! [`Wdl::of_outcome`] does, and except inside the tree, whose nodes hold the value for the player who
//! moved into them. [`WhiteWdl`] is for White. [`Wdl::for_white`] and [`WhiteWdl::for_side`] convert
//! between them; [`Wdl::flip`] changes sides. Plain values in [-1, 1] use [`white_value`],
//! [`side_value`] and [`flip_value`]. Values of searches and networks change their sign only here;
//! alpha-beta negates its integer scores, as negamax does.
//!
//! ```
//! use selfmate_chess::Color;
//! use selfmate_search::{Wdl, white_value};
//!
//! let black_to_move = Wdl::new(0.5, 0.25);
//! let white = black_to_move.for_white(Color::Black);
//! assert_eq!(white.value(), -0.5);
//! assert_eq!(white.value(), white_value(black_to_move.value(), Color::Black));
//! assert_eq!(white.for_side(Color::Black), black_to_move);
//! ```

use std::ops::Neg;

use selfmate_chess::{Color, Outcome};
use serde::{Deserialize, Serialize};

/// Probabilities of win, draw and loss for the side to move. They add up to 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Wdl {
    pub win: f32,
    pub draw: f32,
    pub loss: f32,
}

impl Wdl {
    pub const WIN: Wdl = Wdl { win: 1.0, draw: 0.0, loss: 0.0 };
    pub const DRAW: Wdl = Wdl { win: 0.0, draw: 1.0, loss: 0.0 };
    pub const LOSS: Wdl = Wdl { win: 0.0, draw: 0.0, loss: 1.0 };
    /// No information: value 0, with draws as likely as decisive results.
    pub const EVEN: Wdl = Wdl { win: 0.25, draw: 0.5, loss: 0.25 };

    /// The probabilities with this value in [-1, 1] and this draw probability.
    ///
    /// The draw probability is reduced when the value leaves less room for draws.
    pub fn new(value: f32, draw: f32) -> Wdl {
        let value = value.clamp(-1.0, 1.0);
        let draw = draw.clamp(0.0, 1.0 - value.abs());
        // Rounding may give a result slightly below zero.
        let half = |twice: f32| (twice / 2.0).max(0.0);
        Wdl { win: half(1.0 - draw + value), draw, loss: half(1.0 - draw - value) }
    }

    /// The result of a game for `side`; `None` for a truncated game.
    pub fn of_outcome(outcome: Outcome, side: Color) -> Option<Wdl> {
        match outcome.winner {
            Some(winner) if winner == side => Some(Wdl::WIN),
            Some(_) => Some(Wdl::LOSS),
            None if outcome.is_truncated() => None,
            None => Some(Wdl::DRAW),
        }
    }

    /// The expected result in [-1, 1], for the side to move.
    pub fn value(self) -> f32 {
        self.win - self.loss
    }

    /// The same probabilities for the other side.
    #[must_use]
    pub const fn flip(self) -> Wdl {
        Wdl { win: self.loss, draw: self.draw, loss: self.win }
    }

    /// The same probabilities for White; `turn` is the side to move.
    pub fn for_white(self, turn: Color) -> WhiteWdl {
        let white = if turn == Color::White { self } else { self.flip() };
        WhiteWdl { win: white.win, draw: white.draw, loss: white.loss }
    }
}

/// Probabilities of win, draw and loss for White. They add up to 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct WhiteWdl {
    pub win: f32,
    pub draw: f32,
    pub loss: f32,
}

impl WhiteWdl {
    /// The expected result in [-1, 1], for White.
    pub fn value(self) -> f32 {
        self.win - self.loss
    }

    /// The same probabilities for `side`.
    pub fn for_side(self, side: Color) -> Wdl {
        let white = Wdl { win: self.win, draw: self.draw, loss: self.loss };
        if side == Color::White { white } else { white.flip() }
    }
}

/// The value of the same position for the other side.
#[inline]
#[must_use]
pub fn flip_value<T: Neg<Output = T>>(value: T) -> T {
    -value
}

/// The value for White, from a value for the side to move.
#[inline]
#[must_use]
pub fn white_value<T: Neg<Output = T>>(value: T, turn: Color) -> T {
    if turn == Color::White { value } else { flip_value(value) }
}

/// The value for `side`, from a value for White.
#[inline]
#[must_use]
pub fn side_value<T: Neg<Output = T>>(white: T, side: Color) -> T {
    if side == Color::White { white } else { flip_value(white) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_add_up_and_keep_the_value() {
        let rounding = (0..1000).map(|n| (n as f32 / 999.0, 1.0 - n as f32 / 999.0));
        let pairs = [(0.0, 0.3), (0.9, 0.8), (-1.0, 0.5), (2.0, 0.0), (-0.25, 0.75)];
        for (value, draw) in pairs.into_iter().chain(rounding) {
            let wdl = Wdl::new(value, draw);
            assert!((wdl.win + wdl.draw + wdl.loss - 1.0).abs() < 1e-6);
            assert!((wdl.value() - value.clamp(-1.0, 1.0)).abs() < 1e-6);
            assert!(wdl.win >= 0.0 && wdl.draw >= 0.0 && wdl.loss >= 0.0);
        }
    }

    #[test]
    fn a_loss_for_black_is_a_win_for_white() {
        assert_eq!(Wdl::LOSS.for_white(Color::Black).win, 1.0);
        assert_eq!(Wdl::LOSS.for_white(Color::White).loss, 1.0);
        assert_eq!(Wdl::WIN.flip(), Wdl::LOSS);
    }

    #[test]
    fn points_of_view_round_trip() {
        let wdl = Wdl::new(0.375, 0.25);
        for side in Color::ALL {
            assert_eq!(wdl.for_white(side).for_side(side), wdl);
            assert_eq!(wdl.for_white(side).for_side(!side), wdl.flip());
            for value in [wdl.value(), 0.0, -0.0, 1.0, -1.0, f32::MIN_POSITIVE] {
                let back = side_value(white_value(value, side), side);
                assert_eq!(back.to_bits(), value.to_bits());
            }
        }
    }

    #[test]
    fn plain_values_agree_with_probabilities() {
        for value in [-1.0, -0.375, 0.0, 0.25, 1.0] {
            let wdl = Wdl::new(value, 0.125);
            assert_eq!(wdl.flip().value(), flip_value(wdl.value()));
            for turn in Color::ALL {
                assert_eq!(wdl.for_white(turn).value(), white_value(wdl.value(), turn));
                let white = wdl.for_white(Color::White);
                assert_eq!(white.for_side(turn).value(), side_value(white.value(), turn));
            }
        }
    }
}
