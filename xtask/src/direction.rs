//! Checks the dependencies between our crates: a crate may use only those before it in [`ORDER`], and
//! some libraries may be used only by certain crates ([`CONFINED`]). ARCHITECTURE.md gives the
//! reasons.

use std::path::Path;

use anyhow::{Result, bail};

use crate::metadata::{Metadata, Package};

/// The folders under `crates/`. Each may use those before it.
const ORDER: &[&str] = &[
    "chess", "encode", "search", "nn", "run", "uci", "arena", "selfplay", "cluster", "train",
    "methods", "web", "cli",
];

/// Allowed dev-dependencies on later crates: the tests of `cluster` train whole runs over a broker.
const TESTED_WITH: &[(&str, &[&str])] = &[("cluster", &["train", "methods"])];

/// Libraries, and the only folders that may use them or their companion crates (`tokio-util`,
/// `clap_complete`).
const CONFINED: &[(&str, &[&str])] = &[
    ("tokio", &["cluster", "web"]),
    ("clap", &["cli", "xtask"]),
    ("anyhow", &["cli", "xtask"]),
    ("burn", &["nn"]),
];

pub fn run() -> Result<()> {
    let metadata = Metadata::of_workspace()?;
    let violations = violations(&metadata);
    if !violations.is_empty() {
        bail!("forbidden dependencies:\n  {}", violations.join("\n  "));
    }
    println!("{} packages depend only on those before them", metadata.packages.len());
    Ok(())
}

fn violations(metadata: &Metadata) -> Vec<String> {
    metadata.packages.iter().flat_map(package_violations).collect()
}

fn package_violations(package: &Package) -> Vec<String> {
    let manifest = Path::new(&package.manifest_path);
    let folder = manifest.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
    let Some(rank) = rank(&package.name) else {
        return if package.name == "xtask" {
            confinement_violations(package, "xtask")
        } else {
            vec![format!(
                "{} (crates/{folder}) is not in the list of crates: add it to ORDER in \
                 xtask/src/direction.rs and to ARCHITECTURE.md, or make it a module",
                package.name
            )]
        };
    };
    let mut violations = confinement_violations(package, ORDER[rank]);
    if folder != ORDER[rank] {
        violations.push(format!(
            "{} is in crates/{folder}: expected crates/{}",
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
            violations.push(format!(
                "{} may not use {} ({kind} dependency): it may use only crates before it in {}",
                package.name,
                dependency.name,
                ORDER.join(" ")
            ));
        }
    }
    violations
}

/// The index of one of our packages in [`ORDER`].
fn rank(package: &str) -> Option<usize> {
    let folder = match package {
        "selfmate" => "cli",
        // The package in crates/cli is called `selfmate`.
        "selfmate-cli" => return None,
        _ => package.strip_prefix("selfmate-")?,
    };
    ORDER.iter().position(|known| *known == folder)
}

fn confinement_violations(package: &Package, folder: &str) -> Vec<String> {
    let mut violations = Vec::new();
    for (library, folders) in CONFINED {
        for dependency in &package.dependencies {
            let is_companion = dependency.name.strip_prefix(library).is_some_and(|rest| {
                rest.is_empty() || rest.starts_with('-') || rest.starts_with('_')
            });
            if is_companion && !folders.contains(&folder) {
                violations.push(format!(
                    "{} may not use {}: only {} may",
                    package.name,
                    dependency.name,
                    folders.join(" and ")
                ));
            }
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The violations of a made-up package in `crates/FOLDER`; a dependency is (name, kind).
    fn violations_of(
        name: &str,
        folder: &str,
        dependencies: &[(&str, Option<&str>)],
    ) -> Vec<String> {
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
        violations(&serde_json::from_value(metadata).unwrap())
    }

    #[test]
    fn earlier_crates_and_libraries_are_allowed() {
        let used = [("selfmate-chess", None), ("selfmate-encode", Some("dev")), ("serde", None)];
        assert!(violations_of("selfmate-search", "search", &used).is_empty());
        let used = [("selfmate-web", None), ("clap", None), ("clap_complete", None)];
        assert!(violations_of("selfmate", "cli", &used).is_empty());
        assert!(violations_of("xtask", "xtask", &[("anyhow", None)]).is_empty());
    }

    #[test]
    fn a_later_crate_is_a_violation_for_every_kind_of_dependency() {
        for kind in [None, Some("dev"), Some("build")] {
            let violations = violations_of("selfmate-chess", "chess", &[("selfmate-search", kind)]);
            assert_eq!(violations.len(), 1, "{violations:?}");
            assert!(violations[0].starts_with("selfmate-chess may not use selfmate-search"));
        }
    }

    #[test]
    fn only_the_tests_of_the_cluster_may_use_learners() {
        let violations =
            |kind| violations_of("selfmate-cluster", "cluster", &[("selfmate-methods", kind)]);
        assert!(violations(Some("dev")).is_empty());
        assert_eq!((violations(None).len(), violations(Some("build")).len()), (1, 1));
    }

    #[test]
    fn a_crate_may_use_neither_itself_nor_the_binary_nor_xtask() {
        for used in ["selfmate-nn", "selfmate", "xtask"] {
            assert_eq!(violations_of("selfmate-nn", "nn", &[(used, None)]).len(), 1, "{used}");
        }
    }

    #[test]
    fn an_unknown_crate_is_a_violation_and_the_message_says_what_to_do() {
        let violations = violations_of("selfmate-utils", "utils", &[]);
        assert!(violations[0].contains("ARCHITECTURE.md"), "{violations:?}");
        assert_eq!(violations_of("selfmate-cli", "cli", &[]).len(), 1);
        assert_eq!(violations_of("selfmate-chess", "rules", &[]).len(), 1);
    }

    #[test]
    fn confined_libraries_are_violations_in_other_crates() {
        assert_eq!(violations_of("selfmate-train", "train", &[("tokio", None)]).len(), 1);
        assert_eq!(
            violations_of("selfmate-train", "train", &[("tokio-util", Some("dev"))]).len(),
            1
        );
        assert_eq!(violations_of("selfmate-arena", "arena", &[("anyhow", None)]).len(), 1);
        assert_eq!(violations_of("selfmate-arena", "arena", &[("clap_complete", None)]).len(), 1);
        assert_eq!(violations_of("selfmate", "cli", &[("burn-flex", None)]).len(), 1);
        assert_eq!(violations_of("xtask", "xtask", &[("tokio", None)]).len(), 1);
        assert!(violations_of("selfmate-nn", "nn", &[("burn", None), ("burner", None)]).is_empty());
        assert!(violations_of("selfmate-web", "web", &[("tokio", None)]).is_empty());
    }
}
