//! The one table of learners. Everything that lists, trains, describes or plays learners goes
//! through it: a new learner is its own file and one row here.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use selfmate_arena::registry::Build;
use selfmate_run::Run;
use selfmate_selfplay::{GameSource, Ramp, SelfPlayConfig, Watch};
use selfmate_train::bounds::NamedBounds;
use selfmate_train::{ConfigError, End, Hardware, RatingConfig, TrainOptions, TrainingError};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::charts::Chart;
use crate::{alphazero, clone, endgame, evolve, qlearn, reinforce, tune, value, zero};

/// All learners; the first one is the default.
pub static LEARNERS: &[LearnerInfo] = &[
    zero::INFO,
    alphazero::INFO,
    value::INFO,
    reinforce::INFO,
    qlearn::INFO,
    clone::INFO,
    clone::RESIDUAL_INFO,
    clone::POLICY_INFO,
    evolve::INFO,
    tune::INFO,
    endgame::KRK,
    endgame::KQK,
    endgame::KPK,
];

pub fn learner(name: &str) -> Option<&'static LearnerInfo> {
    LEARNERS.iter().find(|info| info.name == name)
}

/// A row of the table.
pub struct LearnerInfo {
    pub name: &'static str,
    /// One line for `--help` and the page.
    pub summary: &'static str,
    pub presets: &'static [&'static str],
    /// The settings of a preset. Every learner has `default`.
    pub preset: fn(&str) -> Option<Box<dyn LearnerSettings>>,
    /// The settings in `run.toml`; all of them must be present.
    pub parse: fn(toml::Table) -> Result<Box<dyn LearnerSettings>, toml::de::Error>,
    /// The bounds of settings that no other learner has.
    pub bounds: &'static [NamedBounds],
    /// True when its self-play games can be played on other machines.
    pub is_distributed: bool,
    /// True when its network can run on devices other than `cpu`.
    pub has_device: bool,
    pub search: SearchKind,
    pub player: PlayerFormat,
    /// The curves that matter, the most important ones first.
    pub charts: &'static [Chart],
    /// Checkpoint files that can be described as text.
    pub descriptions: &'static [Description],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchKind {
    /// Alpha-beta or tree search, depending on its options.
    Either,
    Tree,
    NoTree,
}

/// How the file of a checkpoint becomes a player.
#[derive(Clone, Copy)]
pub struct PlayerFormat {
    pub file: &'static str,
    pub load: Loader,
}

#[derive(Clone, Copy)]
pub enum Loader {
    /// A network in one of our searches; see [`selfmate_arena::players::net`].
    Network,
    /// The learner's own player, with the options that it accepts.
    Own { options: &'static [&'static str], load: fn(&[u8]) -> Result<Arc<Build>, String> },
}

/// A checkpoint file and the function that describes it as lines of text.
#[derive(Clone, Copy)]
pub struct Description {
    pub file: &'static str,
    pub lines: fn(&[u8]) -> Result<Vec<String>, String>,
}

pub trait LearnerConfig:
    Serialize + DeserializeOwned + Clone + PartialEq + fmt::Debug + Send + Sync + 'static
{
    fn check(&self) -> Result<(), ConfigError>;

    fn train(
        &self,
        run: &mut Run,
        options: &TrainOptions<'_>,
        source: &mut dyn GameSource,
        watch: &mut dyn Watch,
    ) -> Result<End, TrainingError>;

    /// The megabytes needed at the same time, by setting: trees, tables, replay buffers.
    fn memory_mb(&self, _threads: usize) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// The number of games at which the ramps end.
    fn plan_games(&mut self) -> Option<&mut u64> {
        None
    }

    /// The number of games that fit into this time on this machine; `None` if the plan does not
    /// depend on the machine.
    fn measure_plan(
        &self,
        _minutes: f64,
        _hardware: Hardware,
    ) -> Result<Option<u64>, TrainingError> {
        Ok(None)
    }

    /// How the run is rated during training.
    fn rating(&self) -> Option<&RatingConfig> {
        None
    }

    /// The self-play settings and the weight of results in the value target.
    fn selfplay(&self) -> Option<(&SelfPlayConfig, Ramp)> {
        None
    }
}

/// [`LearnerConfig`] as a trait object.
pub trait LearnerSettings: fmt::Debug + Send + Sync {
    fn to_table(&self) -> toml::Table;
    fn check(&self) -> Result<(), ConfigError>;
    fn train(
        &self,
        run: &mut Run,
        options: &TrainOptions<'_>,
        source: &mut dyn GameSource,
        watch: &mut dyn Watch,
    ) -> Result<End, TrainingError>;
    fn memory_mb(&self, threads: usize) -> Vec<(&'static str, u64)>;
    fn plan_games(&mut self) -> Option<&mut u64>;
    fn measure_plan(&self, minutes: f64, hardware: Hardware) -> Result<Option<u64>, TrainingError>;
    fn rating(&self) -> Option<&RatingConfig>;
    fn selfplay(&self) -> Option<(&SelfPlayConfig, Ramp)>;
    fn boxed(&self) -> Box<dyn LearnerSettings>;
    fn as_any(&self) -> &dyn Any;
}

impl<C: LearnerConfig> LearnerSettings for C {
    fn to_table(&self) -> toml::Table {
        toml::Table::try_from(self).expect("a config is a table of plain values")
    }

    fn check(&self) -> Result<(), ConfigError> {
        LearnerConfig::check(self)
    }

    fn train(
        &self,
        run: &mut Run,
        options: &TrainOptions<'_>,
        source: &mut dyn GameSource,
        watch: &mut dyn Watch,
    ) -> Result<End, TrainingError> {
        LearnerConfig::train(self, run, options, source, watch)
    }

    fn memory_mb(&self, threads: usize) -> Vec<(&'static str, u64)> {
        LearnerConfig::memory_mb(self, threads)
    }

    fn plan_games(&mut self) -> Option<&mut u64> {
        LearnerConfig::plan_games(self)
    }

    fn measure_plan(&self, minutes: f64, hardware: Hardware) -> Result<Option<u64>, TrainingError> {
        LearnerConfig::measure_plan(self, minutes, hardware)
    }

    fn rating(&self) -> Option<&RatingConfig> {
        LearnerConfig::rating(self)
    }

    fn selfplay(&self) -> Option<(&SelfPlayConfig, Ramp)> {
        LearnerConfig::selfplay(self)
    }

    fn boxed(&self) -> Box<dyn LearnerSettings> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// For [`LearnerInfo::parse`].
pub(crate) fn parse<C: LearnerConfig>(
    table: toml::Table,
) -> Result<Box<dyn LearnerSettings>, toml::de::Error> {
    Ok(Box::new(table.try_into::<C>()?))
}

/// For [`LearnerInfo::preset`].
pub(crate) fn boxed<C: LearnerConfig>(config: Option<C>) -> Option<Box<dyn LearnerSettings>> {
    config.map(|config| Box::new(config) as Box<dyn LearnerSettings>)
}

/// For [`LearnerConfig::memory_mb`].
pub(crate) const fn megabytes(bytes: u64) -> u64 {
    bytes.div_ceil(1 << 20)
}

#[cfg(test)]
mod tests {
    use selfmate_train::bounds;

    use super::*;
    use crate::settings::Settings;

    /// The paths of all numbers in a table.
    fn numbers(name: &str, value: &toml::Value, found: &mut Vec<String>) {
        match value {
            toml::Value::Table(table) => {
                for (key, value) in table {
                    let name = if name.is_empty() { key.clone() } else { format!("{name}.{key}") };
                    numbers(&name, value, found);
                }
            }
            toml::Value::Integer(_) | toml::Value::Float(_) => found.push(name.to_owned()),
            _ => {}
        }
    }

    /// Every preset of every learner with the paths of its numbers.
    fn all() -> Vec<(&'static LearnerInfo, Settings, Vec<String>)> {
        let mut all = Vec::new();
        for info in LEARNERS {
            for preset in info.presets {
                let settings = Settings::preset(info.name, preset).unwrap();
                let mut names = Vec::new();
                numbers("", &settings.to_table().into(), &mut names);
                assert!(names.len() > 10, "{}: {names:?}", info.name);
                all.push((info, settings, names));
            }
        }
        all
    }

    #[test]
    fn every_numeric_setting_has_bounds_and_presets_are_within_them() {
        for (info, settings, names) in all() {
            settings.check().unwrap();
            for name in names {
                let found = bounds::of(&name, info.bounds);
                assert!(found.is_some(), "{}: no bounds for {name}", info.name);
            }
        }
    }

    #[test]
    fn every_bound_of_a_learner_belongs_to_a_setting() {
        for info in LEARNERS {
            let names: Vec<String> = all()
                .into_iter()
                .filter(|(other, ..)| other.name == info.name)
                .flat_map(|(_, _, names)| names)
                .collect();
            for (end, _) in info.bounds {
                assert!(names.iter().any(|name| name.ends_with(end)), "{}: {end}", info.name);
            }
        }
    }

    #[test]
    fn extreme_numbers_are_rejected_by_name_or_within_their_bounds() {
        let extreme = [
            "0",
            "-1",
            "1",
            "1e300",
            "-1e300",
            "1e-300",
            "NaN",
            "nan",
            "inf",
            "-inf",
            "4294967295",
            "4294967296",
            "9223372036854775807",
            "9223372036854775808",
            "18446744073709551615",
            "99999999999999999999999999",
        ];
        let (mut accepted, mut rejected) = (0, 0);
        for (info, settings, names) in all() {
            for name in names {
                for value in extreme {
                    let given = format!("{name}={value}");
                    let changed = settings.set(std::slice::from_ref(&given));
                    let checked = changed.and_then(|settings| settings.check().map(|()| settings));
                    match checked {
                        Err(error) => {
                            rejected += 1;
                            let error = error.to_string();
                            let last = name.rsplit('.').next().unwrap();
                            assert!(error.contains(last), "{} {given}: {error}", info.name);
                        }
                        Ok(settings) => {
                            accepted += 1;
                            settings.to_table();
                            let number: f64 = value.parse().unwrap();
                            let bounds = bounds::of(&name, info.bounds).unwrap();
                            assert!(bounds.contains(number), "{} {given}", info.name);
                        }
                    }
                }
            }
        }
        assert!(
            accepted > 100 && rejected > 5 * accepted,
            "{accepted} accepted, {rejected} rejected"
        );
    }

    /// The text of a setting; `none` if it is not there.
    fn setting(settings: &Settings, path: &str) -> String {
        let mut value = toml::Value::Table(settings.to_table());
        for part in path.split('.') {
            match value.get(part) {
                Some(inner) => value = inner.clone(),
                None => return "none".to_owned(),
            }
        }
        value.to_string()
    }

    /// Rows such as `| stated | setting | preset | default | reason |`, below a line such as
    /// "(preset `paper` of `alphazero`)".
    #[test]
    fn docs_sources_state_the_presets() {
        let text = include_str!("../../../docs/sources.md");
        let (mut rows, mut presets) = (0, None);
        for line in text.lines() {
            if let Some((_, rest)) = line.split_once("(preset `") {
                let (preset, rest) = rest.split_once("` of `").unwrap();
                let learner = rest.split('`').next().unwrap();
                let settings = |preset| Settings::preset(learner, preset).expect(line);
                presets = Some((settings(preset), settings("default")));
            }
            let cells: Vec<&str> = line.split(" | ").map(str::trim).collect();
            let name = cells.get(1).and_then(|cell| cell.strip_prefix('`')?.strip_suffix('`'));
            if let (Some(name), Some((preset, default))) = (name, &presets) {
                assert_eq!(setting(preset, name), cells[2], "{line}");
                assert_eq!(setting(default, name), cells[3], "{line}");
                assert_ne!((cells[2], cells[3]), ("none", "none"), "{line}");
                rows += 1;
            }
        }
        assert!(rows > 40, "{rows} rows were read");
    }

    #[test]
    fn bounds_are_described_in_words() {
        let described = |name: &str| bounds::of(name, &[]).unwrap().to_string();
        assert_eq!(described("selfplay.long_opening_share"), "a share from 0 to 1");
        assert_eq!(described("learning.trainer.beta1"), "a share from 0 to less than 1");
        let epsilon = described("learning.trainer.optimiser.epsilon");
        assert_eq!(epsilon, "a number above 0, at most 1");
        assert_eq!(described("selfplay.memory_mb"), "megabytes from 1 to 16384");
        assert_eq!(described("selfplay.opening_plies"), "plies from 0 to 1000");
        assert_eq!(bounds::of("optimiser.beta3", &[]), None);
    }
}
