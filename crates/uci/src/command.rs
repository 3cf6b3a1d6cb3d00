//! What a GUI says to an engine: one line, one [`Command`].
//!
//! Reading never fails: UCI asks engines to skip unknown words at the start of a line, and a line
//! without any known word becomes [`Command::Unknown`]. Writing is for the driver. The legality of
//! moves and positions is checked later, by [`PositionCommand::game`].

use std::fmt;

use crate::go::Go;
use crate::position::PositionCommand;

/// One line from a GUI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Who are you, and what can be set?
    Uci,
    /// Talk more, or less.
    Debug(bool),
    /// Answer `readyok` when all that came before is done.
    IsReady,
    /// Set an option.
    SetOption {
        /// The name, which may contain spaces.
        name: String,
        /// The value, which may contain spaces; `None` for buttons.
        value: Option<String>,
    },
    /// Registration, which no free engine needs; the text as it came.
    Register(String),
    /// The next position is from another game.
    UciNewGame,
    /// Set up a position.
    Position(PositionCommand),
    /// Think.
    Go(Box<Go>),
    /// Stop thinking and answer.
    Stop,
    /// The move pondered on was played.
    PonderHit,
    /// Leave.
    Quit,
    /// A command outside UCI that engines answer with text: `d`, `eval`, `bench …`.
    Extra(String),
    /// Swap the colours of the position (outside UCI).
    Flip,
    /// Read no further until the search has ended (outside UCI, as in lc0).
    Wait,
    /// No command that we know; the text as it came. Empty for an empty line.
    Unknown(String),
}

impl Command {
    /// Reads one line.
    ///
    /// ```
    /// use selfmate_uci::Command;
    /// assert_eq!(Command::parse("joho isready"), Command::IsReady);
    /// assert_eq!(Command::parse("tea please"), Command::Unknown("tea please".to_owned()));
    /// ```
    pub fn parse(line: &str) -> Command {
        // Some shells send a byte order mark first.
        let line = line.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
        let mut rest = line;
        let mut is_first = true;
        while !rest.is_empty() {
            let (word, after) = split_word(rest);
            if let Some(command) = Command::known(word, after, is_first, line) {
                return command;
            }
            rest = after;
            is_first = false;
        }
        Command::Unknown(line.to_owned())
    }

    fn known(word: &str, after: &str, is_first: bool, line: &str) -> Option<Command> {
        Some(match word {
            "uci" => Command::Uci,
            "debug" => Command::Debug(split_word(after).0 != "off"),
            "isready" => Command::IsReady,
            "setoption" => set_option(after)?,
            "register" => Command::Register(after.to_owned()),
            "ucinewgame" => Command::UciNewGame,
            "position" => Command::Position(PositionCommand::parse(after)?),
            "go" => Command::Go(Box::new(Go::parse(after))),
            "stop" => Command::Stop,
            "ponderhit" => Command::PonderHit,
            // A sentence that happens to contain the word must not end the session.
            "quit" if is_first || after.is_empty() => Command::Quit,
            // These are short words that garbage may contain, so only the first place counts.
            "d" | "eval" | "bench" if is_first => Command::Extra(line.to_owned()),
            "flip" if is_first => Command::Flip,
            "wait" if is_first => Command::Wait,
            _ => return None,
        })
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Command::Uci => f.write_str("uci"),
            Command::Debug(on) => write!(f, "debug {}", if *on { "on" } else { "off" }),
            Command::IsReady => f.write_str("isready"),
            Command::SetOption { name, value: None } => write!(f, "setoption name {name}"),
            Command::SetOption { name, value: Some(value) } => {
                write!(f, "setoption name {name} value {value}")
            }
            Command::Register(text) if text.is_empty() => f.write_str("register"),
            Command::Register(text) => write!(f, "register {text}"),
            Command::UciNewGame => f.write_str("ucinewgame"),
            Command::Position(position) => position.fmt(f),
            Command::Go(go) => go.fmt(f),
            Command::Stop => f.write_str("stop"),
            Command::PonderHit => f.write_str("ponderhit"),
            Command::Quit => f.write_str("quit"),
            Command::Extra(text) | Command::Unknown(text) => f.write_str(text),
            Command::Flip => f.write_str("flip"),
            Command::Wait => f.write_str("wait"),
        }
    }
}

/// The first word and the trimmed rest.
pub(crate) fn split_word(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    match text.split_once(char::is_whitespace) {
        Some((word, rest)) => (word, rest.trim()),
        None => (text, ""),
    }
}

/// `name N… [value V…]`. The first word `value` ends the name; the rest is the value, as it came.
fn set_option(text: &str) -> Option<Command> {
    let (word, mut rest) = split_word(text);
    if word != "name" {
        return None;
    }
    let mut name = Vec::new();
    let mut value = None;
    while !rest.is_empty() {
        let (word, after) = split_word(rest);
        if word == "value" {
            value = Some(after.to_owned());
            break;
        }
        name.push(word);
        rest = after;
    }
    if name.is_empty() {
        return None;
    }
    Some(Command::SetOption { name: name.join(" "), value })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn option(name: &str, value: Option<&str>) -> Command {
        Command::SetOption { name: name.to_owned(), value: value.map(str::to_owned) }
    }

    #[test]
    fn names_and_values_may_contain_spaces() {
        let parse = Command::parse;
        assert_eq!(
            parse("setoption name Clear Hash"),
            option("Clear Hash", None),
            "a button has no value"
        );
        assert_eq!(
            parse("setoption name Debug Log File value /tmp/my  log.txt "),
            option("Debug Log File", Some("/tmp/my  log.txt"))
        );
        assert_eq!(
            parse("setoption name SyzygyPath value"),
            option("SyzygyPath", Some("")),
            "an empty value is a value"
        );
        assert_eq!(parse("setoption name"), Command::Unknown("setoption name".to_owned()));
    }

    #[test]
    fn words_before_a_command_are_skipped() {
        assert_eq!(Command::parse("joho debug on"), Command::Debug(true));
        assert_eq!(Command::parse("\u{feff}uci\r\n"), Command::Uci);
        assert_eq!(Command::parse("well, quit"), Command::Quit);
    }

    #[test]
    fn a_sentence_with_quit_in_it_does_not_quit() {
        assert!(matches!(Command::parse("do not quit now"), Command::Unknown(_)));
        assert!(matches!(Command::parse("plan d failed"), Command::Unknown(_)));
    }

    #[test]
    fn commands_outside_uci_keep_their_arguments() {
        assert_eq!(Command::parse("bench 16 1 13"), Command::Extra("bench 16 1 13".to_owned()));
        assert_eq!(Command::parse("d"), Command::Extra("d".to_owned()));
    }
}
