//! The direction of dependencies: a crate may use only those before it in [`ORDER`], and a few
//! libraries are named by few crates ([`CONFINED`]). ARCHITECTURE.md gives the reasons.

use std::path::Path;

use anyhow::{Result, bail};

use crate::metadata::{Metadata, Package};

/// The folders under `crates/`, each free to use those before it.
const ORDER: &[&str] = &[
    "chess", "encode", "search", "nn", "run", "uci", "arena", "selfplay", "cluster", "train",
    "methods", "web", "cli",
];

/// Dev-dependencies on later crates: whole runs over a broker are tested where the broker is known.
const TESTED_WITH: &[(&str, &[&str])] = &[("cluster", &["train", "methods"])];

/// Libraries, and the only folders that may name them or their kin (`tokio-util`, `clap_complete`).
const CONFINED: &[(&str, &[&str])] = &[
    ("tokio", &["cluster", "web"]),
    ("clap", &["cli", "xtask"]),
    ("anyhow", &["cli", "xtask"]),
    ("burn", &["nn"]),
];

/// Checks the workspace.
pub fn run() -> Result<()> {
    let metadata = Metadata::of_workspace()?;
    let faults = faults(&metadata);
    if !faults.is_empty() {
        bail!("dependencies in the wrong direction:\n  {}", faults.join("\n  "));
    }
    println!("{} packages depend only on those before them", metadata.packages.len());
    Ok(())
}

/// All that is wrong, one sentence each.
fn faults(metadata: &Metadata) -> Vec<String> {
    metadata.packages.iter().flat_map(package_faults).collect()
}

fn package_faults(package: &Package) -> Vec<String> {
    let manifest = Path::new(&package.manifest_path);
    let folder = manifest.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
    let Some(rank) = rank(&package.name) else {
        return if package.name == "xtask" {
            confinement_faults(package, "xtask")
        } else {
            vec![format!(
                "{} (crates/{folder}) is unknown: add it to ORDER in xtask/src/direction.rs and to \
                 ARCHITECTURE.md, or make it a module",
                package.name
            )]
        };
    };
    let mut faults = confinement_faults(package, ORDER[rank]);
    if folder != ORDER[rank] {
        faults.push(format!(
            "{} lies in crates/{folder}: expected crates/{}",
            package.name, ORDER[rank]
        ));
    }
    for dependency in package.dependencies.iter().filter(|dependency| dependency.path.is_some()) {
        let other = self::rank(&dependency.name);
        let is_earlier = other.is_some_and(|other| other < rank);
        let is_tested_with = dependency.kind.as_deref() == Some("dev")
            && TESTED_WITH.iter().any(|(folder, later)| {
                *folder == ORDER[rank] && other.is_some_and(|other| later.contains(&ORDER[other]))
            });
        if !is_earlier && !is_tested_with {
            let kind = dependency.kind.as_deref().unwrap_or("normal");
            faults.push(format!(
                "{} may not use {} ({kind} dependency): it may use only crates before it in {}",
                package.name,
                dependency.name,
                ORDER.join(" ")
            ));
        }
    }
    faults
}

/// The place in [`ORDER`] of one of our packages.
fn rank(package: &str) -> Option<usize> {
    let folder = match package {
        "selfmate" => "cli",
        // `selfmate-cli` would be a second name for the same place.
        "selfmate-cli" => return None,
        _ => package.strip_prefix("selfmate-")?,
    };
    ORDER.iter().position(|known| *known == folder)
}

fn confinement_faults(package: &Package, folder: &str) -> Vec<String> {
    let mut faults = Vec::new();
    for (library, folders) in CONFINED {
        for dependency in &package.dependencies {
            let kin = dependency.name.strip_prefix(library).is_some_and(|rest| {
                rest.is_empty() || rest.starts_with('-') || rest.starts_with('_')
            });
            if kin && !folders.contains(&folder) {
                faults.push(format!(
                    "{} may not name {}: only {} may",
                    package.name,
                    dependency.name,
                    folders.join(" and ")
                ));
            }
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Made-up metadata of one package in `crates/FOLDER`; a dependency is (name, kind).
    fn faults_of(name: &str, folder: &str, dependencies: &[(&str, Option<&str>)]) -> Vec<String> {
        let dependencies: Vec<_> = dependencies
            .iter()
            .map(|(name, kind)| {
                let ours = name.starts_with("selfmate") || *name == "xtask";
                json!({ "name": name, "kind": kind, "path": ours.then_some("/somewhere") })
            })
            .collect();
        let metadata = json!({
            "packages": [{
                "name": name,
                "manifest_path": format!("/w/crates/{folder}/Cargo.toml"),
                "dependencies": dependencies,
            }],
        });
        faults(&serde_json::from_value(metadata).unwrap())
    }

    #[test]
    fn earlier_crates_and_libraries_are_fine() {
        let used = [("selfmate-chess", None), ("selfmate-encode", Some("dev")), ("serde", None)];
        assert!(faults_of("selfmate-search", "search", &used).is_empty());
        let used = [("selfmate-web", None), ("clap", None), ("clap_complete", None)];
        assert!(faults_of("selfmate", "cli", &used).is_empty());
        assert!(faults_of("xtask", "xtask", &[("anyhow", None)]).is_empty());
    }

    #[test]
    fn a_later_crate_is_refused_whatever_the_kind() {
        for kind in [None, Some("dev"), Some("build")] {
            let faults = faults_of("selfmate-chess", "chess", &[("selfmate-search", kind)]);
            assert_eq!(faults.len(), 1, "{faults:?}");
            assert!(faults[0].starts_with("selfmate-chess may not use selfmate-search"));
        }
    }

    #[test]
    fn the_cluster_is_tested_with_learners_and_does_not_use_them() {
        let faults = |kind| faults_of("selfmate-cluster", "cluster", &[("selfmate-methods", kind)]);
        assert!(faults(Some("dev")).is_empty());
        assert_eq!((faults(None).len(), faults(Some("build")).len()), (1, 1));
    }

    #[test]
    fn a_crate_may_use_neither_itself_nor_the_binary_nor_xtask() {
        for used in ["selfmate-nn", "selfmate", "xtask"] {
            assert_eq!(faults_of("selfmate-nn", "nn", &[(used, None)]).len(), 1, "{used}");
        }
    }

    #[test]
    fn an_unknown_crate_is_refused_and_the_remedy_named() {
        let faults = faults_of("selfmate-utils", "utils", &[]);
        assert!(faults[0].contains("ARCHITECTURE.md"), "{faults:?}");
        assert_eq!(faults_of("selfmate-cli", "cli", &[]).len(), 1);
        assert_eq!(faults_of("selfmate-chess", "rules", &[]).len(), 1);
    }

    #[test]
    fn confined_libraries_are_refused_elsewhere() {
        assert_eq!(faults_of("selfmate-train", "train", &[("tokio", None)]).len(), 1);
        assert_eq!(faults_of("selfmate-train", "train", &[("tokio-util", Some("dev"))]).len(), 1);
        assert_eq!(faults_of("selfmate-arena", "arena", &[("anyhow", None)]).len(), 1);
        assert_eq!(faults_of("selfmate-arena", "arena", &[("clap_complete", None)]).len(), 1);
        assert_eq!(faults_of("selfmate", "cli", &[("burn-flex", None)]).len(), 1);
        assert_eq!(faults_of("xtask", "xtask", &[("tokio", None)]).len(), 1);
        assert!(faults_of("selfmate-nn", "nn", &[("burn", None), ("burner", None)]).is_empty());
        assert!(faults_of("selfmate-web", "web", &[("tokio", None)]).is_empty());
    }
}
