//! EPD, positions with operations: test suites and opening files, one position per line.
//!
//! The moves of `bm` and `am` must be legal, because a suite that expects an impossible move
//! would silently lower every score. Other operations are stored unchanged.

use std::fmt;
use std::io::{self, BufRead};

use shakmaty::{Chess, Move, Position};

use crate::fen::{FenError, parse_fen, to_fen};
use crate::notation::MoveError;
use crate::pgn::line::{LineRead, Lines, decode};
use crate::pgn::movetext::read_move;

/// Longer lines are an error.
const MAX_LINE: usize = 1 << 20;

/// A position with its operations.
///
/// ```
/// use selfmate_chess::epd::Epd;
/// let epd: Epd = "6k1/5ppp/8/8/8/8/8/R5K1 w - - bm Ra8#; id \"back rank\"; dm 1;".parse()?;
/// assert_eq!(epd.best_moves().len(), 1);
/// assert_eq!((epd.id(), epd.dm()), (Some("back rank"), Some(1)));
/// # Ok::<(), selfmate_chess::epd::EpdError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Epd {
    position: Chess,
    operations: Vec<Operation>,
    best_moves: Vec<Move>,
    avoid_moves: Vec<Move>,
    dm: Option<u32>,
}

/// An operation, such as `bm Nf3 e4`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// The operation's name, such as `bm`.
    pub opcode: String,
    /// The arguments, without quotes.
    pub operands: Vec<String>,
}

/// Why a line is not a valid EPD.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EpdError {
    #[error("'{0}' is not a position: expected board, side to move, castling and en passant")]
    Fields(String),
    #[error("{0}")]
    Fen(FenError),
    #[error("'{0}' is not an operation: expected a name that starts with a letter, such as bm")]
    Opcode(String),
    #[error("operand of '{0}' is not closed: expected '\"'")]
    OpenQuote(String),
    #[error("'{operand}' after '{opcode}': expected a whole number")]
    Number { opcode: String, operand: String },
    #[error("{opcode} for {fen}: {error}")]
    Move { opcode: String, fen: String, error: MoveError },
}

/// A line of an EPD file that could not be read.
#[derive(Debug, thiserror::Error)]
pub enum EpdReadError {
    /// The line is not a valid EPD. The reader goes on with the next line.
    #[error("line {line}: {error}")]
    Line { line: usize, error: EpdError },
    /// The reader goes on with the next line.
    #[error("line {line}: longer than {MAX_LINE} bytes")]
    TooLong { line: usize },
    /// The input failed. The reader stops.
    #[error("line {line}: cannot read: {error}")]
    Io { line: usize, error: io::Error },
}

impl Epd {
    pub fn new(position: Chess) -> Epd {
        Epd {
            position,
            operations: Vec::new(),
            best_moves: Vec::new(),
            avoid_moves: Vec::new(),
            dm: None,
        }
    }

    /// Parses one line. The clocks may be in the FEN fields or in `hmvc` and `fmvn`.
    pub fn parse(line: &str) -> Result<Epd, EpdError> {
        let (fields, rest) =
            split_fields(line.trim()).ok_or_else(|| EpdError::Fields(shorten(line.trim())))?;
        let (mut clocks, rest) = split_clocks(rest);
        let mut operations = split_operations(rest)?;
        for (clock, opcode) in clocks.iter_mut().zip(["hmvc", "fmvn"]) {
            if let Some(operation) = operations.iter().find(|op| op.opcode == opcode) {
                *clock = operation.number()?;
            }
        }
        operations.retain(|op| op.opcode != "hmvc" && op.opcode != "fmvn");
        let [halfmoves, fullmoves] = clocks;
        let fen = format!("{} {halfmoves} {fullmoves}", fields.join(" "));
        let mut epd = Epd::new(parse_fen(&fen).map_err(EpdError::Fen)?);
        for operation in operations {
            epd.push(operation)?;
        }
        Ok(epd)
    }

    /// Adds an operation. The moves of `bm` and `am` and the number of `dm` are validated.
    pub fn push(&mut self, operation: Operation) -> Result<(), EpdError> {
        match operation.opcode.as_str() {
            "bm" => self.best_moves.extend(operation.moves(&self.position)?),
            "am" => self.avoid_moves.extend(operation.moves(&self.position)?),
            "dm" => self.dm = Some(operation.number()?),
            _ => {}
        }
        self.operations.push(operation);
        Ok(())
    }

    pub fn position(&self) -> &Chess {
        &self.position
    }

    /// All operations except `hmvc` and `fmvn`, in file order.
    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }

    /// The operands of the first operation with this name.
    pub fn operands(&self, opcode: &str) -> Option<&[String]> {
        let operation = self.operations.iter().find(|op| op.opcode == opcode)?;
        Some(&operation.operands)
    }

    /// The first operand of an operation: the text of `id` or `c0` to `c9`, the number of `acd`.
    pub fn operand(&self, opcode: &str) -> Option<&str> {
        self.operands(opcode)?.first().map(String::as_str)
    }

    /// The moves that solve the position (`bm`).
    pub fn best_moves(&self) -> &[Move] {
        &self.best_moves
    }

    /// The moves that are wrong (`am`).
    pub fn avoid_moves(&self) -> &[Move] {
        &self.avoid_moves
    }

    /// The name of the position (`id`).
    pub fn id(&self) -> Option<&str> {
        self.operand("id")
    }

    /// The number of moves to mate (`dm`).
    pub fn dm(&self) -> Option<u32> {
        self.dm
    }

    /// The points of each move in suites such as STS: `c0 "f5=10, Be5+=2"`. Items that are not a
    /// legal move and a number are ignored, because `c0` is also used for plain comments.
    pub fn points(&self) -> Vec<(Move, u32)> {
        let items = self.operand("c0").unwrap_or("").split(',');
        items
            .filter_map(|item| {
                let (text, points) = item.trim().rsplit_once('=')?;
                let m = read_move(&self.position, text.trim()).ok()?;
                Some((m, points.trim().parse().ok()?))
            })
            .collect()
    }
}

impl std::str::FromStr for Epd {
    type Err = EpdError;

    fn from_str(line: &str) -> Result<Epd, EpdError> {
        Epd::parse(line)
    }
}

impl fmt::Display for Epd {
    /// One line. Writes `hmvc` and `fmvn` only if the clocks are not those of a new game.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fen = to_fen(&self.position);
        let board_to_en_passant: Vec<&str> = fen.split(' ').take(4).collect();
        f.write_str(&board_to_en_passant.join(" "))?;
        let (halfmoves, fullmoves) = (self.position.halfmoves(), self.position.fullmoves().get());
        if (halfmoves, fullmoves) != (0, 1) {
            write!(f, " hmvc {halfmoves}; fmvn {fullmoves};")?;
        }
        for operation in &self.operations {
            write!(f, " {operation};")?;
        }
        Ok(())
    }
}

impl Operation {
    pub fn new(opcode: impl Into<String>, operand: impl Into<String>) -> Operation {
        Operation { opcode: opcode.into(), operands: vec![operand.into()] }
    }

    fn number(&self) -> Result<u32, EpdError> {
        let operand = self.operands.first().map_or("", String::as_str);
        operand.parse().map_err(|_| EpdError::Number {
            opcode: self.opcode.clone(),
            operand: shorten(operand),
        })
    }

    fn moves(&self, position: &Chess) -> Result<Vec<Move>, EpdError> {
        let texts = self.operands.iter().map(|operand| operand.trim_end_matches(','));
        let moves = texts.filter(|text| !text.is_empty()).map(|text| {
            let text = if text.len() > 60 { shorten(text) } else { text.to_owned() };
            read_move(position, &text).map_err(|error| EpdError::Move {
                opcode: self.opcode.clone(),
                fen: to_fen(position),
                error,
            })
        });
        moves.collect()
    }

    /// True for operations whose operand the standard requires to be quoted.
    fn is_text(&self) -> bool {
        matches!(self.opcode.as_bytes(), b"id" | [b'c', b'0'..=b'9'])
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.opcode)?;
        for operand in &self.operands {
            let special = |c: char| c.is_whitespace() || c == ';' || c == '"';
            if self.is_text() || operand.is_empty() || operand.contains(special) {
                // EPD cannot escape a quote or a line break inside quotes.
                write!(f, " \"{}\"", operand.replace('"', "'").replace(['\n', '\r'], " "))?;
            } else {
                write!(f, " {operand}")?;
            }
        }
        Ok(())
    }
}

/// Reads the positions of a file. Skips empty lines and lines that start with `#`. A bad line
/// yields an error and reading goes on; an I/O error ends it.
pub fn read_epd<R: BufRead>(input: R) -> EpdReader<R> {
    EpdReader { lines: Lines::new(input), line: Vec::new(), ended: false }
}

/// Made by [`read_epd`].
#[derive(Debug)]
pub struct EpdReader<R> {
    lines: Lines<R>,
    line: Vec<u8>,
    ended: bool,
}

impl<R: BufRead> Iterator for EpdReader<R> {
    type Item = Result<Epd, EpdReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.ended {
            match self.lines.read(&mut self.line, MAX_LINE) {
                Ok(LineRead::End) => self.ended = true,
                Ok(LineRead::Cut) => {
                    return Some(Err(EpdReadError::TooLong { line: self.lines.number }));
                }
                Err(error) => {
                    self.ended = true;
                    return Some(Err(EpdReadError::Io { line: self.lines.number.max(1), error }));
                }
                Ok(LineRead::Whole) => {
                    let text = decode(&self.line);
                    let text = text.trim();
                    if !text.is_empty() && !text.starts_with('#') {
                        let line = self.lines.number;
                        let epd = Epd::parse(text);
                        return Some(epd.map_err(|error| EpdReadError::Line { line, error }));
                    }
                }
            }
        }
        None
    }
}

/// Splits off the first four fields. A `;` may follow them without a space.
fn split_fields(line: &str) -> Option<([&str; 4], &str)> {
    let mut fields = [""; 4];
    let mut rest = line;
    for field in &mut fields {
        let trimmed = rest.trim_start();
        let end = trimmed.find(|c: char| c.is_whitespace() || c == ';').unwrap_or(trimmed.len());
        (*field, rest) = trimmed.split_at(end);
        if field.is_empty() {
            return None;
        }
    }
    Some((fields, rest))
}

/// Splits off the clocks of a full FEN. Missing clocks are those of a new game.
fn split_clocks(rest: &str) -> ([u32; 2], &str) {
    let mut clocks = [0, 1];
    let mut rest = rest.trim_start();
    for clock in &mut clocks {
        let end = rest.find(|c: char| c.is_whitespace() || c == ';').unwrap_or(rest.len());
        let Ok(number) = rest[..end].parse() else { break };
        *clock = number;
        rest = rest[end..].trim_start();
    }
    (clocks, rest)
}

fn split_operations(rest: &str) -> Result<Vec<Operation>, EpdError> {
    let mut operations = Vec::new();
    let mut rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == ';');
    while !rest.is_empty() {
        let mut words = Vec::new();
        while !rest.is_empty() && !rest.starts_with(';') {
            let word;
            if let Some(quoted) = rest.strip_prefix('"') {
                let open =
                    || EpdError::OpenQuote(shorten(words.first().map_or("", String::as_str)));
                (word, rest) = quoted.split_once('"').ok_or_else(open)?;
            } else {
                let end = rest.find(|c: char| c.is_whitespace() || c == ';');
                (word, rest) = rest.split_at(end.unwrap_or(rest.len()));
            }
            words.push(word.to_owned());
            rest = rest.trim_start();
            if words.len() == 1 && !word.starts_with(|c: char| c.is_ascii_alphabetic()) {
                return Err(EpdError::Opcode(shorten(word)));
            }
        }
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == ';');
        let opcode = words.remove(0);
        operations.push(Operation { opcode, operands: words });
    }
    Ok(operations)
}

/// Shortens text that an error message quotes.
fn shorten(text: &str) -> String {
    text.chars().take(80).collect()
}
