//! What is trained: the weights of the alpha-beta engine, or the four weights of a one-ply player.

use selfmate_arena::players::{OnePlyPlayer, OnePlyWeights, alphabeta};
use selfmate_arena::{PlayerKind, SpecError, SpecOptions, Tuning};
use selfmate_chess::Seed;
use selfmate_search::Player;
use selfmate_train::ConfigError;
use selfmate_train::engine_match::{EngineMatchConfig, MatchWeights};
use serde::{Deserialize, Serialize};

use super::{engine_kind, start_weights};

/// The start of an evolution of the one-ply player.
const FOUR_WEIGHTS: &str = "four_weights";

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum PlayerWeights {
    OnePly(OnePlyWeights),
    Engine(Box<Tuning>),
}

impl PlayerWeights {
    /// Loads `four_weights`, `plain`, `default` or a file of the engine's weights.
    pub fn named(text: &str) -> Result<PlayerWeights, ConfigError> {
        match text {
            FOUR_WEIGHTS => Ok(PlayerWeights::OnePly(OnePlyWeights::default())),
            text => start_weights(text).map(|tuning| PlayerWeights::Engine(Box::new(tuning))),
        }
    }

    /// Parses a checkpoint's file. The error describes the problem.
    pub fn parse(bytes: &[u8]) -> Result<PlayerWeights, String> {
        let text = String::from_utf8_lossy(bytes);
        let table: toml::Table =
            text.parse().map_err(|error: toml::de::Error| error.to_string())?;
        if OnePlyWeights::NAMES.iter().any(|name| table.contains_key(*name)) {
            return OnePlyWeights::parse(&text).map(PlayerWeights::OnePly);
        }
        Tuning::parse(&text).map(|tuning| PlayerWeights::Engine(Box::new(tuning)))
    }

    pub fn to_toml(&self) -> String {
        match self {
            PlayerWeights::OnePly(weights) => weights.to_toml(),
            PlayerWeights::Engine(tuning) => tuning.to_toml(),
        }
    }

    /// The player of a spec.
    pub(super) fn build(&self, options: &SpecOptions<'_>) -> Result<Box<dyn Player>, SpecError> {
        match self {
            PlayerWeights::Engine(tuning) => alphabeta::build(options, tuning),
            PlayerWeights::OnePly(weights) => {
                let given =
                    super::OPTIONS.iter().find_map(|name| Some((name, options.spec.option(name)?)));
                match given {
                    Some((name, value)) => Err(options.bad(name, value, "no options for this run")),
                    None => {
                        Ok(Box::new(OnePlyPlayer::new(&options.label(), *weights, options.seed)))
                    }
                }
            }
        }
    }

    /// As a kind of player, as in the training games.
    pub fn kind(&self, name: &str, games: &EngineMatchConfig) -> PlayerKind {
        match self {
            PlayerWeights::Engine(tuning) => engine_kind(name, tuning, games, None),
            PlayerWeights::OnePly(weights) => {
                let weights = *weights;
                PlayerKind::new(name, "a player in training", move |options| {
                    Ok(Box::new(OnePlyPlayer::new(&options.label(), weights, options.seed)))
                })
            }
        }
    }

    /// In one line of text.
    pub(super) fn describe(&self) -> String {
        match self {
            PlayerWeights::OnePly(weights) => {
                let named = OnePlyWeights::NAMES.into_iter().zip(weights.flat());
                let named =
                    named.map(|(name, value)| format!("{} {value:.2}", name.replace('_', " ")));
                format!("weights: {}", named.collect::<Vec<String>>().join(", "))
            }
            PlayerWeights::Engine(tuning) => {
                let value = &tuning.evaluation.piece_value;
                let (mg, eg) = (value.mg, value.eg);
                format!("piece values {mg:?} in the middlegame, {eg:?} in the endgame")
            }
        }
    }
}

impl MatchWeights for PlayerWeights {
    fn player(&self, name: &str, config: &EngineMatchConfig) -> Box<dyn Player> {
        match self {
            PlayerWeights::Engine(tuning) => tuning.player(name, config),
            // The seed draws among equal moves; the opening makes games differ.
            PlayerWeights::OnePly(weights) => {
                Box::new(OnePlyPlayer::new(name, *weights, Seed::new(0)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_both_kinds_are_recognised() {
        for name in ["four_weights", "plain"] {
            let weights = PlayerWeights::named(name).unwrap();
            assert_eq!(PlayerWeights::parse(weights.to_toml().as_bytes()).unwrap(), weights);
            let json = serde_json::to_string(&weights).unwrap();
            assert_eq!(serde_json::from_str::<PlayerWeights>(&json).unwrap(), weights);
        }
        let four = PlayerWeights::named("four_weights").unwrap();
        assert_eq!(
            four.describe(),
            "weights: material 1.00, centre 0.30, king safety 0.50, development 0.40"
        );
        let error = PlayerWeights::parse(b"material = 1.0").unwrap_err();
        assert!(error.contains("missing field"), "{error}");
    }
}
