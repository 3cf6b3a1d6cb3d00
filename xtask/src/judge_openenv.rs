//! `cargo xtask judge-openenv`: our environment in the hands of OpenEnv.
//!
//! `judges/openenv_env.py` starts the binary, has `openenv validate` look at it and plays
//! seeded games with openenv's own client.

use std::process::Command;

use anyhow::{Context, Result};

use crate::{
    process::{root, run as run_command, test_binary},
    setup,
};

/// Validates and plays; fails on any criterion that is not met.
pub fn run() -> Result<()> {
    let python = setup::judge_python()?;
    setup::OPENENV.meet()?;
    let mut judge = Command::new(python);
    judge.args(["-B", "xtask/judges/openenv_env.py"]).arg(test_binary()?).current_dir(root());
    run_command(&mut judge).context("OpenEnv found faults in our environment, as shown above")
}
