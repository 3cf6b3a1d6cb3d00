//! The trainer: batches in, better weights out, the same bits with any number of threads.
//!
//! A batch is cut into segments, as many for one thread as for many; each adds up its share of
//! every sum in the order of its positions, and the shares are added in the order of segments.
//! Statistics of batch norm need the whole batch, so segments meet after every convolution.

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
use segment::{Room, Segment};

/// How to learn. The learning rate is given with each batch, so that any schedule will do.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrainingConfig {
    /// How weights follow gradients.
    pub optimiser: Optimiser,
    /// Share of every trained weight that is added to its gradient.
    pub weight_decay: f32,
    /// The longest mean gradient; longer ones are shortened.
    pub clip_norm: f32,
    /// Share of the weights that enters their moving average with each batch.
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

/// Mean losses of a batch, before the weights moved.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Losses {
    /// Cross entropy of the policy over the legal moves.
    pub policy: f32,
    /// Squared error or cross entropy of the value.
    pub value: f32,
    /// Length of the mean gradient, before it was clipped.
    pub gradient_norm: f32,
    /// Length of all trained weights.
    pub weight_norm: f32,
}

/// A batch that cannot be learned from.
#[derive(Debug, thiserror::Error)]
pub enum TrainError {
    /// No positions.
    #[error("the batch is empty")]
    Empty,
    /// Positions of another encoding.
    #[error("positions of {got} numbers: expected {expected}")]
    Planes {
        /// How many there are.
        got: usize,
        /// How many there should be.
        expected: usize,
    },
    /// Threads that could not be started.
    #[error(transparent)]
    Threads(#[from] ThreadsError),
    /// A loss or gradient that is no number; the weights are as before the batch.
    #[error("step {step}: policy loss {policy}, value loss {value}, gradient norm {gradient_norm}")]
    NotFinite {
        /// The step.
        step: u64,
        /// The policy loss.
        policy: f32,
        /// The value loss.
        value: f32,
        /// The length of the gradient.
        gradient_norm: f32,
    },
    /// A shape that cannot be built.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A state that cannot be read.
    #[error("cannot go on from this training state: {0}")]
    State(#[from] WeightsError),
    /// A device that cannot be had, or that gave up.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

/// Prefixes of moments in a state.
pub(crate) const FIRST: &str = "first.";
pub(crate) const SECOND: &str = "second.";

/// Weights in training.
#[derive(Debug)]
pub struct Trainer {
    weights: Weights,
    first: Weights,
    /// Adam's alone.
    second: Option<Weights>,
    average: Weights,
    gradient: Weights,
    config: TrainingConfig,
    steps: u64,
    kernel: Kernel,
    pool: ThreadPool,
    work: Work,
}

/// Everything that a step needs for a while.
#[derive(Debug)]
struct Work {
    prepared: Prepared,
    /// One for each convolution of the tower.
    norms: Vec<BatchNorm>,
    head_norm: BatchNorm,
    segments: Vec<Segment>,
    /// One for each thread.
    rooms: Vec<Room>,
}

impl Trainer {
    /// Starts to train weights on so many threads.
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
                rooms: (0..threads).map(|_| Room::new(shape)).collect(),
            },
            weights,
            config,
            steps: 0,
            kernel: Kernel::detect(),
            pool,
        })
    }

    /// Learns from one batch.
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
        self.remember_statistics(batch.len() * 64);
        self.steps += 1;
        if average::is_due(self.steps) {
            average::mix(&mut self.average, &self.weights, self.config.average_rate, self.steps);
        }
        Ok(losses)
    }

    /// The losses of a batch and their mean gradient, unclipped and without decay. Nothing is
    /// learned.
    pub fn gradient(&mut self, batch: &Batch) -> Result<(Losses, &Weights), TrainError> {
        let losses = self.differentiate(batch)?;
        Ok((losses, &self.gradient))
    }

    /// The weights after the last batch.
    pub fn weights(&self) -> &Weights {
        &self.weights
    }

    /// The moving average of the weights: what should play.
    pub fn average(&self) -> &Weights {
        &self.average
    }

    /// Batches learned from.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Everything needed to go on as if nothing had happened: weights, moments and average.
    pub fn state(&self) -> Result<Vec<u8>, WeightsError> {
        let mut parts = vec![("", &self.weights), (FIRST, &self.first)];
        parts.extend(self.second.as_ref().map(|second| (SECOND, second)));
        parts.push((AVERAGE, &self.average));
        file::encode_parts(&parts, WeightsInfo { step: self.steps })
    }

    /// Goes on from a state of the same optimiser.
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
        let average = parts.pop().expect("as many parts as names");
        let mut parts = parts.into_iter();
        let weights = parts.next().expect("as many parts as names");
        let mut trainer = Trainer::new(weights, config, threads)?;
        trainer.first = parts.next().expect("as many parts as names");
        trainer.second = parts.next();
        trainer.average = average;
        trainer.steps = info.step;
        Ok(trainer)
    }

    /// Fills the gradient.
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

    /// Lets the statistics of a batch into the running ones.
    fn remember_statistics(&mut self, squares: usize) {
        let layout = self.weights.layout().clone();
        let unbiased = squares as f64 / (squares as f64 - 1.0);
        let values = &mut self.weights.values;
        let mut mix = |place: &Norm, norm: &BatchNorm, first: usize| {
            let towards = |old: &mut f32, new: f32| *old += NORM_MOMENTUM * (new - *old);
            for (channel, index) in place.mean.clone().enumerate() {
                towards(&mut values[index], norm.mean[first + channel]);
            }
            for (channel, index) in place.variance.clone().enumerate() {
                let variance = norm.variance[first + channel] * unbiased;
                towards(&mut values[index], variance as f32);
            }
        };
        for (place, norm) in layout.tower.iter().zip(&self.work.norms) {
            mix(&place.norm, norm, 0);
        }
        mix(&layout.policy.norm, &self.work.head_norm, 0);
        mix(&layout.value.norm, &self.work.head_norm, layout.policy.outputs);
    }
}

impl Work {
    /// Forwards and backwards: the sums of both losses, and the mean gradient.
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
        let Work { prepared, norms, head_norm, segments, rooms } = self;
        let tower = tower::Tower { kernel, weights, prepared, batch };

        let last = layout.tower.len();
        for (layer, place) in layout.tower.iter().enumerate() {
            let (before, after) = norms.split_at_mut(layer);
            each(segments, rooms, |segment, room| tower.forward(segment, room, layer, before));
            after[0].forward(segments, squares, |norm| norm.affine(weights, &[&place.norm]));
        }
        let head = Head { tower: &tower, config };
        each(segments, rooms, |segment, _| head.convolve(segment, norms));
        let places = [&layout.policy.norm, &layout.value.norm];
        head_norm.forward(segments, squares, |norm| norm.affine(weights, &places));
        each(segments, rooms, |segment, _| head.judge(segment, head_norm));
        head_norm.backward(segments, squares, gradient, &places);
        each(segments, rooms, |segment, room| head.back(segment, room, head_norm, norms));

        for layer in (0..last).rev() {
            let place = &layout.tower[layer];
            norms[layer].backward(segments, squares, gradient, &[&place.norm]);
            each(segments, rooms, |segment, room| tower.backward(segment, room, layer, norms));
            let filters = &mut gradient.values[place.weight.clone()];
            add_filters(segments, place.inputs, place.outputs, filters);
        }
        for segment in &*segments {
            segment.small.copy_or_add(segment.first == 0, &layout, &mut gradient.values);
        }
        policy_matrix(segments, &layout.policy_linear, &mut gradient.values);
        let losses = segments.iter().map(|segment| segment.losses);
        losses.fold([0.0; 2], |sum, part| [sum[0] + part[0], sum[1] + part[1]])
    }
}

/// Has every segment worked on, a run of them by each thread.
fn each(
    segments: &mut [Segment],
    rooms: &mut [Room],
    work: impl Fn(&mut Segment, &mut Room) + Sync,
) {
    let share = segments.len().div_ceil(rooms.len());
    let runs = segments.par_chunks_mut(share).zip(rooms.par_iter_mut());
    runs.with_max_len(1).for_each(|(segments, room)| {
        for segment in segments {
            work(segment, room);
        }
    });
}

/// Derivatives by transformed filters, segment by segment, become derivatives by filters.
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

/// Derivatives by the policy's matrix: every row is added up in the order of the batch.
fn policy_matrix(segments: &[Segment], place: &super::weights::Linear, gradient: &mut [f32]) {
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
        gradient[place.weight.start..place.bias.end].split_at_mut(place.weight.len());
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
