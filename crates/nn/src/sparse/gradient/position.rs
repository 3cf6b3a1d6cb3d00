//! One position: forward, loss, and backward to the sums of the wide layer.

use selfmate_search::math;

use super::LossWeights;
use crate::sparse::config::ValueHead;
use crate::sparse::float::VALUE_MOST;
use crate::sparse::kernel::Kernel;
use crate::sparse::sample::Sample;
use crate::sparse::weights::Weights;

/// Some positions and the buffers for their results.
pub(super) struct Piece<'a> {
    pub samples: &'a [&'a Sample],
    pub hidden: &'a mut [f32],
    pub delta: &'a mut [f32],
    pub middle: &'a mut [f32],
    pub middle_delta: &'a mut [f32],
    pub value_delta: &'a mut [f32],
    pub move_delta: &'a mut [f32],
    pub losses: [f64; 2],
}

/// The inputs that are the same for all positions.
#[derive(Clone, Copy)]
pub(super) struct Task<'a> {
    pub kernel: Kernel,
    pub weights: &'a Weights,
    pub losses: LossWeights,
}

impl Task<'_> {
    pub fn run(&self, piece: &mut Piece) {
        let config = self.weights.config();
        let (width, middle) = (config.hidden, config.value_hidden);
        let outputs = config.value_head.outputs();
        let numbers: Vec<u16> = (0..middle as u16).collect();
        let mut back = vec![0.0; width];
        let mut move_start = 0;
        for (i, sample) in piece.samples.iter().enumerate() {
            let hidden = &mut piece.hidden[i * width..][..width];
            let delta = &mut piece.delta[i * width..][..width];
            self.wide(sample, delta, hidden);
            back.fill(0.0);

            let units = &mut piece.middle[i * middle..][..middle];
            let units_delta = &mut piece.middle_delta[i * middle..][..middle];
            let value_delta = &mut piece.value_delta[i * outputs..][..outputs];
            self.kernel.dots(&self.weights.value1, hidden, &numbers, units);
            piece.losses[0] += f64::from(self.value(sample, units, units_delta, value_delta));
            self.kernel.add_scaled_rows(&self.weights.value1, &numbers, units_delta, &mut back);

            let move_delta = &mut piece.move_delta[move_start..][..sample.moves()];
            move_start += sample.moves();
            piece.losses[1] += f64::from(self.policy(sample, hidden, move_delta, &mut back));

            self.kernel.square_back(&back, delta);
        }
    }

    /// The sums of the wide layer and their activations.
    fn wide(&self, sample: &Sample, sums: &mut [f32], hidden: &mut [f32]) {
        sums.copy_from_slice(&self.weights.input_bias);
        self.kernel.add_rows(&self.weights.input, sample.features(), sums);
        self.kernel.square(sums, hidden);
    }

    /// The value head: from its products to the loss, and back to the derivatives by the products.
    fn value(
        &self,
        sample: &Sample,
        units: &mut [f32],
        units_delta: &mut [f32],
        value_delta: &mut [f32],
    ) -> f32 {
        for (unit, bias) in units.iter_mut().zip(&self.weights.value1_bias) {
            *unit = (*unit + bias).clamp(0.0, VALUE_MOST);
        }
        let rows = self.weights.value2.chunks_exact(units.len());
        for ((row, bias), logit) in
            rows.clone().zip(&self.weights.value2_bias).zip(value_delta.iter_mut())
        {
            *logit = bias + row.iter().zip(&*units).map(|(w, unit)| w * unit).sum::<f32>();
        }
        let sound = finite(value_delta);
        let [win, draw, loss] = sample.wdl();
        let cost = match self.weights.config().value_head {
            ValueHead::Wdl => {
                math::softmax(value_delta, 1.0);
                cross_entropy(value_delta, &[win, draw, loss])
            }
            ValueHead::Score => {
                let mut pair = [value_delta[0], 0.0];
                math::softmax(&mut pair, 1.0);
                let score = win + draw / 2.0;
                let cost = cross_entropy(&mut pair, &[score, 1.0 - score]);
                value_delta[0] = pair[0];
                cost
            }
        };
        units_delta.fill(0.0);
        for (row, delta) in rows.zip(value_delta) {
            *delta *= self.losses.value;
            for (sum, weight) in units_delta.iter_mut().zip(row) {
                *sum += weight * *delta;
            }
        }
        for (delta, unit) in units_delta.iter_mut().zip(units) {
            if *unit <= 0.0 || *unit >= VALUE_MOST {
                *delta = 0.0;
            }
        }
        if sound { cost } else { f32::NAN }
    }

    /// The policy head: `move_delta` gets the derivatives by the logits; those by the wide layer
    /// are added to `back`.
    fn policy(
        &self,
        sample: &Sample,
        hidden: &[f32],
        move_delta: &mut [f32],
        back: &mut [f32],
    ) -> f32 {
        let total: u32 = sample.shares().iter().map(|share| u32::from(*share)).sum();
        if total == 0 {
            move_delta.fill(0.0);
            return 0.0;
        }
        let weights = self.weights;
        self.kernel.dots(&weights.policy, hidden, sample.rows(), move_delta);
        let entries = sample.rows().iter().zip(sample.table());
        for (logit, (&row, &table)) in move_delta.iter_mut().zip(entries) {
            *logit += weights.policy_bias[usize::from(row)] + weights.table[usize::from(table)];
        }
        let mut cost = if finite(move_delta) { 0.0 } else { f32::NAN };
        math::softmax(move_delta, 1.0);
        let scale = 1.0 / total as f32;
        for (p, &share) in move_delta.iter_mut().zip(sample.shares()) {
            let target = f32::from(share) * scale;
            if share > 0 {
                cost -= target * math::ln(p.max(1e-30));
            }
            *p = (*p - target) * self.losses.policy;
        }
        self.kernel.add_scaled_rows(&weights.policy, sample.rows(), move_delta, back);
        cost
    }
}

/// The softmax accepts logits that are not finite, but training must stop on them.
fn finite(logits: &[f32]) -> bool {
    logits.iter().all(|logit| logit.is_finite())
}

/// The cross entropy of probabilities, which are replaced by the derivatives by their logits.
fn cross_entropy(probabilities: &mut [f32], targets: &[f32]) -> f32 {
    let mut cost = 0.0;
    for (p, target) in probabilities.iter_mut().zip(targets) {
        cost -= target * math::ln(p.max(1e-30));
        *p -= target;
    }
    cost
}
