//! Checks licences, bans and sources of all dependencies with cargo-deny and the rules in deny.toml.
//! Security advisories are checked as well if their database can be fetched.

use std::process::Command;

use anyhow::Result;

use crate::{
    process::{root, run as run_command},
    setup,
};

/// Checks the packages of all features and platforms.
pub fn run() -> Result<()> {
    let program = setup::cargo_deny()?;
    let deny = |arguments: &[&str]| {
        let mut command = Command::new(&program);
        command.args(arguments).current_dir(root());
        command
    };
    run_command(&mut deny(&["--workspace", "check", "licenses", "bans", "sources"]))?;
    // Without access to the database, the other checks can still run.
    let fetched = deny(&["--log-level", "off", "fetch", "db"]).output();
    if fetched.is_ok_and(|output| output.status.success()) {
        run_command(&mut deny(&["--workspace", "check", "advisories"]))
    } else {
        println!("advisories: not checked, because their database cannot be fetched");
        Ok(())
    }
}
