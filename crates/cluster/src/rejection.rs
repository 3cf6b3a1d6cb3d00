//! Why a game is not taken.

use selfmate_run::RecordError;
use selfmate_selfplay::RecordMismatch;

/// Why a game is not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// Not asked for from whoever sends it, or not even a envelope. Anybody can put such a thing on a
    /// subject that the broker does not guard, so it is held against nobody.
    #[error("not asked for: {0}")]
    Unasked(String),
    /// For an order that is over.
    #[error("too late: its generation is over")]
    Late,
    /// The record cannot be unpacked, or is too large.
    #[error("the record {0}")]
    Packing(String),
    /// The record is no game: an illegal move, a wrong result, a policy that is none.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The game of a match is none, or cannot be one of it.
    #[error("not a game of this match: {0}")]
    Game(String),
    /// The record is another game than the envelope says.
    #[error("game {got} in the envelope of game {expected}")]
    Number {
        /// What the envelope says.
        expected: u64,
        /// What is in it.
        got: u64,
    },
    /// The record could be written shorter or in another way.
    #[error("the record is not written as records are")]
    Spelling,
    /// The game cannot be one of its generation.
    #[error(transparent)]
    Mismatch(#[from] RecordMismatch),
    /// FinishedGame again, it is another game.
    #[error("played again, it is another game: {0}")]
    Audit(String),
}

impl Rejection {
    /// One word for it, for counts.
    pub const fn kind(&self) -> &'static str {
        match self {
            Rejection::Unasked(_) => "unasked",
            Rejection::Late => "late",
            Rejection::Packing(_) => "packing",
            Rejection::Record(_) | Rejection::Game(_) => "record",
            Rejection::Number { .. } => "number",
            Rejection::Spelling => "spelling",
            Rejection::Mismatch(_) => "mismatch",
            Rejection::Audit(_) => "audit",
        }
    }

    /// True when it shows that the worker cannot be trusted: it had the right to send this game,
    /// so nobody else can have sent it.
    pub const fn is_proof(&self) -> bool {
        !matches!(self, Rejection::Unasked(_) | Rejection::Late)
    }
}
