//! Tablebases: what is known for certain of positions with few pieces.
//!
//! [`Tablebase`] is the seam: whoever knows results implements it, as [`Syzygy`] does from files.
//! [`Tables`] is what searches and referees hold: a tablebase, and how far to use it. [`Exact`] needs
//! no files: it solves small endings itself, and knows how far each mate is. Nothing here searches.

mod ending;
mod exact;
mod material;
mod rank;
mod solver;
mod syzygy;

use std::fmt;
use std::sync::Arc;

pub use ending::{Count, Ending, MAX_PIECES, Verdict, position};
pub use exact::{Exact, ExactError};
pub use material::{Material, MaterialError};
pub use rank::{RankedMove, Ranking};
pub use syzygy::{Dtz, Syzygy, SyzygyError};

use shakmaty::{Chess, Position};

use crate::outcome::{Outcome, Reason};

/// What a position comes to for its side to move when both play their best, worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TableResult {
    /// Lost.
    Loss,
    /// Lost, but the fifty-move rule saves it.
    BlessedLoss,
    /// Drawn.
    Draw,
    /// Won, but for the fifty-move rule.
    CursedWin,
    /// Won.
    Win,
}

impl TableResult {
    /// The same as the other side sees it.
    #[must_use]
    pub const fn flip(self) -> TableResult {
        match self {
            TableResult::Loss => TableResult::Win,
            TableResult::BlessedLoss => TableResult::CursedWin,
            TableResult::Draw => TableResult::Draw,
            TableResult::CursedWin => TableResult::BlessedLoss,
            TableResult::Win => TableResult::Loss,
        }
    }

    /// A win, a draw or a loss, as the rule makes it.
    #[must_use]
    pub const fn under(self, rule: FiftyMoveRule) -> TableResult {
        match (self, rule) {
            (TableResult::CursedWin, FiftyMoveRule::Ignored) => TableResult::Win,
            (TableResult::BlessedLoss, FiftyMoveRule::Ignored) => TableResult::Loss,
            (TableResult::CursedWin | TableResult::BlessedLoss, FiftyMoveRule::Obeyed) => {
                TableResult::Draw
            }
            (plain, _) => plain,
        }
    }

    /// 1 for a win, -1 for a loss, 0 for a draw, as the rule makes it.
    pub const fn points(self, rule: FiftyMoveRule) -> i32 {
        match self.under(rule) {
            TableResult::Win => 1,
            TableResult::Loss => -1,
            _ => 0,
        }
    }
}

impl fmt::Display for TableResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TableResult::Loss => "loss",
            TableResult::BlessedLoss => "blessed loss",
            TableResult::Draw => "draw",
            TableResult::CursedWin => "cursed win",
            TableResult::Win => "win",
        })
    }
}

/// Whether a win that takes more than fifty moves without a capture or a pawn move is one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum FiftyMoveRule {
    /// No: it is a draw.
    #[default]
    Obeyed,
    /// Yes.
    Ignored,
}

/// Knows the results of positions with few pieces.
pub trait Tablebase: Send + Sync {
    /// The most pieces of any position it knows, kings included.
    fn max_pieces(&self) -> usize;

    /// The result of a position as if the last move had been a capture or a pawn move; `None`
    /// when it is not known.
    fn after_zeroing(&self, position: &Chess) -> Option<TableResult>;

    /// The result of a position with its halfmove clock as it stands; `None` when it is not
    /// known, or not known closely enough.
    fn result(&self, position: &Chess) -> Option<TableResult>;

    /// Plies to the next capture, pawn move or mate with best play, negative for the side that
    /// loses, 0 for a draw. May be one ply too short.
    fn dtz(&self, position: &Chess) -> Option<i32>;

    /// What is wrong with it, once a probe has found out.
    fn damage(&self) -> Option<String> {
        None
    }
}

/// A tablebase, and how far to use it.
#[derive(Clone)]
pub struct Tables {
    tablebase: Arc<dyn Tablebase>,
    max_pieces: usize,
    rule: FiftyMoveRule,
}

impl Tables {
    /// All that a tablebase knows, under the fifty-move rule.
    pub fn new(tablebase: Arc<dyn Tablebase>) -> Tables {
        let max_pieces = tablebase.max_pieces();
        Tables { tablebase, max_pieces, rule: FiftyMoveRule::Obeyed }
    }

    /// Only positions with at most so many pieces.
    #[must_use]
    pub fn up_to(mut self, pieces: usize) -> Tables {
        self.max_pieces = self.tablebase.max_pieces().min(pieces);
        self
    }

    /// With or without the fifty-move rule.
    #[must_use]
    pub fn under(mut self, rule: FiftyMoveRule) -> Tables {
        self.rule = rule;
        self
    }

    /// The most pieces of a position that is looked up.
    pub fn max_pieces(&self) -> usize {
        self.max_pieces
    }

    /// Whether the fifty-move rule counts.
    pub fn rule(&self) -> FiftyMoveRule {
        self.rule
    }

    /// What a search may take for certain: a win, a draw or a loss.
    ///
    /// Only of positions right after a capture or a pawn move. RemoteGames a win may come too late,
    /// and a search that took it for certain would have no reason to hurry.
    pub fn in_search(&self, position: &Chess) -> Option<TableResult> {
        if position.halfmoves() != 0 || !self.covers(position) {
            return None;
        }
        self.tablebase.after_zeroing(position).map(|result| result.under(self.rule))
    }

    /// The end of a game that a referee may call, with the halfmove clock as it stands.
    pub fn outcome(&self, position: &Chess) -> Option<Outcome> {
        if !self.covers(position) {
            return None;
        }
        let winner = match self.tablebase.result(position)?.points(self.rule) {
            1 => Some(position.turn()),
            -1 => Some(!position.turn()),
            _ => None,
        };
        Some(Outcome { winner, reason: Reason::Adjudication })
    }

    /// What is wrong with the tablebase, once a probe has found out.
    pub fn damage(&self) -> Option<String> {
        self.tablebase.damage()
    }

    /// Few enough pieces and no castling, which no tablebase knows.
    fn covers(&self, position: &Chess) -> bool {
        position.board().occupied().count() <= self.max_pieces && position.castles().is_empty()
    }
}

impl fmt::Debug for Tables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tables")
            .field("max_pieces", &self.max_pieces)
            .field("rule", &self.rule)
            .finish_non_exhaustive()
    }
}
