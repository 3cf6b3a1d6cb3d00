//! Differences between two configs of a run.

use crate::config_error::ConfigError;

/// A setting that differs between two configs of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigChange {
    /// The path, such as `learning.batch`.
    pub name: String,
    pub then: String,
    pub now: String,
}

impl ConfigChange {
    /// True for a setting that a checkpoint depends on: the learner, the seed, and those in
    /// `fixed`. An entry of `fixed` also covers all settings below it.
    pub fn is_refused(&self, fixed: &[&str]) -> bool {
        let is_below = |fixed: &str| {
            self.name
                .strip_prefix(fixed)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        ["learner", "seed"].iter().chain(fixed).any(|fixed| is_below(fixed))
    }
}

/// The differences between two texts of `run.toml`.
pub fn config_changes(then: &str, now: &str) -> Result<Vec<ConfigChange>, ConfigError> {
    if then == now {
        return Ok(Vec::new());
    }
    let flat = |text: &str| -> Result<(String, toml::Table), ConfigError> {
        let mut table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
            ConfigError::Parse { file: "run.toml".to_owned(), message: error.to_string() }
        })?;
        // The version that started the run has no effect.
        table.remove("version");
        let learner = table.get("learner").and_then(toml::Value::as_str).unwrap_or_default();
        let learner = learner.to_owned();
        // Paths as in `--set`, without the learner's name.
        if let Some(toml::Value::Table(settings)) = table.remove(&learner) {
            table.extend(settings);
        }
        Ok((learner, table))
    };
    let ((before, then), (after, now)) = (flat(then)?, flat(now)?);
    if before != after {
        let name = "learner".to_owned();
        return Ok(vec![ConfigChange { name, then: before, now: after }]);
    }
    Ok(differences(&then, &now))
}

pub fn differences(then: &toml::Table, now: &toml::Table) -> Vec<ConfigChange> {
    let text = |value: Option<&toml::Value>| {
        value.map_or_else(|| "nothing".to_owned(), ToString::to_string)
    };
    let mut found = Vec::new();
    for key in then.keys().chain(now.keys().filter(|key| !then.contains_key(*key))) {
        match (then.get(key), now.get(key)) {
            (then, now) if then == now => {}
            (Some(toml::Value::Table(then)), Some(toml::Value::Table(now))) => {
                found.extend(differences(then, now).into_iter().map(|change| ConfigChange {
                    name: format!("{key}.{}", change.name),
                    ..change
                }));
            }
            (then, now) => {
                found.push(ConfigChange { name: key.clone(), then: text(then), now: text(now) });
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_have_paths_and_those_of_fixed_settings_are_rejected() {
        let text = "learner = \"zero\"\nversion = \"0.1.0\"\nseed = 7\n\
                    [zero.learning]\nbatch = 2048\n[zero.network]\nhidden = 256\n";
        let changes = |other: &str| config_changes(text, other).unwrap();
        assert_eq!(changes(text), []);
        let other = text.replace("2048", "64").replace("256", "64");
        let found: Vec<(String, bool)> = changes(&other)
            .into_iter()
            .map(|change| {
                (
                    format!("{} {} {}", change.name, change.then, change.now),
                    change.is_refused(&["network"]),
                )
            })
            .collect();
        let expected = [("learning.batch 2048 64", false), ("network.hidden 256 64", true)];
        assert_eq!(found, expected.map(|(text, refused)| (text.to_owned(), refused)));
        let seed = changes(&text.replace("seed = 7", "seed = 8"));
        assert!(seed[0].name == "seed" && seed[0].is_refused(&[]), "{seed:?}");
        assert_eq!(changes(&text.replace("0.1.0", "0.0.1")), []);
        let krk = changes(&text.replace("zero", "krk"));
        assert!(krk[0].name == "learner" && krk[0].is_refused(&[]), "{krk:?}");
    }
}
