//! What cargo knows about our packages: the part of `cargo metadata` that our checks read.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::process::{capture, cargo};

/// The answer of `cargo metadata`.
#[derive(Deserialize)]
pub struct Metadata {
    pub packages: Vec<Package>,
    pub workspace_members: Vec<String>,
}

/// One package, ours or another's.
#[derive(Deserialize)]
pub struct Package {
    pub id: String,
    pub name: String,
    pub version: String,
    pub manifest_path: String,
    /// None for a package that lies on this disk.
    pub source: Option<String>,
    pub license: Option<String>,
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
        Self::read("metadata --format-version 1 --no-deps")
    }

    /// All packages that any feature on any platform can bring in.
    ///
    /// `cargo metadata` also lists those behind features such as `package?/feature`, which no build
    /// of ours can reach; `cargo tree` knows them apart.
    pub fn of_all() -> Result<Self> {
        let mut metadata = Self::read("metadata --format-version 1 --all-features")?;
        let tree = capture(&mut cargo(
            "tree --workspace --all-features --target all --edges normal,build,dev \
             --prefix none --format {p}",
        ))?;
        let reached: BTreeSet<&str> = tree.lines().map(name_and_version).collect();
        metadata.packages.retain(|Package { name, version, .. }| {
            reached.contains(format!("{name} v{version}").as_str())
        });
        Ok(metadata)
    }

    fn read(arguments: &str) -> Result<Self> {
        let text = capture(&mut cargo(arguments))?;
        serde_json::from_str(&text)
            .with_context(|| format!("cannot read what `cargo {arguments}` says"))
    }
}

/// `name v1.2.3` of a line that may go on with a path or a remark.
fn name_and_version(line: &str) -> &str {
    line.match_indices(' ').nth(1).map_or(line, |(end, _)| &line[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remarks_behind_a_version_are_cut_off() {
        assert_eq!(name_and_version("serde v1.0.229"), "serde v1.0.229");
        assert_eq!(name_and_version("quote v1.0.1 (proc-macro) (*)"), "quote v1.0.1");
        assert_eq!(name_and_version("selfmate v0.1.0 (/some folder)"), "selfmate v0.1.0");
    }

    #[test]
    fn packages_that_no_build_reaches_are_left_out() {
        let all = Metadata::of_all().unwrap();
        let has = |name: &str| all.packages.iter().any(|package| package.name == name);
        assert!(has("shakmaty") && has("xtask") && has("burn-flex"));
        // Burn has features for it, none of which we use.
        assert!(!has("torch-sys"));
    }
}
