//! Weights of the alpha-beta engine as trainable parameters, for `evolve` and `tune`.

mod genome;

pub use genome::Genome;

use std::sync::Arc;

use selfmate_arena::players::alphabeta;
use selfmate_arena::registry::Build;
use selfmate_arena::{PlayerKind, SpecOptions, Tuning};
use selfmate_run::Checkpoint;
use selfmate_train::ConfigError;
use selfmate_train::TrainingError;
use selfmate_train::engine_match::EngineMatchConfig;
use selfmate_train::{read_bytes, state_error};

use crate::table::{Description, Loader, PlayerFormat};

/// The checkpoint file of the best weights.
pub const WEIGHTS: &str = "weights.toml";

pub(crate) const PLAYER: PlayerFormat = PlayerFormat {
    file: WEIGHTS,
    load: Loader::Own { options: &["depth", "nodes", "movetime", "blunder"], load },
};

pub(crate) const PIECE_VALUES: Description = Description { file: WEIGHTS, lines: piece_values };

fn load(bytes: &[u8]) -> Result<Arc<Build>, String> {
    let tuning = Tuning::parse(&String::from_utf8_lossy(bytes))?;
    Ok(Arc::new(move |options| {
        let mut spec = options.spec.clone();
        // For this player, `memory` is the size of the transposition table.
        if let Some(memory) = options.spec.option("memory") {
            spec.options.push(("hash".to_owned(), memory.to_owned()));
        }
        alphabeta::build(&SpecOptions { spec: &spec, ..*options }, &tuning)
    }))
}

fn piece_values(bytes: &[u8]) -> Result<Vec<String>, String> {
    let value = Tuning::parse(&String::from_utf8_lossy(bytes))?.evaluation.piece_value;
    let (mg, eg) = (value.mg, value.eg);
    Ok(vec![format!("piece values {mg:?} in the middlegame, {eg:?} in the endgame")])
}

/// Loads `plain`, `default` or a file of weights.
pub fn start_weights(text: &str) -> Result<Tuning, ConfigError> {
    Tuning::named(text).map_err(|error| ConfigError::Value {
        field: "start",
        got: format!("'{text}' ({error})"),
        expected: "plain, default or a file of weights",
    })
}

pub fn weights(checkpoint: &Checkpoint) -> Result<Tuning, TrainingError> {
    let text = String::from_utf8_lossy(read_bytes(checkpoint, WEIGHTS)?);
    Tuning::parse(&text).map_err(|message| state_error(checkpoint, WEIGHTS, &message))
}

/// An engine with these weights as a kind of player. Nodes and hash size are those of the training
/// games unless the spec sets them.
pub fn engine_kind(name: &str, tuning: &Tuning, games: &EngineMatchConfig) -> PlayerKind {
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
