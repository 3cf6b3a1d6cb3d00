//! The combinations of settings that an ablation compares.

use std::fmt;
use std::str::FromStr;

use selfmate_selfplay::Ending;
use selfmate_train::ConfigError;
use serde::{Deserialize, Serialize};

use super::super::EndgameConfig;
use crate::settings::Settings;
use crate::table::learner;

/// A setting with the values to compare, such as `root_rule=greedy,gumbel`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Axis {
    /// A short name, or the path of a setting such as `selfplay.candidates`.
    pub name: String,
    pub values: Vec<String>,
}

/// A combination: each setting that differs, and its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell(pub Vec<(String, String)>);

#[derive(Debug, thiserror::Error)]
pub enum AxisError {
    #[error("'{0}': expected a setting and its values, such as root_rule=greedy,gumbel")]
    Text(String),
    #[error("'{0}' is given twice")]
    Twice(String),
    #[error("'{name}={value}': expected {expected} or a whole number")]
    Value { name: String, value: String, expected: String },
    #[error(transparent)]
    Config(#[from] ConfigError),
}

/// How axes become combinations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Design {
    /// Every combination of all axes.
    #[default]
    Grid,
    /// One axis at a time; all other settings stay as they are.
    Each,
}

/// The axes of the whole study, for [`Design::Each`].
pub const STUDY: [&str; 13] = [
    "encoder=mlp,cnn,residual",
    "units=16,64,256",
    "root_rule=greedy,puct,top_k,gumbel",
    "puct_formula=alphazero,sqrt_ratio",
    "expansion=first_visit,second_visit,random_untried",
    "policy_target=visits,improved",
    "lambda=0,0.5,1",
    "result_weight=0,0.5,1",
    "max_plies=24,50,100",
    "c_puct=0.5,1.5,4",
    "sims=25,50,100,200",
    "priors=network,uniform",
    "transpositions=none,cache,shared",
];

/// Short names and their settings.
const NAMES: [(&str, &[&str]); 13] = [
    ("encoder", &["network.encoder"]),
    ("puct_formula", &["selfplay.puct_formula"]),
    ("expansion", &["selfplay.expansion"]),
    ("policy_target", &["selfplay.policy_target"]),
    ("lambda", &["learning.lambda"]),
    ("result_weight", &["learning.result_weight.from", "learning.result_weight.to"]),
    ("root_rule", &["selfplay.root_rule"]),
    ("sims", &["selfplay.simulations.from", "selfplay.simulations.to"]),
    ("c_puct", &["selfplay.c_puct"]),
    ("max_plies", &["selfplay.max_plies"]),
    ("priors", &["selfplay.priors"]),
    ("units", &["network.first", "network.second"]),
    ("transpositions", &["selfplay.transpositions"]),
];

/// Values of short names that stand for several settings. Other values of these names are numbers.
const VALUES: [(&str, &str, &[&str]); 3] = [
    ("transpositions", "none", &["selfplay.transpositions=0", "selfplay.shared_nodes=false"]),
    ("transpositions", "cache", &["selfplay.transpositions=100000", "selfplay.shared_nodes=false"]),
    ("transpositions", "shared", &["selfplay.transpositions=0", "selfplay.shared_nodes=true"]),
];

impl Axis {
    /// The settings for a value, as `key=value`.
    fn settings(&self, value: &str) -> Result<Vec<String>, AxisError> {
        let named: Vec<_> = VALUES.iter().filter(|(name, ..)| *name == self.name).collect();
        if let Some((_, _, settings)) = named.iter().find(|(_, named, _)| *named == value) {
            return Ok(settings.iter().map(|&setting| setting.to_owned()).collect());
        }
        if !named.is_empty() && value.parse::<u64>().is_err() {
            let expected = named.iter().map(|(_, named, _)| *named).collect::<Vec<_>>().join(", ");
            let (name, value) = (self.name.clone(), value.to_owned());
            return Err(AxisError::Value { name, value, expected });
        }
        let known = NAMES.iter().find(|(name, _)| *name == self.name);
        Ok(match known {
            Some((_, keys)) => keys.iter().map(|key| format!("{key}={value}")).collect(),
            None => vec![format!("{}={value}", self.name)],
        })
    }
}

impl FromStr for Axis {
    type Err = AxisError;

    fn from_str(text: &str) -> Result<Axis, AxisError> {
        let wrong = || AxisError::Text(text.to_owned());
        let (name, values) = text.split_once('=').ok_or_else(wrong)?;
        let values: Vec<String> = values.split(',').map(|value| value.trim().to_owned()).collect();
        if name.is_empty() || values.iter().any(String::is_empty) {
            return Err(wrong());
        }
        Ok(Axis { name: name.to_owned(), values })
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = self.0.iter().map(|(name, value)| format!("{name}={value}"));
        f.write_str(&parts.collect::<Vec<_>>().join(" "))
    }
}

/// All combinations with their configs; in a grid, the last axis changes fastest.
pub(super) fn cells(
    config: &EndgameConfig,
    axes: &[Axis],
    design: Design,
) -> Result<Vec<(Cell, EndgameConfig)>, AxisError> {
    match design {
        Design::Grid => grid(config, axes),
        Design::Each => {
            check_names(axes)?;
            let cells = |axis| grid(config, std::slice::from_ref(axis));
            Ok(axes.iter().map(cells).collect::<Result<Vec<_>, _>>()?.concat())
        }
    }
}

fn check_names(axes: &[Axis]) -> Result<(), AxisError> {
    let is_repeated =
        |index: usize| axes[..index].iter().any(|other| other.name == axes[index].name);
    match (0..axes.len()).find(|&index| is_repeated(index)) {
        Some(index) => Err(AxisError::Twice(axes[index].name.clone())),
        None => Ok(()),
    }
}

fn grid(config: &EndgameConfig, axes: &[Axis]) -> Result<Vec<(Cell, EndgameConfig)>, AxisError> {
    check_names(axes)?;
    let mut cells = vec![(Cell(Vec::new()), config.clone())];
    for axis in axes {
        let mut next = Vec::new();
        for (cell, config) in &cells {
            for value in &axis.values {
                let changed = settings(config).set(&axis.settings(value)?)?;
                changed.check()?;
                let Some(changed) = changed.downcast::<EndgameConfig>().cloned() else { continue };
                let mut cell = cell.clone();
                cell.0.push((axis.name.clone(), value.clone()));
                next.push((cell, changed));
            }
        }
        cells = next;
    }
    Ok(cells)
}

fn settings(config: &EndgameConfig) -> Settings {
    let name = config.selfplay.ending.map_or("krk", Ending::name);
    let info = learner(name).expect("every ending has a learner");
    Settings::new(info, Box::new(config.clone()))
}

#[cfg(test)]
mod tests {
    use selfmate_selfplay::{Priors, RootRuleName};

    use super::*;
    use crate::endgame::{default, spec};

    fn axes(texts: &[&str]) -> Vec<Axis> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn every_combination_occurs_once() {
        let config = default(Ending::Krk);
        let axes_given = axes(&["root_rule=greedy,top_k,gumbel", "sims=16,32", "units=8"]);
        let cells = cells(&config, &axes_given, Design::Grid).unwrap();
        assert_eq!(cells.len(), 6);
        let (cell, last) = &cells[5];
        assert_eq!(cell.to_string(), "root_rule=gumbel sims=32 units=8");
        assert_eq!(
            (last.selfplay.root_rule, last.selfplay.simulations.to),
            (RootRuleName::Gumbel, 32.0)
        );
        assert_eq!((last.network.first, last.network.second), (8, 8));
        let all = axes(&[
            "c_puct=1,2.5",
            "max_plies=40",
            "priors=uniform",
            "transpositions=1000",
            "selfplay.candidates=4",
        ]);
        let cells = super::cells(&config, &all, Design::Grid).unwrap();
        assert_eq!((cells[1].1.selfplay.c_puct, cells[1].1.selfplay.max_plies), (2.5, 40));
        assert_eq!(cells[0].1.selfplay.priors, Priors::Uniform);
        let named = axes(&["transpositions=none,cache,shared,1000"]);
        let cells = super::cells(&config, &named, Design::Grid).unwrap();
        let play = cells.iter().map(|(_, config)| &config.selfplay);
        let set: Vec<_> = play.map(|play| (play.transpositions, play.shared_nodes)).collect();
        assert_eq!(set, [(0, false), (100_000, false), (0, true), (1000, false)]);
        assert_eq!(super::cells(&config, &[], Design::Grid).unwrap().len(), 1);
    }

    #[test]
    fn each_axis_of_the_study_changes_one_thing() {
        for (ending, preset) in
            [(Ending::Krk, default(Ending::Krk)), (Ending::Kpk, spec(Ending::Kpk))]
        {
            let cells = cells(&preset, &axes(&STUDY), Design::Each).unwrap();
            assert_eq!(cells.len(), 38, "{ending:?}");
            for axis in axes(&STUDY) {
                let own: Vec<_> =
                    cells.iter().filter(|(cell, _)| cell.0[0].0 == axis.name).collect();
                assert!(own.iter().all(|(cell, _)| cell.0.len() == 1));
                assert_eq!(own.len(), axis.values.len());
                for (index, (cell, config)) in own.iter().enumerate() {
                    let differs = own[..index].iter().all(|(_, other)| other != config);
                    assert!(differs, "{cell}: as an earlier value");
                }
            }
        }
        let config = default(Ending::Krk);
        let is_default = |(_, changed): &&(Cell, EndgameConfig)| *changed == config;
        let cells = cells(&config, &axes(&STUDY), Design::Each).unwrap();
        // The axes without the default among their values: units, policy_target.
        assert_eq!(cells.iter().filter(is_default).count(), STUDY.len() - 2);
        let twice = super::cells(&config, &axes(&["sims=1", "sims=2"]), Design::Each);
        assert!(twice.unwrap_err().to_string().contains("twice"));
    }

    #[test]
    fn invalid_settings_are_rejected_by_name() {
        for text in ["root_rule", "=a", "root_rule=", "root_rule=a,,b"] {
            assert!(text.parse::<Axis>().is_err(), "{text}");
        }
        let message = |texts: &[&str]| {
            cells(&default(Ending::Krk), &axes(texts), Design::Grid).unwrap_err().to_string()
        };
        assert!(message(&["root_rule=slow"]).contains("slow"), "{}", message(&["root_rule=slow"]));
        assert!(message(&["colour=red"]).contains("colour"));
        assert_eq!(
            message(&["transpositions=red"]),
            "'transpositions=red': expected none, cache, shared or a whole number"
        );
        assert!(message(&["sims=0"]).contains("selfplay.simulations.from is 0"));
        assert!(message(&["sims=1", "sims=2"]).contains("twice"));
    }
}
