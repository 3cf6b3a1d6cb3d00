//! Tasks for developers: `cargo xtask COMMAND`.
//!
//! One file per command; this one only lists them. xtask does not use selfmate's crates; it starts
//! the binary.

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

/// Tasks for developers of selfmate
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Install what tests need, then run all checks in order
    Test(test::Options),
    /// Run the slow cluster tests, which kill every part of a run repeatedly; takes minutes
    TestCluster(test_cluster::Options),
    /// Install what tests need: programs, Python packages and Syzygy tables
    Setup,
    /// Check that crates depend only on crates before them
    Direction,
    /// Check licences, sources and advisories of all dependencies with cargo-deny
    Licences,
    /// Compare our rules of chess with python-chess, position by position
    JudgeRules(judge_rules::Options),
    /// Play games with clocks between our UCI engines through python-chess
    JudgeUci(judge_uci::Options),
    /// Run exported networks in onnxruntime and compare the outputs with ours
    JudgeOnnx,
    /// Train the learners, rate them on one ladder and write docs/comparison.md
    Compare(compare::Options),
    /// Test the page in headless chromium
    JudgePage,
    /// Test the API against its OpenAPI description with schemathesis
    JudgeApi,
    /// Validate the OpenEnv endpoints and play games with openenv's client
    JudgeOpenenv,
    /// Measure the overhead of a cluster, with all its processes on this machine
    BenchCluster(bench_cluster::Options),
    /// Compare our speed with other libraries, measured in the same run
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
            // Without a backtrace: the message names what failed.
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
