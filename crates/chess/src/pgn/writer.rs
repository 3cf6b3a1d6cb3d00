//! The PGN writer: the seven tag roster first, lines of at most 79 characters.

use std::fmt::{self, Write as _};
use std::io;

use shakmaty::{CastlingMode, Chess, Color, Move, Position};

use super::movetext::pass;
use super::token::collapse;
use super::{Note, PgnGame, Variation};
use crate::fen::to_fen;
use crate::notation::san;

/// The standard's export format requires fewer than 80 characters.
const WIDTH: usize = 79;

const ROSTER: [(&str, &str); 7] = [
    ("Event", "?"),
    ("Site", "?"),
    ("Date", "????.??.??"),
    ("Round", "?"),
    ("White", "?"),
    ("Black", "?"),
    ("Result", "*"),
];

/// Tags that follow from the game. Values set by the caller are ignored: they might contradict it.
const DERIVED: [&str; 5] = ["Result", "SetUp", "FEN", "PlyCount", "Variant"];

/// Writes one game and the empty line that separates it from the next.
///
/// ```
/// use selfmate_chess::{Game, pgn::{PgnGame, write_pgn}};
/// let mut file = Vec::new();
/// write_pgn(&mut file, &PgnGame::new(Game::new())).unwrap();
/// assert!(file.starts_with(b"[Event \"?\"]\n[Site \"?\"]\n[Date \"????.??.??\"]\n"));
/// ```
pub fn write_pgn(out: &mut impl io::Write, game: &PgnGame) -> io::Result<()> {
    writeln!(out, "{game}")
}

impl fmt::Display for PgnGame {
    /// The game as PGN, ending in a line feed. `Result`, `SetUp`, `FEN`, `PlyCount` and the
    /// `Variant` of Chess960 are computed from the game. Text that would break the format is
    /// changed as little as possible.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_tags(f)?;
        f.write_char('\n')?;
        let mut text = MoveText { out: f, column: 0, number_black: true };
        text.comment(self.comment.as_deref())?;
        let no_note = Note::default();
        let mut position = self.game.start().clone();
        for (ply, m) in self.game.moves().enumerate() {
            text.played(&mut position, Some(m), self.notes.get(ply).unwrap_or(&no_note))?;
        }
        text.word(self.result.as_str())?;
        f.write_char('\n')
    }
}

impl PgnGame {
    fn write_tags(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, default) in ROSTER {
            let value = match name {
                "Result" => self.result.as_str(),
                _ => self.get(name).unwrap_or(default),
            };
            tag(f, name, value)?;
        }
        let start = self.game.start();
        let chess960 = start.castles().mode() == CastlingMode::Chess960;
        if chess960 {
            tag(f, "Variant", "Chess960")?;
        }
        let fen = to_fen(start);
        if chess960 || fen != to_fen(&Chess::default()) {
            tag(f, "SetUp", "1")?;
            tag(f, "FEN", &fen)?;
        }
        for (name, value) in &self.tags {
            let known = ROSTER.iter().any(|(tag, _)| tag == name);
            if !known && !DERIVED.contains(&name.as_str()) {
                tag(f, name, value)?;
            }
        }
        tag(f, "PlyCount", &self.game.ply().to_string())
    }
}

/// Writes a tag pair. Drops characters that are not allowed in a name.
fn tag(f: &mut fmt::Formatter<'_>, name: &str, value: &str) -> fmt::Result {
    let name: String = name.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
    if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return Ok(());
    }
    write!(f, "[{name} \"")?;
    for c in value.chars() {
        match c {
            '"' | '\\' => write!(f, "\\{c}")?,
            '\n' | '\r' => f.write_char(' ')?,
            _ => f.write_char(c)?,
        }
    }
    f.write_str("\"]\n")
}

/// Writes move text with line breaks.
struct MoveText<'a, 'f> {
    out: &'a mut fmt::Formatter<'f>,
    column: usize,
    /// The next move needs a number even if it is Black's, because it follows a comment or bracket.
    number_black: bool,
}

impl MoveText<'_, '_> {
    fn played(&mut self, position: &mut Chess, m: Option<Move>, note: &Note) -> fmt::Result {
        let number = position.fullmoves();
        match position.turn() {
            Color::White => self.word(&format!("{number}."))?,
            Color::Black if self.number_black => self.word(&format!("{number}..."))?,
            Color::Black => {}
        }
        self.number_black = false;
        let before = position.clone();
        match m {
            Some(m) => {
                self.word(&san(position, m))?;
                position.play_unchecked(m);
            }
            None => {
                self.word("--")?;
                *position = pass(position).unwrap_or_else(|| position.clone());
            }
        }
        for nag in &note.nags {
            self.word(&format!("${nag}"))?;
        }
        self.comment(note.comment.as_deref())?;
        for variation in &note.variations {
            self.variation(before.clone(), variation)?;
        }
        Ok(())
    }

    fn variation(&mut self, mut position: Chess, variation: &Variation) -> fmt::Result {
        self.word("(")?;
        self.number_black = true;
        self.comment(variation.comment.as_deref())?;
        for played in &variation.moves {
            self.played(&mut position, played.played, &played.note)?;
        }
        self.word(")")?;
        self.number_black = true;
        Ok(())
    }

    fn comment(&mut self, comment: Option<&str>) -> fmt::Result {
        let comment = collapse(comment.unwrap_or(""));
        if comment.is_empty() {
            return Ok(());
        }
        // A brace inside a comment cannot be escaped.
        let comment = if comment.contains('}') {
            comment.replace('{', "(").replace('}', ")")
        } else {
            comment
        };
        let mut unit = String::from("{");
        for (index, word) in comment.split(' ').enumerate() {
            // At the start of a line, simple readers would take these for a tag, an escape or a
            // comment.
            if index > 0 && word.starts_with(['[', '%', ';']) {
                unit.push(' ');
            } else if index > 0 {
                self.word(&unit)?;
                unit.clear();
            }
            unit.push_str(word);
        }
        unit.push('}');
        self.number_black = true;
        self.word(&unit)
    }

    /// Writes a word after a space, or on a new line if it does not fit.
    fn word(&mut self, word: &str) -> fmt::Result {
        let width = word.chars().count();
        if self.column > 0 && self.column + 1 + width > WIDTH {
            self.out.write_char('\n')?;
            self.column = 0;
        } else if self.column > 0 {
            self.out.write_char(' ')?;
            self.column += 1;
        }
        self.column += width;
        self.out.write_str(word)
    }
}
