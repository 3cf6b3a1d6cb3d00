//! Builds the page with npm in `OUT_DIR/page`, from where it is embedded into the binary. Without
//! npm the build still succeeds: a file then replaces the page and explains what is missing, and
//! `selfmate serve` repeats it. With `SELFMATE_NEED_PAGE` set, a missing page is an error.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};

/// All inputs of the page. The lock file pins everything else.
const SOURCES: [&str; 6] = [
    "page/index.html",
    "page/package.json",
    "page/package-lock.json",
    "page/tsconfig.json",
    "page/vite.config.ts",
    "page/src",
];

/// Replaces the page when it is not built; `asset.rs` looks for it.
const MISSING: &str = "missing.txt";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=SELFMATE_NO_PAGE");
    println!("cargo::rerun-if-env-changed=SELFMATE_NEED_PAGE");
    for source in SOURCES {
        println!("cargo::rerun-if-changed={source}");
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let page = out.join("page");
    let built = fresh(&page).map_err(|error| error.to_string()).and_then(|()| build(&out, &page));
    if let Err(missing) = built {
        if env::var_os("SELFMATE_NEED_PAGE").is_some() {
            println!("cargo::error=the page is not built: {missing}");
            return;
        }
        println!("cargo::warning=the page is not built: {missing}");
        // This path never exists, so the next build tries again; npm may be installed by then.
        println!("cargo::rerun-if-changed=page/not-built");
        let text = format!("{missing}\n");
        fresh(&page)
            .and_then(|()| fs::write(page.join(MISSING), text))
            .expect("OUT_DIR is writable");
    }
}

fn fresh(folder: &Path) -> io::Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    fs::create_dir_all(folder)
}

/// Builds a copy, so that a build never writes into the sources.
fn build(out: &Path, page: &Path) -> Result<(), String> {
    if env::var_os("SELFMATE_NO_PAGE").is_some() {
        return Err("SELFMATE_NO_PAGE was set when selfmate was built".into());
    }
    let sources = out.join("page-sources");
    fs::create_dir_all(&sources).map_err(|error| error.to_string())?;
    for source in SOURCES {
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join(source);
        let to = sources
            .join(Path::new(source).strip_prefix("page").expect("all sources are under page/"));
        copy(&from, &to).map_err(|error| format!("{}: {error}", from.display()))?;
    }
    let lock = sources.join("package-lock.json");
    let installed = sources.join("node_modules/.package-lock.json");
    let is_newer = || Some(modified(&lock)? > modified(&installed)?);
    if is_newer().unwrap_or(true) {
        // Scripts of npm packages must not run on the build machine.
        npm(&sources, &["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"])?;
    }
    let target = page.to_string_lossy();
    npm(&sources, &["run", "--silent", "build", "--", "--outDir", &target, "--emptyOutDir"])
}

fn modified(path: &Path) -> Option<std::time::SystemTime> {
    fs::metadata(path).and_then(|metadata| metadata.modified()).ok()
}

/// Copies a file if it has changed, and folders completely.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    if from.is_dir() {
        fresh(to)?;
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            copy(&entry.path(), &to.join(entry.file_name()))?;
        }
        return Ok(());
    }
    let bytes = fs::read(from)?;
    if fs::read(to).is_ok_and(|old| old == bytes) {
        return Ok(());
    }
    fs::write(to, bytes)
}

fn npm(folder: &Path, arguments: &[&str]) -> Result<(), String> {
    let program = if cfg!(windows) { "npm.cmd" } else { "npm" };
    let output = Command::new(program).args(arguments).current_dir(folder).output();
    let output = output.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            "npm (20 or later) was not found when selfmate was built; install it and build again"
                .to_owned()
        }
        _ => format!("npm could not be started: {error}"),
    })?;
    if output.status.success() {
        return Ok(());
    }
    let printed = [output.stdout, output.stderr].concat();
    let printed = String::from_utf8_lossy(&printed);
    let printed: Vec<&str> = printed.lines().filter(|line| !line.trim().is_empty()).collect();
    // The first lines contain the error, the rest is help.
    let start = printed[..printed.len().min(5)].join(" | ");
    Err(format!("`npm {}` failed: {start}", arguments.join(" ")))
}
