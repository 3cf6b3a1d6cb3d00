//! `cargo xtask judge-api`: tests the API with schemathesis, which sends requests that its OpenAPI
//! description allows and requests that it does not. `schemathesis.toml` configures it.

use std::process::Command;

use anyhow::{Context, Result};

use crate::{
    process::{root, run as run_command, test_binary},
    setup,
};

/// Fails on any response that the description does not contain.
pub fn run() -> Result<()> {
    let python = setup::judge_python()?;
    setup::SCHEMATHESIS.meet()?;
    let mut judge = Command::new(python);
    judge.args(["-B", "xtask/judges/api.py"]).arg(test_binary()?).current_dir(root());
    run_command(&mut judge).context("the API and its description differ, as shown above")
}
