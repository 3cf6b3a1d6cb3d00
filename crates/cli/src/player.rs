//! Player specs on the command line: one registry for every command.

use std::sync::Arc;

use selfmate_arena::{PlayerSpec, Registry};
use selfmate_chess::Seed;
use selfmate_learn::players::{self, OnPassedOver};
use selfmate_search::Player;

use crate::runs;
use crate::tables::TablesArgs;

/// Every kind of player this binary knows.
pub fn registry() -> Registry {
    registry_with(Arc::new(|passed_over| runs::warn(passed_over)))
}

/// The same, for a command that says in its own way when a checkpoint is passed over.
pub fn registry_with(tell: Arc<OnPassedOver>) -> Registry {
    let mut registry = Registry::standard();
    players::register(&mut registry, runs::folder(), tell);
    registry
}

/// Builds the player that a spec names, with tables unless it names some itself.
pub fn build(
    text: &str,
    seed: u64,
    tables: &TablesArgs,
) -> anyhow::Result<(PlayerSpec, Box<dyn Player>)> {
    let mut registry = registry();
    registry.set_default_tables(tables.syzygy.as_deref().unwrap_or_default());
    build_from(&registry, text, seed)
}

/// Builds the player that a spec names.
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
