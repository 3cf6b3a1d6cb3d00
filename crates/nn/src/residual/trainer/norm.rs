//! Batch norm in training: statistics of the whole batch, forwards and backwards.

use super::super::config::NORM_EPSILON;
use super::super::kernel::{Activate, Floats, NormBack};
use super::super::weights::{Norm, Weights};
use super::segment::Segment;

/// One batch norm during a step.
#[derive(Clone, Debug)]
pub struct BatchNorm {
    pub mean: Floats,
    pub variance: Vec<f64>,
    inverse: Vec<f64>,
    weight: Vec<f64>,
    scale: Floats,
    shift: Floats,
    gain: Floats,
    slope: Floats,
    offset: Floats,
}

impl BatchNorm {
    pub fn new(channels: usize) -> BatchNorm {
        let zeros = Floats::zeros(channels);
        BatchNorm {
            mean: zeros.clone(),
            variance: vec![0.0; channels],
            inverse: vec![0.0; channels],
            weight: vec![0.0; channels],
            scale: zeros.clone(),
            shift: zeros.clone(),
            gain: zeros.clone(),
            slope: zeros.clone(),
            offset: zeros,
        }
    }

    /// Computes mean and variance from the sums of all segments, then the affine coefficients.
    pub fn forward(
        &mut self,
        segments: &mut [Segment],
        squares: usize,
        affine: impl Fn(&mut BatchNorm),
    ) {
        let channels = self.variance.len();
        let totals = totals(segments, channels);
        for channel in 0..channels {
            let mean = totals[channel] / squares as f64;
            let square = totals[channels + channel] / squares as f64;
            self.mean[channel] = mean as f32;
            self.variance[channel] = (square - mean * mean).max(0.0);
            self.inverse[channel] = 1.0 / (self.variance[channel] + f64::from(NORM_EPSILON)).sqrt();
        }
        affine(self);
    }

    /// Sets weight and bias, of several norms side by side if needed. Further channels stay zero.
    pub fn affine(&mut self, weights: &Weights, norms: &[&Norm]) {
        let pairs = norms
            .iter()
            .flat_map(|norm| weights.at(&norm.weight).iter().zip(weights.at(&norm.bias)));
        for (channel, (weight, bias)) in pairs.enumerate() {
            let scale = f64::from(*weight) * self.inverse[channel];
            self.weight[channel] = f64::from(*weight);
            self.scale[channel] = scale as f32;
            self.shift[channel] = (f64::from(*bias) - f64::from(self.mean[channel]) * scale) as f32;
        }
    }

    /// Takes the sums of derivatives from all segments; writes the gradient of weight and bias.
    pub fn backward(
        &mut self,
        segments: &mut [Segment],
        squares: usize,
        gradient: &mut Weights,
        norms: &[&Norm],
    ) {
        // With d the derivative by the result, z the raw value and x̂ its normalised form:
        // dz = weight / deviation × (d - mean(d) - x̂ mean(d x̂)).
        let channels = self.variance.len();
        let totals = totals(segments, channels);
        for channel in 0..channels {
            let (sum, product) = (totals[channel], totals[channels + channel]);
            let inverse = self.inverse[channel];
            let gain = self.weight[channel] * inverse;
            let slope = -gain * inverse * inverse * product / squares as f64;
            let offset = -gain * sum / squares as f64 - slope * f64::from(self.mean[channel]);
            self.gain[channel] = gain as f32;
            self.slope[channel] = slope as f32;
            self.offset[channel] = offset as f32;
        }
        let mut channel = 0;
        for norm in norms {
            for index in 0..norm.weight.len() {
                let product = totals[channels + channel] * self.inverse[channel];
                gradient.values[norm.weight.start + index] = product as f32;
                gradient.values[norm.bias.start + index] = totals[channel] as f32;
                channel += 1;
            }
        }
    }

    pub fn activate<'a>(&'a self, residual: Option<&'a [f32]>) -> Activate<'a> {
        Activate { scale: &self.scale, shift: &self.shift, residual }
    }

    /// The affine coefficients of a channel.
    pub fn line(&self, channel: usize) -> (f32, f32) {
        (self.scale[channel], self.shift[channel])
    }

    pub fn back(&self) -> NormBack<'_> {
        NormBack { gain: &self.gain, slope: &self.slope, offset: &self.offset }
    }
}

/// The sums of all segments, which are cleared.
fn totals(segments: &mut [Segment], channels: usize) -> Vec<f64> {
    let mut totals = vec![0.0; 2 * channels];
    for segment in segments {
        for (total, sum) in totals.iter_mut().zip(&mut segment.sums) {
            *total += *sum;
            *sum = 0.0;
        }
    }
    totals
}
