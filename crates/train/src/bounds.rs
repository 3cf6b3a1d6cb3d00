//! The bounds of every number in the settings.
//!
//! Settings are checked in their serialised form, so no number can be forgotten: a test looks up the
//! bounds of every number of every learner. Each learner lists the bounds of its own settings in its
//! own file and checks there what depends on several settings.

use std::fmt;
use std::ops::{Bound, RangeBounds};

use serde::Serialize;
use serde_json::Value;

use crate::config_error::ConfigError;

/// The range of a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    least: Bound<f64>,
    most: Bound<f64>,
    noun: &'static str,
}

impl Bounds {
    pub const fn new(least: f64, most: f64) -> Bounds {
        Bounds { least: Bound::Included(least), most: Bound::Included(most), noun: "a number" }
    }

    /// For divisors and factors, which must be positive.
    pub const fn above_zero(most: f64) -> Bounds {
        Bounds { least: Bound::Excluded(0.0), ..Bounds::new(0.0, most) }
    }

    /// False for NaN.
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

pub const SHARE: Bounds = Bounds { noun: "a share", ..Bounds::new(0.0, 1.0) };
/// The share of the past that a moving average keeps.
pub const DECAY: Bounds = Bounds { most: Bound::Excluded(1.0), ..SHARE };
/// The weight of one term relative to another.
pub const WEIGHT: Bounds = Bounds::new(0.0, 1e6);
pub const RATE: Bounds = Bounds::above_zero(100.0);
/// The begin or end of a ramp, as a share of the plan; may lie outside the plan.
pub const BEND: Bounds = Bounds::new(-1000.0, 1000.0);
/// Plies of a game. Longer games are useless, and the number has to fit into a record.
pub const PLIES: Bounds = Bounds { noun: "plies", ..Bounds::new(0.0, 10_000.0) };
pub const SOME_PLIES: Bounds = Bounds { noun: "plies", ..Bounds::new(1.0, 10_000.0) };
/// Random plies of a start; games rarely last longer.
pub const START_PLIES: Bounds = Bounds { noun: "plies", ..Bounds::new(0.0, 1000.0) };
pub const SIMULATIONS: Bounds = Bounds::new(1.0, 1e6);
pub const NODES: Bounds = Bounds::new(1.0, 1e9);
/// Memory of a tree or a table.
pub const MEGABYTES: Bounds = Bounds { noun: "megabytes", ..Bounds::new(1.0, 16_384.0) };
/// Games per round; their positions are in memory until they have been learned from.
pub const ROUND: Bounds = Bounds::new(1.0, 1e6);
pub const MATCH: Bounds = Bounds::new(1.0, 100_000.0);
pub const BATCH: Bounds = Bounds::new(1.0, 65_536.0);
/// Positions in a buffer.
pub const POSITIONS: Bounds = Bounds::new(1.0, 1e9);
/// A count over a whole run, such as steps; 0 for never or at once.
pub const COUNT: Bounds = Bounds::new(0.0, 1e15);
pub const SOME: Bounds = Bounds::new(1.0, 1e15);
pub const SECONDS: Bounds = Bounds { noun: "seconds", ..Bounds::new(0.0, 1e9) };
/// Units of a layer; each network has further limits on its shape.
pub const UNITS: Bounds = Bounds { noun: "units", ..Bounds::new(1.0, 4096.0) };
pub const CENTIPAWNS: Bounds = Bounds { noun: "centipawns", ..Bounds::new(0.0, 1e6) };
/// Earlier networks or weights that are kept as opponents.
pub const POOL: Bounds = Bounds::new(0.0, 1000.0);

/// The bounds of the settings whose path ends with this name. If several names match, the longest
/// one counts.
pub type NamedBounds = (&'static str, Bounds);

/// The settings of more than one learner.
const COMMON: &[NamedBounds] = &[
    ("plan_games", Bounds::new(1.0, 1e12)),
    ("plan_steps", SOME),
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
    ("bootstrap.games", Bounds::new(0.0, 1e6)),
    ("bootstrap.simulations", Bounds::new(0.0, 1e6)),
    ("bootstrap.kept_share", SHARE),
    ("simulations.from", SIMULATIONS),
    ("simulations.to", SIMULATIONS),
    ("selfplay.games_at_once", Bounds::new(1.0, 4096.0)),
    ("dirichlet_alpha", Bounds::above_zero(1000.0)),
    ("dirichlet_epsilon", SHARE),
    ("candidates", Bounds::new(1.0, 1000.0)),
    ("c_visit", WEIGHT),
    ("c_scale", WEIGHT),
    ("c_puct", WEIGHT),
    ("c_puct_base", Bounds::new(0.0, 1e9)),
    ("unvisited_value", Bounds::new(-1.0, 1.0)),
    ("first_play_urgency", WEIGHT),
    ("discount", SHARE),
    ("noise_plies", PLIES),
    ("temperature_plies", PLIES),
    ("transpositions", Bounds::new(0.0, 1e8)),
    ("fast_share", SHARE),
    ("fast_simulations", SIMULATIONS),
    ("opening_plies", START_PLIES),
    ("long_opening_share", SHARE),
    ("long_opening_plies", START_PLIES),
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
    ("learning.replay_max", POSITIONS),
    ("learning.replay_share", Bounds::above_zero(1000.0)),
    ("learning.replay_min", Bounds::new(0.0, 1e9)),
    ("learning.rate_decay_steps", Bounds::above_zero(1e15)),
    ("learning.min_buffer", Bounds::new(0.0, 1e9)),
    ("learning.lambda", SHARE),
    ("final_phase.skipped_share", SHARE),
    ("final_phase.positions", POSITIONS),
    ("final_phase.reuse", Bounds::new(0.0, 1000.0)),
    ("final_phase.last_rate", RATE),
    ("final_phase.policy_share", SHARE),
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
    ("guards.max_truncated", WEIGHT),
    ("guards.min_value_spread", WEIGHT),
    ("guards.min_entropy", WEIGHT),
    ("guards.max_divergence", WEIGHT),
    ("guards.remedy_generations", COUNT),
    ("guards.max_remedies", Bounds::new(0.0, 1e9)),
    ("rating.every_seconds", SECONDS),
    ("rating.games", MATCH),
    ("rating.nodes", NODES),
    // Learners with rounds.
    ("round_games", ROUND),
    ("round_batches", Bounds::new(1.0, 1e6)),
    ("pool", POOL),
    ("pool_every", SOME),
    ("evaluation.every_rounds", COUNT),
    ("evaluation.games", MATCH),
    ("games.nodes", NODES),
    ("games.game_nodes", Bounds::new(0.0, 1e12)),
    ("games.hash_mb", MEGABYTES),
    ("games.resign_centipawns", CENTIPAWNS),
    ("games.draw_centipawns", CENTIPAWNS),
];

/// The bounds of a setting, by its path; `own` are those of the learner.
pub fn of(name: &str, own: &[NamedBounds]) -> Option<Bounds> {
    let matches = |end: &str| {
        name.strip_suffix(end).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    let found = COMMON.iter().chain(own).filter(|(end, _)| matches(end));
    found.max_by_key(|(end, _)| end.len()).map(|(_, bounds)| *bounds)
}

/// An error for the first number that is out of its bounds.
pub fn check(settings: &impl Serialize, own: &[NamedBounds]) -> Result<(), ConfigError> {
    let settings = serde_json::to_value(settings).map_err(|error| ConfigError::Parse {
        file: "settings".to_owned(),
        message: error.to_string(),
    })?;
    check_value("", &settings, own)
}

fn check_value(name: &str, value: &Value, own: &[NamedBounds]) -> Result<(), ConfigError> {
    let inner = |key: &str| if name.is_empty() { key.to_owned() } else { format!("{name}.{key}") };
    let got = match value {
        Value::Object(table) => {
            return table.iter().try_for_each(|(key, value)| check_value(&inner(key), value, own));
        }
        Value::Array(values) => {
            return values.iter().try_for_each(|value| check_value(name, value, own));
        }
        Value::Number(number) => number.as_f64().unwrap_or(f64::NAN),
        // JSON has neither infinities nor NaN.
        Value::Null => f64::NAN,
        Value::Bool(_) | Value::String(_) => return Ok(()),
    };
    match of(name, own) {
        Some(bounds) if !bounds.contains(got) => Err(ConfigError::Bounds {
            field: name.to_owned(),
            got: if got.is_nan() { "not a finite number".to_owned() } else { value.to_string() },
            bounds,
        }),
        _ => Ok(()),
    }
}
