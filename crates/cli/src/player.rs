//! Player specs on the command line: one registry for all commands.

use std::sync::Arc;

use selfmate_arena::{PlayerSpec, Registry};
use selfmate_chess::Seed;
use selfmate_methods::players::{self, OnSkipped};
use selfmate_methods::table::SearchKind;
use selfmate_nn::Device;
use selfmate_search::Player;

use crate::limit::LimitArgs;
use crate::runs;
use crate::tables::TablesArgs;

/// All kinds of players.
pub fn registry() -> Registry {
    registry_with(Arc::new(|skipped| runs::warn(skipped)))
}

/// The same with another handler for skipped checkpoints.
pub fn registry_with(on_skipped: Arc<OnSkipped>) -> Registry {
    let mut registry = Registry::standard();
    players::register(&mut registry, runs::folder(), on_skipped);
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

/// The flag for the device of networks.
#[derive(clap::Args, Clone, Copy, Debug, Default)]
pub struct DeviceArgs {
    /// Device for residual networks: cpu, or a device of Burn; `doctor` lists them
    #[arg(long, value_name = "D")]
    device: Option<Device>,
}

/// A player's spec with what the flags set for all players, unless it sets its own: `--sims` for
/// those that can search a tree, `--device` for those with a residual network.
pub fn with_flags(
    registry: &Registry,
    text: &str,
    limit: &LimitArgs,
    device: DeviceArgs,
) -> anyhow::Result<String> {
    let mut spec = registry.parse(text)?;
    if let Some(device) = device.device
        && players::has_device(&spec, runs::folder())
        && spec.option("device").is_none()
    {
        device.check()?;
        spec.options.push(("device".to_owned(), device.to_string()));
    }
    if let Some(sims) = limit.sims {
        // The limits of an engine are words of its command.
        let words = spec.argument.as_deref().filter(|_| spec.kind == "uci").unwrap_or_default();
        let in_command = |name| words.split(' ').any(|word| word.starts_with(&format!("{name}=")));
        let has_limit = LIMITS.iter().any(|name| spec.option(name).is_some() || in_command(name));
        let is_alphabeta = spec.option("search") == Some("alphabeta");
        let kind = players::search_kind(registry, &spec, runs::folder());
        if kind != SearchKind::NoTree && !has_limit && !is_alphabeta {
            spec.options.push(("sims".to_owned(), sims.to_string()));
        } else if !has_limit && (is_alphabeta || SEARCHES.contains(&spec.kind.as_str())) {
            runs::warn(&format!(
                "--sims {sims} does not limit {text}, which has no simulations: it uses its default; \
                 nodes=, depth= or movetime= in its spec sets another limit"
            ));
        }
    }
    Ok(spec.to_string())
}

/// Options that limit a search.
const LIMITS: [&str; 4] = ["sims", "nodes", "depth", "movetime"];
/// Kinds that search, but not a tree of simulations.
const SEARCHES: [&str; 3] = ["alphabeta", "stockfish", "uci"];

/// The kinds of players with their options, for `--help`.
pub fn help() -> String {
    let mut text = String::from("Players:\n");
    for kind in registry().kinds() {
        text += &format!("  {:10} {}\n", kind.name(), kind.description());
        text += &format!("  {:10}   {}\n", "", kind.usage());
    }
    text
}
