//! Numbered lines of a file in any encoding, in bounded memory.

use std::borrow::Cow;
use std::io::{self, BufRead};

/// The most bytes of an overlong line to skip. More than that is not a text file.
const MAX_SKIPPED: usize = 64 << 20;

#[derive(Debug)]
pub(crate) struct Lines<R> {
    input: R,
    /// The number of the line read last, from 1.
    pub(crate) number: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineRead {
    Whole,
    /// The line was longer than the limit; the rest of it was discarded.
    Cut,
    End,
}

impl<R: BufRead> Lines<R> {
    pub(crate) fn new(input: R) -> Lines<R> {
        Lines { input, number: 0 }
    }

    /// Reads the next line into `line`, with its line feed but without a byte order mark.
    /// Concatenated files have byte order marks in the middle too.
    pub(crate) fn read(&mut self, line: &mut Vec<u8>, limit: usize) -> io::Result<LineRead> {
        line.clear();
        let mut read = LineRead::End;
        let mut skipped = 0;
        loop {
            let buffer = match self.input.fill_buf() {
                Ok(buffer) => buffer,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if buffer.is_empty() {
                break;
            }
            if read == LineRead::End {
                read = LineRead::Whole;
                self.number += 1;
            }
            let end = buffer.iter().position(|&byte| byte == b'\n').map(|at| at + 1);
            let taken = end.unwrap_or(buffer.len());
            let room = limit.saturating_sub(line.len());
            if taken > room {
                read = LineRead::Cut;
            }
            line.extend_from_slice(&buffer[..taken.min(room)]);
            self.input.consume(taken);
            skipped += taken - taken.min(room);
            if skipped > MAX_SKIPPED {
                let what =
                    format!("a line is longer than {} MB: expected a text file", MAX_SKIPPED >> 20);
                return Err(io::Error::new(io::ErrorKind::InvalidData, what));
            }
            if end.is_some() {
                break;
            }
        }
        if line.starts_with(b"\xEF\xBB\xBF") {
            line.drain(..3);
        }
        Ok(read)
    }
}

/// Decodes UTF-8 if it is valid, otherwise Latin-1, which the PGN standard prescribes and in which
/// every byte is a character.
pub(crate) fn decode(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(bytes.iter().map(|&byte| char::from(byte)).collect()),
    }
}
