//! `selfmate bench search`: the speed of a player's tree search, from many positions.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use anyhow::ensure;
use selfmate_arena::openings::{OpeningSource, Openings};
use selfmate_chess::Seed;
use selfmate_search::player::Limit;
use serde::Serialize;

use crate::limit::LimitArgs;
use crate::output::{Output, thousands};
use crate::player::{self, DeviceArgs, with_flags};
use crate::progress::stop_on_signal;

#[derive(clap::Args)]
pub struct Args {
    /// A player with a tree search, such as run:NAME or rollout [default: the network that ships
    /// with selfmate]
    #[arg(default_value = "default", hide_default_value = true)]
    player: String,
    /// Number of searches, each from its own position
    #[arg(long, default_value_t = 20, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    searches: u32,
    /// Simulations per search
    #[arg(long, default_value_t = 800, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    sims: u64,
    #[command(flatten)]
    device: DeviceArgs,
    /// Seed of the positions and of the player
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

#[derive(Serialize)]
struct Report {
    player: String,
    /// Fewer than asked for when it was stopped.
    searches: u64,
    simulations: u64,
    seconds: f64,
    simulations_per_second: f64,
    milliseconds_per_search: f64,
}

pub fn run(args: &Args, output: &Output) -> anyhow::Result<()> {
    let registry = player::registry();
    let limit = LimitArgs::simulations(args.sims);
    let text = with_flags(&registry, &args.player, &limit, args.device)?;
    let (spec, mut player) = player::build_from(&registry, &text, args.seed)?;
    ensure!(
        spec.option("sims").is_some(),
        "{}: this player has no simulations; expected one with a tree search, such as default, rollout or run:NAME",
        args.player
    );
    let openings =
        Openings::load(&OpeningSource::default(), Seed::new(args.seed).derive("openings"))?;
    let openings = openings.take(args.searches as usize);
    let stop = stop_on_signal()?;
    let limit = Limit { stop: Some(Arc::clone(&stop)), ..Limit::default() };
    let (mut searches, mut simulations) = (0, 0);
    let started = Instant::now();
    for opening in &openings {
        player.new_game();
        let choice = player.choose(&opening.game, &limit)?;
        if stop.load(Relaxed) {
            break;
        }
        searches += 1;
        simulations += choice.nodes.unwrap_or_default();
    }
    let seconds = started.elapsed().as_secs_f64();
    ensure!(searches > 0, "stopped before a search was over: nothing to report");
    let report = Report {
        player: player.name().to_owned(),
        searches,
        simulations,
        seconds,
        simulations_per_second: simulations as f64 / seconds,
        milliseconds_per_search: 1000.0 * seconds / searches as f64,
    };
    output.report(&report, print)
}

fn print(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "{}: {} searches, {} simulations in {:.2} s",
        report.player,
        thousands(report.searches),
        thousands(report.simulations),
        report.seconds
    )?;
    writeln!(
        out,
        "{} simulations/s, {:.2} ms per search",
        thousands(report.simulations_per_second as u64),
        report.milliseconds_per_search
    )
}
