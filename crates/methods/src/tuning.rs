//! Weights of the alpha-beta engine as trainable parameters, for `evolve` and `tune`.

mod genome;
mod weights;

pub use genome::Genome;
pub use weights::PlayerWeights;

use std::sync::Arc;

use selfmate_arena::players::{LoadedBook, alphabeta};
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

/// The options of an engine; a one-ply player has none.
const OPTIONS: &[&str] = &["depth", "nodes", "movetime", "blunder"];

pub(crate) const PLAYER: PlayerFormat =
    PlayerFormat { file: WEIGHTS, load: Loader::Own { options: OPTIONS, load } };

pub(crate) const DESCRIPTION: Description = Description { file: WEIGHTS, lines: describe };

fn load(bytes: &[u8]) -> Result<Arc<Build>, String> {
    let weights = PlayerWeights::parse(bytes)?;
    Ok(Arc::new(move |options| {
        let mut spec = options.spec.clone();
        // For this player, `memory` is the size of the transposition table.
        if let Some(memory) = options.spec.option("memory") {
            spec.options.push(("hash".to_owned(), memory.to_owned()));
        }
        weights.build(&SpecOptions { spec: &spec, ..*options })
    }))
}

fn describe(bytes: &[u8]) -> Result<Vec<String>, String> {
    Ok(vec![PlayerWeights::parse(bytes)?.describe()])
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

/// An engine with these weights as a kind of player, possibly with a book. Nodes and hash size are
/// those of the training games unless the spec sets them.
pub fn engine_kind(
    name: &str,
    tuning: &Tuning,
    games: &EngineMatchConfig,
    book: Option<LoadedBook>,
) -> PlayerKind {
    let (tuning, games) = (tuning.clone(), *games);
    let kind = PlayerKind::new(name, "an engine in training", move |options| {
        let mut spec = options.spec.clone();
        let limits = ["nodes", "depth", "movetime", "game_nodes"];
        if limits.iter().all(|option| spec.option(option).is_none()) {
            let (name, nodes) = match games.game_nodes {
                0 => ("nodes", games.nodes),
                nodes => ("game_nodes", nodes),
            };
            spec.options.push((name.to_owned(), nodes.to_string()));
        }
        if spec.option("hash").is_none() {
            spec.options.push(("hash".to_owned(), games.hash_mb.to_string()));
        }
        let options = SpecOptions { spec: &spec, ..*options };
        let player = alphabeta::build(&options, &tuning)?;
        Ok(match &book {
            Some(book) => book.wrap(player, options.seed),
            None => player,
        })
    });
    alphabeta::declare(kind)
}
