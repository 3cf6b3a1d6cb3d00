//! Splits a file into games, line by line, before they are parsed.
//!
//! A broken game therefore cannot hide the next one: wherever parsing stopped, the next tag
//! section starts a new chunk. Games without tags may share a chunk.

use std::io::{self, BufRead};

use super::line::{LineRead, Lines};

/// The reader gives up if a game does not end within this many bytes.
const MAX_CHUNK: usize = 64 << 20;

/// The text of one game, or of several games without tags.
#[derive(Debug, Default)]
pub(super) struct Chunk {
    pub(super) text: Vec<u8>,
    /// The number of the first line.
    pub(super) line: usize,
    /// The text was longer than the limit; `text` is only its beginning.
    pub(super) cut: bool,
}

#[derive(Debug)]
pub(super) struct Chunks<R> {
    lines: Lines<R>,
    /// The first line of the next chunk, already read; empty if there is none.
    pending: Vec<u8>,
    pending_read: LineRead,
    limit: usize,
}

/// What the lines of the current chunk so far imply about where it ends.
#[derive(Debug, Default)]
struct State {
    tags: bool,
    moves: bool,
    /// There was an empty line after the tags, so the tag section is over.
    blank_after_tags: bool,
    in_comment: bool,
    depth: u32,
    after_blank: bool,
    /// The last non-empty line ended with a result.
    after_result: bool,
}

impl<R: BufRead> Chunks<R> {
    pub(super) fn new(input: R, limit: usize) -> Chunks<R> {
        Chunks { lines: Lines::new(input), pending: Vec::new(), pending_read: LineRead::End, limit }
    }

    /// The number of the line read last.
    pub(super) fn line(&self) -> usize {
        self.lines.number
    }

    /// Reads the next chunk; `None` at the end of the file.
    pub(super) fn read(&mut self, chunk: &mut Chunk) -> io::Result<Option<()>> {
        chunk.text.clear();
        chunk.cut = false;
        let mut bytes = 0;
        let mut state = State::default();
        loop {
            if self.pending.is_empty() {
                self.pending_read = self.lines.read(&mut self.pending, self.limit)?;
                if self.pending_read == LineRead::End {
                    return Ok((!chunk.text.is_empty() || chunk.cut).then_some(()));
                }
            }
            if chunk.text.is_empty() && !chunk.cut {
                chunk.line = self.lines.number;
            } else if state.ends_before(&self.pending) {
                return Ok(Some(()));
            }
            state.take(&self.pending);
            bytes += self.pending.len();
            if bytes > MAX_CHUNK {
                let what = format!("{} MB without the end of a game", MAX_CHUNK >> 20);
                return Err(io::Error::new(io::ErrorKind::InvalidData, what));
            }
            chunk.cut |= self.pending_read == LineRead::Cut
                || chunk.text.len() + self.pending.len() > self.limit;
            if !chunk.cut {
                chunk.text.extend_from_slice(&self.pending);
            }
            self.pending.clear();
        }
    }
}

impl State {
    /// True if `line` belongs to the next game.
    fn ends_before(&self, line: &[u8]) -> bool {
        let line = line.trim_ascii_start();
        if self.in_comment {
            // A missing '}' must not swallow the rest of the file.
            return self.after_blank && line.starts_with(b"[Event \"");
        }
        if is_tag(line) {
            let first_tag = line.starts_with(b"[Event ");
            return if self.moves {
                self.blank_after_tags || !self.tags || self.after_result || first_tag
            } else {
                self.tags && self.after_blank && first_tag
            };
        }
        self.after_result
            && self.depth == 0
            && line.first().is_some_and(|first| !b"{;%$)(!?".contains(first))
    }

    fn take(&mut self, line: &[u8]) {
        let trimmed = line.trim_ascii();
        self.after_blank = trimmed.is_empty();
        self.blank_after_tags |= self.after_blank && self.tags;
        if !self.in_comment && (self.after_blank || line[0] == b'%') {
            return;
        }
        if !self.in_comment && !self.moves && trimmed.starts_with(b"[") {
            self.tags = true;
            return;
        }
        let mut last_word = 0;
        let mut after_comment = self.in_comment;
        for (at, &byte) in trimmed.iter().enumerate() {
            if self.in_comment {
                self.in_comment = byte != b'}';
                after_comment = true;
                continue;
            }
            match byte {
                b'{' => self.in_comment = true,
                b';' => break,
                b'(' => self.depth += 1,
                b')' => self.depth = self.depth.saturating_sub(1),
                _ if byte.is_ascii_whitespace() => {
                    last_word = at + 1;
                    continue;
                }
                _ => after_comment = false,
            }
            self.moves |= !b"{}".contains(&byte);
        }
        if !self.in_comment && !after_comment {
            let word = &trimmed[last_word..];
            self.after_result = matches!(word, b"1-0" | b"0-1" | b"1/2-1/2" | b"*");
        }
    }
}

/// True for the start of a tag pair; false for `[%eval …]`.
fn is_tag(line: &[u8]) -> bool {
    let Some(name) = line.strip_prefix(b"[") else { return false };
    name.trim_ascii_start()
        .first()
        .is_some_and(|&first| first.is_ascii_alphanumeric() || first == b'_')
}
