//! The part of `cargo metadata` that our checks read.

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::process::{capture, cargo};

#[derive(Deserialize)]
pub struct Metadata {
    pub packages: Vec<Package>,
}

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
    /// `None` for a normal dependency, else "dev" or "build".
    pub kind: Option<String>,
    /// Set for packages of this workspace.
    pub path: Option<String>,
}

impl Metadata {
    /// Only the packages of the workspace.
    pub fn of_workspace() -> Result<Self> {
        let arguments = "metadata --format-version 1 --no-deps";
        let text = capture(&mut cargo(arguments))?;
        serde_json::from_str(&text)
            .with_context(|| format!("cannot read the output of `cargo {arguments}`"))
    }
}
