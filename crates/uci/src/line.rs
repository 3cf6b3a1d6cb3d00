//! Lines of bounded length from a byte stream.
//!
//! A GUI or an engine may never end its line. Bytes beyond the limit are dropped as they are read,
//! in constant memory.

use std::io::{self, BufRead, ErrorKind};

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// A line without its terminator. Bytes that are not UTF-8 are replaced.
    Text(String),
    /// The line was longer than the limit and was dropped.
    TooLong,
    End,
}

/// Reads the next line of at most `limit` bytes.
pub(crate) fn read_line(input: &mut impl BufRead, limit: usize) -> io::Result<Line> {
    let mut bytes = Vec::new();
    let mut is_too_long = false;
    loop {
        let chunk = match input.fill_buf() {
            Ok(chunk) => chunk,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if chunk.is_empty() && bytes.is_empty() && !is_too_long {
            return Ok(Line::End);
        }
        let newline = chunk.iter().position(|byte| *byte == b'\n');
        let part = &chunk[..newline.unwrap_or(chunk.len())];
        if bytes.len() + part.len() > limit {
            is_too_long = true;
            bytes = Vec::new();
        } else if !is_too_long {
            bytes.extend_from_slice(part);
        }
        let is_complete = newline.is_some() || chunk.is_empty();
        let used = newline.map_or(chunk.len(), |at| at + 1);
        input.consume(used);
        if is_complete && is_too_long {
            return Ok(Line::TooLong);
        }
        if is_complete {
            return Ok(Line::Text(String::from_utf8_lossy(&bytes).into_owned()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufReader;

    #[test]
    fn long_lines_are_dropped_and_the_next_is_read() {
        // A buffer of 3 bytes makes every line span several reads.
        let mut input = BufReader::with_capacity(3, &b"12345678\n123456789\n\nab\xff\nlast"[..]);
        let mut next = || read_line(&mut input, 8).unwrap();
        assert_eq!(next(), Line::Text("12345678".to_owned()));
        assert_eq!(next(), Line::TooLong);
        assert_eq!(next(), Line::Text(String::new()));
        assert_eq!(next(), Line::Text("ab\u{fffd}".to_owned()));
        assert_eq!(next(), Line::Text("last".to_owned()));
        assert_eq!(next(), Line::End);
    }
}
