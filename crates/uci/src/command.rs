//! Messages from a GUI to an engine: each line is a [`Command`].
//!
//! Parsing never fails: UCI requires engines to skip unknown words at the start of a line, and a
//! line without any known word becomes [`Command::Unknown`]. The driver writes commands. Positions
//! and moves are validated later, by [`PositionCommand::game`].

use std::fmt;

use crate::go::Go;
use crate::position::PositionCommand;

/// A line from a GUI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Identify the engine and list its options.
    Uci,
    Debug(bool),
    /// Answer `readyok` when all earlier commands are done.
    IsReady,
    SetOption {
        /// May contain spaces.
        name: String,
        /// May contain spaces; `None` for buttons.
        value: Option<String>,
    },
    /// Registration, which free engines do not need; the unparsed text.
    Register(String),
    /// The next position is from a new game.
    UciNewGame,
    Position(PositionCommand),
    /// Start a search.
    Go(Box<Go>),
    /// End the search and answer with `bestmove`.
    Stop,
    /// The opponent played the expected move.
    PonderHit,
    Quit,
    /// A non-UCI command that engines answer with text: `d`, `eval`, `bench …`.
    Extra(String),
    /// Swap the colours of the position (not UCI).
    Flip,
    /// Read no further commands until the search has ended (not UCI; lc0 has it).
    Wait,
    /// An unknown command, unparsed. Empty for an empty line.
    Unknown(String),
}

impl Command {
    /// Parses one line.
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
            // A sentence that contains the word must not end the session.
            "quit" if is_first || after.is_empty() => Command::Quit,
            // Other text may contain these short words, so they count only at the start of the line.
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

/// `name N… [value V…]`. The first word `value` ends the name; the rest is the value, unchanged.
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
    fn a_sentence_that_contains_quit_does_not_quit() {
        assert!(matches!(Command::parse("do not quit now"), Command::Unknown(_)));
        assert!(matches!(Command::parse("plan d failed"), Command::Unknown(_)));
    }

    #[test]
    fn non_uci_commands_keep_their_arguments() {
        assert_eq!(Command::parse("bench 16 1 13"), Command::Extra("bench 16 1 13".to_owned()));
        assert_eq!(Command::parse("d"), Command::Extra("d".to_owned()));
    }
}
