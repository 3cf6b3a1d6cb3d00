//! PGN: a streaming reader that reports the game and line of every error, and a writer.
//!
//! The reader accepts the many ways in which people and programs write moves (see [`Reader`]),
//! but every token must have a meaning: an unknown token is an error and never skipped. A broken
//! game does not stop the games after it.

mod chunk;
mod eval;
pub(crate) mod line;
pub(crate) mod movetext;
mod reader;
mod token;
mod writer;

use std::fmt;
use std::io;

use shakmaty::{Color, Move};

pub use eval::{Eval, PovScore, Score};
pub use reader::Reader;
pub use writer::write_pgn;

use crate::fen::FenError;
use crate::game::Game;
use crate::notation::MoveError;
use crate::outcome::Outcome;

/// One game of a PGN file: tags, moves and annotations.
#[derive(Clone, Debug)]
pub struct PgnGame {
    /// Name and value, in file order.
    pub tags: Vec<(String, String)>,
    /// The start position and the main line.
    pub game: Game,
    /// One note for each move of the main line. May be shorter: later moves have no notes.
    pub notes: Vec<Note>,
    /// The comment before the first move.
    pub comment: Option<String>,
    /// The result at the end of the moves, or the `Result` tag if there is none.
    pub result: PgnResult,
    /// The line of the file on which the game starts, from 1; 0 for a game that was not read.
    pub line: usize,
}

impl PgnGame {
    /// A game without tags. Its result is the outcome of the game, if it is over.
    pub fn new(game: Game) -> PgnGame {
        let result = game.outcome().map_or(PgnResult::Unknown, PgnResult::from);
        PgnGame { tags: Vec::new(), game, notes: Vec::new(), comment: None, result, line: 0 }
    }

    /// The value of a tag; the first one if the tag occurs twice.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.tags.iter().find(|(tag, _)| tag == name).map(|(_, value)| value.as_str())
    }

    /// Sets a tag. An existing tag keeps its place.
    pub fn set(&mut self, name: &str, value: impl Into<String>) {
        let value = value.into();
        match self.tags.iter_mut().find(|(tag, _)| tag == name) {
            Some((_, old)) => *old = value,
            None => self.tags.push((name.to_owned(), value)),
        }
    }

    /// The note on the move with this index in the main line. Adds it if it is missing.
    pub fn note_mut(&mut self, ply: usize) -> &mut Note {
        if self.notes.len() <= ply {
            self.notes.resize_with(ply + 1, Note::default);
        }
        &mut self.notes[ply]
    }
}

/// The annotations of one move.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Note {
    /// Numeric annotation glyphs (NAGs): `!` is 1, `?` is 2 and so on.
    pub nags: Vec<u16>,
    /// The comments after the move, joined, with white space collapsed.
    pub comment: Option<String>,
    /// Alternatives to this move.
    pub variations: Vec<Variation>,
}

impl Note {
    /// The evaluation, time and clock in the comment, if any.
    pub fn eval(&self) -> Option<Eval> {
        Eval::parse(self.comment.as_deref()?)
    }
}

impl From<Eval> for Note {
    fn from(eval: Eval) -> Note {
        Note { comment: Some(eval.to_string()), ..Note::default() }
    }
}

/// An alternative line that was not played.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Variation {
    /// The comment before the first move.
    pub comment: Option<String>,
    pub moves: Vec<VariationMove>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VariationMove {
    /// A legal move; `None` for a null move, which is allowed in variations only.
    pub played: Option<Move>,
    pub note: Note,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PgnResult {
    /// `1-0`
    White,
    /// `0-1`
    Black,
    /// `1/2-1/2`
    Draw,
    /// `*`: unfinished, abandoned or unknown.
    #[default]
    Unknown,
}

impl PgnResult {
    pub fn parse(text: &str) -> Option<PgnResult> {
        Some(match text {
            "1-0" => PgnResult::White,
            "0-1" => PgnResult::Black,
            "1/2-1/2" | "1/2" => PgnResult::Draw,
            "*" => PgnResult::Unknown,
            _ => return None,
        })
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            PgnResult::White => "1-0",
            PgnResult::Black => "0-1",
            PgnResult::Draw => "1/2-1/2",
            PgnResult::Unknown => "*",
        }
    }
}

impl fmt::Display for PgnResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl From<Outcome> for PgnResult {
    fn from(outcome: Outcome) -> PgnResult {
        match outcome.winner {
            Some(Color::White) => PgnResult::White,
            Some(Color::Black) => PgnResult::Black,
            None if outcome.is_truncated() => PgnResult::Unknown,
            None => PgnResult::Draw,
        }
    }
}

/// A game that could not be read.
#[derive(Debug, thiserror::Error)]
#[error("game {game}, line {line}: {fault}")]
pub struct PgnError {
    /// The number of the game in the file, from 1. Broken games count.
    pub game: usize,
    /// From 1.
    pub line: usize,
    pub fault: PgnFault,
}

#[derive(Debug, thiserror::Error)]
pub enum PgnFault {
    #[error("{0}")]
    Move(MoveError),
    #[error(
        "null move '{0}' in the main line: expected a move; null moves are allowed in variations only"
    )]
    NullMove(String),
    #[error("null move '{0}' while in check: expected a move")]
    NullMoveInCheck(String),
    #[error("FEN tag: {0}")]
    Fen(FenError),
    #[error("Variant tag '{0}': expected Standard or Chess960")]
    Variant(String),
    #[error("bad tag '{0}': expected [Name \"value\"]")]
    Tag(String),
    #[error("comment is not closed: expected '}}'")]
    OpenComment,
    #[error("variation that starts here is not closed: expected ')'")]
    OpenVariation,
    #[error("variation before any move: expected a move that it replaces")]
    EarlyVariation,
    #[error("unexpected '{0}': expected a move, a comment, a variation or a result")]
    Unexpected(String),
    #[error("bad annotation glyph '{0}': expected $0 to $65535")]
    Nag(String),
    #[error("variations nested deeper than {0}")]
    TooDeep(usize),
    #[error("more than {0} moves, counting variations")]
    TooManyMoves(usize),
    #[error("more than {0} bytes for one game")]
    TooLong(usize),
    /// The input failed. The reader stops.
    #[error("cannot read: {0}")]
    Io(io::Error),
}
