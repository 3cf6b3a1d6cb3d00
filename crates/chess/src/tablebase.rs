//! Tablebases: exact results of positions with few pieces.
//!
//! [`Tablebase`] is the trait of all sources of results. [`Syzygy`] reads them from files;
//! [`Exact`] solves small endings itself and has distances to mate. Searches and adjudicators
//! use [`Tables`]: a tablebase with limits on its use. Nothing here searches.

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

/// The result for the side to move with best play by both, from worst to best.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TableResult {
    Loss,
    /// Lost, but drawn under the fifty-move rule.
    BlessedLoss,
    Draw,
    /// Won, but drawn under the fifty-move rule.
    CursedWin,
    Win,
}

impl TableResult {
    /// The result for the other side.
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

    /// Reduces cursed wins and blessed losses to a win, a draw or a loss.
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

    /// 1 for a win, -1 for a loss, 0 for a draw.
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

/// Whether wins and losses that need more than fifty moves without progress count as draws.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum FiftyMoveRule {
    /// They are draws.
    #[default]
    Obeyed,
    /// They are wins and losses.
    Ignored,
}

pub trait Tablebase: Send + Sync {
    /// The largest number of pieces in any table, kings included.
    fn max_pieces(&self) -> usize;

    /// The result if the last move was a capture or a pawn move; `None` if it is unknown.
    fn after_zeroing(&self, position: &Chess) -> Option<TableResult>;

    /// The result with the position's halfmove clock; `None` if it is unknown or not certain.
    fn result(&self, position: &Chess) -> Option<TableResult>;

    /// Plies to the next capture, pawn move or mate with best play: negative if the side to move
    /// loses, 0 for a draw. May be one ply too short.
    fn dtz(&self, position: &Chess) -> Option<i32>;

    /// The first damage that a probe found.
    fn damage(&self) -> Option<String> {
        None
    }
}

/// A tablebase with limits on its use.
#[derive(Clone)]
pub struct Tables {
    tablebase: Arc<dyn Tablebase>,
    max_pieces: usize,
    rule: FiftyMoveRule,
}

impl Tables {
    /// The whole tablebase, under the fifty-move rule.
    pub fn new(tablebase: Arc<dyn Tablebase>) -> Tables {
        let max_pieces = tablebase.max_pieces();
        Tables { tablebase, max_pieces, rule: FiftyMoveRule::Obeyed }
    }

    /// Limits lookups to positions with at most this many pieces.
    #[must_use]
    pub fn up_to(mut self, pieces: usize) -> Tables {
        self.max_pieces = self.tablebase.max_pieces().min(pieces);
        self
    }

    #[must_use]
    pub fn under(mut self, rule: FiftyMoveRule) -> Tables {
        self.rule = rule;
        self
    }

    pub fn max_pieces(&self) -> usize {
        self.max_pieces
    }

    pub fn rule(&self) -> FiftyMoveRule {
        self.rule
    }

    /// A win, a draw or a loss that a search may treat as certain.
    ///
    /// Only for positions right after a capture or a pawn move. In other positions a win may come
    /// too late, and a search that treats it as certain has no reason to make progress.
    pub fn in_search(&self, position: &Chess) -> Option<TableResult> {
        if position.halfmoves() != 0 || !self.covers(position) {
            return None;
        }
        self.tablebase.after_zeroing(position).map(|result| result.under(self.rule))
    }

    /// The adjudicated outcome of a game, with the position's halfmove clock.
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

    /// The first damage that a probe found.
    pub fn damage(&self) -> Option<String> {
        self.tablebase.damage()
    }

    /// Tablebases do not contain positions with castling rights.
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
