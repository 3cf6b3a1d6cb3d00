//! `cargo xtask judge-uci`: tests our UCI engine with python-chess.
//!
//! `judges/uci.py` starts the binary, plays games with clocks and checks every move.

use std::process::Command;

use anyhow::{Context, Result};

use crate::{
    process::{root, run as run_command, test_binary},
    setup,
};

#[derive(clap::Args)]
pub struct Options {
    /// Games to play
    #[arg(long, default_value_t = 20)]
    pub games: u32,
    /// Seconds on each clock
    #[arg(long, default_value_t = 1.0)]
    pub base: f64,
    /// Seconds added after each move
    #[arg(long, default_value_t = 0.1)]
    pub increment: f64,
}

/// Fails on any crash, illegal move or loss on time.
pub fn run(options: &Options) -> Result<()> {
    let python = setup::judge_python()?;
    let binary = test_binary()?;
    let mut judge = Command::new(python);
    judge.args(["-B", "xtask/judges/uci.py"]).arg(binary).current_dir(root());
    judge.args(["--games", &options.games.to_string()]);
    judge.args(["--base", &options.base.to_string()]);
    judge.args(["--increment", &options.increment.to_string()]);
    run_command(&mut judge).context("python-chess found errors in our UCI engine, as shown above")
}
