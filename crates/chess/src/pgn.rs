//! Games as text (PGN): a streaming reader that names game and line of every fault, and a writer.
//!
//! Reading is lenient about how people and programs write (see [`Reader`]) and strict about
//! what it means: a token that is not understood is an error, never skipped. A broken game
//! does not stop the games after it.

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

/// One game of a PGN file: its tags, its moves and what was said about them.
#[derive(Clone, Debug)]
pub struct PgnGame {
    /// The tag pairs in the order of the file.
    pub tags: Vec<(String, String)>,
    /// The start position and the main line.
    pub game: Game,
    /// One note for each move of the main line. A shorter list leaves the last moves without.
    pub notes: Vec<Note>,
    /// What is said before the first move.
    pub comment: Option<String>,
    /// The result: the one at the end of the moves, or the `Result` tag when that is missing.
    pub result: PgnResult,
    /// The line of the file the game starts on, from 1; 0 for a game that was not read.
    pub line: usize,
}

impl PgnGame {
    /// A game to be written, without tags; its result is how the game ended, if it did.
    pub fn new(game: Game) -> PgnGame {
        let result = game.outcome().map_or(PgnResult::Unknown, PgnResult::from);
        PgnGame { tags: Vec::new(), game, notes: Vec::new(), comment: None, result, line: 0 }
    }

    /// The value of a tag; of the first one when it is there twice.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.tags.iter().find(|(tag, _)| tag == name).map(|(_, value)| value.as_str())
    }

    /// Sets a tag, in place when it is there already.
    pub fn set(&mut self, name: &str, value: impl Into<String>) {
        let value = value.into();
        match self.tags.iter_mut().find(|(tag, _)| tag == name) {
            Some((_, old)) => *old = value,
            None => self.tags.push((name.to_owned(), value)),
        }
    }

    /// The note on the move with this index in the main line, made when it is missing.
    pub fn note_mut(&mut self, ply: usize) -> &mut Note {
        if self.notes.len() <= ply {
            self.notes.resize_with(ply + 1, Note::default);
        }
        &mut self.notes[ply]
    }
}

/// What is said about one move.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Note {
    /// Numeric annotation glyphs; `!` is 1, `?` is 2 and so on.
    pub nags: Vec<u16>,
    /// The comments after the move, joined, with white space collapsed.
    pub comment: Option<String>,
    /// Lines that replace this move.
    pub variations: Vec<Variation>,
}

impl Note {
    /// The evaluation, time and clock in the comment, if there are any.
    pub fn eval(&self) -> Option<Eval> {
        Eval::parse(self.comment.as_deref()?)
    }
}

impl From<Eval> for Note {
    fn from(eval: Eval) -> Note {
        Note { comment: Some(eval.to_string()), ..Note::default() }
    }
}

/// A line that was not played.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Variation {
    /// What is said before the first move.
    pub comment: Option<String>,
    /// The moves, each with its note.
    pub moves: Vec<VariationMove>,
}

/// One move of a variation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VariationMove {
    /// The move, legal where it stands; `None` for a null move, which only analysis may contain.
    pub played: Option<Move>,
    /// What is said about it.
    pub note: Note,
}

/// The result of a game as PGN knows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PgnResult {
    /// `1-0`
    White,
    /// `0-1`
    Black,
    /// `1/2-1/2`
    Draw,
    /// `*`: unfinished, abandoned or not known.
    #[default]
    Unknown,
}

impl PgnResult {
    /// Reads a result; `None` for any other text.
    pub fn parse(text: &str) -> Option<PgnResult> {
        Some(match text {
            "1-0" => PgnResult::White,
            "0-1" => PgnResult::Black,
            "1/2-1/2" | "1/2" => PgnResult::Draw,
            "*" => PgnResult::Unknown,
            _ => return None,
        })
    }

    /// The result as PGN writes it.
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

/// A game that could not be read: which one, where, and why.
#[derive(Debug, thiserror::Error)]
#[error("game {game}, line {line}: {fault}")]
pub struct PgnError {
    /// The number of the game in the file, from 1; broken games count.
    pub game: usize,
    /// The line of the fault, from 1.
    pub line: usize,
    /// What was wrong there.
    pub fault: PgnFault,
}

/// What can be wrong with a game.
#[derive(Debug, thiserror::Error)]
pub enum PgnFault {
    /// A token in the place of a move is no legal move.
    #[error("{0}")]
    Move(MoveError),
    /// A null move where only real moves may stand.
    #[error("null move '{0}' in the main line: expected a move; only variations may pass")]
    NullMove(String),
    /// A null move by a side that is in check.
    #[error("null move '{0}' while in check: expected a move")]
    NullMoveInCheck(String),
    /// The FEN tag is no position.
    #[error("FEN tag: {0}")]
    Fen(FenError),
    /// Another variant of chess.
    #[error("Variant tag '{0}': expected Standard or Chess960")]
    Variant(String),
    /// A line of the tag section that is no tag pair.
    #[error("bad tag '{0}': expected [Name \"value\"]")]
    Tag(String),
    /// A `{` without its `}`.
    #[error("comment is not closed: expected '}}'")]
    OpenComment,
    /// A `(` without its `)`.
    #[error("variation that starts here is not closed: expected ')'")]
    OpenVariation,
    /// A `(` before any move.
    #[error("variation before any move: expected a move that it replaces")]
    EarlyVariation,
    /// A character that cannot start anything here.
    #[error("unexpected '{0}': expected a move, a comment, a variation or a result")]
    Unexpected(String),
    /// A `$` without a number that can be a glyph.
    #[error("bad annotation glyph '{0}': expected $0 to $65535")]
    Nag(String),
    /// Variations inside variations without end.
    #[error("variations nested deeper than {0}")]
    TooDeep(usize),
    /// More moves than a game may have here, counting variations.
    #[error("more than {0} moves, counting variations")]
    TooManyMoves(usize),
    /// More text than a game may have here.
    #[error("more than {0} bytes for one game")]
    TooLong(usize),
    /// The file could not be read on.
    #[error("cannot read: {0}")]
    Io(io::Error),
}
