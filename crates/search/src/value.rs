//! Values with their point of view in the type.
//!
//! [`Wdl`] always speaks for the side to move. The one bridge to White's view is
//! [`Wdl::for_white`]; changing sides is [`Wdl::flip`].

use selfmate_chess::{Color, Outcome};
use serde::{Deserialize, Serialize};

/// Chances to win, draw and lose, for the side to move. They add up to 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Wdl {
    /// The chance that the side to move wins.
    pub win: f32,
    /// The chance of a draw.
    pub draw: f32,
    /// The chance that the side to move loses.
    pub loss: f32,
}

impl Wdl {
    /// A certain win.
    pub const WIN: Wdl = Wdl { win: 1.0, draw: 0.0, loss: 0.0 };
    /// A certain draw.
    pub const DRAW: Wdl = Wdl { win: 0.0, draw: 1.0, loss: 0.0 };
    /// A certain loss.
    pub const LOSS: Wdl = Wdl { win: 0.0, draw: 0.0, loss: 1.0 };
    /// Nothing known.
    pub const EVEN: Wdl = Wdl { win: 0.25, draw: 0.5, loss: 0.25 };

    /// The chances that have this value in [-1, 1] and this share of draws.
    ///
    /// The share is cut where the value leaves less room for draws.
    pub fn new(value: f32, draw: f32) -> Wdl {
        let value = value.clamp(-1.0, 1.0);
        let draw = draw.clamp(0.0, 1.0 - value.abs());
        // Rounding may leave a hair below nothing.
        let half = |twice: f32| (twice / 2.0).max(0.0);
        Wdl { win: half(1.0 - draw + value), draw, loss: half(1.0 - draw - value) }
    }

    /// A finished game as the given side sees it; a game that was cut off counts as drawn.
    pub fn of_outcome(outcome: Outcome, side: Color) -> Wdl {
        match outcome.winner {
            None => Wdl::DRAW,
            Some(winner) if winner == side => Wdl::WIN,
            Some(_) => Wdl::LOSS,
        }
    }

    /// The expected result in [-1, 1].
    pub fn value(self) -> f32 {
        self.win - self.loss
    }

    /// The same chances as the other side sees them.
    #[must_use]
    pub const fn flip(self) -> Wdl {
        Wdl { win: self.loss, draw: self.draw, loss: self.win }
    }

    /// The same chances as White sees them.
    pub fn for_white(self, turn: Color) -> WhiteWdl {
        let seen = if turn == Color::White { self } else { self.flip() };
        WhiteWdl { win: seen.win, draw: seen.draw, loss: seen.loss }
    }
}

/// Chances to win, draw and lose for White.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct WhiteWdl {
    /// The chance that White wins.
    pub win: f32,
    /// The chance of a draw.
    pub draw: f32,
    /// The chance that Black wins.
    pub loss: f32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chances_add_up_and_keep_the_value() {
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
    fn white_sees_blacks_loss_as_a_win() {
        assert_eq!(Wdl::LOSS.for_white(Color::Black).win, 1.0);
        assert_eq!(Wdl::LOSS.for_white(Color::White).loss, 1.0);
        assert_eq!(Wdl::WIN.flip(), Wdl::LOSS);
    }
}
