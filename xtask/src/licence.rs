//! Licences, bans and sources of all dependencies, checked by cargo-deny with the rules in deny.toml.
//! Security advisories are checked too, if their database can be fetched.

use std::process::Command;

use anyhow::Result;

use crate::{
    process::{root, run as run_command},
    setup,
};

/// Checks all packages that any feature on any platform can bring in.
pub fn run() -> Result<()> {
    let program = setup::cargo_deny()?;
    let deny = |arguments: &[&str]| {
        let mut command = Command::new(&program);
        command.args(arguments).current_dir(root());
        command
    };
    run_command(&mut deny(&["--workspace", "check", "licenses", "bans", "sources"]))?;
    // A machine without access to the database can still run all other checks.
    let fetched = deny(&["--log-level", "off", "fetch", "db"]).output();
    if fetched.is_ok_and(|output| output.status.success()) {
        run_command(&mut deny(&["--workspace", "check", "advisories"]))
    } else {
        println!("advisories: not checked, because their database cannot be fetched");
        Ok(())
    }
}
