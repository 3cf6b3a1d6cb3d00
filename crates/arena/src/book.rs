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

#[derive(Debug, thiserror::Error)]
pub enum BookError {
    #[error(transparent)]
    Games(#[from] OpeningError),
    #[error("book {}: {reason}", file.display())]
    Polyglot { file: PathBuf, reason: String },
    #[error("book {}: {error}", file.display())]
    Io { file: PathBuf, error: std::io::Error },
    #[error(transparent)]
    Spec(#[from] SpecError),
    #[error("{0}")]
    Player(String),
}
