//! The trainer: the same bits with any number of threads.
//!
//! A batch is divided into segments, independent of the number of threads. Each segment sums in the
//! order of its positions, and the sums are added in the order of segments. Batch norm needs
//! statistics of the whole batch, so all segments synchronise after every convolution.

mod head;
mod norm;
mod prepared;
mod segment;
mod tower;

use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use serde::{Deserialize, Serialize};

use super::average::{self, AVERAGE};
use super::batch::Batch;
use super::config::{ConfigError, MOVES, NORM_MOMENTUM};
use super::file;
use super::kernel::{Kernel, LANES};
use super::network::POLICY_INPUTS;
use super::optimiser::{self, Optimiser, Step};
use super::session::ThreadsError;
use super::squeeze::add_scaled;
use super::weights::{Norm, Weights};
use super::winograd::{self, ELEMENTS};
use crate::device::DeviceError;
use crate::file::{WeightsError, WeightsInfo};
use head::Head;
use norm::BatchNorm;
use prepared::Prepared;
use segment::{Segment, ThreadScratch};

/// Training settings. The learning rate is passed with each batch, which allows any schedule.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrainingConfig {
    pub optimiser: Optimiser,
    /// The share of every trained weight that is added to its gradient.
    pub weight_decay: f32,
    /// The maximum length of the mean gradient.
    pub clip_norm: f32,
    /// The share of the weights in their moving average, per batch.
    pub average_rate: f32,
    /// Weight of the policy's cross entropy.
    pub policy_weight: f32,
    /// Weight of the value loss: squared error (scalar) or cross entropy.
    pub value_weight: f32,
}

impl Default for TrainingConfig {
    fn default() -> TrainingConfig {
        TrainingConfig {
            optimiser: Optimiser::sgd(),
            weight_decay: 1e-4,
            clip_norm: 1.0,
            average_rate: 0.005,
            policy_weight: 1.0,
            value_weight: 1.0,
        }
    }
}

/// Mean losses of a batch, before the update.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Losses {
    /// Cross entropy of the policy over the legal moves.
    pub policy: f32,
    /// Squared error or cross entropy of the value.
    pub value: f32,
    /// Length of the mean gradient before clipping.
    pub gradient_norm: f32,
    /// Length of all trained weights.
    pub weight_norm: f32,
}

/// Why a training step failed.
#[derive(Debug, thiserror::Error)]
pub enum TrainError {
    #[error("the batch is empty")]
    Empty,
    /// Positions of another encoding.
    #[error("positions of {got} numbers: expected {expected}, as in the network's encoding")]
    Planes { got: usize, expected: usize },
    #[error(transparent)]
    Threads(#[from] ThreadsError),
    /// A loss or gradient that is not finite. The weights are unchanged.
    #[error("step {step}: policy loss {policy}, value loss {value}, gradient norm {gradient_norm}")]
    NotFinite { step: u64, policy: f32, value: f32, gradient_norm: f32 },
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// An invalid training state.
    #[error("cannot resume from this training state: {0}")]
    State(#[from] WeightsError),
    #[error(transparent)]
    Device(#[from] DeviceError),
}

/// Prefixes of the moments in a training state.
pub(crate) const FIRST: &str = "first.";
pub(crate) const SECOND: &str = "second.";

#[derive(Debug)]
pub struct Trainer {
    weights: Weights,
    first: Weights,
    /// Adam only.
    second: Option<Weights>,
    average: Weights,
    gradient: Weights,
    config: TrainingConfig,
    steps: u64,
    kernel: Kernel,
    pool: ThreadPool,
    work: Work,
}

/// The buffers of a step.
#[derive(Debug)]
struct Work {
    prepared: Prepared,
    /// One for each convolution of the tower.
    norms: Vec<BatchNorm>,
    head_norm: BatchNorm,
    segments: Vec<Segment>,
    /// One for each thread.
    scratches: Vec<ThreadScratch>,
}

impl Trainer {
    pub fn new(
        weights: Weights,
        config: TrainingConfig,
        threads: usize,
    ) -> Result<Trainer, TrainError> {
        let threads = threads.max(1);
        let pool = ThreadPoolBuilder::new().num_threads(threads).build();
        let pool = pool.map_err(|error| ThreadsError { threads, message: error.to_string() })?;
        let shape = weights.config();
        let zeros = Weights::zeros(shape)?;
        let is_adam = matches!(config.optimiser, Optimiser::Adam { .. });
        Ok(Trainer {
            first: zeros.clone(),
            second: is_adam.then(|| zeros.clone()),
            average: weights.clone(),
            gradient: zeros,
            work: Work {
                prepared: Prepared::new(&weights),
                norms: vec![BatchNorm::new(shape.filters); shape.convolutions()],
                head_norm: BatchNorm::new(LANES),
                segments: Vec::new(),
                scratches: (0..threads).map(|_| ThreadScratch::new(shape)).collect(),
            },
            weights,
            config,
            steps: 0,
            kernel: Kernel::detect(),
            pool,
        })
    }

    /// Trains on one batch.
    pub fn step(&mut self, batch: &Batch, learning_rate: f32) -> Result<Losses, TrainError> {
        let losses = self.differentiate(batch)?;
        let clip = self.config.clip_norm / losses.gradient_norm.max(f32::MIN_POSITIVE);
        let step = Step {
            optimiser: self.config.optimiser,
            steps: self.steps,
            learning_rate,
            weight_decay: self.config.weight_decay,
            scale: clip.min(1.0),
        };
        let Trainer { weights, gradient, first, second, pool, .. } = self;
        let second = second.as_mut().map_or(&mut [][..], |second| &mut second.values[..]);
        pool.install(|| step.apply(weights, &gradient.values, &mut first.values, second));
        self.update_running_statistics(batch.len() * 64);
        self.steps += 1;
        if average::is_due(self.steps) {
            average::mix(&mut self.average, &self.weights, self.config.average_rate, self.steps);
        }
        Ok(losses)
    }

    /// The losses of a batch and their mean gradient, unclipped and without weight decay. Changes
    /// nothing.
    pub fn gradient(&mut self, batch: &Batch) -> Result<(Losses, &Weights), TrainError> {
        let losses = self.differentiate(batch)?;
        Ok((losses, &self.gradient))
    }

    /// The weights after the last batch.
    pub fn weights(&self) -> &Weights {
        &self.weights
    }

    /// The moving average of the weights, which should be used for play.
    pub fn average(&self) -> &Weights {
        &self.average
    }

    /// The number of batches trained on.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// The complete training state: weights, moments and average.
    pub fn state(&self) -> Result<Vec<u8>, WeightsError> {
        let mut parts = vec![("", &self.weights), (FIRST, &self.first)];
        parts.extend(self.second.as_ref().map(|second| (SECOND, second)));
        parts.push((AVERAGE, &self.average));
        file::encode_parts(&parts, WeightsInfo { step: self.steps })
    }

    /// Resumes from a state of the same optimiser.
    pub fn restore(
        state: &[u8],
        config: TrainingConfig,
        threads: usize,
    ) -> Result<Trainer, TrainError> {
        let prefixes: &[&str] = match config.optimiser {
            Optimiser::Sgd { .. } => &["", FIRST, AVERAGE],
            Optimiser::Adam { .. } => &["", FIRST, SECOND, AVERAGE],
        };
        let (mut parts, info) = file::decode_parts(state, prefixes)?;
        let average = parts.pop().expect("one part for each name");
        let mut parts = parts.into_iter();
        let weights = parts.next().expect("one part for each name");
        let mut trainer = Trainer::new(weights, config, threads)?;
        trainer.first = parts.next().expect("one part for each name");
        trainer.second = parts.next();
        trainer.average = average;
        trainer.steps = info.step;
        Ok(trainer)
    }

    fn differentiate(&mut self, batch: &Batch) -> Result<Losses, TrainError> {
        let expected = self.weights.config().planes * 64;
        if batch.is_empty() {
            return Err(TrainError::Empty);
        }
        if batch.planes_each() != expected {
            return Err(TrainError::Planes { got: batch.planes_each(), expected });
        }
        let Trainer { weights, gradient, work, config, kernel, pool, .. } = self;
        let [policy, value] =
            pool.install(|| work.differentiate(*kernel, config, weights, batch, gradient));
        let layout = weights.layout();
        let (gradient_norm, weight_norm) = pool.install(|| {
            (optimiser::norm(layout, &gradient.values), optimiser::norm(layout, &weights.values))
        });
        let [policy, value] = [policy, value].map(|sum| (sum / batch.len() as f64) as f32);
        if !(policy.is_finite() && value.is_finite() && gradient_norm.is_finite()) {
            return Err(TrainError::NotFinite { step: self.steps, policy, value, gradient_norm });
        }
        Ok(Losses { policy, value, gradient_norm, weight_norm })
    }

    /// Updates the running statistics with those of the batch.
    fn update_running_statistics(&mut self, squares: usize) {
        let layout = self.weights.layout().clone();
        let unbiased = squares as f64 / (squares as f64 - 1.0);
        let values = &mut self.weights.values;
        let mut mix = |layout: &Norm, norm: &BatchNorm, first: usize| {
            let towards = |old: &mut f32, new: f32| *old += NORM_MOMENTUM * (new - *old);
            for (channel, index) in layout.mean.clone().enumerate() {
                towards(&mut values[index], norm.mean[first + channel]);
            }
            for (channel, index) in layout.variance.clone().enumerate() {
                let variance = norm.variance[first + channel] * unbiased;
                towards(&mut values[index], variance as f32);
            }
        };
        for (conv, norm) in layout.tower.iter().zip(&self.work.norms) {
            mix(&conv.norm, norm, 0);
        }
        mix(&layout.policy.norm, &self.work.head_norm, 0);
        mix(&layout.value.norm, &self.work.head_norm, layout.policy.outputs);
    }
}

impl Work {
    /// Forward and backward pass: the sums of both losses, and the mean gradient.
    fn differentiate(
        &mut self,
        kernel: Kernel,
        config: &TrainingConfig,
        weights: &Weights,
        batch: &Batch,
        gradient: &mut Weights,
    ) -> [f64; 2] {
        let layout = weights.layout().clone();
        let squares = batch.len() * 64;
        Segment::cut(&mut self.segments, layout.config, batch.len());
        self.prepared.fill(weights);
        let Work { prepared, norms, head_norm, segments, scratches } = self;
        let tower = tower::Tower { kernel, weights, prepared, batch };

        let last = layout.tower.len();
        for (layer, conv) in layout.tower.iter().enumerate() {
            let (before, after) = norms.split_at_mut(layer);
            each(segments, scratches, |segment, scratch| {
                tower.forward(segment, scratch, layer, before);
            });
            after[0].forward(segments, squares, |norm| norm.affine(weights, &[&conv.norm]));
        }
        let head = Head { tower: &tower, config };
        each(segments, scratches, |segment, _| head.convolve(segment, norms));
        let head_norms = [&layout.policy.norm, &layout.value.norm];
        head_norm.forward(segments, squares, |norm| norm.affine(weights, &head_norms));
        each(segments, scratches, |segment, _| head.losses(segment, head_norm));
        head_norm.backward(segments, squares, gradient, &head_norms);
        each(segments, scratches, |segment, scratch| head.back(segment, scratch, head_norm, norms));

        for layer in (0..last).rev() {
            let conv = &layout.tower[layer];
            norms[layer].backward(segments, squares, gradient, &[&conv.norm]);
            each(segments, scratches, |segment, scratch| {
                tower.backward(segment, scratch, layer, norms);
            });
            let filters = &mut gradient.values[conv.weight.clone()];
            add_filters(segments, conv.inputs, conv.outputs, filters);
        }
        for segment in &*segments {
            segment.small.copy_or_add(segment.first == 0, &layout, &mut gradient.values);
        }
        policy_matrix(segments, &layout.policy_linear, &mut gradient.values);
        let losses = segments.iter().map(|segment| segment.losses);
        losses.fold([0.0; 2], |sum, part| [sum[0] + part[0], sum[1] + part[1]])
    }
}

/// Runs `work` on every segment; each thread takes a consecutive run of them.
fn each(
    segments: &mut [Segment],
    scratches: &mut [ThreadScratch],
    work: impl Fn(&mut Segment, &mut ThreadScratch) + Sync,
) {
    let share = segments.len().div_ceil(scratches.len());
    let runs = segments.par_chunks_mut(share).zip(scratches.par_iter_mut());
    runs.with_max_len(1).for_each(|(segments, scratch)| {
        for segment in segments {
            work(segment, scratch);
        }
    });
}

/// Transforms derivatives by transformed filters, segment by segment, to derivatives by filters.
fn add_filters(segments: &[Segment], inputs: usize, outputs: usize, out: &mut [f32]) {
    let matrix = inputs * outputs;
    out.par_chunks_mut(LANES * inputs * 9).enumerate().for_each(|(group, out)| {
        for input in 0..inputs {
            let mut sums = [[0.0f32; LANES]; ELEMENTS];
            for segment in segments {
                for (element, sums) in sums.iter_mut().enumerate() {
                    let start = element * matrix + input * outputs + group * LANES;
                    for (sum, value) in sums.iter_mut().zip(&segment.filters[start..]) {
                        *sum += value;
                    }
                }
            }
            for (tap, lanes) in winograd::gradient(&sums).iter().enumerate() {
                for (lane, value) in lanes.iter().enumerate() {
                    out[(lane * inputs + input) * 9 + tap] = *value;
                }
            }
        }
    });
}

/// Derivatives by the policy's matrix: every row is summed in the order of the batch.
fn policy_matrix(segments: &[Segment], linear: &super::weights::Linear, gradient: &mut [f32]) {
    let entries = || {
        segments.iter().flat_map(|segment| {
            segment.moves.iter().map(move |entry| {
                let start = entry.position as usize * POLICY_INPUTS;
                let row = &segment.policy[start..start + POLICY_INPUTS];
                (usize::from(entry.number), entry.derivative, row)
            })
        })
    };
    let mut ends = vec![0usize; MOVES + 1];
    for (number, _, _) in entries() {
        ends[number + 1] += 1;
    }
    for number in 0..MOVES {
        ends[number + 1] += ends[number];
    }
    let mut next = ends.clone();
    let mut sorted: Vec<(f32, &[f32])> = vec![(0.0, &[]); ends[MOVES]];
    for (number, derivative, row) in entries() {
        sorted[next[number]] = (derivative, row);
        next[number] += 1;
    }
    let (weights, bias) =
        gradient[linear.weight.start..linear.bias.end].split_at_mut(linear.weight.len());
    let rows = weights.par_chunks_mut(POLICY_INPUTS).zip(bias).enumerate().with_min_len(64);
    rows.for_each(|(number, (row, bias))| {
        row.fill(0.0);
        *bias = 0.0;
        for (derivative, input) in &sorted[ends[number]..ends[number + 1]] {
            add_scaled(row, input, *derivative);
            *bias += derivative;
        }
    });
}

#[cfg(test)]
mod tests;
