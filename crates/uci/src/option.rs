//! Engine options: declared once, printed at `uci`, validated when set.
//!
//! Both sides use them: an engine validates what a GUI sets, and the driver validates values
//! against the engine's declarations. The engine stores the values, not this module.

use std::fmt;

use crate::command::split_word;

/// The declaration of an option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineOption {
    /// May contain spaces.
    pub name: String,
    pub kind: OptionKind,
}

/// The option types of UCI, with defaults and bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OptionKind {
    Check {
        default: bool,
    },
    Spin {
        default: i64,
        min: i64,
        max: i64,
    },
    Combo {
        default: String,
        choices: Vec<String>,
    },
    /// Triggers an action; has no value.
    Button,
    String {
        default: String,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OptionError {
    #[error("no such option: {0}")]
    Unknown(String),
    #[error("option {name}: expected {expected}, got '{got}'")]
    Value { name: String, expected: String, got: String },
}

impl EngineOption {
    pub fn spin(name: &str, default: i64, min: i64, max: i64) -> EngineOption {
        EngineOption { name: name.to_owned(), kind: OptionKind::Spin { default, min, max } }
    }

    pub fn check(name: &str, default: bool) -> EngineOption {
        EngineOption { name: name.to_owned(), kind: OptionKind::Check { default } }
    }

    pub fn combo(name: &str, default: &str, choices: &[&str]) -> EngineOption {
        let choices = choices.iter().map(|&choice| choice.to_owned()).collect();
        let kind = OptionKind::Combo { default: default.to_owned(), choices };
        EngineOption { name: name.to_owned(), kind }
    }

    pub fn button(name: &str) -> EngineOption {
        EngineOption { name: name.to_owned(), kind: OptionKind::Button }
    }

    pub fn string(name: &str, default: &str) -> EngineOption {
        let kind = OptionKind::String { default: default.to_owned() };
        EngineOption { name: name.to_owned(), kind }
    }

    /// Finds an option by name, ignoring case.
    pub fn find<'a>(options: &'a [EngineOption], name: &str) -> Option<&'a EngineOption> {
        options.iter().find(|option| option.name.eq_ignore_ascii_case(name))
    }

    /// Validates a value for an option of a list. Returns the declared name and the value in its
    /// canonical form.
    pub fn resolve<'a>(
        options: &'a [EngineOption],
        name: &str,
        value: Option<&str>,
    ) -> Result<(&'a str, Option<String>), OptionError> {
        let option = EngineOption::find(options, name)
            .ok_or_else(|| OptionError::Unknown(name.to_owned()))?;
        Ok((&option.name, option.accept(value)?))
    }

    /// Validates a value and returns it in canonical form; `None` for a button.
    ///
    /// ```
    /// use selfmate_uci::EngineOption;
    /// let hash = EngineOption::spin("Hash", 16, 1, 65536);
    /// assert_eq!(hash.accept(Some("064")).unwrap().as_deref(), Some("64"));
    /// let error = hash.accept(Some("0")).unwrap_err();
    /// assert_eq!(error.to_string(), "option Hash: expected a whole number from 1 to 65536, got '0'");
    /// ```
    pub fn accept(&self, value: Option<&str>) -> Result<Option<String>, OptionError> {
        let text = value.unwrap_or_default().trim();
        let accepted = match &self.kind {
            OptionKind::Button => return Ok(None),
            OptionKind::Check { .. } => match text.to_ascii_lowercase().as_str() {
                word @ ("true" | "false") => Some(word.to_owned()),
                _ => None,
            },
            OptionKind::Spin { min, max, .. } => text
                .parse::<i64>()
                .ok()
                .filter(|number| (min..=max).contains(&number))
                .map(|number| number.to_string()),
            OptionKind::Combo { choices, .. } => {
                choices.iter().find(|choice| choice.eq_ignore_ascii_case(text)).cloned()
            }
            // UCI's notation of an empty string.
            OptionKind::String { .. } if text == "<empty>" => Some(String::new()),
            OptionKind::String { .. } => Some(text.to_owned()),
        };
        accepted.map(Some).ok_or_else(|| OptionError::Value {
            name: self.name.clone(),
            expected: self.kind.expected(),
            got: text.to_owned(),
        })
    }

    /// Parses what follows the word `option`; `None` if it is not a declaration.
    pub fn parse(text: &str) -> Option<EngineOption> {
        let (name, rest) = until(text.strip_prefix("name ")?, &["type"]);
        let (kind, rest) = split_word(rest.strip_prefix("type")?);
        let field = |word| field(rest, word);
        let number = |word| field(word)?.parse().ok();
        let kind = match kind {
            "check" => OptionKind::Check { default: field("default") == Some("true") },
            "spin" => OptionKind::Spin {
                default: number("default")?,
                min: number("min").unwrap_or(i64::MIN),
                max: number("max").unwrap_or(i64::MAX),
            },
            "combo" => OptionKind::Combo {
                default: field("default").unwrap_or_default().to_owned(),
                choices: choices(rest),
            },
            "button" => OptionKind::Button,
            "string" => {
                let default = split_word(rest.strip_prefix("default").unwrap_or_default());
                let default = match default {
                    ("<empty>", "") => String::new(),
                    _ => rest.strip_prefix("default").unwrap_or_default().trim().to_owned(),
                };
                OptionKind::String { default }
            }
            _ => return None,
        };
        (!name.is_empty()).then(|| EngineOption { name: name.to_owned(), kind })
    }
}

impl OptionKind {
    fn expected(&self) -> String {
        match self {
            OptionKind::Check { .. } => "true or false".to_owned(),
            OptionKind::Spin { min, max, .. } => format!("a whole number from {min} to {max}"),
            OptionKind::Combo { choices, .. } => format!("one of {}", choices.join(", ")),
            OptionKind::Button => "no value".to_owned(),
            OptionKind::String { .. } => "a text".to_owned(),
        }
    }
}

impl fmt::Display for EngineOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "option name {} type ", self.name)?;
        match &self.kind {
            OptionKind::Check { default } => write!(f, "check default {default}"),
            OptionKind::Spin { default, min, max } => {
                write!(f, "spin default {default} min {min} max {max}")
            }
            OptionKind::Combo { default, choices } => {
                write!(f, "combo default {default}")?;
                choices.iter().try_for_each(|choice| write!(f, " var {choice}"))
            }
            OptionKind::Button => f.write_str("button"),
            OptionKind::String { default } if default.is_empty() => {
                f.write_str("string default <empty>")
            }
            OptionKind::String { default } => write!(f, "string default {default}"),
        }
    }
}

const FIELDS: [&str; 4] = ["default", "min", "max", "var"];

/// The text before the first separate word of `words`, and the rest from that word on.
fn until<'a>(text: &'a str, words: &[&str]) -> (&'a str, &'a str) {
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (word, after) = split_word(rest);
        if words.contains(&word) {
            break;
        }
        rest = after;
    }
    let text = text.trim();
    (text[..text.len() - rest.len()].trim(), rest)
}

/// The value of a field, up to the next field.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (_, found) = until(text, &[name]);
    let value = found.strip_prefix(name)?;
    Some(until(value, &FIELDS).0)
}

fn choices(text: &str) -> Vec<String> {
    let mut choices = Vec::new();
    let (_, mut rest) = until(text, &["var"]);
    while let Some(value) = rest.strip_prefix("var") {
        let (choice, after) = until(value, &["var"]);
        choices.push(choice.to_owned());
        rest = after;
    }
    choices
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> EngineOption {
        EngineOption::parse(line.strip_prefix("option ").unwrap()).unwrap()
    }

    #[test]
    fn declarations_of_stockfish_and_lc0_are_parsed() {
        assert_eq!(
            parse("option name Debug Log File type string default "),
            EngineOption::string("Debug Log File", "")
        );
        assert_eq!(
            parse("option name SyzygyPath type string default <empty>"),
            EngineOption::string("SyzygyPath", "")
        );
        assert_eq!(
            parse("option name EvalFile type string default a min file"),
            EngineOption::string("EvalFile", "a min file")
        );
        assert_eq!(
            parse("option name Hash type spin default 16 min 1 max 33554432"),
            EngineOption::spin("Hash", 16, 1, 33_554_432)
        );
        assert_eq!(parse("option name Clear Hash type button"), EngineOption::button("Clear Hash"));
        assert_eq!(
            parse("option name Style type combo default Very Solid var Very Solid var Risky"),
            EngineOption::combo("Style", "Very Solid", &["Very Solid", "Risky"])
        );
        for text in
            ["", "name", "name x", "name x type", "name x type dial default 3", "name  type button"]
        {
            assert_eq!(EngineOption::parse(text), None, "{text}");
        }
    }

    #[test]
    fn values_are_validated_and_names_ignore_case() {
        let options = [
            EngineOption::check("Ponder", false),
            EngineOption::combo("Backend", "fast", &["fast", "burn"]),
            EngineOption::button("Clear Hash"),
            EngineOption::string("SyzygyPath", ""),
        ];
        let resolve = |name, value| {
            EngineOption::resolve(&options, name, value).map_err(|error| error.to_string())
        };
        assert_eq!(resolve("ponder", Some("TRUE")), Ok(("Ponder", Some("true".to_owned()))));
        assert_eq!(resolve("clear hash", None), Ok(("Clear Hash", None)));
        assert_eq!(resolve("SYZYGYPATH", Some("<empty>")), Ok(("SyzygyPath", Some(String::new()))));
        assert_eq!(resolve("Nope", None), Err("no such option: Nope".to_owned()));
        let error = resolve("backend", Some("gpu")).unwrap_err();
        assert_eq!(error, "option Backend: expected one of fast, burn, got 'gpu'");
    }
}
