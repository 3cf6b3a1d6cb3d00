//! `cargo xtask judge-openenv`: tests our environment with OpenEnv.
//!
//! `judges/openenv_env.py` starts the binary, runs `openenv validate` and plays seeded games with
//! openenv's client.

use std::process::Command;

use anyhow::{Context, Result};

use crate::{
    process::{root, run as run_command, test_binary},
    setup,
};

/// Fails on any criterion that is not met.
pub fn run() -> Result<()> {
    let python = setup::judge_python()?;
    setup::OPENENV.meet()?;
    let mut judge = Command::new(python);
    judge.args(["-B", "xtask/judges/openenv_env.py"]).arg(test_binary()?).current_dir(root());
    run_command(&mut judge).context("OpenEnv found errors in our environment, as shown above")
}
