//! Both heads, forwards and backwards, one segment at a time.

use super::super::config::ValueHead;
use super::super::kernel::{Floats, LANES, Left, Right, Shape};
use super::super::network::POLICY_INPUTS;
use super::super::squeeze::{add_scaled, dot};
use super::TrainingConfig;
use super::norm::BatchNorm;
use super::segment::{MoveDerivative, Segment, ThreadScratch};
use super::tower::Tower;

/// The inputs of the heads.
#[derive(Clone, Copy, Debug)]
pub struct Head<'a> {
    pub tower: &'a Tower<'a>,
    pub config: &'a TrainingConfig,
}

/// The value's column in the heads' convolution, after those of the policy.
const VALUE_COLUMN: usize = 2;

impl Head<'_> {
    /// Computes the tower's output and the 1×1 convolutions, with sums for batch norm.
    pub fn convolve(&self, segment: &mut Segment, norms: &[BatchNorm]) {
        let Tower { kernel, prepared, .. } = *self.tower;
        let filters = self.tower.weights.config().filters;
        let last = norms.len();
        let zero = Floats::zeros(LANES);
        for (start, count) in segment.chunks() {
            self.tower.activate(segment, last, &norms[last - 1], start, count);
            let shape = Shape { rows: count * 64, depth: filters, columns: LANES };
            let left = Left::rows(&segment.inputs[last][start * 64 * filters..], filters);
            let right = Right::packed(&prepared.head, filters, LANES);
            let out = &mut segment.head[start * 64 * LANES..(start + count) * 64 * LANES];
            kernel.product(shape, left, right, out, LANES);
            kernel.channel_sums(out, out, &zero, &mut segment.sums[..2 * LANES]);
        }
    }

    /// From the convolutions to the losses, and back to the convolutions' batch norm.
    pub fn losses(&self, segment: &mut Segment, norm: &BatchNorm) {
        let lines = [0, 1, VALUE_COLUMN].map(|column| norm.line(column));
        for position in 0..segment.count {
            let squares = &segment.head[position * 64 * LANES..(position + 1) * 64 * LANES];
            let policy = &mut segment.policy[position * POLICY_INPUTS..][..POLICY_INPUTS];
            let value = &mut segment.value[position * 64..][..64];
            let activated = |row: &[f32], c: usize| (row[c] * lines[c].0 + lines[c].1).max(0.0);
            for (square, row) in squares.chunks_exact(LANES).enumerate() {
                policy[square] = activated(row, 0);
                policy[64 + square] = activated(row, 1);
                value[square] = activated(row, VALUE_COLUMN);
            }
        }
        self.policy_loss(segment);
        self.value_losses(segment);
        let Segment { head, head_back, sums, .. } = segment;
        let kernel = self.tower.kernel;
        kernel.channel_sums(head_back, head, &norm.mean, &mut sums[..2 * LANES]);
    }

    /// Softmax over the listed moves, and cross entropy with their target probabilities.
    fn policy_loss(&self, segment: &mut Segment) {
        let Tower { weights, batch, .. } = *self.tower;
        let layout = &weights.layout().policy_linear;
        let (matrix, bias) = (weights.at(&layout.weight), weights.at(&layout.bias));
        let weight = self.config.policy_weight / batch.len() as f32;
        let mut logits = Vec::new();
        for position in 0..segment.count {
            let moves = batch.moves(segment.first + position);
            let input = &segment.policy[position * POLICY_INPUTS..][..POLICY_INPUTS];
            let row = |number: u16| &matrix[usize::from(number) * POLICY_INPUTS..][..POLICY_INPUTS];
            logits.clear();
            logits.extend(moves.iter().map(|&(m, _)| dot(row(m), input) + bias[usize::from(m)]));
            let highest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let total: f32 = logits.iter().map(|logit| libm::expf(logit - highest)).sum();
            let shares: f32 = moves.iter().map(|(_, share)| share).sum();
            let mut by_input = [0.0; POLICY_INPUTS];
            for (&(number, share), logit) in moves.iter().zip(&logits) {
                let log = logit - highest - libm::logf(total);
                segment.losses[0] -= f64::from(share * log);
                let derivative = weight * (shares * libm::expf(log) - share);
                add_scaled(&mut by_input, row(number), derivative);
                let position = position as u32;
                segment.moves.push(MoveDerivative { number, position, derivative });
            }
            let back = &mut segment.head_back[position * 64 * LANES..][..64 * LANES];
            for (square, back) in back.chunks_exact_mut(LANES).enumerate() {
                for (channel, back) in back[..VALUE_COLUMN].iter_mut().enumerate() {
                    let index = channel * 64 + square;
                    *back = if input[index] > 0.0 { by_input[index] } else { 0.0 };
                }
            }
        }
    }

    fn value_losses(&self, segment: &mut Segment) {
        let Tower { kernel, weights, prepared, .. } = *self.tower;
        let layout = weights.layout();
        let (count, units) = (segment.count, layout.config.value_hidden);
        let bias = weights.at(&layout.value_hidden.bias);
        let matrix = weights.at(&layout.value_output.weight);
        let mut hidden = Floats::zeros(count * units);
        for row in hidden.chunks_exact_mut(units) {
            row.copy_from_slice(bias);
        }
        let shape = Shape { rows: count, depth: 64, columns: units };
        let left = Left::rows(&segment.value, 64);
        let right = Right::packed(&prepared.hidden, 64, units);
        kernel.product_add(shape, left, right, &mut hidden, units);

        let small = &mut segment.small;
        let mut by_hidden = vec![0.0; units];
        for (position, hidden) in hidden.chunks_exact_mut(units).enumerate() {
            hidden.iter_mut().for_each(|unit| *unit = unit.max(0.0));
            let rows = matrix.chunks_exact(units);
            let biases = weights.at(&layout.value_output.bias);
            let mut outputs = [0.0; 3];
            for ((out, row), bias) in outputs.iter_mut().zip(rows.clone()).zip(biases) {
                *out = dot(row, hidden) + bias;
            }
            let (loss, by_outputs) = self.value_loss(outputs, segment.first + position);
            segment.losses[1] += loss;
            by_hidden.fill(0.0);
            let gradients = small.output.chunks_exact_mut(units);
            let gradients = gradients.zip(&mut small.output_bias).zip(rows);
            for (((gradient, bias), row), derivative) in gradients.zip(by_outputs) {
                add_scaled(gradient, hidden, derivative);
                *bias += derivative;
                add_scaled(&mut by_hidden, row, derivative);
            }
            // From here on, `hidden` holds the derivatives of the units.
            let derivatives = hidden.iter_mut().zip(&by_hidden).zip(&mut small.hidden_bias);
            for ((unit, derivative), bias) in derivatives {
                *unit = if *unit > 0.0 { *derivative } else { 0.0 };
                *bias += *unit;
            }
        }

        let shape = Shape { rows: units, depth: count, columns: 64 };
        let left = Left::columns(&hidden, units);
        kernel.product(shape, left, Right::rows(&segment.value, 64), &mut small.hidden, 64);
        let shape = Shape { rows: count, depth: units, columns: 64 };
        let right = Right::rows(weights.at(&layout.value_hidden.weight), 64);
        let mut by_value = Floats::zeros(count * 64);
        kernel.product(shape, Left::rows(&hidden, units), right, &mut by_value, 64);
        let backs = segment.head_back.chunks_exact_mut(LANES);
        for ((back, value), derivative) in backs.zip(&*segment.value).zip(&*by_value) {
            back[VALUE_COLUMN] = if *value > 0.0 { *derivative } else { 0.0 };
        }
    }

    /// The value loss of a position, and its derivatives by the outputs.
    fn value_loss(&self, outputs: [f32; 3], position: usize) -> (f64, [f32; 3]) {
        let batch = self.tower.batch;
        let target = batch.value(position);
        let weight = self.config.value_weight / batch.len() as f32;
        match self.tower.weights.config().value {
            ValueHead::Scalar => {
                let value = libm::tanhf(outputs[0]);
                let error = value - target.value();
                let derivative = weight * 2.0 * error * (1.0 - value * value);
                (f64::from(error * error), [derivative, 0.0, 0.0])
            }
            ValueHead::Wdl => {
                let highest = outputs.into_iter().fold(f32::NEG_INFINITY, f32::max);
                let total: f32 = outputs.iter().map(|logit| libm::expf(logit - highest)).sum();
                let targets = [target.win, target.draw, target.loss];
                let shares: f32 = targets.iter().sum();
                let mut loss = 0.0;
                let mut derivatives = [0.0; 3];
                for ((derivative, logit), target) in
                    derivatives.iter_mut().zip(outputs).zip(targets)
                {
                    let log = logit - highest - libm::logf(total);
                    loss -= f64::from(target * log);
                    *derivative = weight * (shares * libm::expf(log) - target);
                }
                (loss, derivatives)
            }
        }
    }

    /// The 1×1 convolutions backwards, to the end of the last block.
    pub fn back(
        &self,
        segment: &mut Segment,
        scratch: &mut ThreadScratch,
        norm: &BatchNorm,
        norms: &[BatchNorm],
    ) {
        let Tower { kernel, prepared, .. } = *self.tower;
        let filters = self.tower.weights.config().filters;
        let last = norms.len();
        let mut by_raw = Floats::zeros(64 * LANES * super::segment::CHUNK);
        for (start, count) in segment.chunks() {
            let rows = count * 64;
            let all = start * 64 * LANES..(start + count) * 64 * LANES;
            let by_raw = &mut by_raw[..rows * LANES];
            let (derivative, raw) = (&segment.head_back[all.clone()], &segment.head[all]);
            kernel.norm_back(derivative, raw, norm.back(), by_raw);

            let all = start * 64 * filters..(start + count) * 64 * filters;
            let output = &segment.inputs[last][all.clone()];
            let shape = Shape { rows: filters, depth: rows, columns: LANES };
            let left = Left::columns(output, filters);
            let right = Right::rows(by_raw, LANES);
            kernel.product_add(shape, left, right, &mut segment.small.head, LANES);

            let shape = Shape { rows, depth: LANES, columns: filters };
            let right = Right::packed(&prepared.head_back, LANES, filters);
            let skip = &mut segment.skip[all];
            kernel.product(shape, Left::rows(by_raw, LANES), right, skip, filters);
            kernel.mask(skip, output);
            self.tower.enter(segment, scratch, last - 1, norms, start, count);
        }
    }
}
