//! Running other programs: each command is shown before it runs, and named when it fails.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};

/// The root of the workspace.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies inside the workspace")
}

/// Cargo, in the root of the workspace, with its arguments given as one line.
///
/// What cargo told us of ourselves it is not told again: build scripts that look at it would run
/// anew, and all that depends on them would be built anew, each time one calls cargo and then us.
pub fn cargo(arguments: &str) -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(arguments.split_whitespace()).current_dir(root());
    for (name, _) in std::env::vars_os() {
        let is_ours = name.to_str().is_some_and(|name| {
            name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
        });
        if is_ours {
            command.env_remove(name);
        }
    }
    command
}

/// Where cargo puts what it builds.
pub fn target_dir() -> Result<PathBuf> {
    let metadata = capture(&mut cargo("metadata --format-version 1 --no-deps"))?;
    let metadata: serde_json::Value = serde_json::from_str(&metadata)?;
    let folder = metadata["target_directory"].as_str().context("cargo names no target folder")?;
    Ok(PathBuf::from(folder))
}

/// What tests, lints and judges are built with: one set of features, so that nothing is built twice.
pub const TEST_FEATURES: &str = "--workspace --features selfmate/burn,selfmate/parquet";

/// The binary that the tests use too, built if need be; examples are in the folder beside it.
pub fn test_binary() -> Result<PathBuf> {
    run(&mut cargo(&format!("build --quiet --bins --examples --exclude xtask {TEST_FEATURES}")))?;
    Ok(target_dir()?.join("debug/selfmate"))
}

/// Runs a command to its end, with its output going where ours goes.
pub fn run(command: &mut Command) -> Result<()> {
    let shown = show(command);
    eprintln!("$ {shown}");
    let status = command.status().with_context(|| format!("cannot start `{shown}`"))?;
    if !status.success() {
        bail!("`{shown}` failed: {status}");
    }
    Ok(())
}

/// Runs a command to its end and returns its standard output.
pub fn capture(command: &mut Command) -> Result<String> {
    let shown = show(command);
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot start `{shown}`"))?;
    if !output.status.success() {
        bail!("`{shown}` failed: {}", output.status);
    }
    String::from_utf8(output.stdout)
        .with_context(|| format!("the output of `{shown}` is not UTF-8"))
}

/// Where a program is: on PATH, or where Debian puts games.
pub fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain([PathBuf::from("/usr/games")])
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}

/// The command as a person would type it.
pub fn show(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let short = program.strip_prefix(root()).unwrap_or(program);
    // Cargo names itself by its whole path; the name alone says more.
    let short = if program.ends_with("cargo") { Path::new("cargo") } else { short };
    let arguments = command.get_args().map(|argument| argument.to_string_lossy());
    std::iter::once(short.to_string_lossy()).chain(arguments).collect::<Vec<_>>().join(" ")
}
