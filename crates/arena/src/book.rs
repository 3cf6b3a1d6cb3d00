//! Opening books: Polyglot files, books learned from games, and how often a player agrees with one.

mod agreement;
mod learned;
mod polyglot;

use std::path::PathBuf;

pub use agreement::{BookConfig, BookReport, PlyAgreement, book_agreement};
pub use learned::{Advice, BookRules, LearnedBook};
pub use polyglot::PolyglotBook;

use crate::openings::OpeningError;
use crate::spec::SpecError;

/// Why a book cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BookError {
    /// The games to compare with cannot be read.
    #[error(transparent)]
    Games(#[from] OpeningError),
    /// The file is no Polyglot book.
    #[error("book {}: {reason}", file.display())]
    Polyglot {
        /// The file.
        file: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The file cannot be read or written.
    #[error("book {}: {error}", file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// What the system says.
        error: std::io::Error,
    },
    /// The player cannot be built.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The player failed.
    #[error("{0}")]
    Player(String),
}
