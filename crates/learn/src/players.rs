//! What was trained as players: `run:NAME`.

use std::path::Path;
use std::sync::Arc;

use selfmate_arena::players::net;
use selfmate_arena::{PlayerKind, Registry, SpecError, SpecOptions};
use selfmate_nn::sparse::{self, Weights};
use selfmate_run::RunReader;

use crate::zero::MODEL;

/// Adds the trained players to a registry, those of runs from this folder.
pub fn register(registry: &mut Registry, runs: &Path) {
    let runs: Arc<Path> = runs.into();
    let run =
        PlayerKind::new("run", "a run's network, the newest or that of a step", move |options| {
            let weights = load(options, &runs)?;
            net::build(options, &weights)
        });
    registry.register(net::declare(run.argument("NAME or NAME@STEP")));
}

/// The weights that `NAME` or `NAME@STEP` means.
fn load(options: &SpecOptions<'_>, runs: &Path) -> Result<Weights, SpecError> {
    let argument = options.argument("NAME")?;
    let (name, step) = match argument.split_once('@') {
        None => (argument, None),
        Some((name, step)) => {
            let parsed = step.parse::<u64>();
            let message = format!("'{step}' is no step: expected a number, as in {name}@1000");
            (name, Some(parsed.map_err(|_| other(options, &message))?))
        }
    };
    let run = RunReader::find(runs, name).map_err(|error| other(options, &error))?;
    let found = match step {
        Some(step) => run.load_checkpoint(step).map(Some),
        None => run.latest_checkpoint(&[MODEL]).map(|(checkpoint, _)| checkpoint),
    };
    let checkpoint = found.map_err(|error| other(options, &error))?;
    let model = checkpoint.as_ref().and_then(|checkpoint| checkpoint.files.get(MODEL));
    let model = model.ok_or_else(|| other(options, &format!("run '{name}' has no network yet")))?;
    let (weights, _) = sparse::decode(model).map_err(|error| other(options, &error))?;
    Ok(weights)
}

fn other(options: &SpecOptions<'_>, reason: &dyn std::fmt::Display) -> SpecError {
    SpecError::Other { spec: options.label(), reason: reason.to_string() }
}
