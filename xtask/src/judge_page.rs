//! `cargo xtask judge-page`: the page in headless chromium.
//!
//! `crates/web/e2e` drives the release binary through playwright-core and looks at every page with
//! axe-core, in light and dark, wide and narrow. Pictures are left in `target/screenshots`.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result};

use crate::{
    process::{cargo, find_program, root, run as run_command, target_dir},
    setup::{CHROMIUM, NPM},
};

const SOURCES: [&str; 4] = ["package.json", "package-lock.json", "lab.mjs", "page.test.mjs"];

/// Runs the tests; each fault is named by what the user would have seen.
pub fn run() -> Result<()> {
    NPM.meet()?;
    CHROMIUM.meet()?;
    run_command(cargo("build --release -p selfmate").env("SELFMATE_NEED_PAGE", "1"))?;
    let target = target_dir()?;
    // A copy, so that nothing is installed among the sources.
    let folder = target.join("e2e");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    for name in SOURCES {
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
    tests.args(["--test", "page.test.mjs"]).current_dir(&folder);
    tests.env("SELFMATE", target.join("release/selfmate"));
    tests.env("CHROMIUM", find_program("chromium").context("chromium has just been there")?);
    tests.env("SCREENSHOTS", target.join("screenshots"));
    run_command(&mut tests).context("the page did not do what it should, as shown above")
}
