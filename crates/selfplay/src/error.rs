//! Why games cannot be played.

use std::error::Error;

use selfmate_run::{RecordError, RunError};
use selfmate_search::memory::MemoryError;

#[derive(Debug, thiserror::Error)]
pub enum SelfPlayError {
    #[error(transparent)]
    Run(#[from] RunError),
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// The network cannot be encoded for other machines.
    #[error(transparent)]
    Model(Box<dyn Error + Send + Sync>),
    /// A [`crate::GameSource`] of another crate failed.
    #[error(transparent)]
    Source(Box<dyn Error + Send + Sync>),
}
