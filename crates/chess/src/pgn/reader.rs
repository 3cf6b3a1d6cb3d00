//! The PGN reader, one game at a time.

use std::io::BufRead;

use shakmaty::{Chess, Move, Position};

use super::chunk::{Chunk, Chunks};
use super::line::decode;
use super::movetext::{Word, as_chess960, pass, read_move};
use super::token::{Cursor, Token, shorten};
use super::{Note, PgnError, PgnFault, PgnGame, PgnResult, Variation, VariationMove};
use crate::fen::parse_fen;
use crate::game::Game;
use crate::notation::MoveError;

/// The most text of one game. A limit is needed so that no file can exhaust the memory.
const MAX_BYTES: usize = 16 << 20;
/// Moves take more memory than their text. The longest possible game has fewer than 18,000.
const MAX_MOVES: usize = 200_000;
const MAX_DEPTH: usize = 100;

/// Reads games from a file, in bounded memory.
///
/// Accepts tags, comments (`{}`, `;`), `%` lines, annotation glyphs (`$1`, `!?`, `+-`), nested
/// variations, all forms of move numbers, `0-0`, and moves in long algebraic or UCI notation.
/// Text that is not UTF-8 is read as Latin-1. The `FEN` tag gives the start position, the
/// `Variant` tag selects Chess960. A broken game yields an error, and reading goes on with the
/// next game. An I/O error ends the iteration.
///
/// ```
/// use selfmate_chess::pgn::Reader;
/// let text = "1. e4 e5 2. Nf9 *\n\n[White \"Anna\"]\n\n1. d4 1-0\n";
/// let games: Vec<_> = Reader::new(text.as_bytes()).collect();
/// let error = games[0].as_ref().unwrap_err().to_string();
/// assert!(error.starts_with("game 1, line 1: 'Nf9' is not a move"), "{error}");
/// assert_eq!(games[1].as_ref().unwrap().get("White"), Some("Anna"));
/// ```
#[derive(Debug)]
pub struct Reader<R> {
    chunks: Chunks<R>,
    chunk: Chunk,
    cursor: Cursor,
    /// `chunk` may contain more games.
    in_chunk: bool,
    games: usize,
    ended: bool,
}

impl<R: BufRead> Reader<R> {
    pub fn new(input: R) -> Reader<R> {
        Reader {
            chunks: Chunks::new(input, MAX_BYTES),
            chunk: Chunk::default(),
            cursor: Cursor::default(),
            in_chunk: false,
            games: 0,
            ended: false,
        }
    }

    fn error(&mut self, line: usize, fault: PgnFault) -> PgnError {
        self.games += 1;
        PgnError { game: self.games, line, fault }
    }
}

impl<R: BufRead> Iterator for Reader<R> {
    type Item = Result<PgnGame, PgnError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.ended {
            if !self.in_chunk {
                match self.chunks.read(&mut self.chunk) {
                    Ok(Some(())) => {}
                    Ok(None) => {
                        self.ended = true;
                        break;
                    }
                    Err(error) => {
                        self.ended = true;
                        return Some(Err(
                            self.error(self.chunks.line().max(1), PgnFault::Io(error))
                        ));
                    }
                }
                if self.chunk.cut {
                    return Some(Err(self.error(self.chunk.line, PgnFault::TooLong(MAX_BYTES))));
                }
                self.cursor = Cursor { at: 0, line: self.chunk.line };
                self.in_chunk = true;
            }
            let mut parser = Parser::new(&self.chunk.text, &mut self.cursor);
            match parser.game() {
                Ok(Some(game)) => {
                    self.games += 1;
                    return Some(Ok(game));
                }
                Ok(None) => self.in_chunk = false,
                Err(Fault(line, fault)) => {
                    parser.skip_game();
                    return Some(Err(self.error(line, fault)));
                }
            }
        }
        None
    }
}

/// A line number and what is wrong there.
struct Fault(usize, PgnFault);

struct Parser<'t> {
    text: &'t [u8],
    cursor: &'t mut Cursor,
    moves: usize,
    /// The nesting depth of variations.
    depth: usize,
}

impl<'t> Parser<'t> {
    fn new(text: &'t [u8], cursor: &'t mut Cursor) -> Parser<'t> {
        Parser { text, cursor, moves: 0, depth: 0 }
    }

    fn token(&mut self) -> Result<(usize, Token<'t>), Fault> {
        let (line, token) = self.cursor.next(self.text);
        token.map(|token| (line, token)).map_err(|fault| Fault(line, fault))
    }

    /// The next game of the chunk; `None` if only comments are left.
    fn game(&mut self) -> Result<Option<PgnGame>, Fault> {
        let mut tags = Tags::default();
        let mut comment = None;
        let mut first_line = None;
        loop {
            let before = self.cursor.clone();
            let (line, token) = self.token()?;
            match token {
                Token::Tag(name, value) => {
                    first_line.get_or_insert(line);
                    tags.push(line, name, value);
                }
                Token::Comment(text) => add_comment(&mut comment, text),
                Token::End if first_line.is_none() => return Ok(None),
                _ => {
                    first_line.get_or_insert(line);
                    *self.cursor = before;
                    break;
                }
            }
        }
        let mut read = PgnGame {
            game: Game::from_position(tags.start()?),
            tags: tags.pairs,
            notes: Vec::new(),
            comment,
            result: PgnResult::Unknown,
            line: first_line.unwrap_or(self.cursor.line),
        };
        let result = self.main_line(&mut read)?.filter(|&result| result != PgnResult::Unknown);
        let tagged = || PgnResult::parse(read.get("Result")?.trim());
        read.result = result.or_else(tagged).unwrap_or_default();
        Ok(Some(read))
    }

    /// Reads moves up to the result, which is returned, or to the end of the chunk.
    fn main_line(&mut self, read: &mut PgnGame) -> Result<Option<PgnResult>, Fault> {
        loop {
            let (line, token) = self.token()?;
            let last = read.notes.last_mut();
            match token {
                Token::Comment(text) => {
                    add_comment(last.map_or(&mut read.comment, |note| &mut note.comment), text);
                }
                Token::Nag(nag) => add_nag(last, nag),
                Token::Open => {
                    let note = last.ok_or(Fault(line, PgnFault::EarlyVariation))?;
                    let start = read.game.positions_back().nth(1);
                    let start = start.expect("a move was played before this variation").clone();
                    note.variations.extend(self.variation(line, start)?);
                }
                Token::Word(word) => match Word::new(&decode(word)) {
                    Word::Nothing => {}
                    Word::Nag(nag) => add_nag(last, nag),
                    Word::Result(result) => {
                        self.comments_after_result(read)?;
                        return Ok(Some(result));
                    }
                    Word::Pass(text) => {
                        return Err(Fault(line, PgnFault::NullMove(text.to_owned())));
                    }
                    Word::Move(text) => {
                        let position = read.game.position();
                        let m = self.read_move(line, position, text)?;
                        read.game.play_unchecked(m);
                        read.notes.push(Note::default());
                    }
                },
                Token::Close => return Err(unexpected(line, ")")),
                Token::Tag(..) => return Err(unexpected(line, "[")),
                Token::End => return Ok(None),
            }
        }
    }

    fn comments_after_result(&mut self, read: &mut PgnGame) -> Result<(), Fault> {
        loop {
            let before = self.cursor.clone();
            // An error after the result belongs to the next game, if there is one.
            let Ok((_, Token::Comment(text))) = self.token() else {
                *self.cursor = before;
                return Ok(());
            };
            let last = read.notes.last_mut();
            add_comment(last.map_or(&mut read.comment, |note| &mut note.comment), text);
        }
    }

    /// Reads a variation after its `(`; `None` if it is empty.
    fn variation(&mut self, opened: usize, start: Chess) -> Result<Option<Variation>, Fault> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Fault(opened, PgnFault::TooDeep(MAX_DEPTH)));
        }
        let mut variation = Variation::default();
        let mut position = start.clone();
        // Where a variation of the last move starts.
        let mut before = start;
        loop {
            let (line, token) = self.token()?;
            let last = variation.moves.last_mut().map(|last| &mut last.note);
            match token {
                Token::Comment(text) => {
                    let place = last.map_or(&mut variation.comment, |note| &mut note.comment);
                    add_comment(place, text);
                }
                Token::Nag(nag) => add_nag(last, nag),
                Token::Open => {
                    let note = last.ok_or(Fault(line, PgnFault::EarlyVariation))?;
                    note.variations.extend(self.variation(line, before.clone())?);
                }
                Token::Word(word) => match Word::new(&decode(word)) {
                    // Some programs end every line with a result. Only the last one is the game's.
                    Word::Nothing | Word::Result(_) => {}
                    Word::Nag(nag) => add_nag(last, nag),
                    Word::Pass(text) => {
                        self.count_move(line)?;
                        let fault = || Fault(line, PgnFault::NullMoveInCheck(text.to_owned()));
                        before = position;
                        position = pass(&before).ok_or_else(fault)?;
                        variation.push(None);
                    }
                    Word::Move(text) => {
                        let m = self.read_move(line, &position, text)?;
                        before = position.clone();
                        position.play_unchecked(m);
                        variation.push(Some(m));
                    }
                },
                Token::Close => break,
                Token::Tag(..) => return Err(unexpected(line, "[")),
                Token::End => return Err(Fault(opened, PgnFault::OpenVariation)),
            }
        }
        self.depth -= 1;
        Ok((variation != Variation::default()).then_some(variation))
    }

    fn read_move(&mut self, line: usize, position: &Chess, text: &str) -> Result<Move, Fault> {
        self.count_move(line)?;
        let short = shorten(text);
        let read = if short.len() == text.len() {
            read_move(position, text)
        } else {
            Err(MoveError::Syntax(short.into_owned()))
        };
        read.map_err(|error| Fault(line, PgnFault::Move(error)))
    }

    fn count_move(&mut self, line: usize) -> Result<(), Fault> {
        self.moves += 1;
        if self.moves > MAX_MOVES {
            return Err(Fault(line, PgnFault::TooManyMoves(MAX_MOVES)));
        }
        Ok(())
    }

    /// After an error: skips to the end of this game's result, or to the end of the chunk.
    fn skip_game(&mut self) {
        loop {
            match self.cursor.next(self.text).1 {
                Ok(Token::Open) => self.depth += 1,
                Ok(Token::Close) => self.depth = self.depth.saturating_sub(1),
                Ok(Token::Word(word)) if self.depth == 0 => {
                    if let Word::Result(_) = Word::new(&decode(word)) {
                        return;
                    }
                }
                Ok(Token::End) => return,
                _ => {}
            }
        }
    }
}

impl Variation {
    fn push(&mut self, played: Option<Move>) {
        self.moves.push(VariationMove { played, note: Note::default() });
    }
}

/// The tag section, with the lines of the tags that are validated.
#[derive(Default)]
struct Tags {
    pairs: Vec<(String, String)>,
    lines: Vec<usize>,
}

impl Tags {
    fn push(&mut self, line: usize, name: String, value: String) {
        self.pairs.push((name, value));
        self.lines.push(line);
    }

    fn find(&self, name: &str) -> Option<(usize, &str)> {
        let at = self.pairs.iter().position(|(tag, _)| tag == name)?;
        Some((self.lines[at], self.pairs[at].1.trim()))
    }

    /// The start position according to the tags.
    fn start(&self) -> Result<Chess, Fault> {
        let set_up = self.find("SetUp").is_none_or(|(_, value)| value != "0");
        let position = match self.find("FEN").filter(|_| set_up) {
            Some((line, fen)) => {
                parse_fen(fen).map_err(|error| Fault(line, PgnFault::Fen(error)))?
            }
            None => Chess::default(),
        };
        let Some((line, variant)) = self.find("Variant") else { return Ok(position) };
        match variant.to_ascii_lowercase().replace([' ', '-', '_'], "").as_str() {
            "" | "?" | "standard" | "normal" | "chess" | "fromposition" => Ok(position),
            "chess960" | "960" | "fischerandom" | "fischerrandom" | "freestyle" => {
                Ok(as_chess960(position))
            }
            _ => Err(Fault(line, PgnFault::Variant(shorten(variant).into_owned()))),
        }
    }
}

fn add_comment(place: &mut Option<String>, text: String) {
    match place {
        _ if text.is_empty() => {}
        Some(earlier) => {
            earlier.push(' ');
            earlier.push_str(&text);
        }
        None => *place = Some(text),
    }
}

/// A glyph before the first move, usually a diagram, belongs to no move and is dropped.
fn add_nag(last: Option<&mut Note>, nag: u16) {
    if let Some(note) = last {
        note.nags.push(nag);
    }
}

fn unexpected(line: usize, what: &str) -> Fault {
    Fault(line, PgnFault::Unexpected(what.to_owned()))
}
