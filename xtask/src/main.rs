//! The project's chores: `cargo xtask COMMAND`.
//!
//! One file per command; this one only lists them. Nothing of selfmate itself lives here.

mod bench_cluster;
mod bench_nets;
mod bench_peers;
mod compare;
mod direction;
mod judge_api;
mod judge_onnx;
mod judge_openenv;
mod judge_page;
mod judge_rules;
mod judge_uci;
mod licence;
mod metadata;
mod process;
mod setup;
mod test;
mod test_cluster;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// The project's chores.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Set up what tests need, then run all checks in order
    Test(test::Options),
    /// Kill every part of a run on many machines, again and again; takes minutes
    TestCluster(test_cluster::Options),
    /// Set up what tests need: programs, Python packages and Syzygy tables
    Setup,
    /// Check that crates depend only on those before them
    Direction,
    /// Check licences, sources and advisories of all dependencies with cargo-deny
    Licences,
    /// Compare our rules of chess with python-chess, position by position
    JudgeRules(judge_rules::Options),
    /// Let python-chess play games with our UCI engine, with clocks
    JudgeUci(judge_uci::Options),
    /// Run exported networks in onnxruntime and compare its answers with ours
    JudgeOnnx,
    /// Train every learner, rate them all on one ladder and write docs/comparison.md
    Compare(compare::Options),
    /// Use the page in headless chromium: train, play, look inside, compare
    JudgePage,
    /// Try the API by its own description, with schemathesis
    JudgeApi,
    /// Validate the OpenEnv endpoints and play a game with openenv's own client
    JudgeOpenenv,
    /// Measure what a run on many machines costs, all of them this one
    BenchCluster(bench_cluster::Options),
    /// Compare our speed with other chess libraries, in one run on one core
    BenchPeers(bench_peers::Options),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Test(options) => test::run(&options),
        Command::TestCluster(options) => test_cluster::run(&options),
        Command::Setup => setup::run(),
        Command::Direction => direction::run(),
        Command::Licences => licence::run(),
        Command::JudgeRules(options) => judge_rules::run(&options),
        Command::JudgeUci(options) => judge_uci::run(&options),
        Command::JudgeOnnx => judge_onnx::run(),
        Command::Compare(options) => compare::run(&options),
        Command::JudgePage => judge_page::run(),
        Command::JudgeApi => judge_api::run(),
        Command::JudgeOpenenv => judge_openenv::run(),
        Command::BenchCluster(options) => bench_cluster::run(&options),
        Command::BenchPeers(options) => bench_peers::run(&options),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // In one piece and without a backtrace: what failed is named by the message.
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
