//! `cargo xtask test-cluster`: the tests of a run on many machines that take too long for every day.
//!
//! They are ordinary tests that are marked as ignored: workers, learner and broker are killed ten
//! times each, and a cluster of three brokers loses its leader and is cut in two.

use anyhow::Result;

use crate::{
    process::{cargo, run as run_command},
    setup,
};

/// Which of them to run.
#[derive(clap::Args)]
pub struct Options {
    /// Only tests whose name has this in it
    filter: Option<String>,
}

/// Runs them, one after another: each has the machine for itself.
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
