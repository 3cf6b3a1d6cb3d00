//! A player spec: the text that names a player, the same in every command.
//!
//! `KIND`, `KIND:ARGUMENT`, `KIND:key=value,…` or `KIND:ARGUMENT,key=value,…`. What kinds there
//! are, and what their options mean, is the business of [`crate::registry`].

use std::fmt;
use std::num::{IntErrorKind, ParseIntError};
use std::str::FromStr;

use selfmate_chess::Seed;
use selfmate_search::memory::MemoryError;
use selfmate_uci::EngineError;

use crate::tablebase_cache::TablebaseCache;

/// A parsed player spec. Writing it gives the text back.
///
/// ```
/// let spec: selfmate_arena::PlayerSpec = "run:tonight@400,sims=800,root=gumbel".parse()?;
/// assert_eq!(spec.argument.as_deref(), Some("tonight@400"));
/// assert_eq!(spec.option("sims"), Some("800"));
/// assert_eq!(spec.to_string(), "run:tonight@400,sims=800,root=gumbel");
/// # Ok::<(), selfmate_arena::SpecError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PlayerSpec {
    /// The kind of player, such as `stockfish`.
    pub kind: String,
    /// What stands first and is no option: a run, a file, a command.
    pub argument: Option<String>,
    /// The options in the order given.
    pub options: Vec<(String, String)>,
}

/// The kind whose argument is a whole command line, commas and all.
pub(crate) const COMMAND_KIND: &str = "uci";

impl PlayerSpec {
    /// The value of an option; of the last one when it is there twice.
    pub fn option(&self, name: &str) -> Option<&str> {
        self.options.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

impl FromStr for PlayerSpec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<PlayerSpec, SpecError> {
        let text = text.trim();
        let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
        let kind = kind.trim();
        if kind.is_empty() {
            return Err(SpecError::Empty(text.to_owned()));
        }
        let mut spec = PlayerSpec { kind: kind.to_owned(), argument: None, options: Vec::new() };
        if kind == COMMAND_KIND {
            spec.argument = Some(rest.trim().to_owned()).filter(|command| !command.is_empty());
            return Ok(spec);
        }
        for (index, item) in rest.split(',').map(str::trim).enumerate() {
            match item.split_once('=') {
                Some((key, value)) => {
                    spec.options.push((key.trim().to_owned(), value.trim().to_owned()));
                }
                None if item.is_empty() && rest.is_empty() => {}
                None if index == 0 && !item.is_empty() => spec.argument = Some(item.to_owned()),
                None => {
                    return Err(SpecError::Item { spec: text.to_owned(), item: item.to_owned() });
                }
            }
        }
        Ok(spec)
    }
}

impl fmt::Display for PlayerSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind)?;
        let options = self.options.iter().map(|(key, value)| format!("{key}={value}"));
        let items: Vec<String> = self.argument.iter().cloned().chain(options).collect();
        if items.is_empty() { Ok(()) } else { write!(f, ":{}", items.join(",")) }
    }
}

/// What a kind's builder gets: the spec and where its randomness comes from.
#[derive(Clone, Copy, Debug)]
pub struct SpecOptions<'a> {
    /// The spec; its options are known to exist for this kind.
    pub spec: &'a PlayerSpec,
    /// The root of the player's randomness.
    pub seed: Seed,
    /// The tablebases that are open, and those that players use who name none.
    pub tablebases: &'a TablebaseCache,
}

impl SpecOptions<'_> {
    /// What to call the player: the spec as text.
    pub fn label(&self) -> String {
        self.spec.to_string()
    }

    /// The argument, which this kind needs; `expected` says what it is.
    pub fn argument(&self, expected: &str) -> Result<&str, SpecError> {
        self.spec.argument.as_deref().ok_or_else(|| SpecError::Argument {
            kind: self.spec.kind.clone(),
            expected: expected.to_owned(),
        })
    }

    /// An option that is a whole number in a range; `None` when it is not given.
    pub fn number(
        &self,
        name: &str,
        range: std::ops::RangeInclusive<u64>,
    ) -> Result<Option<u64>, SpecError> {
        let Some(text) = self.spec.option(name) else { return Ok(None) };
        let (least, most) = (range.start(), range.end());
        let is_too_large = |error: &ParseIntError| *error.kind() == IntErrorKind::PosOverflow;
        let parsed = text.parse::<u64>();
        match &parsed {
            Ok(value) if range.contains(value) => Ok(Some(*value)),
            // Where all numbers will do, the greatest is worth a word only to who went beyond it.
            parsed if *most == u64::MAX && !parsed.as_ref().is_err_and(is_too_large) => {
                Err(self.bad(name, text, &format!("a whole number from {least}")))
            }
            _ => Err(self.bad(name, text, &format!("a whole number from {least} to {most}"))),
        }
    }

    /// An option that is a number, with decimals, in a range; `None` when it is not given.
    pub fn decimal(
        &self,
        name: &str,
        range: std::ops::RangeInclusive<f32>,
    ) -> Result<Option<f32>, SpecError> {
        let Some(text) = self.spec.option(name) else { return Ok(None) };
        match text.parse() {
            Ok(value) if range.contains(&value) => Ok(Some(value)),
            _ => {
                let expected = format!("a number from {} to {}", range.start(), range.end());
                Err(self.bad(name, text, &expected))
            }
        }
    }

    /// An option that is one of several words; `None` when it is not given.
    pub fn choice(&self, name: &str, choices: &[&str]) -> Result<Option<usize>, SpecError> {
        let Some(text) = self.spec.option(name) else { return Ok(None) };
        match choices.iter().position(|choice| *choice == text) {
            Some(index) => Ok(Some(index)),
            None => Err(self.bad(name, text, &choices.join(" or "))),
        }
    }

    /// The error for an option with a value that does not fit.
    pub fn bad(&self, option: &str, value: &str, expected: &str) -> SpecError {
        SpecError::Value {
            kind: self.spec.kind.clone(),
            option: option.to_owned(),
            value: value.to_owned(),
            expected: expected.to_owned(),
        }
    }
}

/// Why a spec names no player.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// Nothing there.
    #[error("'{0}' names no player: expected KIND or KIND:key=value,…, such as alphabeta:depth=4")]
    Empty(String),
    /// A part that is no option.
    #[error("player '{spec}': '{item}' is no option: expected key=value")]
    Item {
        /// The whole text.
        spec: String,
        /// The part.
        item: String,
    },
    /// No such kind of player.
    #[error("unknown player '{kind}': {hint}")]
    Unknown {
        /// As given.
        kind: String,
        /// What was perhaps meant, or all there is.
        hint: String,
    },
    /// The kind has no such option.
    #[error("player '{kind}' has no option '{option}': {hint}")]
    Option {
        /// The kind.
        kind: String,
        /// As given.
        option: String,
        /// What was perhaps meant, or all there is.
        hint: String,
    },
    /// A value that does not fit its option.
    #[error("player '{kind}', option {option}: expected {expected}, got '{value}'")]
    Value {
        /// The kind.
        kind: String,
        /// The option.
        option: String,
        /// As given.
        value: String,
        /// What it takes.
        expected: String,
    },
    /// The kind needs an argument.
    #[error("player '{kind}': expected {kind}:{expected}")]
    Argument {
        /// The kind.
        kind: String,
        /// What is missing.
        expected: String,
    },
    /// The kind takes none.
    #[error("player '{kind}' takes no '{argument}': expected {kind} or {kind}:key=value,…")]
    NoArgument {
        /// The kind.
        kind: String,
        /// As given.
        argument: String,
    },
    /// Tables cannot be used.
    #[error("player '{kind}', option syzygy: {reason}")]
    Tables {
        /// The kind.
        kind: String,
        /// What is wrong with them.
        reason: String,
    },
    /// The engine cannot be used.
    #[error("player '{spec}': {error}")]
    Engine {
        /// The whole spec.
        spec: String,
        /// What is wrong with it.
        error: EngineError,
    },
    /// Not enough memory for the player.
    #[error("player '{spec}': {error}")]
    Memory {
        /// The whole spec.
        spec: String,
        /// What was asked for, and what there is.
        error: MemoryError,
    },
    /// Anything else that a kind of another crate has to say.
    #[error("player '{spec}': {reason}")]
    Other {
        /// The whole spec.
        spec: String,
        /// What is wrong.
        reason: String,
    },
}

impl SpecError {
    /// The error of a player that there is no memory for.
    pub(crate) fn memory(spec: &str, error: MemoryError) -> SpecError {
        SpecError::Memory { spec: spec.to_owned(), error }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_text_is_a_spec_or_an_error(text in "[a-z]{0,9}:?[ a-z=,:é@.0-9]{0,30}") {
            if let Ok(spec) = text.parse::<PlayerSpec>() {
                prop_assert_eq!(spec.to_string().parse::<PlayerSpec>().unwrap(), spec);
            }
        }
    }

    #[test]
    fn specs_are_written_as_they_were_read() {
        for text in [
            "random",
            "rollout:sims=400",
            "run:NAME",
            "run:NAME@12,sims=800,root=gumbel",
            "net:some/file.safetensors,sims=3",
            "stockfish:skill=3,nodes=1000",
            "uci:lc0 --weights='a,b=c' option.Threads=2",
        ] {
            let spec: PlayerSpec = text.parse().unwrap();
            assert_eq!(spec.to_string(), text);
            assert_eq!(spec.to_string().parse::<PlayerSpec>().unwrap(), spec);
        }
    }

    #[test]
    fn what_is_no_spec_is_named() {
        let message = |text: &str| text.parse::<PlayerSpec>().unwrap_err().to_string();
        assert!(message("").starts_with("'' names no player"));
        assert!(message(":x").starts_with("':x' names no player"));
        assert_eq!(
            message("stockfish:elo=3,fast"),
            "player 'stockfish:elo=3,fast': 'fast' is no option: expected key=value"
        );
    }
}
