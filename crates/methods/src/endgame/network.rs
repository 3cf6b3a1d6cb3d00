//! The networks of the endgame learners: their settings, their training and their evaluators.

use std::sync::Arc;

use rayon::prelude::*;
use selfmate_chess::env::ActionSpace;
use selfmate_chess::{Chess, Game, Position, Seed};
use selfmate_encode::{MoveSpace, Planes};
use selfmate_nn::conv::{self, ConvConfig};
use selfmate_nn::mlp::{self, LossWeights, MlpConfig};
use selfmate_nn::small::{AdamConfig, Shape, TrainError};
use selfmate_nn::sparse::{WeightsError, WeightsInfo};
use selfmate_nn::{Model, architecture};
use selfmate_search::{Evaluation, Evaluator, Leaf};
use selfmate_train::ConfigError;
use serde::{Deserialize, Serialize};

/// The shape of a network. The settings of other encoders have no effect.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndgameShape {
    #[serde(default)]
    pub encoder: Encoder,
    /// Units of the first layer of `mlp`.
    pub first: usize,
    /// Units of the layer before policy and value, for every encoder.
    pub second: usize,
    /// Channels of the convolutions of `cnn` and `residual`.
    #[serde(default = "channels")]
    pub channels: usize,
    /// Their blocks of two 3×3 convolutions each.
    #[serde(default = "blocks")]
    pub blocks: usize,
    /// Channels of the 1×1 convolution after the blocks.
    #[serde(default = "head")]
    pub head: usize,
}

const fn channels() -> usize {
    32
}

const fn blocks() -> usize {
    2
}

const fn head() -> usize {
    8
}

/// What turns a position into features of the policy and the value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Encoder {
    /// A layer over the canonical board, see [`selfmate_encode::Canonical`].
    #[default]
    Mlp,
    /// Convolutions over `planes_krk`.
    Cnn,
    /// The same with skip connections.
    Residual,
}

impl EndgameShape {
    pub const fn mlp(first: usize, second: usize) -> EndgameShape {
        let (channels, blocks, head) = (channels(), blocks(), head());
        EndgameShape { encoder: Encoder::Mlp, first, second, channels, blocks, head }
    }

    /// The shape of its network.
    fn architecture(&self) -> Architecture {
        let EndgameShape { encoder, first, second, channels, blocks, head } = *self;
        let has_skips = match encoder {
            Encoder::Mlp => return Architecture::Mlp(MlpConfig { first, second }),
            Encoder::Cnn => false,
            Encoder::Residual => true,
        };
        Architecture::Conv(ConvConfig { channels, blocks, has_skips, head, hidden: second })
    }

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        match self.architecture() {
            Architecture::Mlp(config) => {
                config.check().map_err(|error| ConfigError::network(&error))
            }
            Architecture::Conv(config) => {
                config.check().map_err(|error| ConfigError::network(&error))
            }
        }
    }
}

/// Equal when the networks are: a checkpoint does not know the settings of other encoders.
impl PartialEq for EndgameShape {
    fn eq(&self, other: &EndgameShape) -> bool {
        self.architecture() == other.architecture()
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Architecture {
    Mlp(MlpConfig),
    Conv(ConvConfig),
}

/// A network of either architecture.
#[derive(Clone, Debug)]
pub enum EndgameNetwork {
    Mlp(Arc<mlp::Network>),
    Conv(Arc<conv::Network>),
}

impl EndgameNetwork {
    /// `None` when the model is not one for endings.
    pub fn of(model: Model) -> Option<EndgameNetwork> {
        match model {
            Model::Mlp(network) => Some(EndgameNetwork::Mlp(network)),
            Model::Conv(network) => Some(EndgameNetwork::Conv(network)),
            Model::Sparse(_) | Model::Residual(_) => None,
        }
    }

    pub fn evaluator(&self) -> EndgameEvaluator {
        match self {
            EndgameNetwork::Mlp(network) => {
                EndgameEvaluator::Mlp(mlp::NetworkEvaluator::new(Arc::clone(network)))
            }
            EndgameNetwork::Conv(network) => {
                EndgameEvaluator::Conv(Box::new(conv::NetworkEvaluator::new(Arc::clone(network))))
            }
        }
    }
}

pub enum EndgameEvaluator {
    Mlp(mlp::NetworkEvaluator),
    Conv(Box<conv::NetworkEvaluator>),
}

impl EndgameEvaluator {
    /// The expected result of the side to move.
    pub fn value(&mut self, game: &Game) -> f32 {
        match self {
            EndgameEvaluator::Mlp(evaluator) => evaluator.value(game),
            EndgameEvaluator::Conv(evaluator) => evaluator.value(game),
        }
    }
}

impl Evaluator for EndgameEvaluator {
    fn evaluate(&mut self, leaves: &[Leaf], evaluations: &mut [Evaluation]) {
        match self {
            EndgameEvaluator::Mlp(evaluator) => evaluator.evaluate(leaves, evaluations),
            EndgameEvaluator::Conv(evaluator) => evaluator.evaluate(leaves, evaluations),
        }
    }
}

/// A position of the replay buffer with its targets.
#[derive(Clone, Debug, PartialEq)]
pub struct EndgameSample {
    pub(super) position: Chess,
    /// The canonical board, and the targets of either network.
    pub(super) canonical: mlp::Sample,
}

impl EndgameSample {
    /// The moves with an index are the same on the canonical board, and in the same order.
    fn on_planes(&self) -> conv::Sample {
        let position = &self.position;
        let index = |m| MoveSpace::FromTo4096.index(position, m);
        let moves = position.legal_moves();
        conv::Sample {
            planes: Planes::PlanesKrk.encoded(&Game::from_position(position.clone())),
            moves: moves.iter().filter_map(|&m| index(m)).map(|index| index as u16).collect(),
            target: self.canonical.target.clone(),
            result: self.canonical.result,
        }
    }
}

/// A network in training.
pub(super) enum EndgameTrainer {
    Mlp(mlp::Trainer),
    Conv(conv::Trainer),
}

impl EndgameTrainer {
    pub fn new(shape: &EndgameShape, seed: Seed) -> Result<EndgameTrainer, ConfigError> {
        match shape.architecture() {
            Architecture::Mlp(config) => mlp::Network::random(config, seed)
                .map(|network| EndgameTrainer::Mlp(mlp::Trainer::new(network)))
                .map_err(|error| ConfigError::network(&error)),
            Architecture::Conv(config) => conv::Network::random(config, seed)
                .map(|network| EndgameTrainer::Conv(conv::Trainer::new(network)))
                .map_err(|error| ConfigError::network(&error)),
        }
    }

    pub fn restore(state: &[u8]) -> Result<EndgameTrainer, WeightsError> {
        match architecture(state)?.as_str() {
            ConvConfig::ARCHITECTURE => conv::Trainer::restore(state).map(EndgameTrainer::Conv),
            _ => mlp::Trainer::restore(state).map(EndgameTrainer::Mlp),
        }
    }

    pub fn shape(&self) -> EndgameShape {
        match self {
            EndgameTrainer::Mlp(trainer) => {
                let MlpConfig { first, second } = trainer.network().config();
                EndgameShape::mlp(first, second)
            }
            EndgameTrainer::Conv(trainer) => {
                let config = trainer.network().config();
                let ConvConfig { channels, blocks, has_skips, head, hidden } = config;
                let encoder = if has_skips { Encoder::Residual } else { Encoder::Cnn };
                EndgameShape { encoder, first: hidden, second: hidden, channels, blocks, head }
            }
        }
    }

    pub fn state(&self) -> Result<Vec<u8>, WeightsError> {
        match self {
            EndgameTrainer::Mlp(trainer) => trainer.state(),
            EndgameTrainer::Conv(trainer) => trainer.state(),
        }
    }

    pub fn step(&self) -> u64 {
        match self {
            EndgameTrainer::Mlp(trainer) => trainer.step(),
            EndgameTrainer::Conv(trainer) => trainer.step(),
        }
    }

    pub fn network(&self) -> EndgameNetwork {
        match self {
            EndgameTrainer::Mlp(trainer) => EndgameNetwork::Mlp(trainer.network().clone().into()),
            EndgameTrainer::Conv(trainer) => EndgameNetwork::Conv(trainer.network().clone().into()),
        }
    }

    /// The file of the network.
    pub fn model_file(&self) -> Result<Vec<u8>, WeightsError> {
        let info = WeightsInfo { step: self.step() };
        match self {
            EndgameTrainer::Mlp(trainer) => trainer.network().encode_canonical(info),
            EndgameTrainer::Conv(trainer) => trainer.network().encode(info),
        }
    }

    /// Trains on a batch, on the current thread pool. Returns its losses and the length of its
    /// gradient before clipping.
    pub fn learn(
        &mut self,
        batch: &[&EndgameSample],
        weights: &LossWeights,
        adam: &AdamConfig,
        rate: f32,
    ) -> Result<(mlp::Losses, f32), TrainError> {
        match self {
            EndgameTrainer::Mlp(trainer) => {
                let samples: Vec<mlp::Sample> =
                    batch.iter().map(|sample| sample.canonical.clone()).collect();
                trainer.learn(&samples, weights, adam, rate)
            }
            EndgameTrainer::Conv(trainer) => {
                let samples: Vec<conv::Sample> =
                    batch.par_iter().map(|sample| sample.on_planes()).collect();
                trainer.learn(&samples, weights, adam, rate)
            }
        }
    }
}
