//! `cargo xtask judge-page`: tests the page in headless chromium.
//!
//! `crates/web/e2e` drives the binary through playwright-core and checks every page with axe-core,
//! light and dark, wide and narrow. Screenshots are written to `target/screenshots`.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result};

use crate::{
    process::{find_program, root, run as run_command, target_dir, test_binary},
    setup::{CHROMIUM, NPM},
};

const TESTS: [&str; 2] = ["page.test.mjs", "play.test.mjs"];
const SOURCES: [&str; 3] = ["package.json", "package-lock.json", "lab.mjs"];

pub fn run() -> Result<()> {
    NPM.meet()?;
    CHROMIUM.meet()?;
    let binary = test_binary()?;
    let target = target_dir()?;
    // A copy, so that npm installs nothing among the sources.
    let folder = target.join("e2e");
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    for name in SOURCES.into_iter().chain(TESTS) {
        let from = root().join("crates/web/e2e").join(name);
        fs::copy(&from, folder.join(name))
            .with_context(|| format!("cannot copy {}", from.display()))?;
    }
    run_command(
        Command::new("npm")
            .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"])
            .current_dir(&folder),
    )?;
    let mut tests = Command::new("node");
    // One after another: each starts its own server and browser.
    tests.args(["--test", "--test-concurrency=1"]).args(TESTS).current_dir(&folder);
    tests.env("SELFMATE", binary);
    tests.env("CHROMIUM", find_program("chromium").context("chromium is no longer on PATH")?);
    tests.env("SCREENSHOTS", target.join("screenshots"));
    run_command(&mut tests).context("tests of the page failed, as shown above")
}
