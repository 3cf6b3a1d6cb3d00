//! Why a game is not taken.

use selfmate_learn::endgame::LogError;
use selfmate_learn::selfplay::Misfit;
use selfmate_run::RecordError;

/// Why a game is not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Not asked for from whoever sends it, or not even a parcel. Anybody can put such a thing on a
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
    /// The game of an ending is none, or cannot be one of its run.
    #[error("not a game of this ending: {0}")]
    Ending(#[from] LogError),
    /// The record is another game than the parcel says.
    #[error("game {got} in the parcel of game {expected}")]
    Number {
        /// What the parcel says.
        expected: u64,
        /// What is in it.
        got: u64,
    },
    /// The record could be written shorter or in another way.
    #[error("the record is not written as records are")]
    Spelling,
    /// The game cannot be one of its generation.
    #[error(transparent)]
    Misfit(#[from] Misfit),
    /// Played again, it is another game.
    #[error("played again, it is another game: {0}")]
    Audit(String),
}

impl Refusal {
    /// One word for it, for counts.
    pub const fn kind(&self) -> &'static str {
        match self {
            Refusal::Unasked(_) => "unasked",
            Refusal::Late => "late",
            Refusal::Packing(_) => "packing",
            Refusal::Record(_) | Refusal::Game(_) | Refusal::Ending(_) => "record",
            Refusal::Number { .. } => "number",
            Refusal::Spelling => "spelling",
            Refusal::Misfit(_) => "misfit",
            Refusal::Audit(_) => "audit",
        }
    }

    /// True when it shows that the worker cannot be trusted: it had the right to send this game,
    /// so nobody else can have sent it.
    pub const fn is_proof(&self) -> bool {
        !matches!(self, Refusal::Unasked(_) | Refusal::Late)
    }
}
