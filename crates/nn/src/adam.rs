//! Adam with decoupled weight decay (Loshchilov and Hutter 2019): the arithmetic that the sparse and
//! the residual network share. What is updated, and in which order, is theirs.

/// The constants of one step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AdamStep {
    gradient_scale: f32,
    beta1: f32,
    beta2: f32,
    /// The learning rate with the bias correction of the first moment.
    rate: f32,
    /// The bias correction of the second moment.
    second_scale: f32,
    epsilon: f32,
    /// The factor of weight decay.
    keep: f32,
}

/// Decay rates of the moments, and the term that avoids division by zero.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AdamConstants {
    pub beta1: f32,
    pub beta2: f32,
    pub epsilon: f32,
}

impl AdamStep {
    /// `steps` is the number of steps before this one.
    pub fn new(
        constants: AdamConstants,
        steps: u64,
        learning_rate: f32,
        weight_decay: f32,
        gradient_scale: f32,
    ) -> AdamStep {
        let AdamConstants { beta1, beta2, epsilon } = constants;
        let steps = steps as f64 + 1.0;
        let correction = |beta: f32| (1.0 - libm::pow(f64::from(beta), steps)) as f32;
        AdamStep {
            gradient_scale,
            beta1,
            beta2,
            rate: learning_rate / correction(beta1),
            second_scale: 1.0 / correction(beta2),
            epsilon,
            keep: 1.0 - learning_rate * weight_decay,
        }
    }

    /// Updates the moments of a weight and returns its new value.
    #[inline(always)]
    pub fn update(self, weight: f32, first: &mut f32, second: &mut f32, gradient: f32) -> f32 {
        let gradient = gradient * self.gradient_scale;
        *first += (1.0 - self.beta1) * (gradient - *first);
        *second += (1.0 - self.beta2) * (gradient * gradient - *second);
        let size = (*second * self.second_scale).sqrt() + self.epsilon;
        weight * self.keep - self.rate * *first / size
    }
}

/// The sum of squares, in a fixed order.
pub(crate) fn squares(values: &[f32]) -> f64 {
    let mut lanes = [0.0f32; 16];
    for chunk in values.chunks(16) {
        for (lane, value) in lanes.iter_mut().zip(chunk) {
            *lane += value * value;
        }
    }
    lanes.iter().map(|lane| f64::from(*lane)).sum()
}
