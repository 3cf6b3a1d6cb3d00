//! The tokens of PGN with their line numbers.

use std::borrow::Cow;

use super::PgnFault;
use super::line::decode;

/// A position in a chunk of text.
#[derive(Clone, Debug, Default)]
pub(super) struct Cursor {
    pub(super) at: usize,
    /// The line number in the file.
    pub(super) line: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token<'t> {
    Tag(String, String),
    Comment(String),
    Nag(u16),
    /// A move, a move number, a result: any run of characters without special meaning.
    Word(&'t [u8]),
    Open,
    Close,
    End,
}

impl Cursor {
    /// Reads the next token and returns it with the line it starts on. `self.line` is then the line
    /// it ends on. After an error the cursor is behind the bad text.
    pub(super) fn next<'t>(&mut self, text: &'t [u8]) -> (usize, Result<Token<'t>, PgnFault>) {
        self.skip_space(text);
        let line = self.line;
        let Some(&first) = text.get(self.at) else { return (line, Ok(Token::End)) };
        let token = match first {
            b'{' => self.comment(text),
            b';' => {
                let rest = self.rest_of_line(text);
                Ok(Token::Comment(collapse(&decode(&rest[1..]))))
            }
            b'[' => self.tag(text),
            b'(' => self.single(Token::Open),
            b')' => self.single(Token::Close),
            b'$' => self.nag(text),
            b'!' | b'?' => Ok(self.suffix(text)),
            b'}' | b']' | b'"' | b'<' | b'>' => {
                self.at += 1;
                Err(PgnFault::Unexpected(char::from(first).to_string()))
            }
            _ => {
                let length = length(&text[self.at..], |byte| {
                    !byte.is_ascii_whitespace() && !b"{}()[]<>;$!?\"".contains(&byte)
                });
                Ok(Token::Word(self.take(text, length)))
            }
        };
        (line, token)
    }

    fn skip_space(&mut self, text: &[u8]) {
        while let Some(&byte) = text.get(self.at) {
            if byte == b'%' && (self.at == 0 || text[self.at - 1] == b'\n') {
                self.rest_of_line(text);
            } else if byte.is_ascii_whitespace() {
                self.take(text, 1);
            } else {
                break;
            }
        }
    }

    fn single(&mut self, token: Token<'static>) -> Result<Token<'static>, PgnFault> {
        self.at += 1;
        Ok(token)
    }

    fn take<'t>(&mut self, text: &'t [u8], length: usize) -> &'t [u8] {
        let taken = &text[self.at..self.at + length];
        self.at += length;
        self.line += taken.iter().filter(|&&byte| byte == b'\n').count();
        taken
    }

    fn rest_of_line<'t>(&mut self, text: &'t [u8]) -> &'t [u8] {
        let length = length(&text[self.at..], |byte| byte != b'\n');
        self.take(text, length)
    }

    fn comment(&mut self, text: &[u8]) -> Result<Token<'static>, PgnFault> {
        self.at += 1;
        let length = length(&text[self.at..], |byte| byte != b'}');
        let inside = self.take(text, length);
        if self.at == text.len() {
            return Err(PgnFault::OpenComment);
        }
        self.at += 1;
        Ok(Token::Comment(collapse(&decode(inside))))
    }

    fn nag(&mut self, text: &[u8]) -> Result<Token<'static>, PgnFault> {
        let digits = length(&text[self.at + 1..], |byte| byte.is_ascii_digit());
        let word = decode(self.take(text, 1 + digits));
        word[1..].parse().map(Token::Nag).map_err(|_| PgnFault::Nag(shorten(&word).into_owned()))
    }

    fn suffix(&mut self, text: &[u8]) -> Token<'static> {
        let length = length(&text[self.at..], |byte| matches!(byte, b'!' | b'?'));
        Token::Nag(match self.take(text, length) {
            b"!" => 1,
            b"?" => 2,
            b"!?" => 5,
            b"?!" => 6,
            // People also write `!!!` and `???`, which the standard does not define.
            more if more[0] == b'!' => 3,
            _ => 4,
        })
    }

    /// Reads a tag pair. An unescaped quote is part of the value unless `]` follows.
    fn tag(&mut self, text: &[u8]) -> Result<Token<'static>, PgnFault> {
        let line_length = length(&text[self.at..], |byte| byte != b'\n');
        let line = &text[self.at..self.at + line_length];
        match split_tag(line) {
            Some((name, value, length)) => {
                self.at += length;
                Ok(Token::Tag(name, value))
            }
            None => {
                self.at += line_length;
                Err(PgnFault::Tag(shorten(decode(line).trim_end()).into_owned()))
            }
        }
    }
}

/// The name, the value and the length in bytes of the tag pair at the start of a line.
fn split_tag(line: &[u8]) -> Option<(String, String, usize)> {
    let open = line.iter().position(|&byte| byte == b'"')?;
    let name = line[1..open].trim_ascii();
    if name.is_empty() || !name.iter().all(|byte| byte.is_ascii_graphic() && !b"[]".contains(byte))
    {
        return None;
    }
    let mut value = Vec::new();
    let mut at = open + 1;
    loop {
        match *line.get(at)? {
            b'\\' if line.get(at + 1).is_some_and(|next| matches!(next, b'"' | b'\\')) => {
                value.push(line[at + 1]);
                at += 2;
            }
            b'"' => {
                let space = length(&line[at + 1..], |byte| byte.is_ascii_whitespace());
                if line.get(at + 1 + space) == Some(&b']') {
                    let name = decode(name).into_owned();
                    return Some((name, decode(&value).into_owned(), at + space + 2));
                }
                value.push(b'"');
                at += 1;
            }
            byte => {
                value.push(byte);
                at += 1;
            }
        }
    }
}

fn length(bytes: &[u8], belongs: impl Fn(u8) -> bool) -> usize {
    bytes.iter().position(|&byte| !belongs(byte)).unwrap_or(bytes.len())
}

/// White space in comments comes from line breaks and has no meaning.
pub(super) fn collapse(text: &str) -> String {
    let mut collapsed = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !collapsed.is_empty() {
            collapsed.push(' ');
        }
        collapsed.push_str(word);
    }
    collapsed
}

/// Shortens text that an error message quotes.
pub(super) fn shorten(text: &str) -> Cow<'_, str> {
    let limit = 60;
    match text.char_indices().nth(limit) {
        Some((at, _)) => format!("{}…", &text[..at]).into(),
        None => text.into(),
    }
}
