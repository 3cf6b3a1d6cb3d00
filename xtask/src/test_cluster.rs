//! `cargo xtask test-cluster`: the cluster tests that are too slow for `cargo xtask test`.
//!
//! They are ordinary tests marked as ignored: workers, learner and broker are killed ten times each,
//! and a cluster of three brokers has its leader killed and stopped.

use anyhow::Result;

use crate::{
    process::{cargo, run as run_command},
    setup,
};

#[derive(clap::Args)]
pub struct Options {
    /// Only tests whose name contains this text
    filter: Option<String>,
}

/// Runs the tests one after another, because they are sensitive to load.
pub fn run(options: &Options) -> Result<()> {
    setup::run()?;
    run_command(&mut cargo("build --release -p selfmate"))?;
    for tests in ["-p selfmate-cluster --test brokers", "-p selfmate --test integration"] {
        let mut tests = cargo(&format!("test --release {tests}"));
        tests.args(["--", "--ignored", "--nocapture", "--test-threads=1"]);
        run_command(tests.args(&options.filter))?;
    }
    Ok(())
}
