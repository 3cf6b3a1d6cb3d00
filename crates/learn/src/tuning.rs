//! The numbers of the alpha-beta engine as something that is learned: what `evolve` and `tune` share.

mod genome;

pub use genome::Genome;

use selfmate_arena::players::alphabeta;
use selfmate_arena::{PlayerKind, SpecOptions, Tuning};
use selfmate_run::Checkpoint;

use crate::bout::BoutConfig;
use crate::config::ConfigError;
use crate::learner::LearnError;
use crate::rounds::{bytes, fault};

/// The file of a checkpoint that holds the best weights.
pub const WEIGHTS: &str = "weights.toml";

/// The weights that `plain`, `default` or the name of a file stands for.
pub fn first(text: &str) -> Result<Tuning, ConfigError> {
    Tuning::named(text).map_err(|error| ConfigError::Value {
        field: "start",
        got: format!("'{text}' ({error})"),
        expected: "plain, default or a file of weights",
    })
}

/// The weights of a checkpoint.
pub fn weights(checkpoint: &Checkpoint) -> Result<Tuning, LearnError> {
    let text = String::from_utf8_lossy(bytes(checkpoint, WEIGHTS)?);
    Tuning::parse(&text).map_err(|message| fault(checkpoint, WEIGHTS, &message))
}

/// An engine with these numbers as a kind of player, with the table and the nodes of bouts unless its
/// spec says otherwise.
pub fn engine_kind(name: &str, tuning: &Tuning, games: &BoutConfig) -> PlayerKind {
    let (tuning, games) = (tuning.clone(), *games);
    let kind = PlayerKind::new(name, "an engine in training", move |options| {
        let mut spec = options.spec.clone();
        if ["nodes", "depth", "movetime"].iter().all(|option| spec.option(option).is_none()) {
            spec.options.push(("nodes".to_owned(), games.nodes.to_string()));
        }
        if spec.option("hash").is_none() {
            spec.options.push(("hash".to_owned(), games.hash_mb.to_string()));
        }
        let options = SpecOptions { spec: &spec, ..*options };
        alphabeta::build(&options, &tuning)
    });
    alphabeta::declare(kind)
}
