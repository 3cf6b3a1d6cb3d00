//! `selfmate tablebase`: looks up positions and solves endgames.

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
    /// Look up a position: its result, the distance to mate or to the next capture or pawn move,
    /// and the best moves
    Probe(probe::Args),
    /// Solve an endgame of up to four pieces: numbers of won, drawn and lost positions, and the
    /// longest mate
    Solve(solve::Args),
}

pub fn run(args: &Args, output: &Output) -> anyhow::Result<()> {
    match &args.command {
        Command::Probe(args) => probe::run(args, output),
        Command::Solve(args) => solve::run(args, output),
    }
}
