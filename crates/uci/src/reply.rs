//! Messages from an engine to a GUI: each line is a [`Reply`].
//!
//! Parsing never fails: other lines (many engines print banners) become [`Reply::Unknown`]. Moves
//! stay text here, because validating them needs the position.

use std::fmt;

use crate::command::split_word;
use crate::info::Info;
use crate::option::EngineOption;

/// A line from an engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    IdName(String),
    IdAuthor(String),
    Option(EngineOption),
    /// The end of the answer to `uci`.
    UciOk,
    /// The answer to `isready`.
    ReadyOk,
    /// The end of a search.
    BestMove {
        /// In UCI notation, or `(none)` if there is no legal move.
        best: String,
        /// The expected answer, to ponder on.
        ponder: Option<String>,
    },
    Info(Box<Info>),
    /// Any other line, unparsed.
    Unknown(String),
}

impl Reply {
    /// Parses one line.
    pub fn parse(line: &str) -> Reply {
        let line = line.trim();
        let (word, rest) = split_word(line);
        let known = match word {
            "id" => match split_word(rest) {
                ("name", name) => Some(Reply::IdName(name.to_owned())),
                ("author", author) => Some(Reply::IdAuthor(author.to_owned())),
                _ => None,
            },
            "option" => EngineOption::parse(rest).map(Reply::Option),
            "uciok" => Some(Reply::UciOk),
            "readyok" => Some(Reply::ReadyOk),
            "bestmove" => best_move(rest),
            "info" => Some(Reply::Info(Box::new(Info::parse(rest)))),
            _ => None,
        };
        known.unwrap_or_else(|| Reply::Unknown(line.to_owned()))
    }
}

fn best_move(text: &str) -> Option<Reply> {
    let mut words = text.split_whitespace();
    let best = words.next()?.to_owned();
    let ponder = words.find(|word| *word == "ponder").and_then(|_| words.next()).map(str::to_owned);
    Some(Reply::BestMove { best, ponder })
}

impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reply::IdName(name) => write!(f, "id name {name}"),
            Reply::IdAuthor(author) => write!(f, "id author {author}"),
            Reply::Option(option) => option.fmt(f),
            Reply::UciOk => f.write_str("uciok"),
            Reply::ReadyOk => f.write_str("readyok"),
            Reply::BestMove { best, ponder: None } => write!(f, "bestmove {best}"),
            Reply::BestMove { best, ponder: Some(ponder) } => {
                write!(f, "bestmove {best} ponder {ponder}")
            }
            Reply::Info(info) => info.fmt(f),
            Reply::Unknown(text) => f.write_str(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn best_moves_are_parsed_with_and_without_ponder() {
        let best = |best: &str, ponder: Option<&str>| Reply::BestMove {
            best: best.to_owned(),
            ponder: ponder.map(str::to_owned),
        };
        assert_eq!(Reply::parse("bestmove e2e4 ponder e7e5\r"), best("e2e4", Some("e7e5")));
        assert_eq!(Reply::parse("bestmove (none)"), best("(none)", None));
        assert_eq!(Reply::parse("bestmove"), Reply::Unknown("bestmove".to_owned()));
    }

    #[test]
    fn banners_are_unknown_replies() {
        let banner = "Stockfish 15.1 by the Stockfish developers";
        assert_eq!(Reply::parse(banner), Reply::Unknown(banner.to_owned()));
    }
}
