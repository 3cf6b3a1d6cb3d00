//! `cargo xtask judge-page`: the page in headless chromium.
//!
//! `crates/web/e2e` drives the binary through playwright-core and looks at every page with
//! axe-core, in light and dark, wide and narrow. Pictures are left in `target/screenshots`.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result};

use crate::{
    process::{find_program, root, run as run_command, target_dir, test_binary},
    setup::{CHROMIUM, NPM},
};

const TESTS: [&str; 2] = ["page.test.mjs", "play.test.mjs"];
const SOURCES: [&str; 3] = ["package.json", "package-lock.json", "lab.mjs"];

/// Runs the tests; each fault is named by what the user would have seen.
pub fn run() -> Result<()> {
    NPM.meet()?;
    CHROMIUM.meet()?;
    let binary = test_binary()?;
    let target = target_dir()?;
    // A copy, so that nothing is installed among the sources.
    let folder = target.join("e2e");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
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
    // One after another: each has a server and a browser of its own.
    tests.args(["--test", "--test-concurrency=1"]).args(TESTS).current_dir(&folder);
    tests.env("SELFMATE", binary);
    tests.env("CHROMIUM", find_program("chromium").context("chromium has just been there")?);
    tests.env("SCREENSHOTS", target.join("screenshots"));
    run_command(&mut tests).context("the page did not do what it should, as shown above")
}
