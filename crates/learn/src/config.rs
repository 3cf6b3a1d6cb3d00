//! The config of a run, as `run.toml` holds it, and how long to train.

mod memory;

use crate::alphazero::{AlphaZero, AlphaZeroConfig};
use crate::bounds::Bounds;
use crate::clone::{CloneConfig, ResidualCloneConfig};
use crate::endgame::{EndgameConfig, EndingName};
use crate::evolve::EvolveConfig;
use crate::learner::{Hardware, LearnError};
use crate::qlearn::QLearnConfig;
use crate::reinforce::ReinforceConfig;
use crate::selfplay::{Ramp, RatingConfig, SelfPlayConfig, plan_games};
use crate::tune::TuneConfig;
use crate::value::ValueConfig;
use crate::zero::{Zero, ZeroConfig};

/// Everything that decides what a run learns: the same config gives the same games and networks.
#[derive(Clone, Debug, PartialEq)]
pub struct RunConfig {
    /// The version of selfmate that started the run.
    pub version: String,
    /// The root of all randomness.
    pub seed: u64,
    /// The learner and its settings.
    pub settings: Settings,
}

/// A learner and its settings.
#[derive(Clone, Debug, PartialEq)]
pub enum Settings {
    /// See [`crate::zero`].
    Zero(ZeroConfig),
    /// See [`crate::alphazero`].
    AlphaZero(AlphaZeroConfig),
    /// See [`crate::qlearn`].
    QLearn(QLearnConfig),
    /// See [`crate::evolve`].
    Evolve(EvolveConfig),
    /// See [`crate::tune`].
    Tune(TuneConfig),
    /// See [`crate::clone`].
    Clone(CloneConfig),
    /// See [`crate::clone`], with a residual network.
    CloneResidual(ResidualCloneConfig),
    /// See [`crate::reinforce`].
    Reinforce(ReinforceConfig),
    /// See [`crate::value`].
    Value(ValueConfig),
    /// See [`crate::endgame`].
    Endgame(EndgameConfig),
}

/// The same expression for the settings of whichever learner.
macro_rules! with {
    ($settings:expr, $config:ident => $result:expr) => {
        match $settings {
            Settings::Zero($config) => $result,
            Settings::AlphaZero($config) => $result,
            Settings::QLearn($config) => $result,
            Settings::Evolve($config) => $result,
            Settings::Tune($config) => $result,
            Settings::Clone($config) => $result,
            Settings::CloneResidual($config) => $result,
            Settings::Reinforce($config) => $result,
            Settings::Value($config) => $result,
            Settings::Endgame($config) => $result,
        }
    };
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
    /// A number out of its bounds.
    #[error("{field} is {got}: expected {bounds}")]
    Bounds {
        /// The setting.
        field: String,
        /// Its value.
        got: String,
        /// What would do.
        bounds: Bounds,
    },
    /// Settings that ask for more memory than there is.
    #[error(
        "the settings need {needed_mb} MB of memory on {threads} threads, most of it for {setting}: this machine has {limit_mb} MB"
    )]
    Memory {
        /// The setting that asks for most.
        setting: &'static str,
        /// What all of them ask for.
        needed_mb: u64,
        /// What there is.
        limit_mb: u64,
        /// Threads, each with trees or tables of its own.
        threads: usize,
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

impl Settings {
    /// The names of the learners.
    pub const LEARNERS: [&str; 12] = [
        "zero",
        "alphazero",
        "value",
        "reinforce",
        "qlearn",
        "clone",
        "clone-residual",
        "evolve",
        "tune",
        "krk",
        "kqk",
        "kpk",
    ];

    /// The settings of a learner by name; `None` when there is no such learner or preset.
    pub fn preset(learner: &str, preset: &str) -> Option<Settings> {
        match learner {
            "zero" => ZeroConfig::preset(preset).map(Settings::Zero),
            "alphazero" => AlphaZeroConfig::preset(preset).map(Settings::AlphaZero),
            "qlearn" => QLearnConfig::preset(preset).map(Settings::QLearn),
            "evolve" => EvolveConfig::preset(preset).map(Settings::Evolve),
            "tune" => TuneConfig::preset(preset).map(Settings::Tune),
            "clone" => CloneConfig::preset(preset).map(Settings::Clone),
            "clone-residual" => ResidualCloneConfig::preset(preset).map(Settings::CloneResidual),
            "reinforce" => ReinforceConfig::preset(preset).map(Settings::Reinforce),
            "value" => ValueConfig::preset(preset).map(Settings::Value),
            ending => {
                EndgameConfig::preset(EndingName::by_name(ending)?, preset).map(Settings::Endgame)
            }
        }
    }

    /// The presets of a learner.
    pub fn presets(learner: &str) -> &'static [&'static str] {
        match learner {
            "zero" => &ZeroConfig::PRESETS,
            "alphazero" => &AlphaZeroConfig::PRESETS,
            "qlearn" => &QLearnConfig::PRESETS,
            "evolve" => &EvolveConfig::PRESETS,
            "tune" => &TuneConfig::PRESETS,
            "clone" => &CloneConfig::PRESETS,
            "clone-residual" => &ResidualCloneConfig::PRESETS,
            "reinforce" => &ReinforceConfig::PRESETS,
            "value" => &ValueConfig::PRESETS,
            ending if EndingName::by_name(ending).is_some() => &EndgameConfig::PRESETS,
            _ => &[],
        }
    }

    /// The learner.
    pub fn learner(&self) -> &'static str {
        match self {
            Settings::Zero(_) => "zero",
            Settings::AlphaZero(_) => "alphazero",
            Settings::QLearn(_) => "qlearn",
            Settings::Evolve(_) => "evolve",
            Settings::Tune(_) => "tune",
            Settings::Clone(_) => "clone",
            Settings::CloneResidual(_) => "clone-residual",
            Settings::Reinforce(_) => "reinforce",
            Settings::Value(_) => "value",
            Settings::Endgame(config) => config.ending.name(),
        }
    }

    /// The settings as a table.
    pub fn to_table(&self) -> toml::Table {
        let table = with!(self, config => toml::Table::try_from(config));
        table.expect("a config is a table of plain values")
    }

    /// The same learner with these settings, which must be all there are.
    fn with_table(&self, table: toml::Table) -> Result<Settings, toml::de::Error> {
        Ok(match self {
            Settings::Zero(_) => Settings::Zero(table.try_into()?),
            Settings::AlphaZero(_) => Settings::AlphaZero(table.try_into()?),
            Settings::QLearn(_) => Settings::QLearn(table.try_into()?),
            Settings::Evolve(_) => Settings::Evolve(table.try_into()?),
            Settings::Tune(_) => Settings::Tune(table.try_into()?),
            Settings::Clone(_) => Settings::Clone(table.try_into()?),
            Settings::CloneResidual(_) => Settings::CloneResidual(table.try_into()?),
            Settings::Reinforce(_) => Settings::Reinforce(table.try_into()?),
            Settings::Value(_) => Settings::Value(table.try_into()?),
            Settings::Endgame(_) => Settings::Endgame(table.try_into()?),
        })
    }

    /// Says what makes no sense, if anything does.
    pub fn check(&self) -> Result<(), ConfigError> {
        with!(self, config => config.check())
    }

    /// The games that the settings' ramps are made for; `None` for a learner without ramps.
    pub fn plan_games(&mut self) -> Option<&mut u64> {
        match self {
            Settings::Zero(config) => Some(&mut config.plan_games),
            Settings::AlphaZero(config) => Some(&mut config.plan_games),
            Settings::QLearn(config) => Some(&mut config.plan_games),
            Settings::Reinforce(config) => Some(&mut config.plan_games),
            _ => None,
        }
    }

    /// How strength is watched on the way; `None` for a learner that is examined in its own way.
    pub fn rating(&self) -> Option<&RatingConfig> {
        match self {
            Settings::Zero(config) => Some(&config.rating),
            Settings::AlphaZero(config) => Some(&config.rating),
            _ => None,
        }
    }

    /// How games of self-play are played, and the weight of their results in what is learned;
    /// `None` for a learner that plays none with a network of its own.
    pub fn selfplay(&self) -> Option<(&SelfPlayConfig, Ramp)> {
        match self {
            Settings::Zero(config) => Some((&config.selfplay, config.learning.result_weight)),
            Settings::AlphaZero(config) => Some((&config.selfplay, config.learning.result_weight)),
            _ => None,
        }
    }

    /// True when it plays games against itself that other machines can play.
    pub fn plays_itself(&self) -> bool {
        matches!(self, Settings::Zero(_) | Settings::AlphaZero(_) | Settings::Endgame(_))
    }

    /// True when the network is one that can be on another device than our own kernels.
    pub fn has_residual_network(&self) -> bool {
        matches!(self, Settings::AlphaZero(_) | Settings::CloneResidual(_))
    }

    /// The games that fit into so many minutes on this machine; `None` for a learner whose plan
    /// does not follow the machine.
    pub fn measure_plan(
        &self,
        minutes: f64,
        hardware: Hardware,
    ) -> Result<Option<u64>, LearnError> {
        match self {
            Settings::Zero(config) => plan_games::<Zero>(config, minutes, hardware).map(Some),
            Settings::AlphaZero(config) => {
                plan_games::<AlphaZero>(config, minutes, hardware).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Changes the settings that a TOML text names.
    pub fn merge(&self, file: &str, text: &str) -> Result<Settings, ConfigError> {
        let wrong = |error: toml::de::Error| ConfigError::Parse {
            file: file.to_owned(),
            message: error.to_string(),
        };
        let mut table = self.to_table();
        merge(&mut table, text.parse().map_err(wrong)?);
        self.with_table(table).map_err(wrong)
    }

    /// Changes settings by `key=value`, where a key is a path such as `selfplay.sims.to`.
    pub fn set(&self, settings: &[String]) -> Result<Settings, ConfigError> {
        let mut changed = self.clone();
        // One at a time, so that an error names the setting to blame.
        for setting in settings {
            let wrong = |message: String| ConfigError::Set { setting: setting.clone(), message };
            let (key, value) =
                setting.split_once('=').ok_or_else(|| ConfigError::NoValue(setting.clone()))?;
            let mut table = changed.to_table();
            change(&mut table, key, value).map_err(wrong)?;
            changed = changed.with_table(table).map_err(|error| wrong(error.to_string()))?;
        }
        Ok(changed)
    }
}

impl RunConfig {
    /// The config of a new run.
    pub fn new(seed: u64, settings: Settings) -> RunConfig {
        RunConfig { version: env!("CARGO_PKG_VERSION").to_owned(), seed, settings }
    }

    /// Reads `run.toml`.
    pub fn parse(text: &str) -> Result<RunConfig, ConfigError> {
        let wrong = |message: &dyn std::fmt::Display| ConfigError::Parse {
            file: "run.toml".to_owned(),
            message: message.to_string(),
        };
        let mut table: toml::Table = text.parse().map_err(|error| wrong(&error))?;
        let mut take =
            |key: &str| table.remove(key).ok_or_else(|| wrong(&format!("there is no '{key}'")));
        let learner: String = take("learner")?.try_into().map_err(|error| wrong(&error))?;
        let version = take("version")?.try_into().map_err(|error| wrong(&error))?;
        let seed = take("seed")?.try_into().map_err(|error| wrong(&error))?;
        let all = Settings::preset(&learner, "default")
            .ok_or_else(|| wrong(&format!("there is no learner '{learner}'")))?;
        let settings = take(&learner)?.try_into().map_err(|error| wrong(&error))?;
        let settings = all.with_table(settings).map_err(|error| wrong(&error))?;
        if let Some(key) = table.keys().next() {
            return Err(wrong(&format!("nobody knows what '{key}' is")));
        }
        settings.check()?;
        Ok(RunConfig { version, seed, settings })
    }

    /// Writes `run.toml`.
    pub fn to_toml(&self) -> String {
        let learner = self.settings.learner();
        let mut table = toml::Table::new();
        table.insert("learner".to_owned(), learner.into());
        table.insert("version".to_owned(), self.version.clone().into());
        let seed = i64::try_from(self.seed).expect("seeds come from TOML and the command line");
        table.insert("seed".to_owned(), seed.into());
        table.insert(learner.to_owned(), self.settings.to_table().into());
        toml::to_string(&table).expect("a config is a table of plain values")
    }
}

/// A setting that two configs of a run do not share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Its name, such as `learning.batch`.
    pub name: String,
    /// Its value in the one.
    pub then: String,
    /// Its value in the other.
    pub now: String,
    /// A checkpoint that was made with the one is of no use to the other.
    pub is_refused: bool,
}

/// What a checkpoint is made of: other values would not change how it goes on, but what it is.
const FIXED: [&str; 9] = [
    "learner",
    "seed",
    "network",
    "ending",
    "genes",
    "strategy",
    "population",
    "parents",
    "table_mb",
];

/// Where two texts of `run.toml` differ.
pub fn changes(then: &str, now: &str) -> Result<Vec<Change>, ConfigError> {
    if then == now {
        return Ok(Vec::new());
    }
    let parse = |text: &str| {
        text.parse::<toml::Table>().map_err(|error| ConfigError::Parse {
            file: "run.toml".to_owned(),
            message: error.to_string(),
        })
    };
    let flat = |text: &str| -> Result<(String, toml::Table), ConfigError> {
        let mut table = parse(text)?;
        // Who began the run, which decides nothing.
        table.remove("version");
        let learner = table.get("learner").and_then(toml::Value::as_str).unwrap_or_default();
        let learner = learner.to_owned();
        // Settings are named as `--set` names them.
        if let Some(toml::Value::Table(settings)) = table.remove(&learner) {
            table.extend(settings);
        }
        Ok((learner, table))
    };
    let ((before, then), (after, now)) = (flat(then)?, flat(now)?);
    if before != after {
        let name = "learner".to_owned();
        return Ok(vec![Change { name, then: before, now: after, is_refused: true }]);
    }
    Ok(differences(&then, &now))
}

/// The settings that two tables do not share.
pub fn differences(then: &toml::Table, now: &toml::Table) -> Vec<Change> {
    let shown = |value: Option<&toml::Value>| {
        value.map_or_else(|| "nothing".to_owned(), ToString::to_string)
    };
    let mut found = Vec::new();
    for key in then.keys().chain(now.keys().filter(|key| !then.contains_key(*key))) {
        match (then.get(key), now.get(key)) {
            (then, now) if then == now => {}
            (Some(toml::Value::Table(then)), Some(toml::Value::Table(now))) => {
                let is_fixed = FIXED.contains(&key.as_str());
                found.extend(differences(then, now).into_iter().map(|change| Change {
                    name: format!("{key}.{}", change.name),
                    // Only a whole part of the settings is fixed, not whatever is named alike in one.
                    is_refused: is_fixed,
                    ..change
                }));
            }
            (then, now) => found.push(Change {
                name: key.clone(),
                then: shown(then),
                now: shown(now),
                is_refused: FIXED.contains(&key.as_str()),
            }),
        }
    }
    found
}

/// Puts the values of one table into another, table by table.
fn merge(table: &mut toml::Table, other: toml::Table) {
    for (key, value) in other {
        match (table.get_mut(&key), value) {
            (Some(toml::Value::Table(inner)), toml::Value::Table(value)) => merge(inner, value),
            (_, value) => _ = table.insert(key, value),
        }
    }
}

/// Changes the value at a path.
fn change(table: &mut toml::Table, key: &str, value: &str) -> Result<(), String> {
    let parsed = format!("value = {value}").parse::<toml::Table>().ok();
    let parsed = parsed.and_then(|mut table| table.remove("value"));
    let place = place(table, key)?;
    let value = match (&*place, parsed) {
        (_, Some(value)) => value,
        (toml::Value::Integer(_), None) => {
            return Err(format!("expected a whole number of at most {}", i64::MAX));
        }
        (toml::Value::Float(_), None) => match value.parse::<f64>() {
            // Of any length, which TOML's whole numbers are not.
            Ok(number) if number.is_finite() => toml::Value::Float(number),
            _ => return Err("expected a number".to_owned()),
        },
        // A bare word is text.
        (_, None) => toml::Value::String(value.to_owned()),
    };
    *place = match (&*place, value) {
        (toml::Value::Table(parts), value) if !value.is_table() => {
            let parts: Vec<String> = parts.keys().map(|part| format!("{key}.{part}")).collect();
            return Err(format!("'{key}' has parts: {}", parts.join(", ")));
        }
        (toml::Value::Float(_), toml::Value::Integer(whole)) => toml::Value::Float(whole as f64),
        (_, value) => value,
    };
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    fn default() -> Settings {
        Settings::preset("zero", "default").unwrap()
    }

    #[test]
    fn settings_change_one_value_and_errors_name_it() {
        let changed =
            default().set(&["selfplay.sims.to=200".into(), "learning.batch=64".into()]).unwrap();
        let Settings::Zero(zero) = changed else { panic!("another learner") };
        assert_eq!(zero.selfplay.sims.to, 200.0);
        assert_eq!(zero.learning.batch, 64);
        assert_eq!(zero.selfplay.sims.from, ZeroConfig::default().selfplay.sims.from);
        let error = |setting: &str| default().set(&[setting.into()]).unwrap_err().to_string();
        assert!(error("selfplay.simms=3").contains("there is no 'simms'; there are"));
        assert!(error("learning.batch=many").starts_with("'learning.batch=many': "));
        assert!(error("learning").contains("expected key=value"));
        assert_eq!(
            error("learning.batch=99999999999999999999"),
            "'learning.batch=99999999999999999999': \
             expected a whole number of at most 9223372036854775807"
        );
        assert_eq!(error("learning.reuse=NaN"), "'learning.reuse=NaN': expected a number");
        let long = default().set(&["selfplay.sims.to=99999999999999999999".into()]).unwrap();
        assert_eq!(long, default().set(&["selfplay.sims.to=1e20".into()]).unwrap());
        let parts = "'selfplay.sims' has parts: selfplay.sims.begin, selfplay.sims.end, ";
        assert!(error("selfplay.sims=3").contains(parts), "{}", error("selfplay.sims=3"));
    }

    #[test]
    fn a_file_changes_what_it_names_and_nothing_else() {
        let changed = default().merge("f.toml", "[selfplay]\nsims.to = 9.0\n").unwrap();
        assert_eq!(changed, default().set(&["selfplay.sims.to=9".into()]).unwrap());
        let error = default().merge("f.toml", "[selfplai]\nx = 1").unwrap_err().to_string();
        assert!(error.starts_with("f.toml: ") && error.contains("selfplai"), "{error}");
    }

    #[test]
    fn changes_are_named_and_those_that_a_checkpoint_cannot_follow_refused() {
        let text = |settings: &[&str]| {
            let settings: Vec<String> = settings.iter().map(|text| (*text).to_owned()).collect();
            RunConfig::new(7, default().set(&settings).unwrap()).to_toml()
        };
        let plain = text(&[]);
        assert_eq!(changes(&plain, &plain).unwrap(), []);
        let other = text(&["learning.batch=64", "network.hidden=64"]);
        let found = changes(&plain, &other).unwrap();
        let found: Vec<_> = found
            .iter()
            .map(|change| (change.name.as_str(), &*change.then, &*change.now, change.is_refused))
            .collect();
        let expected =
            [("learning.batch", "2048", "64", false), ("network.hidden", "256", "64", true)];
        assert_eq!(found, expected);
        let seed = changes(&plain, &plain.replace("seed = 7", "seed = 8")).unwrap();
        assert!(seed[0].name == "seed" && seed[0].is_refused, "{seed:?}");
        let version = plain.replace(env!("CARGO_PKG_VERSION"), "0.0.1");
        assert_eq!(changes(&plain, &version).unwrap(), []);
        let krk = RunConfig::new(7, Settings::preset("krk", "tiny").unwrap()).to_toml();
        assert_eq!(changes(&plain, &krk).unwrap()[0].name, "learner");
    }

    #[test]
    fn run_toml_comes_back_as_it_was() {
        for learner in Settings::LEARNERS {
            for preset in Settings::presets(learner) {
                let config = RunConfig::new(7, Settings::preset(learner, preset).unwrap());
                assert_eq!(RunConfig::parse(&config.to_toml()).unwrap(), config);
            }
        }
        let text = RunConfig::new(7, default()).to_toml();
        let error = |text: &str| RunConfig::parse(text).unwrap_err().to_string();
        assert!(error("learner = 3").starts_with("run.toml: "));
        assert_eq!(
            error(&text.replace("\"zero\"", "\"one\"")),
            "run.toml: there is no learner 'one'"
        );
        assert!(error(&format!("nonsense = 1\n{text}")).contains("nonsense"));
    }
}
