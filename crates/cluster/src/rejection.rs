//! Why a game is rejected, and whether that is enough to ban its worker. Who bans, and what never
//! leads to a ban, is described in the crate documentation.

use selfmate_run::RecordError;
use selfmate_selfplay::RecordMismatch;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// The token is not that of the sender, or the bytes are not an envelope. On a broker without
    /// permissions anyone can publish on a worker's subject, so this proves nothing about the worker.
    #[error("not asked for: {0}")]
    Unasked(String),
    /// The game belongs to a job that has ended.
    #[error("too late: its job has ended")]
    Late,
    /// The record cannot be decompressed, or is too large.
    #[error("the record {0}")]
    Packing(String),
    /// The record is not a valid game: an illegal move, a wrong result, or a policy that does not sum to 1.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The game is not valid, or cannot be the game of this match and number.
    #[error("not a game of this match: {0}")]
    Game(String),
    #[error("game {got} in the envelope of game {expected}")]
    Number { expected: u64, got: u64 },
    /// Decoding and encoding the record gives other bytes.
    #[error("the record is not in canonical form")]
    NotCanonical,
    /// The game cannot be the game of its generation and number.
    #[error(transparent)]
    Mismatch(#[from] RecordMismatch),
    /// An audit replayed the game with another result, or too many audited games diverged.
    #[error("failed the audit: {0}")]
    Audit(String),
}

impl Rejection {
    /// The key under which the status report counts it.
    pub const fn kind(&self) -> &'static str {
        match self {
            Rejection::Unasked(_) => "unasked",
            Rejection::Late => "late",
            Rejection::Packing(_) => "packing",
            Rejection::Record(_) | Rejection::Game(_) => "record",
            Rejection::Number { .. } => "number",
            Rejection::NotCanonical => "spelling",
            Rejection::Mismatch(_) => "mismatch",
            Rejection::Audit(_) => "audit",
        }
    }

    /// Whether the worker is banned for it. True only for games that carried the worker's token for
    /// the current job, because only the worker itself has that token.
    pub const fn is_proof(&self) -> bool {
        !matches!(self, Rejection::Unasked(_) | Rejection::Late)
    }
}
