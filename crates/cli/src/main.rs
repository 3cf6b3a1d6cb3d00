//! The `selfmate` binary: parses flags, calls the libraries and prints reports.

mod board;
mod broker;
mod columns;
mod command;
mod file;
mod limit;
mod number;
mod output;
mod player;
mod progress;
mod runs;
mod screen;
mod tables;

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser, Subcommand};
use selfmate_arena::players::set_stockfish;

use crate::output::Output;

/// A chess self-play laboratory for your own computer.
#[derive(Parser)]
#[command(version, arg_required_else_help = true, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,

    /// Print one JSON document instead of text
    #[arg(long, global = true)]
    json: bool,

    #[command(flatten)]
    runs: runs::RunsArgs,

    /// The Stockfish program, wherever Stockfish is used [default: found on PATH]
    #[arg(long, value_name = "PATH", env = "SELFMATE_STOCKFISH", global = true, hide_env = true)]
    stockfish: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Command {
    /// Train: start a run or resume it
    Train(command::train::Args),
    /// Play a game in the terminal
    Play(command::play::Args),
    /// Run as a UCI engine on standard input and output
    Uci(command::uci::Args),
    /// Show the result of a search: visits, priors, values, lines
    Analyse(command::analyse::Args),
    /// Play a match of two players, in pairs of games from the same opening
    Match(command::match_::Args),
    /// Rate many players against each other, with error bars
    Ladder(command::ladder::Args),
    /// Measure a player's Elo against Stockfish's levels
    Rate(command::rate::Args),
    /// Let a player play itself and write the games and positions to learn from
    Selfplay(command::selfplay::Args),
    /// Solve test positions, or measure agreement with an opening book
    Suite(command::suite::Args),
    /// List all runs
    Runs,
    /// Show a run: progress, ratings, alarms, checkpoints
    Show(command::show::Args),
    /// Draw a run's curves
    Plot(command::plot::Args),
    /// Play games for a run that is trained on another machine
    Worker(command::worker::Args),
    /// Show the state of a distributed run
    Cluster(command::cluster::Args),
    /// Evaluate a run of an endgame against the tablebase
    Evaluate(command::evaluate::Args),
    /// Show a run's learned values of an endgame beside tablebase values
    ValueMap(command::value_map::Args),
    /// Compare settings in an endgame: many small runs, with error bars
    Ablate(command::ablate::Args),
    /// Look up a position in tablebases, or solve an endgame
    Tablebase(command::tablebase::Args),
    /// Serve the web page: runs, live training, play, searches, the arena
    Serve(command::serve::Args),
    /// Explain a part step by step
    Demo(command::demo::Args),
    /// Measure the speed of every part
    Bench(command::bench::Args),
    /// Count the leaves of the move tree
    Perft(command::perft::Args),
    /// Print a position as a network sees it
    Encode(command::encode::Args),
    /// Build, show, probe and merge opening books
    Book(command::book::Args),
    /// Write a network or games for other programs
    Export(command::export::Args),
    /// Report what this machine has and what it is used for
    Doctor,
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

fn main() -> ExitCode {
    let cli = Cli::try_parse().unwrap_or_else(|error| reject(&error));
    let output = Output::new(cli.json);
    runs::set_folder(&cli.runs);
    if let Some(program) = &cli.stockfish {
        set_stockfish(program);
    }
    let result = match cli.command {
        Command::Train(args) => command::train::run(&args, &output),
        Command::Play(args) => command::play::run(&args),
        Command::Uci(args) => command::uci::run(&args),
        Command::Analyse(args) => command::analyse::run(&args, &output),
        Command::Match(args) => command::match_::run(&args, &output),
        Command::Ladder(args) => command::ladder::run(&args, &output),
        Command::Rate(args) => command::rate::run(&args, &output),
        Command::Selfplay(args) => command::selfplay::run(&args, &output),
        Command::Suite(args) => command::suite::run(&args, &output),
        Command::Runs => command::runs::run(&output),
        Command::Show(args) => command::show::run(&args, &output),
        Command::Plot(args) => command::plot::run(&args, &output),
        Command::Worker(args) => command::worker::run(&args),
        Command::Cluster(args) => command::cluster::run(&args, &output),
        Command::Evaluate(args) => command::evaluate::run(&args, &output),
        Command::ValueMap(args) => command::value_map::run(&args, &output),
        Command::Ablate(args) => command::ablate::run(&args, &output),
        Command::Tablebase(args) => command::tablebase::run(&args, &output),
        Command::Serve(args) => command::serve::run(&args),
        Command::Demo(args) => command::demo::run(&args),
        Command::Bench(args) => command::bench::run(&args, &output),
        Command::Perft(args) => command::perft::run(&args, &output),
        Command::Encode(args) => command::encode::run(&args, &output),
        Command::Book(args) => command::book::run(&args, &output),
        Command::Export(args) => command::export::run(&args),
        Command::Doctor => command::doctor::run(&output),
        Command::Completions { shell } => {
            clap_complete::generate(shell, &mut Cli::command(), "selfmate", &mut io::stdout());
            Ok(())
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if output::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("selfmate: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Exits as clap does. A setting that was typed as a flag of `train` gets a tip of our own.
fn reject(error: &clap::Error) -> ! {
    let words: Vec<String> = std::env::args().collect();
    let flag = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(flag)) if error.kind() == ErrorKind::UnknownArgument => {
            Some(flag)
        }
        _ => None,
    };
    match flag {
        Some(flag) if words.get(1).is_some_and(|word| word == "train") => {
            eprintln!("error: unexpected argument '{flag}' found\n");
            eprintln!("  tip: {}\n", command::train::tip(&words[2..], flag));
            eprintln!("For more information, try '--help'.");
            std::process::exit(2)
        }
        _ => error.exit(),
    }
}
