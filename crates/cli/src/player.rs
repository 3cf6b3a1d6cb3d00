//! Player specs on the command line: one registry for all commands.

use std::sync::Arc;

use selfmate_arena::{PlayerSpec, Registry};
use selfmate_chess::Seed;
use selfmate_methods::players::{self, OnPassedOver};
use selfmate_search::Player;

use crate::runs;
use crate::tables::TablesArgs;

/// All kinds of players.
pub fn registry() -> Registry {
    registry_with(Arc::new(|passed_over| runs::warn(passed_over)))
}

/// The same with another handler for skipped checkpoints.
pub fn registry_with(on_passed_over: Arc<OnPassedOver>) -> Registry {
    let mut registry = Registry::standard();
    players::register(&mut registry, runs::folder(), on_passed_over);
    registry
}

/// Builds the player of a spec, with these tables unless the spec names its own.
pub fn build(
    text: &str,
    seed: u64,
    tables: &TablesArgs,
) -> anyhow::Result<(PlayerSpec, Box<dyn Player>)> {
    let mut registry = registry();
    registry.set_default_tables(tables.syzygy.as_deref().unwrap_or_default());
    build_from(&registry, text, seed)
}

/// Builds the player of a spec.
pub fn build_from(
    registry: &Registry,
    text: &str,
    seed: u64,
) -> anyhow::Result<(PlayerSpec, Box<dyn Player>)> {
    let spec = registry.parse(text)?;
    let player = registry.build(&spec, Seed::new(seed))?;
    Ok((spec, player))
}

/// The kinds of players with their options, for `--help`.
pub fn help() -> String {
    let mut text = String::from("Players:\n");
    for kind in registry().kinds() {
        text += &format!("  {:10} {}\n", kind.name(), kind.description());
        text += &format!("  {:10}   {}\n", "", kind.usage());
    }
    text
}
