//! What was trained as players: `run:NAME`, and `default`, the network that ships with selfmate.

use std::path::Path;
use std::sync::Arc;

use selfmate_arena::players::net;
use selfmate_arena::{PlayerKind, Registry, SpecError};
use selfmate_nn::Model;
use selfmate_nn::sparse::{self, Weights};
use selfmate_run::RunReader;

use crate::selfplay::MODEL;

/// The network of a real run; `nets/README.md` says which.
const SHIPPED: &[u8] = include_bytes!("../../../nets/zero.safetensors");

/// Adds the trained players to a registry, those of runs from this folder.
pub fn register(registry: &mut Registry, runs: &Path) {
    let runs: Arc<Path> = runs.into();
    let run =
        PlayerKind::new("run", "a run's network, the newest or that of a step", move |options| {
            let model = model_of_run(options.argument("NAME")?, &runs)
                .map_err(|reason| SpecError::Other { spec: options.label(), reason })?;
            net::build(options, &model)
        });
    registry.register(net::declare(run.argument("NAME or NAME@STEP")));
    let shipped = PlayerKind::new("default", "the network that ships with selfmate", |options| {
        net::build(options, &Model::Sparse(shipped_weights().into()))
    });
    registry.register(net::declare(shipped));
}

/// The weights of the network that ships with selfmate.
pub fn shipped_weights() -> Weights {
    let (weights, _) = sparse::decode(SHIPPED).expect("a test reads the shipped network");
    weights
}

/// The network that a text names, as in a player's spec: `default`, `net:FILE`, `run:NAME@STEP`
/// or just a run's name. What is wrong, if there is none.
pub fn model(text: &str, runs: &Path) -> Result<Model, String> {
    match text.split_once(':') {
        Some(("net", file)) => {
            let loaded = Model::load(Path::new(file));
            loaded.map(|(model, _)| model).map_err(|error| error.to_string())
        }
        Some(("run", argument)) => model_of_run(argument, runs),
        None if text == "default" => Ok(Model::Sparse(shipped_weights().into())),
        _ => model_of_run(text, runs),
    }
}

/// The network that `NAME` or `NAME@STEP` means.
fn model_of_run(argument: &str, runs: &Path) -> Result<Model, String> {
    let (name, step) = match argument.split_once('@') {
        None => (argument, None),
        Some((name, step)) => {
            let parsed = step.parse::<u64>();
            let message = format!("'{step}' is no step: expected a number, as in {name}@1000");
            (name, Some(parsed.map_err(|_| message)?))
        }
    };
    let run = RunReader::find(runs, name).map_err(|error| error.to_string())?;
    let found = match step {
        Some(step) => run.load_checkpoint(step).map(Some),
        None => run.latest_checkpoint(&[MODEL]).map(|(checkpoint, _)| checkpoint),
    };
    let checkpoint = found.map_err(|error| error.to_string())?;
    let model = checkpoint.as_ref().and_then(|checkpoint| checkpoint.files.get(MODEL));
    let model = model.ok_or_else(|| format!("run '{name}' has no network yet"))?;
    let (model, _) = Model::decode(model).map_err(|error| error.to_string())?;
    Ok(model)
}

#[cfg(test)]
mod tests {
    use selfmate_chess::{Game, Seed};
    use selfmate_search::player::Limit;

    use super::*;

    #[test]
    fn the_shipped_network_plays() {
        let mut registry = Registry::standard();
        register(&mut registry, Path::new("nowhere"));
        for text in ["default:depth=4", "default:sims=100"] {
            let spec = registry.parse(text).unwrap();
            let mut player = registry.build(&spec, Seed::new(1)).unwrap();
            let mut game = Game::new();
            let choice = player.choose(&game, &Limit::default()).unwrap();
            game.play(choice.played).unwrap();
        }
        assert_eq!(shipped_weights().config().hidden, 256);
    }
}
