//! `selfmate tablebase`: what tablebases know of a position.

mod probe;
mod solve;

use crate::output::Output;

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Look a position up: who wins, how far mate or the next capture or pawn move is, which moves keep it
    Probe(probe::Args),
    /// Solve an ending of up to four pieces: how many positions are won, and how far the longest mate is
    Solve(solve::Args),
}

pub fn run(args: &Args, output: &Output) -> anyhow::Result<()> {
    match &args.command {
        Command::Probe(args) => probe::run(args, output),
        Command::Solve(args) => solve::run(args, output),
    }
}
