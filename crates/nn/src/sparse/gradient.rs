//! Forward and backward pass for a batch, in an order that does not depend on the threads.
//!
//! A batch is processed in parts that fit in the cache. First each position is processed on its
//! own: forward, loss, and backward to the wide layer. Then each row of weights sums over the
//! positions that use it, in the order of the batch. Each number is summed by one thread, so the
//! result does not depend on the number of threads, and no gradient buffers have to be merged.

mod index;
mod position;

use rayon::prelude::*;
use selfmate_encode::sparse::{MOVE_ROWS, THREATS3084_LEN};

use super::config::{ConfigError, SparseConfig};
use super::kernel::Kernel;
use super::sample::Sample;
use super::weights::Weights;
use index::Index;
use position::{Piece, Task};

/// Positions per part: their hidden vectors and derivatives take a megabyte or two.
const PART: usize = 1024;
/// Positions that one thread takes at a time.
const PIECE: usize = 32;

/// Sums of gradients over a batch, and which rows were used.
pub(super) struct Gradient {
    pub sums: Weights,
    pub touched_input: Vec<bool>,
    pub touched_policy: Vec<bool>,
    scratch: PartScratch,
}

/// The intermediate results of one part.
#[derive(Default)]
struct PartScratch {
    hidden: Vec<f32>,
    /// Derivatives by the sums of the wide layer.
    delta: Vec<f32>,
    middle: Vec<f32>,
    middle_delta: Vec<f32>,
    value_delta: Vec<f32>,
    /// Derivatives by the logits of all moves, one position after the other.
    move_delta: Vec<f32>,
    features: Index,
    rows: Index,
}

/// Weights of the two losses.
#[derive(Clone, Copy, Debug)]
pub(super) struct LossWeights {
    pub value: f32,
    pub policy: f32,
}

impl Gradient {
    pub fn new(config: SparseConfig) -> Result<Gradient, ConfigError> {
        Ok(Gradient {
            sums: Weights::zeros(config)?,
            touched_input: vec![false; THREATS3084_LEN],
            touched_policy: vec![false; MOVE_ROWS],
            scratch: PartScratch::default(),
        })
    }

    /// Adds the gradients of a batch. Returns the sums of the value and policy losses.
    pub fn add(
        &mut self,
        kernel: Kernel,
        weights: &Weights,
        batch: &[&Sample],
        losses: LossWeights,
    ) -> [f64; 2] {
        let mut sums = [0.0; 2];
        for part in batch.chunks(PART) {
            let part_sums = self.positions(kernel, weights, part, losses);
            sums = [sums[0] + part_sums[0], sums[1] + part_sums[1]];
            self.rows(kernel, part);
        }
        sums
    }

    fn positions(
        &mut self,
        kernel: Kernel,
        weights: &Weights,
        part: &[&Sample],
        losses: LossWeights,
    ) -> [f64; 2] {
        let config = weights.config();
        let outputs = config.value_head.outputs();
        let scratch = &mut self.scratch;
        let moves = part.iter().map(|sample| sample.moves()).sum();
        scratch.hidden.resize(part.len() * config.hidden, 0.0);
        scratch.delta.resize(part.len() * config.hidden, 0.0);
        scratch.middle.resize(part.len() * config.value_hidden, 0.0);
        scratch.middle_delta.resize(part.len() * config.value_hidden, 0.0);
        scratch.value_delta.resize(part.len() * outputs, 0.0);
        scratch.move_delta.resize(moves, 0.0);

        let mut pieces = Vec::with_capacity(part.len().div_ceil(PIECE));
        let mut move_delta = &mut scratch.move_delta[..];
        let wide = scratch.hidden.chunks_mut(PIECE * config.hidden);
        let wide = wide.zip(scratch.delta.chunks_mut(PIECE * config.hidden));
        let middle = scratch.middle.chunks_mut(PIECE * config.value_hidden);
        let middle = middle.zip(scratch.middle_delta.chunks_mut(PIECE * config.value_hidden));
        let value = scratch.value_delta.chunks_mut(PIECE * outputs);
        for (((samples, wide), middle), value_delta) in
            part.chunks(PIECE).zip(wide).zip(middle).zip(value)
        {
            let moves = samples.iter().map(|sample| sample.moves()).sum();
            let (own, rest) = move_delta.split_at_mut(moves);
            move_delta = rest;
            pieces.push(Piece {
                samples,
                hidden: wide.0,
                delta: wide.1,
                middle: middle.0,
                middle_delta: middle.1,
                value_delta,
                move_delta: own,
                losses: [0.0; 2],
            });
        }
        let task = Task { kernel, weights, losses };
        let (features, rows) = (&mut scratch.features, &mut scratch.rows);
        rayon::join(
            || {
                features.build(THREATS3084_LEN, part, Sample::features);
                rows.build(MOVE_ROWS, part, Sample::rows);
            },
            || pieces.par_iter_mut().for_each(|piece| task.run(piece)),
        );
        pieces.iter().fold([0.0; 2], |sum, p| [sum[0] + p.losses[0], sum[1] + p.losses[1]])
    }

    /// Sums the intermediate results of a part, row by row.
    fn rows(&mut self, kernel: Kernel, part: &[&Sample]) {
        let Gradient { sums, touched_input, touched_policy, scratch } = self;
        let (width, middle) = (sums.config.hidden, sums.config.value_hidden);
        let outputs = sums.config.value_head.outputs();
        let scratch = &*scratch;
        let everyone: Vec<u32> = (0..part.len() as u32).collect();
        let column = |values: &[f32], width: usize, index: usize| -> Vec<f32> {
            values.chunks_exact(width).map(|row| row[index]).collect()
        };
        let Weights {
            input,
            input_bias,
            value1,
            value1_bias,
            value2,
            value2_bias,
            policy,
            policy_bias,
            table,
            ..
        } = sums;
        rayon::scope(|scope| {
            scope.spawn(|_| {
                let rows = input.par_chunks_mut(width).zip(touched_input.par_iter_mut());
                rows.enumerate().with_min_len(32).for_each(|(row, (sum, touched))| {
                    let users = scratch.features.users(row);
                    *touched |= !users.is_empty();
                    kernel.add_rows(&scratch.delta, users, sum);
                });
            });
            scope.spawn(|_| {
                let rows = policy.par_chunks_mut(width).zip(policy_bias.par_iter_mut());
                let rows = rows.zip(touched_policy.par_iter_mut()).enumerate().with_min_len(32);
                rows.for_each_init(Vec::new, |scales, (row, ((sum, bias), touched))| {
                    let users = scratch.rows.users(row);
                    if users.is_empty() {
                        return;
                    }
                    *touched = true;
                    scales.clear();
                    let entries = scratch.rows.entries(row).iter();
                    scales.extend(entries.map(|entry| scratch.move_delta[*entry as usize]));
                    kernel.add_scaled_rows(&scratch.hidden, users, scales, sum);
                    *bias += scales.iter().sum::<f32>();
                });
            });
            scope.spawn(|_| {
                let rows = value1.par_chunks_mut(width).zip(value1_bias.par_iter_mut());
                rows.enumerate().for_each(|(row, (sum, bias))| {
                    let scales = column(&scratch.middle_delta, middle, row);
                    kernel.add_scaled_rows(&scratch.hidden, &everyone, &scales, sum);
                    *bias += scales.iter().sum::<f32>();
                });
            });
            scope.spawn(|_| kernel.add_rows(&scratch.delta, &everyone, input_bias));
            scope.spawn(|_| {
                for (row, (sum, bias)) in
                    value2.chunks_exact_mut(middle).zip(value2_bias.iter_mut()).enumerate()
                {
                    let scales = column(&scratch.value_delta, outputs, row);
                    for (units, scale) in scratch.middle.chunks_exact(middle).zip(&scales) {
                        for (sum, unit) in sum.iter_mut().zip(units) {
                            *sum += unit * scale;
                        }
                    }
                    *bias += scales.iter().sum::<f32>();
                }
                let entries = part.iter().flat_map(|sample| sample.table());
                for (entry, delta) in entries.zip(&scratch.move_delta) {
                    table[usize::from(*entry)] += delta;
                }
            });
        });
    }
}
