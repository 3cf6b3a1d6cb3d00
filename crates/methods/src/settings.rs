//! The config of a run, as stored in `run.toml`.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use selfmate_nn::Device;
use selfmate_run::{Budget, Run};
use selfmate_selfplay::{GameSource, LocalThreads, Ramp, SelfPlayConfig, Watch};
use selfmate_train::{ConfigError, End, Hardware, RatingConfig, TrainOptions, TrainingError};

use crate::table::{LearnerInfo, LearnerSettings, learner};

/// The format of `run.toml` and of the metrics. Runs of other formats are rejected.
pub const FORMAT: i64 = 2;

/// Everything that decides what a run learns: the same config gives the same games and networks.
///
/// ```
/// use std::sync::Arc;
///
/// use selfmate_methods::{RunConfig, Settings};
/// use selfmate_run::{Budget, Record, Run};
///
/// // `tiny` trains for seconds; settings can be changed as with `--set` on the command line.
/// let settings = Settings::preset("zero", "tiny").expect("zero has this preset");
/// let settings = settings.set(&["learning.batch=32".to_owned()])?;
/// let config = RunConfig::new(7, settings);
///
/// let folder = tempfile::tempdir()?;
/// let mut run = Run::open(&folder.path().join("first"))?;
/// run.write_config(&config.to_toml())?;
/// let budget = Budget { games: Some(16), ..Budget::default() };
/// config.train(&mut run, budget, 1, &Arc::default(), &mut ())?;
///
/// // A generation of `tiny` has 16 games, so there is one record of progress.
/// let (metrics, _) = run.metrics()?;
/// let mut progress = metrics.iter().filter_map(|record| match record {
///     Record::Progress(progress) => Some(progress),
///     _ => None,
/// });
/// let first = progress.next().expect("one generation");
/// assert_eq!((first.games, progress.next()), (16, None));
/// assert!(first.steps > 0 && first.values["loss.value"] > 0.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct RunConfig {
    /// The version of selfmate that started the run.
    pub version: String,
    /// The seed of everything random in the run.
    pub seed: u64,
    pub settings: Settings,
}

/// A learner and its settings.
pub struct Settings {
    info: &'static LearnerInfo,
    config: Box<dyn LearnerSettings>,
}

impl Clone for Settings {
    fn clone(&self) -> Settings {
        Settings { info: self.info, config: self.config.boxed() }
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.config.fmt(f)
    }
}

impl PartialEq for Settings {
    fn eq(&self, other: &Settings) -> bool {
        self.info.name == other.info.name && self.to_table() == other.to_table()
    }
}

impl Settings {
    /// `None` when there is no such learner or preset.
    pub fn preset(name: &str, preset: &str) -> Option<Settings> {
        let info = learner(name)?;
        Some(Settings { info, config: (info.preset)(preset)? })
    }

    pub fn new(info: &'static LearnerInfo, config: Box<dyn LearnerSettings>) -> Settings {
        Settings { info, config }
    }

    pub fn info(&self) -> &'static LearnerInfo {
        self.info
    }

    pub fn learner(&self) -> &'static str {
        self.info.name
    }

    /// The concrete settings, if they are of type `C`.
    pub fn downcast<C: 'static>(&self) -> Option<&C> {
        self.config.as_any().downcast_ref()
    }

    pub fn to_table(&self) -> toml::Table {
        let mut table = self.config.to_table();
        table.iter_mut().for_each(|(_, value)| shorten_floats(value));
        table
    }

    fn with_table(&self, table: toml::Table) -> Result<Settings, toml::de::Error> {
        Ok(Settings { info: self.info, config: (self.info.parse)(table)? })
    }

    pub fn check(&self) -> Result<(), ConfigError> {
        self.config.check()
    }

    /// Trains until the budget is spent or a stop is requested, starting from the latest
    /// checkpoint.
    pub fn train(
        &self,
        run: &mut Run,
        options: &TrainOptions<'_>,
        source: &mut dyn GameSource,
        watch: &mut dyn Watch,
    ) -> Result<End, TrainingError> {
        let trained = self.config.train(run, options, source, watch);
        // If the whole folder is gone, name that instead of the file that was missed first.
        trained.map_err(|error| run.check_present().err().map_or(error, TrainingError::from))
    }

    /// See [`crate::table::LearnerConfig::plan_games`].
    pub fn plan_games(&mut self) -> Option<&mut u64> {
        self.config.plan_games()
    }

    /// See [`crate::table::LearnerConfig::measure_plan`].
    pub fn measure_plan(
        &self,
        minutes: f64,
        hardware: Hardware,
    ) -> Result<Option<u64>, TrainingError> {
        self.config.measure_plan(minutes, hardware)
    }

    /// See [`crate::table::LearnerConfig::rating`].
    pub fn rating(&self) -> Option<&RatingConfig> {
        self.config.rating()
    }

    /// See [`crate::table::LearnerConfig::selfplay`].
    pub fn selfplay(&self) -> Option<(&SelfPlayConfig, Ramp)> {
        self.config.selfplay()
    }

    /// An error if the settings need more memory than there is. This is an estimate: searches and
    /// tables check their own memory again with `selfmate_search::memory` when they are created.
    pub fn check_memory(&self, threads: usize, limit_mb: u64) -> Result<(), ConfigError> {
        let parts = self.config.memory_mb(threads.max(1));
        let needed_mb = parts.iter().fold(0, |sum: u64, (_, part)| sum.saturating_add(*part));
        if needed_mb <= limit_mb {
            return Ok(());
        }
        let largest = parts.into_iter().max_by_key(|(_, part)| *part);
        let setting = largest.map_or("threads", |(name, _)| name);
        Err(ConfigError::Memory { setting, needed_mb, limit_mb, threads })
    }

    /// Changes the settings that appear in a TOML text.
    pub fn merge(&self, file: &str, text: &str) -> Result<Settings, ConfigError> {
        let wrong = |error: toml::de::Error| ConfigError::Parse {
            file: file.to_owned(),
            message: error.to_string(),
        };
        let mut table = self.to_table();
        merge(&mut table, text.parse().map_err(wrong)?);
        self.with_table(table).map_err(wrong)
    }

    /// Changes settings by `key=value`, where a key is a path such as `selfplay.simulations.to`.
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
    pub fn new(seed: u64, settings: Settings) -> RunConfig {
        RunConfig { version: env!("CARGO_PKG_VERSION").to_owned(), seed, settings }
    }

    /// Trains on the threads of this process; see [`Settings::train`].
    pub fn train(
        &self,
        run: &mut Run,
        budget: Budget,
        threads: usize,
        stop: &Arc<AtomicBool>,
        watch: &mut dyn Watch,
    ) -> Result<End, TrainingError> {
        let hardware = Hardware { threads, device: Device::Cpu };
        let options = TrainOptions { seed: self.seed, budget, hardware, stop };
        self.settings.train(run, &options, &mut LocalThreads(threads), watch)
    }

    /// Reads `run.toml`.
    pub fn parse(text: &str) -> Result<RunConfig, ConfigError> {
        let wrong = |message: &dyn fmt::Display| ConfigError::Parse {
            file: "run.toml".to_owned(),
            message: message.to_string(),
        };
        let mut table: toml::Table = text.parse().map_err(|error| wrong(&error))?;
        let mut take =
            |key: &str| table.remove(key).ok_or_else(|| wrong(&format!("there is no '{key}'")));
        // Checked first, because the settings of other formats differ.
        let format = take("format").ok().and_then(|format| format.as_integer()).unwrap_or(1);
        if format != FORMAT {
            return Err(wrong(&format!(
                "a run of format {format}: this version of selfmate reads format {FORMAT}; train it with the version that made it, or start another run"
            )));
        }
        let learner: String = take("learner")?.try_into().map_err(|error| wrong(&error))?;
        let version = take("version")?.try_into().map_err(|error| wrong(&error))?;
        let seed = take("seed")?.try_into().map_err(|error| wrong(&error))?;
        let all = Settings::preset(&learner, "default")
            .ok_or_else(|| wrong(&format!("there is no learner '{learner}'")))?;
        let settings = take(&learner)?.try_into().map_err(|error| wrong(&error))?;
        let settings = all.with_table(settings).map_err(|error| wrong(&error))?;
        if let Some(key) = table.keys().next() {
            return Err(wrong(&format!("unknown key '{key}'")));
        }
        settings.check()?;
        Ok(RunConfig { version, seed, settings })
    }

    /// Writes `run.toml`.
    pub fn to_toml(&self) -> String {
        let learner = self.settings.learner();
        let mut table = toml::Table::new();
        table.insert("format".to_owned(), FORMAT.into());
        table.insert("learner".to_owned(), learner.into());
        table.insert("version".to_owned(), self.version.clone().into());
        let seed = i64::try_from(self.seed).expect("seeds come from TOML and the command line");
        table.insert("seed".to_owned(), seed.into());
        table.insert(learner.to_owned(), self.settings.to_table().into());
        toml::to_string(&table).expect("a config is a table of plain values")
    }
}

/// Writes 32-bit numbers as they were set: 0.2, not 0.20000000298023224.
fn shorten_floats(value: &mut toml::Value) {
    match value {
        toml::Value::Float(number) if f64::from(*number as f32) == *number => {
            *number = (*number as f32).to_string().parse().unwrap_or(*number);
        }
        toml::Value::Table(table) => table.iter_mut().for_each(|(_, value)| shorten_floats(value)),
        toml::Value::Array(values) => values.iter_mut().for_each(shorten_floats),
        _ => {}
    }
}

/// Copies the values of one table into another, recursively.
fn merge(table: &mut toml::Table, other: toml::Table) {
    for (key, value) in other {
        match (table.get_mut(&key), value) {
            (Some(toml::Value::Table(inner)), toml::Value::Table(value)) => merge(inner, value),
            (_, value) => _ = table.insert(key, value),
        }
    }
}

fn change(table: &mut toml::Table, key: &str, value: &str) -> Result<(), String> {
    let parsed = format!("value = {value}").parse::<toml::Table>().ok();
    let parsed = parsed.and_then(|mut table| table.remove("value"));
    let setting = find_setting(table, key)?;
    let value = match (&*setting, parsed) {
        (_, Some(value)) => value,
        (toml::Value::Integer(_), None) => {
            return Err(format!("expected a whole number of at most {}", i64::MAX));
        }
        (toml::Value::Float(_), None) => match value.parse::<f64>() {
            // TOML integers are limited to 64 bits, but a float setting may be given more digits.
            Ok(number) if number.is_finite() => toml::Value::Float(number),
            _ => return Err("expected a number".to_owned()),
        },
        // A bare word is a string.
        (_, None) => toml::Value::String(value.to_owned()),
    };
    *setting = match (&*setting, value) {
        (toml::Value::Table(parts), value) if !value.is_table() => {
            let parts: Vec<String> = parts.keys().map(|part| format!("{key}.{part}")).collect();
            return Err(format!("'{key}' has parts: {}", parts.join(", ")));
        }
        (toml::Value::Float(_), toml::Value::Integer(whole)) => toml::Value::Float(whole as f64),
        (_, value) => value,
    };
    Ok(())
}

fn find_setting<'a>(table: &'a mut toml::Table, key: &str) -> Result<&'a mut toml::Value, String> {
    let (first, rest) = match key.split_once('.') {
        Some((first, rest)) => (first, Some(rest)),
        None => (key, None),
    };
    let names: Vec<&str> = table.keys().map(String::as_str).collect();
    let unknown = format!("there is no '{first}'; there are {}", names.join(", "));
    let value = table.get_mut(first).ok_or(unknown)?;
    match (rest, value) {
        (None, value) => Ok(value),
        (Some(rest), toml::Value::Table(table)) => find_setting(table, rest),
        (Some(_), _) => Err(format!("'{first}' has no parts")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::LEARNERS;
    use crate::zero::ZeroConfig;

    fn default() -> Settings {
        Settings::preset("zero", "default").unwrap()
    }

    #[test]
    fn settings_change_one_value_and_errors_name_it() {
        let changed = default()
            .set(&["selfplay.simulations.to=200".into(), "learning.batch=64".into()])
            .unwrap();
        let zero = changed.downcast::<ZeroConfig>().unwrap();
        assert_eq!(zero.selfplay.simulations.to, 200.0);
        assert_eq!(zero.learning.batch, 64);
        assert_eq!(
            zero.selfplay.simulations.from,
            crate::zero::default().selfplay.simulations.from
        );
        let error = |setting: &str| default().set(&[setting.into()]).unwrap_err().to_string();
        assert!(error("selfplay.simullations=3").contains("there is no 'simullations'; there are"));
        assert!(error("learning.batch=many").starts_with("'learning.batch=many': "));
        assert!(error("learning").contains("expected key=value"));
        assert_eq!(
            error("learning.batch=99999999999999999999"),
            "'learning.batch=99999999999999999999': \
             expected a whole number of at most 9223372036854775807"
        );
        assert_eq!(error("learning.reuse=NaN"), "'learning.reuse=NaN': expected a number");
        let long = default().set(&["selfplay.simulations.to=99999999999999999999".into()]).unwrap();
        assert_eq!(long, default().set(&["selfplay.simulations.to=1e20".into()]).unwrap());
        let parts = "'selfplay.simulations' has parts: selfplay.simulations.begin, selfplay.simulations.end, ";
        assert!(
            error("selfplay.simulations=3").contains(parts),
            "{}",
            error("selfplay.simulations=3")
        );
    }

    #[test]
    fn a_file_changes_only_the_settings_in_it() {
        let changed = default().merge("f.toml", "[selfplay]\nsimulations.to = 9.0\n").unwrap();
        assert_eq!(changed, default().set(&["selfplay.simulations.to=9".into()]).unwrap());
        let error = default().merge("f.toml", "[selfplai]\nx = 1").unwrap_err().to_string();
        assert!(error.starts_with("f.toml: ") && error.contains("selfplai"), "{error}");
    }

    #[test]
    fn run_toml_round_trips() {
        for info in LEARNERS {
            for preset in info.presets {
                let config = RunConfig::new(7, Settings::preset(info.name, preset).unwrap());
                let text = config.to_toml();
                assert_eq!(RunConfig::parse(&text).unwrap(), config);
            }
        }
        let text = RunConfig::new(7, default()).to_toml();
        assert!(text.contains("c_scale = 0.2\n"), "{text}");
        let error = |text: &str| RunConfig::parse(text).unwrap_err().to_string();
        assert!(error("format = 2\nlearner = 3").starts_with("run.toml: "));
        assert!(error("learner = \"zero\"").contains("a run of format 1: this version"));
        assert_eq!(
            error(&text.replace("\"zero\"", "\"one\"")),
            "run.toml: there is no learner 'one'"
        );
        assert!(error(&format!("nonsense = 1\n{text}")).contains("nonsense"));
    }

    #[test]
    fn settings_that_need_too_much_memory_are_rejected_by_name() {
        const GIGABYTES: u64 = 1024;
        for info in LEARNERS {
            let settings = Settings::preset(info.name, "default").unwrap();
            settings.check_memory(4, 8 * GIGABYTES).unwrap();
        }
        let paper = Settings::preset("alphazero", "paper").unwrap();
        paper.check_memory(9, 24 * GIGABYTES).unwrap();
        // A run that is planned for few games has a small replay buffer.
        let small = Settings::preset("zero", "default").unwrap();
        let small = small.set(&["plan_games=1000".to_owned()]).unwrap();
        small.check_memory(4, GIGABYTES).unwrap();
        let greedy = [
            ("zero", "selfplay.memory_mb"),
            ("zero", "selfplay.games_at_once"),
            ("zero", "learning.replay_max"),
            ("alphazero", "learning.batch"),
            ("clone-residual", "batch"),
            ("qlearn", "table_mb"),
            ("tune", "games.hash_mb"),
            ("tune", "texel.positions"),
            ("value", "replay"),
            ("krk", "selfplay.transpositions"),
            ("krk", "learning.replay_min"),
        ];
        for (learner, name) in greedy {
            let most = match name {
                "selfplay.games_at_once" => "4096",
                "learning.batch" | "batch" => "65536",
                "selfplay.memory_mb" | "table_mb" | "games.hash_mb" => "16384",
                _ => "100000000",
            };
            let mut given = vec![format!("{name}={most}")];
            if name == "learning.replay_max" {
                given.push("plan_games=1000000000".to_owned());
            }
            if name == "replay" {
                given = vec!["replay=1000000000".to_owned()];
            }
            if name == "learning.replay_min" {
                given.push("learning.replay_max=100000000".to_owned());
            }
            let settings = Settings::preset(learner, "default").unwrap().set(&given).unwrap();
            settings.check().unwrap();
            let error = settings.check_memory(2, 4 * GIGABYTES).unwrap_err().to_string();
            let blamed = name.replace("games_at_once", "memory_mb");
            assert!(error.contains(&format!("most of it for {blamed}: ")), "{name}: {error}");
        }
    }
}
