//! The `selfmate` binary: flags in, reports out, everything else in the libraries.

mod board;
mod broker;
mod command;
mod file;
mod number;
mod output;
mod player;
mod progress;
mod runs;
mod screen;
mod tables;
mod think;

use std::io;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use crate::output::Output;

/// A chess self-play laboratory for the computer you have.
#[derive(Parser)]
#[command(version, arg_required_else_help = true, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,

    /// One JSON document on standard output instead of text
    #[arg(long, global = true)]
    json: bool,

    #[command(flatten)]
    runs: runs::RunsArgs,
}

#[derive(Subcommand)]
enum Command {
    /// Learn chess: start a run, or go on with it
    Train(command::train::Args),
    /// Play a game in the terminal
    Play(command::play::Args),
    /// Be a UCI engine on standard input and output
    Uci(command::uci::Args),
    /// Show what a search sees: visits, priors, values, lines
    Analyse(command::analyse::Args),
    /// Two players, pairs of games from the same opening
    Match(command::match_::Args),
    /// Many players, one rating list with error bars
    Ladder(command::ladder::Args),
    /// A player's Elo against Stockfish's levels
    Rate(command::rate::Args),
    /// Positions with known answers, or agreement with an opening book
    Suite(command::suite::Args),
    /// All runs: what there is
    Runs,
    /// How a run goes: progress, ratings, alarms, checkpoints
    Show(command::show::Args),
    /// A run's curves as a picture
    Plot(command::plot::Args),
    /// Play games for a run that is trained remote
    Worker(command::worker::Args),
    /// How a run on many machines goes
    Cluster(command::cluster::Args),
    /// Evaluate a run of an ending against the exact tablebase
    Exam(command::exam::Args),
    /// What a run of an ending thinks of every square, beside the truth
    Heat(command::heat::Args),
    /// Compare settings in an ending: many small runs, with error bars
    Ablate(command::ablate::Args),
    /// What tablebases know of a position, or an ending solved
    Tablebase(command::tablebase::Args),
    /// The page: runs, live training, play, searches, the arena
    Serve(command::serve::Args),
    /// Explain a part step by step
    Demo(command::demo::Args),
    /// Measure the speed of every part
    Bench(command::bench::Args),
    /// Count the leaves of the move tree
    Perft(command::perft::Args),
    /// Print a position as a network sees it
    Encode(command::encode::Args),
    /// Opening books: from games, their lines, one position, several in one
    Book(command::book::Args),
    /// Write a network or games for other programs
    Export(command::export::Args),
    /// Say what this machine has and what each thing is for
    Doctor,
    /// Write a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let output = Output::new(cli.json);
    runs::set_folder(&cli.runs);
    let result = match cli.command {
        Command::Train(args) => command::train::run(&args, &output),
        Command::Play(args) => command::play::run(&args),
        Command::Uci(args) => command::uci::run(&args),
        Command::Analyse(args) => command::analyse::run(&args, &output),
        Command::Match(args) => command::match_::run(&args, &output),
        Command::Ladder(args) => command::ladder::run(&args, &output),
        Command::Rate(args) => command::rate::run(&args, &output),
        Command::Suite(args) => command::suite::run(&args, &output),
        Command::Runs => command::runs::run(&output),
        Command::Show(args) => command::show::run(&args, &output),
        Command::Plot(args) => command::plot::run(&args, &output),
        Command::Worker(args) => command::worker::run(&args),
        Command::Cluster(args) => command::cluster::run(&args, &output),
        Command::Exam(args) => command::exam::run(&args, &output),
        Command::Heat(args) => command::heat::run(&args, &output),
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
