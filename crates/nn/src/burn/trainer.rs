//! The trainer on a Burn device, with the batches and losses of [`crate::residual::Trainer`].

use ::burn::module::{Module, ModuleVisitor, Param};
use ::burn::tensor::activation::log_softmax;
use ::burn::tensor::{Device as BurnDevice, Gradients, Tensor, TensorData};
use selfmate_search::Wdl;

use super::Tensors;
use super::layer::Pass;
use super::network::{Network, Output};
use super::optimiser::{Moments, Step};
use crate::device::Device;
use crate::file::WeightsInfo;
use crate::residual::average::{self, AVERAGE};
use crate::residual::{
    Batch, FIRST, Losses, MOVES, Optimiser, SECOND, TrainError, TrainingConfig, ValueHead, Weights,
    decode_parts, encode_parts,
};

/// Added to the logits of illegal moves; the limit of half precision.
const MASKED: f32 = -1e4;

/// Trains a residual network on a Burn device.
pub struct Trainer {
    network: Network,
    config: TrainingConfig,
    moments: Moments,
    average: Weights,
    steps: u64,
    device: BurnDevice,
}

/// The gradient of a batch, still on the device.
struct BatchGradient {
    gradients: Tensors,
    /// Means and variances of the batch, for the running statistics.
    statistics: Tensors,
}

impl Trainer {
    pub fn new(
        weights: &Weights,
        config: TrainingConfig,
        device: Device,
    ) -> Result<Trainer, TrainError> {
        let device = super::open(device)?;
        let network = Network::new(weights, &device);
        let (average, moments) = (weights.clone(), Moments::default());
        Ok(Trainer { network, config, moments, average, steps: 0, device })
    }

    /// Trains on one batch.
    pub fn step(&mut self, batch: &Batch, learning_rate: f32) -> Result<Losses, TrainError> {
        let (losses, batch_gradient) = self.batch_gradient(batch)?;
        let clip = self.config.clip_norm / losses.gradient_norm.max(f32::MIN_POSITIVE);
        let mut step = Step {
            optimiser: self.config.optimiser,
            weight_decay: self.config.weight_decay.into(),
            learning_rate: learning_rate.into(),
            clip: clip.min(1.0).into(),
            number: self.steps as f64 + 1.0,
            gradients: batch_gradient.gradients,
            statistics: batch_gradient.statistics,
            moments: &mut self.moments,
        };
        self.network = self.network.clone().map(&mut step);
        self.steps += 1;
        if average::is_due(self.steps) {
            let weights = self.weights()?;
            average::mix(&mut self.average, &weights, self.config.average_rate, self.steps);
        }
        Ok(losses)
    }

    /// The losses of a batch and its mean gradient, unclipped. Changes nothing.
    pub fn gradient(&self, batch: &Batch) -> Result<(Losses, Weights), TrainError> {
        let (losses, batch_gradient) = self.batch_gradient(batch)?;
        Ok((losses, self.network.arrange(&batch_gradient.gradients)?))
    }

    /// Copies the current weights from the device.
    pub fn weights(&self) -> Result<Weights, TrainError> {
        Ok(self.network.weights()?)
    }

    /// The moving average of the weights, which should be used for play.
    pub fn average(&self) -> &Weights {
        &self.average
    }

    /// The number of batches trained on.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// The complete training state, in the format of [`crate::residual::Trainer`]. Either trainer
    /// can resume from the other's state.
    pub fn state(&self) -> Result<Vec<u8>, TrainError> {
        let weights = self.weights()?;
        let first = self.network.arrange(&self.moments.first)?;
        let mut parts = vec![("", &weights), (FIRST, &first)];
        let second = match self.config.optimiser {
            Optimiser::Sgd { .. } => None,
            Optimiser::Adam { .. } => Some(self.network.arrange(&self.moments.second)?),
        };
        parts.extend(second.as_ref().map(|second| (SECOND, second)));
        parts.push((AVERAGE, &self.average));
        Ok(encode_parts(&parts, WeightsInfo { step: self.steps })?)
    }

    /// Resumes from a state of the same optimiser.
    pub fn restore(
        state: &[u8],
        config: TrainingConfig,
        device: Device,
    ) -> Result<Trainer, TrainError> {
        let prefixes: &[&str] = match config.optimiser {
            Optimiser::Sgd { .. } => &["", FIRST, AVERAGE],
            Optimiser::Adam { .. } => &["", FIRST, SECOND, AVERAGE],
        };
        let (mut parts, info) = decode_parts(state, prefixes)?;
        let average = parts.pop().expect("one part for each name");
        let mut trainer = Trainer::new(&parts[0], config, device)?;
        let moments = |weights: &Weights| trainer.network.clone().load(weights).tensors();
        let first = moments(&parts[1]);
        let second = parts.get(2).map(moments).unwrap_or_default();
        trainer.moments = Moments { first, second };
        trainer.average = average;
        trainer.steps = info.step;
        Ok(trainer)
    }

    /// Forward and backward pass.
    fn batch_gradient(&self, batch: &Batch) -> Result<(Losses, BatchGradient), TrainError> {
        let network = self.network.clone().train();
        let config = network.config();
        if batch.is_empty() {
            return Err(TrainError::Empty);
        }
        if batch.planes_each() != config.planes * 64 {
            let (got, expected) = (batch.planes_each(), config.planes * 64);
            return Err(TrainError::Planes { got, expected });
        }
        let boards = self.tensor(batch.planes().to_vec(), [batch.len(), config.planes, 8, 8]);
        let mut pass = Pass::Training(Tensors::new());
        let Output { policy, value } = network.pass(boards, &mut pass);
        let policy = self.policy_loss(policy, batch);
        let value = self.value_loss(value, config.value, batch);
        let total = policy.clone().mul_scalar(self.config.policy_weight)
            + value.clone().mul_scalar(self.config.value_weight);
        let mut collect = Collect {
            gradients: total.backward(),
            found: Tensors::new(),
            gradient_squares: Vec::new(),
            weight_squares: Vec::new(),
        };
        network.visit(&mut collect);
        let Pass::Training(statistics) = pass else { unreachable!("the pass is a training pass") };
        // A single synchronisation with the device copies all numbers.
        let squares = [collect.gradient_squares, collect.weight_squares];
        let [gradient_squares, weight_squares] = squares.map(|list| Tensor::cat(list, 0).sum());
        let (policy, value) = (policy.without_autodiff(), value.without_autodiff());
        let numbers = Tensor::cat(vec![policy, value, gradient_squares, weight_squares], 0);
        let numbers = super::values(numbers)?;
        let (policy, value, gradient_norm) = (numbers[0], numbers[1], numbers[2].sqrt());
        if !(policy.is_finite() && value.is_finite() && gradient_norm.is_finite()) {
            return Err(TrainError::NotFinite { step: self.steps, policy, value, gradient_norm });
        }
        let losses = Losses { policy, value, gradient_norm, weight_norm: numbers[3].sqrt() };
        Ok((losses, BatchGradient { gradients: collect.found, statistics }))
    }

    /// The mean cross entropy over the legal moves.
    fn policy_loss(&self, logits: Tensor<2>, batch: &Batch) -> Tensor<1> {
        let dims = [batch.len(), MOVES];
        let mut mask = vec![MASKED; batch.len() * MOVES];
        let mut targets = vec![0.0; batch.len() * MOVES];
        for (index, place) in (0..batch.len() * MOVES).step_by(MOVES).enumerate() {
            for &(m, probability) in batch.moves(index) {
                mask[place + usize::from(m)] = 0.0;
                targets[place + usize::from(m)] = probability;
            }
        }
        cross_entropy(logits + self.tensor(mask, dims), self.tensor(targets, dims))
    }

    /// The mean squared error of the scalar value, or the mean cross entropy of win, draw and loss.
    fn value_loss(&self, value: Tensor<2>, head: ValueHead, batch: &Batch) -> Tensor<1> {
        let targets = (0..batch.len()).map(|index| batch.value(index));
        match head {
            ValueHead::Scalar => {
                let targets = targets.map(Wdl::value).collect();
                (value.tanh() - self.tensor(targets, [batch.len(), 1])).square().mean()
            }
            ValueHead::Wdl => {
                let targets = targets.flat_map(|wdl| [wdl.win, wdl.draw, wdl.loss]).collect();
                cross_entropy(value, self.tensor(targets, [batch.len(), 3]))
            }
        }
    }

    fn tensor<const D: usize>(&self, values: Vec<f32>, dims: [usize; D]) -> Tensor<D> {
        Tensor::from_data(TensorData::new(values, dims), &self.device)
    }
}

fn cross_entropy(logits: Tensor<2>, targets: Tensor<2>) -> Tensor<1> {
    let batch = logits.dims()[0];
    (log_softmax(logits, 1) * targets).sum().div_scalar(-(batch as f64))
}

/// Collects the gradients of a network, flattened, and their sum of squares.
struct Collect {
    gradients: Gradients,
    found: Tensors,
    gradient_squares: Vec<Tensor<1>>,
    weight_squares: Vec<Tensor<1>>,
}

impl ModuleVisitor for Collect {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let weight = param.val();
        if let Some(gradient) = weight.grad_remove(&mut self.gradients) {
            let gradient = super::flat(gradient);
            self.gradient_squares.push(gradient.clone().square().sum());
            self.weight_squares.push(weight.without_autodiff().square().sum());
            self.found.insert(param.id, gradient);
        }
    }
}
