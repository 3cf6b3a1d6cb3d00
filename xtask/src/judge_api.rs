//! `cargo xtask judge-api`: the API in the hands of schemathesis, which asks what its description
//! allows and what it does not. `schemathesis.toml` says how.

use std::process::Command;

use anyhow::{Context, Result};

use crate::{
    process::{root, run as run_command, test_binary},
    setup,
};

/// Tries the API; fails on any answer that its description does not name.
pub fn run() -> Result<()> {
    let python = setup::judge_python()?;
    setup::SCHEMATHESIS.meet()?;
    let mut judge = Command::new(python);
    judge.args(["-B", "xtask/judges/api.py"]).arg(test_binary()?).current_dir(root());
    run_command(&mut judge).context("the API and its description differ, as shown above")
}
