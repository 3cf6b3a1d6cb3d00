//! One optimiser step: the rules of [`crate::residual::Optimiser`] on tensors.

use ::burn::module::{ModuleMapper, Param, ParamId};
use ::burn::tensor::Tensor;

use super::Tensors;
use crate::residual::{NORM_MOMENTUM, Optimiser};

/// The two moments of Adam; SGD uses only the first, as its velocity.
#[derive(Default)]
pub(super) struct Moments {
    pub first: Tensors,
    pub second: Tensors,
}

/// Updates the weights by their gradient, and the running statistics.
pub(super) struct Step<'a> {
    pub optimiser: Optimiser,
    pub weight_decay: f64,
    pub learning_rate: f64,
    /// The factor from gradient clipping.
    pub clip: f64,
    /// The number of this step, starting at 1.
    pub number: f64,
    pub gradients: Tensors,
    /// Means and variances of the batch.
    pub statistics: Tensors,
    pub moments: &'a mut Moments,
}

impl ModuleMapper for Step<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        if let Some(gradient) = self.gradients.remove(&param.id) {
            let id = param.id;
            return param.map(|weight| {
                let dims = weight.dims();
                self.moved(id, super::flat(weight), gradient.mul_scalar(self.clip)).reshape(dims)
            });
        }
        if let Some(batch) = self.statistics.remove(&param.id) {
            let share = f64::from(NORM_MOMENTUM);
            return param.map(|running| {
                let dims = running.dims();
                running.mul_scalar(1.0 - share) + batch.mul_scalar(share).reshape(dims)
            });
        }
        param
    }
}

impl Step<'_> {
    fn moved(&mut self, id: ParamId, weight: Tensor<1>, gradient: Tensor<1>) -> Tensor<1> {
        let (rate, decay) = (self.learning_rate, self.weight_decay);
        let Moments { first, second } = &mut *self.moments;
        let moment =
            |tensors: &mut Tensors| tensors.remove(&id).unwrap_or_else(|| gradient.zeros_like());
        match self.optimiser {
            Optimiser::Sgd { momentum } => {
                let velocity = moment(first).mul_scalar(momentum);
                let velocity = velocity + gradient + weight.clone().mul_scalar(decay);
                first.insert(id, velocity.clone());
                weight - velocity.mul_scalar(rate)
            }
            Optimiser::Adam { beta1, beta2, epsilon } => {
                let (beta1, beta2) = (f64::from(beta1), f64::from(beta2));
                let blend = |old: Tensor<1>, new: Tensor<1>, beta: f64| {
                    old.mul_scalar(beta) + new.mul_scalar(1.0 - beta)
                };
                let mean = blend(moment(first), gradient.clone(), beta1);
                let square = blend(moment(second), gradient.clone().square(), beta2);
                first.insert(id, mean.clone());
                second.insert(id, square.clone());
                let mean = mean.div_scalar(1.0 - beta1.powf(self.number));
                let size = square.div_scalar(1.0 - beta2.powf(self.number)).sqrt();
                let kept = weight.mul_scalar(1.0 - rate * decay);
                kept - (mean / size.add_scalar(epsilon)).mul_scalar(rate)
            }
        }
    }
}
