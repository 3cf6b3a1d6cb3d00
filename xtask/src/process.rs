//! Runs other programs. Each command is printed before it runs and named in its error.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};

/// The root folder of the workspace.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is inside the workspace")
}

/// Cargo in the root of the workspace, with its arguments given as one line.
///
/// The variables that cargo sets for xtask are removed. Build scripts that read them would otherwise
/// run again, and their dependents would be rebuilt, after every change between cargo and xtask.
pub fn cargo(arguments: &str) -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(arguments.split_whitespace()).current_dir(root());
    for (name, _) in std::env::vars_os() {
        let is_about_xtask = name.to_str().is_some_and(|name| {
            name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
        });
        if is_about_xtask {
            command.env_remove(name);
        }
    }
    command
}

pub fn target_dir() -> Result<PathBuf> {
    let metadata = capture(&mut cargo("metadata --format-version 1 --no-deps"))?;
    let metadata: serde_json::Value = serde_json::from_str(&metadata)?;
    let folder =
        metadata["target_directory"].as_str().context("`cargo metadata` gives no target folder")?;
    Ok(PathBuf::from(folder))
}

/// Tests, lints and judges share one set of features, so that nothing is built twice.
pub const TEST_FEATURES: &str = "--workspace --features selfmate/burn,selfmate/parquet";

/// The binary as the tests use it, built if necessary. Examples are in the folder `examples` beside it.
pub fn test_binary() -> Result<PathBuf> {
    run(&mut cargo(&format!("build --quiet --bins --examples --exclude xtask {TEST_FEATURES}")))?;
    Ok(target_dir()?.join("debug/selfmate"))
}

/// Runs a command that inherits our output.
pub fn run(command: &mut Command) -> Result<()> {
    let shown = show(command);
    eprintln!("$ {shown}");
    let status = command.status().with_context(|| format!("cannot start `{shown}`"))?;
    if !status.success() {
        bail!("`{shown}` failed: {status}");
    }
    Ok(())
}

/// Runs a command and returns its standard output.
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

/// Looks for a program on PATH and in Debian's folder for games.
pub fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain([PathBuf::from("/usr/games")])
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}

/// The command as one would type it.
pub fn show(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let short = program.strip_prefix(root()).unwrap_or(program);
    // `CARGO` is a full path, which would be hard to read.
    let short = if program.ends_with("cargo") { Path::new("cargo") } else { short };
    let arguments = command.get_args().map(|argument| argument.to_string_lossy());
    std::iter::once(short.to_string_lossy()).chain(arguments).collect::<Vec<_>>().join(" ")
}
