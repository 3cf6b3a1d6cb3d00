//! What cargo knows about our packages: the part of `cargo metadata` that our checks read.

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::process::{capture, cargo};

/// The answer of `cargo metadata`.
#[derive(Deserialize)]
pub struct Metadata {
    pub packages: Vec<Package>,
}

/// One of our packages.
#[derive(Deserialize)]
pub struct Package {
    pub name: String,
    pub manifest_path: String,
    pub dependencies: Vec<Dependency>,
}

/// A dependency as a manifest declares it.
#[derive(Deserialize)]
pub struct Dependency {
    pub name: String,
    /// None for a normal one, else "dev" or "build".
    pub kind: Option<String>,
    /// Set for a package that lies on this disk.
    pub path: Option<String>,
}

impl Metadata {
    /// Our own packages only.
    pub fn of_workspace() -> Result<Self> {
        let arguments = "metadata --format-version 1 --no-deps";
        let text = capture(&mut cargo(arguments))?;
        serde_json::from_str(&text)
            .with_context(|| format!("cannot read what `cargo {arguments}` says"))
    }
}
