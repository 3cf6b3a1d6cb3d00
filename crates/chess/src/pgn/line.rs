//! Lines of a file with their numbers, in bounded memory and without any demand on encoding.

use std::borrow::Cow;
use std::io::{self, BufRead};

/// So much of a line that is too long is skipped; what goes on longer is no text, or has no end.
const MAX_SKIPPED: usize = 64 << 20;

/// Reads lines and counts them.
#[derive(Debug)]
pub(crate) struct Lines<R> {
    input: R,
    /// The number of the line read last, from 1.
    pub(crate) number: usize,
}

/// How a line was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineRead {
    Whole,
    /// The line was longer than the limit; the rest of it has been thrown away.
    Cut,
    End,
}

impl<R: BufRead> Lines<R> {
    pub(crate) fn new(input: R) -> Lines<R> {
        Lines { input, number: 0 }
    }

    /// Puts the next line into `line`, with its line feed but without a byte order mark
    /// (files that were joined have one in the middle too).
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
                let what = format!("a line of more than {} MB: expected text", MAX_SKIPPED >> 20);
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

/// Text of unknown encoding: UTF-8 where it is valid, otherwise Latin-1, which the PGN
/// standard asks for and which gives every byte a meaning.
pub(crate) fn decode(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(bytes.iter().map(|&byte| char::from(byte)).collect()),
    }
}
