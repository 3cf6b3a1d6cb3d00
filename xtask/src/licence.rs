//! The licences and sources of everything we build on, against deny.toml. It reads cargo-deny's
//! format so that cargo-deny may be used too, but needs nothing installed. Of deny.toml it knows only
//! the list of allowed licences; sources are simply the registry and this workspace.

use std::{collections::BTreeSet, fs};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::{
    metadata::{Metadata, Package},
    process::root,
    spdx::Expression,
};

#[derive(Deserialize)]
struct Deny {
    licenses: Licences,
}

#[derive(Deserialize)]
struct Licences {
    allow: BTreeSet<String>,
}

/// Checks all packages that any feature on any platform can bring in.
pub fn run() -> Result<()> {
    let file = root().join("deny.toml");
    let text =
        fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
    let deny: Deny = toml::from_str(&text).context("deny.toml has no list [licenses] allow")?;
    let metadata = Metadata::of_all()?;
    let faults = faults(&metadata, &deny.licenses.allow);
    if !faults.is_empty() {
        bail!("dependencies we cannot take:\n  {}", faults.join("\n  "));
    }
    println!("{} packages have allowed licences and sources", metadata.packages.len());
    Ok(())
}

/// All that is wrong, one sentence each.
fn faults(metadata: &Metadata, allow: &BTreeSet<String>) -> Vec<String> {
    metadata
        .packages
        .iter()
        .flat_map(|package| [licence_fault(package, allow), source_fault(package, metadata)])
        .flatten()
        .collect()
}

fn licence_fault(package: &Package, allow: &BTreeSet<String>) -> Option<String> {
    let Package { name, version, .. } = package;
    let Some(licence) = &package.license else {
        return Some(format!("{name} {version} names no licence"));
    };
    match Expression::parse(licence) {
        Err(error) => Some(format!("{name} {version}: {error}")),
        Ok(expression) if expression.is_allowed(&|part| allow.contains(part)) => None,
        Ok(_) => Some(format!(
            "{name} {version} is under {licence}, which deny.toml does not allow: add the licence \
             there if the GPL, version 3, is compatible with it, or do without the package"
        )),
    }
}

fn source_fault(package: &Package, metadata: &Metadata) -> Option<String> {
    let Package { name, version, .. } = package;
    match package.source.as_deref() {
        None if metadata.workspace_members.contains(&package.id) => None,
        None => Some(format!("{name} {version} is a folder outside the workspace")),
        Some(source) if source.starts_with("registry+") || source.starts_with("sparse+") => None,
        Some(source) => Some(format!(
            "{name} {version} comes from {source}: only the registry and this workspace are allowed"
        )),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn faults_of(licence: &Value, source: &Value) -> Vec<String> {
        let metadata = json!({
            "workspace_members": ["ours"],
            "packages": [{
                "id": if *source == "workspace" { "ours" } else { "theirs" },
                "name": "thing", "version": "1.0.0", "manifest_path": "", "dependencies": [],
                "license": licence,
                "source": if *source == "workspace" { &Value::Null } else { source },
            }],
        });
        let allow = ["MIT", "GPL-3.0-or-later"].map(str::to_owned).into();
        faults(&serde_json::from_value(metadata).unwrap(), &allow)
    }

    #[test]
    fn allowed_licences_from_the_registry_or_the_workspace_pass() {
        assert!(faults_of(&json!("MIT OR LicenseRef-other"), &json!("registry+index")).is_empty());
        assert!(faults_of(&json!("GPL-3.0-or-later"), &json!("workspace")).is_empty());
    }

    #[test]
    fn other_licences_are_refused() {
        for licence in
            [json!("AGPL-3.0-only"), json!("MIT AND SSPL-1.0"), json!("MIT OR"), json!(null)]
        {
            assert_eq!(faults_of(&licence, &json!("registry+index")).len(), 1, "{licence}");
        }
    }

    #[test]
    fn other_sources_are_refused() {
        for source in [json!("git+somewhere"), json!(null)] {
            assert_eq!(faults_of(&json!("MIT"), &source).len(), 1, "{source}");
        }
    }
}
