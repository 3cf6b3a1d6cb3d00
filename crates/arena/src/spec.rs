//! Player specs: texts that name a player, the same in every command.
//!
//! The forms are `KIND`, `KIND:ARGUMENT`, `KIND:key=value,…` and `KIND:ARGUMENT,key=value,…`. The
//! kinds and their options are defined in [`crate::registry`].

use std::fmt;
use std::num::{IntErrorKind, ParseIntError};
use std::str::FromStr;

use selfmate_chess::Seed;
use selfmate_search::memory::MemoryError;
use selfmate_uci::EngineError;

use crate::tablebase_cache::TablebaseCache;

/// A parsed player spec. Formatting it gives the same text back.
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
    pub kind: String,
    /// The leading part that is not an option: a run, a file or a command.
    pub argument: Option<String>,
    pub options: Vec<(String, String)>,
}

/// The kind whose argument is a complete command line, including commas.
pub(crate) const COMMAND_KIND: &str = "uci";

impl PlayerSpec {
    /// The value of an option; the last one if it is set twice.
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

/// The input of a kind's builder.
#[derive(Clone, Copy, Debug)]
pub struct SpecOptions<'a> {
    /// Its options are already checked to exist for this kind.
    pub spec: &'a PlayerSpec,
    pub seed: Seed,
    /// The open tablebases and the default folders.
    pub tablebases: &'a TablebaseCache,
}

impl SpecOptions<'_> {
    /// The player's name: the spec as text.
    pub fn label(&self) -> String {
        self.spec.to_string()
    }

    /// The required argument; `expected` describes it in the error.
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
            // If only the lower bound matters, the upper bound is named only to users who exceeded
            // it.
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

/// Why a player cannot be built from a spec.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    #[error("'{0}' is not a player: expected KIND or KIND:key=value,…, such as alphabeta:depth=4")]
    Empty(String),
    #[error("player '{spec}': '{item}' is not an option: expected key=value")]
    Item { spec: String, item: String },
    #[error("unknown player '{kind}': {hint}")]
    Unknown { kind: String, hint: String },
    #[error("player '{kind}' has no option '{option}': {hint}")]
    Option { kind: String, option: String, hint: String },
    #[error("player '{kind}', option {option}: expected {expected}, got '{value}'")]
    Value { kind: String, option: String, value: String, expected: String },
    #[error("player '{kind}': expected {kind}:{expected}")]
    Argument { kind: String, expected: String },
    #[error(
        "player '{kind}' takes no argument '{argument}': expected {kind} or {kind}:key=value,…"
    )]
    NoArgument { kind: String, argument: String },
    #[error("player '{kind}', option syzygy: {reason}")]
    Tables { kind: String, reason: String },
    #[error("player '{spec}': {error}")]
    Engine { spec: String, error: EngineError },
    #[error("player '{spec}': {error}")]
    Memory { spec: String, error: MemoryError },
    /// Any other error of a kind, also of kinds from other crates.
    #[error("player '{spec}': {reason}")]
    Other { spec: String, reason: String },
}

impl SpecError {
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
        fn any_text_parses_or_gives_an_error(text in "[a-z]{0,9}:?[ a-z=,:é@.0-9]{0,30}") {
            if let Ok(spec) = text.parse::<PlayerSpec>() {
                prop_assert_eq!(spec.to_string().parse::<PlayerSpec>().unwrap(), spec);
            }
        }
    }

    #[test]
    fn specs_round_trip() {
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
    fn the_error_quotes_the_invalid_part() {
        let message = |text: &str| text.parse::<PlayerSpec>().unwrap_err().to_string();
        assert!(message("").starts_with("'' is not a player"));
        assert!(message(":x").starts_with("':x' is not a player"));
        assert_eq!(
            message("stockfish:elo=3,fast"),
            "player 'stockfish:elo=3,fast': 'fast' is not an option: expected key=value"
        );
    }
}
