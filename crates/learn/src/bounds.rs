//! What every number of the settings may be, in one table.
//!
//! Settings are looked at as they stand in `run.toml`, so a number cannot be forgotten: a test asks
//! for the bounds of every number of every learner. What follows from several settings together is
//! checked beside them.

use std::fmt;
use std::ops::{Bound, RangeBounds};

use serde::Serialize;
use serde_json::Value;

use crate::config::ConfigError;

/// What a number may be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    least: Bound<f64>,
    most: Bound<f64>,
    noun: &'static str,
}

impl Bounds {
    const fn new(least: f64, most: f64) -> Bounds {
        Bounds { least: Bound::Included(least), most: Bound::Included(most), noun: "a number" }
    }

    /// For what is divided by or grows: nothing and less would not do.
    const fn above_zero(most: f64) -> Bounds {
        Bounds { least: Bound::Excluded(0.0), ..Bounds::new(0.0, most) }
    }

    /// Whether a number will do. What is no number never does.
    pub fn contains(&self, number: f64) -> bool {
        (self.least, self.most).contains(&number)
    }
}

impl fmt::Display for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.noun)?;
        match self.least {
            Bound::Included(least) => write!(f, " from {least}")?,
            Bound::Excluded(least) => write!(f, " above {least}")?,
            Bound::Unbounded => {}
        }
        match (self.least, self.most) {
            (Bound::Excluded(_), Bound::Included(most)) => write!(f, ", at most {most}"),
            (_, Bound::Included(most)) => write!(f, " to {most}"),
            (_, Bound::Excluded(most)) => write!(f, " to less than {most}"),
            (_, Bound::Unbounded) => Ok(()),
        }
    }
}

/// A part of one.
const SHARE: Bounds = Bounds { noun: "a share", ..Bounds::new(0.0, 1.0) };
/// The share of the past that a moving average keeps.
const DECAY: Bounds = Bounds { most: Bound::Excluded(1.0), ..SHARE };
/// The weight of one thing against another.
const WEIGHT: Bounds = Bounds::new(0.0, 1e6);
/// A learning rate.
const RATE: Bounds = Bounds::above_zero(100.0);
/// Where a ramp bends, as a share of the plan; before its beginning and after its end will do.
const BEND: Bounds = Bounds::new(-1000.0, 1000.0);
/// Plies of a game: nobody learns from longer ones, and their number fits into a record.
const PLIES: Bounds = Bounds { noun: "plies", ..Bounds::new(0.0, 10_000.0) };
const SOME_PLIES: Bounds = Bounds { noun: "plies", ..Bounds::new(1.0, 10_000.0) };
/// Random plies that make a start: games seldom last longer.
const START_PLIES: Bounds = Bounds { noun: "plies", ..Bounds::new(0.0, 1000.0) };
/// Simulations of a search.
const SIMULATIONS: Bounds = Bounds::new(1.0, 1e6);
/// Nodes of a search.
const NODES: Bounds = Bounds::new(1.0, 1e9);
/// Memory of a tree or a table.
const MEGABYTES: Bounds = Bounds { noun: "megabytes", ..Bounds::new(1.0, 16_384.0) };
/// Games of a round: their positions have to fit into memory until they are learned from.
const ROUND: Bounds = Bounds::new(1.0, 1e6);
/// Games of a match.
const MATCH: Bounds = Bounds::new(1.0, 100_000.0);
/// Positions of a batch.
const BATCH: Bounds = Bounds::new(1.0, 65_536.0);
/// Positions that are kept.
const POSITIONS: Bounds = Bounds::new(1.0, 1e9);
/// Something that is counted over a whole run, such as steps; 0 for never or at once.
const COUNT: Bounds = Bounds::new(0.0, 1e15);
const SOME: Bounds = Bounds::new(1.0, 1e15);
const SECONDS: Bounds = Bounds { noun: "seconds", ..Bounds::new(0.0, 1e9) };
/// Units of a layer; each network says more about its own shape.
const UNITS: Bounds = Bounds { noun: "units", ..Bounds::new(1.0, 4096.0) };
const CENTIPAWNS: Bounds = Bounds { noun: "centipawns", ..Bounds::new(0.0, 1e6) };
/// Past selves or bests that are kept to play against.
const POOL: Bounds = Bounds::new(0.0, 1000.0);

/// The bounds of every number. A name stands for all settings that end in it; of several the longest
/// counts.
const TABLE: &[(&str, Bounds)] = &[
    ("plan_games", Bounds::new(1.0, 1e12)),
    // The shape of networks.
    ("network.hidden", UNITS),
    ("network.value_hidden", UNITS),
    ("network.first", UNITS),
    ("network.second", UNITS),
    ("network.channels", UNITS),
    ("network.head", UNITS),
    ("network.filters", UNITS),
    ("network.squeeze", Bounds::new(0.0, 4096.0)),
    ("network.blocks", Bounds::new(1.0, 64.0)),
    ("network.planes", Bounds::new(1.0, 119.0)),
    // Self-play.
    ("selfplay.generation_games", ROUND),
    ("blind.games", Bounds::new(0.0, 1e6)),
    ("blind.sims", Bounds::new(0.0, 1e6)),
    ("blind.kept", SHARE),
    ("sims.from", SIMULATIONS),
    ("sims.to", SIMULATIONS),
    ("selfplay.games_at_once", Bounds::new(1.0, 4096.0)),
    ("dirichlet_alpha", Bounds::above_zero(1000.0)),
    ("dirichlet_share", SHARE),
    ("candidates", Bounds::new(1.0, 1000.0)),
    ("c_visit", WEIGHT),
    ("c_scale", WEIGHT),
    ("c_puct", WEIGHT),
    ("first_play_urgency", WEIGHT),
    ("discount", SHARE),
    ("noisy_plies", PLIES),
    ("quick_share", SHARE),
    ("quick_sims", SIMULATIONS),
    ("opening_plies", START_PLIES),
    ("wild_share", SHARE),
    ("wild_plies", START_PLIES),
    ("endgame_share", SHARE),
    ("endgame_pieces", Bounds { noun: "pieces", ..Bounds::new(3.0, 32.0) }),
    ("max_plies", SOME_PLIES),
    ("resign_value", SHARE),
    ("resign_plies", SOME_PLIES),
    ("resign_share", SHARE),
    ("memory_mb", MEGABYTES),
    // Learning.
    ("batch", BATCH),
    ("learning.reuse", Bounds::new(0.0, 1000.0)),
    ("learning.rate_drops", COUNT),
    ("learning.warmup_steps", COUNT),
    ("learning.window", POSITIONS),
    ("learning.window_share", Bounds::above_zero(1000.0)),
    ("result_weight", SHARE),
    ("result_weight.from", SHARE),
    ("result_weight.to", SHARE),
    ("checkpoint_seconds", SECONDS),
    ("saving.keep_steps", COUNT),
    ("learning.keep_steps", SOME),
    ("begin", BEND),
    ("end", BEND),
    ("rate", RATE),
    ("rate.from", RATE),
    ("rate.to", RATE),
    // Optimisers.
    ("value_weight", WEIGHT),
    ("policy_weight", WEIGHT),
    ("beta1", DECAY),
    ("beta2", DECAY),
    ("momentum", DECAY),
    ("epsilon", Bounds::above_zero(1.0)),
    ("weight_decay", Bounds::new(0.0, 1000.0)),
    ("clip_norm", Bounds::above_zero(1e9)),
    ("average_rate", SHARE),
    ("average_every", Bounds::new(1.0, 1e6)),
    // Guards and ratings.
    ("guards.patience", COUNT),
    ("guards.max_draws", WEIGHT),
    ("guards.max_capped", WEIGHT),
    ("guards.min_value_spread", WEIGHT),
    ("guards.min_entropy", WEIGHT),
    ("guards.max_divergence", WEIGHT),
    ("guards.remedy_generations", COUNT),
    ("guards.max_remedies", Bounds::new(0.0, 1e9)),
    ("rating.every_seconds", SECONDS),
    ("rating.games", MATCH),
    ("rating.nodes", NODES),
    // What learners in rounds share.
    ("round_games", ROUND),
    ("round_batches", Bounds::new(1.0, 1e6)),
    ("pool", POOL),
    ("pool_every", SOME),
    ("exam.every_rounds", COUNT),
    ("exam.games", MATCH),
    ("games.nodes", NODES),
    ("games.hash_mb", MEGABYTES),
    ("games.resign_centipawns", CENTIPAWNS),
    ("games.draw_centipawns", CENTIPAWNS),
    // qlearn.
    ("table_plies", PLIES),
    ("new_states", PLIES),
    ("alpha.from", Bounds::above_zero(1.0)),
    ("alpha.to", Bounds::above_zero(1.0)),
    ("doubt", Bounds::new(0.0, 1e6)),
    ("gamma", SHARE),
    ("epsilon.from", SHARE),
    ("epsilon.to", SHARE),
    ("table_mb", MEGABYTES),
    // evolve.
    ("sigma", Bounds::above_zero(1000.0)),
    ("population", Bounds::new(2.0, 10_000.0)),
    ("parents", Bounds::new(1.0, 10_000.0)),
    ("pairs", Bounds::new(1.0, 10_000.0)),
    // tune.
    ("vary.share", Bounds::above_zero(10.0)),
    ("vary.growth", Bounds::new(1.0, 1000.0)),
    ("vary.most", Bounds::above_zero(10.0)),
    ("spsa.iterations", Bounds::new(1.0, 100_000.0)),
    ("spsa.width", Bounds::above_zero(1000.0)),
    ("spsa.step", Bounds::above_zero(1000.0)),
    ("spsa.stability", Bounds::above_zero(1e9)),
    ("texel.games", MATCH),
    ("texel.trials", Bounds::new(0.0, 100_000.0)),
    ("texel.positions", Bounds::new(1.0, 1e8)),
    ("texel.steps", Bounds::new(0.0, 1e6)),
    ("texel.pull", WEIGHT),
    ("trial.elo0", Bounds::new(-10_000.0, 10_000.0)),
    ("trial.elo1", Bounds::new(-10_000.0, 10_000.0)),
    ("trial.games", Bounds { least: Bound::Included(2.0), ..MATCH }),
    ("book.plies", Bounds { noun: "plies", ..Bounds::new(1.0, 1000.0) }),
    ("book.min_games", Bounds::new(0.0, 1e9)),
    ("book.tolerance", SHARE),
    ("losses.games", Bounds::new(0.0, 100_000.0)),
    ("losses.nodes", NODES),
    // clone.
    ("games", Bounds::new(2.0, 1e9)),
    ("chunk_games", ROUND),
    ("gathering_share", SHARE),
    ("teacher.lines", Bounds::new(1.0, 256.0)),
    ("teacher.temperature", Bounds::above_zero(1e6)),
    ("teacher.loose_share", SHARE),
    ("pgn.min_elo", Bounds::new(0.0, 1e6)),
    ("held_out", Bounds::new(2.0, 1e9)),
    ("passes", Bounds::above_zero(1000.0)),
    ("patience", SOME),
    // reinforce and value.
    ("trace", SHARE),
    ("material", SHARE),
    ("entropy.from", WEIGHT),
    ("entropy.to", WEIGHT),
    ("epsilon.games", COUNT),
    ("late_share", SHARE),
    ("late_plies", START_PLIES),
    ("replay", POSITIONS),
    ("best_from", SHARE),
    // Endings.
    ("lambda", SHARE),
    ("outcome_weight", SHARE),
    ("rate_steps", Bounds::above_zero(1e15)),
    ("search.simulations", MATCH),
    ("search.c_puct", Bounds::above_zero(1e6)),
    ("search.c_scale", Bounds::above_zero(1e6)),
    ("search.epsilon", SHARE),
    ("search.alpha", Bounds::above_zero(1000.0)),
    ("search.drawn_plies", PLIES),
    ("search.transpositions", Bounds::new(0.0, 1e8)),
    ("replay.least", POSITIONS),
    ("replay.share", SHARE),
    ("replay.most", POSITIONS),
    ("exam.positions", MATCH),
    ("exam.simulations", MATCH),
    ("exam.moves", Bounds::new(1.0, 10_000.0)),
];

/// The bounds of a setting, by its whole name.
pub fn of(name: &str) -> Option<Bounds> {
    let is_it = |end: &str| {
        name.strip_suffix(end).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    let found = TABLE.iter().filter(|(end, _)| is_it(end));
    found.max_by_key(|(end, _)| end.len()).map(|(_, bounds)| *bounds)
}

/// The first number of some settings that is out of its bounds.
pub(crate) fn check(settings: &impl Serialize) -> Result<(), ConfigError> {
    let settings = serde_json::to_value(settings).map_err(|error| ConfigError::Parse {
        file: "settings".to_owned(),
        message: error.to_string(),
    })?;
    check_value("", &settings)
}

fn check_value(name: &str, value: &Value) -> Result<(), ConfigError> {
    let inner = |key: &str| if name.is_empty() { key.to_owned() } else { format!("{name}.{key}") };
    let got = match value {
        Value::Object(table) => {
            return table.iter().try_for_each(|(key, value)| check_value(&inner(key), value));
        }
        Value::Array(values) => {
            return values.iter().try_for_each(|value| check_value(name, value));
        }
        Value::Number(number) => number.as_f64().unwrap_or(f64::NAN),
        // What JSON cannot hold.
        Value::Null => f64::NAN,
        Value::Bool(_) | Value::String(_) => return Ok(()),
    };
    match of(name) {
        Some(bounds) if !bounds.contains(got) => Err(ConfigError::Bounds {
            field: name.to_owned(),
            got: if got.is_nan() { "not a finite number".to_owned() } else { value.to_string() },
            bounds,
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Settings;

    /// The names of all numbers in a table.
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

    /// Every learner and preset with the names of its numbers.
    fn all() -> Vec<(&'static str, Settings, Vec<String>)> {
        let mut all = Vec::new();
        for learner in Settings::LEARNERS {
            for preset in Settings::presets(learner) {
                let settings = Settings::preset(learner, preset).unwrap();
                let mut names = Vec::new();
                numbers("", &settings.to_table().into(), &mut names);
                assert!(names.len() > 10, "{learner}: {names:?}");
                all.push((learner, settings, names));
            }
        }
        all
    }

    #[test]
    fn every_number_of_every_learner_has_bounds_that_its_presets_keep() {
        for (learner, settings, names) in all() {
            settings.check().unwrap();
            for name in names {
                assert!(of(&name).is_some(), "{learner}: nobody says what {name} may be");
            }
        }
    }

    #[test]
    fn every_name_of_the_table_is_one_of_a_setting() {
        let names: Vec<String> = all().into_iter().flat_map(|(_, _, names)| names).collect();
        for (end, bounds) in TABLE {
            // Lists are empty in most presets.
            let is_used = names.iter().any(|name| of(name) == Some(*bounds) && name.ends_with(end));
            assert!(is_used || *end == "learning.rate_drops", "{end}");
        }
    }

    /// Whatever is given: it is refused by name, or within its bounds.
    #[test]
    fn nasty_numbers_are_refused_by_name_or_within_their_bounds() {
        let nasty = [
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
        let (mut taken, mut refused) = (0, 0);
        for (learner, settings, names) in all() {
            for name in names {
                for value in nasty {
                    let given = format!("{name}={value}");
                    let changed = settings.set(std::slice::from_ref(&given));
                    let checked = changed.and_then(|settings| settings.check().map(|()| settings));
                    match checked {
                        Err(error) => {
                            refused += 1;
                            let error = error.to_string();
                            let last = name.rsplit('.').next().unwrap();
                            assert!(error.contains(last), "{learner} {given}: {error}");
                        }
                        Ok(settings) => {
                            taken += 1;
                            settings.to_table();
                            let number: f64 = value.parse().unwrap();
                            assert!(of(&name).unwrap().contains(number), "{learner} {given}");
                        }
                    }
                }
            }
        }
        assert!(taken > 100 && refused > 5 * taken, "{taken} taken, {refused} refused");
    }

    #[test]
    fn bounds_are_said_in_words() {
        let said = |name: &str| of(name).unwrap().to_string();
        assert_eq!(said("selfplay.wild_share"), "a share from 0 to 1");
        assert_eq!(said("learning.trainer.beta1"), "a share from 0 to less than 1");
        assert_eq!(said("learning.trainer.optimiser.epsilon"), "a number above 0, at most 1");
        assert_eq!(said("search.epsilon"), "a share from 0 to 1");
        assert_eq!(said("selfplay.memory_mb"), "megabytes from 1 to 16384");
        assert_eq!(said("selfplay.opening_plies"), "plies from 0 to 1000");
        assert_eq!(of("optimiser.beta3"), None);
    }
}
