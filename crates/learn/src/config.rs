//! The config of a run, as `run.toml` holds it, and how long to train.

use serde::{Deserialize, Serialize};

use crate::zero::ZeroConfig;

/// Everything that decides what a run learns: the same config gives the same games and networks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunConfig {
    /// The learner's name.
    pub learner: String,
    /// The version of selfmate that started the run.
    pub version: String,
    /// The root of all randomness.
    pub seed: u64,
    /// The settings of the `zero` learner.
    pub zero: ZeroConfig,
}

/// A config that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// `run.toml` or a config file that does not say what it should.
    #[error("{file}: {message}")]
    Parse {
        /// The file.
        file: String,
        /// What is wrong.
        message: String,
    },
    /// `--set` without a key and a value.
    #[error("'{0}': expected key=value, such as selfplay.sims.to=200")]
    NoValue(String),
    /// `--set` with a key or value that does not fit.
    #[error("'{setting}': {message}")]
    Set {
        /// The setting as it was given.
        setting: String,
        /// What is wrong.
        message: String,
    },
    /// A value that makes no sense.
    #[error("{field} is {got}: expected {expected}")]
    Value {
        /// The setting.
        field: &'static str,
        /// Its value.
        got: String,
        /// What would do.
        expected: &'static str,
    },
}

impl RunConfig {
    /// A run of the `zero` learner.
    pub fn new(seed: u64, zero: ZeroConfig) -> RunConfig {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        RunConfig { learner: "zero".to_owned(), version, seed, zero }
    }

    /// Reads `run.toml`.
    pub fn parse(text: &str) -> Result<RunConfig, ConfigError> {
        let parse = |error: toml::de::Error| ConfigError::Parse {
            file: "run.toml".to_owned(),
            message: error.to_string(),
        };
        let config: RunConfig = toml::from_str(text).map_err(parse)?;
        config.zero.check()?;
        Ok(config)
    }

    /// Writes `run.toml`.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("a config is a table of plain values")
    }
}

/// Changes settings by `key=value`, where a key is a path such as `selfplay.sims.to`.
pub fn set<T>(config: &T, settings: &[String]) -> Result<T, ConfigError>
where
    T: Serialize + for<'de> Deserialize<'de>,
{
    let mut table = toml::Table::try_from(config).expect("a config is a table of plain values");
    for setting in settings {
        let wrong = |message: String| ConfigError::Set { setting: setting.clone(), message };
        let (key, value) =
            setting.split_once('=').ok_or_else(|| ConfigError::NoValue(setting.clone()))?;
        // A bare word is text.
        let parsed = format!("value = {value}").parse::<toml::Table>().ok();
        let value = parsed
            .and_then(|mut table| table.remove("value"))
            .unwrap_or_else(|| toml::Value::String(value.to_owned()));
        let place = place(&mut table, key).map_err(&wrong)?;
        *place = match (&*place, value) {
            (toml::Value::Float(_), toml::Value::Integer(whole)) => {
                toml::Value::Float(whole as f64)
            }
            (_, value) => value,
        };
        // One at a time, so that an error names the setting to blame.
        T::deserialize(table.clone()).map_err(|error| wrong(error.to_string()))?;
    }
    T::deserialize(table).map_err(|error| ConfigError::Parse {
        file: "settings".to_owned(),
        message: error.to_string(),
    })
}

fn place<'a>(table: &'a mut toml::Table, key: &str) -> Result<&'a mut toml::Value, String> {
    let (first, rest) = match key.split_once('.') {
        Some((first, rest)) => (first, Some(rest)),
        None => (key, None),
    };
    let names: Vec<&str> = table.keys().map(String::as_str).collect();
    let unknown = format!("there is no '{first}'; there are {}", names.join(", "));
    let value = table.get_mut(first).ok_or(unknown)?;
    match (rest, value) {
        (None, value) => Ok(value),
        (Some(rest), toml::Value::Table(table)) => place(table, rest),
        (Some(_), _) => Err(format!("'{first}' has no parts")),
    }
}

/// When to stop. Without any bound a run goes on until it is told to stop.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Budget {
    /// Minutes of training, earlier sessions included.
    pub minutes: Option<f64>,
    /// Games of self-play, earlier sessions included.
    pub games: Option<u64>,
    /// Batches learned, earlier sessions included.
    pub steps: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_change_one_value_and_errors_name_it() {
        let config = ZeroConfig::default();
        let changed =
            set(&config, &["selfplay.sims.to=200".into(), "learning.batch=64".into()]).unwrap();
        assert_eq!(changed.selfplay.sims.to, 200.0);
        assert_eq!(changed.learning.batch, 64);
        assert_eq!(changed.selfplay.sims.from, config.selfplay.sims.from);
        let error = |setting: &str| set(&config, &[setting.into()]).unwrap_err().to_string();
        assert!(error("selfplay.simms=3").contains("there is no 'simms'; there are"));
        assert!(error("learning.batch=many").starts_with("'learning.batch=many': "));
        assert!(error("learning").contains("expected key=value"));
    }

    #[test]
    fn run_toml_comes_back_as_it_was() {
        let config = RunConfig::new(7, ZeroConfig::tiny());
        assert_eq!(RunConfig::parse(&config.to_toml()).unwrap(), config);
        let error = RunConfig::parse("learner = 3").unwrap_err().to_string();
        assert!(error.starts_with("run.toml: "), "{error}");
    }
}
