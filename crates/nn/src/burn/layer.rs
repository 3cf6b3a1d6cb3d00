//! The layers, with the names and shapes of the weight files, which are PyTorch's.

use ::burn::module::{Module, Param};
use ::burn::tensor::module::{batch_norm, batch_norm_train, conv2d, linear};
use ::burn::tensor::ops::ConvOptions;
use ::burn::tensor::{Device, Tensor};

use super::Tensors;
use crate::residual::NORM_EPSILON;

/// Which means and variances batch norms use.
pub(super) enum Pass {
    /// The running ones: the result of a position does not depend on the batch.
    Inference,
    /// Those of the batch, collected here to update the running ones.
    Training(Tensors),
}

/// A convolution without bias that keeps the board size.
#[derive(Module, Debug)]
pub(super) struct Convolution {
    /// [outputs, inputs, size, size]
    weight: Param<Tensor<4>>,
}

impl Convolution {
    pub fn new([inputs, outputs]: [usize; 2], size: usize, device: &Device) -> Convolution {
        Convolution { weight: zeros([outputs, inputs, size, size], device) }
    }

    /// [batch, inputs, 8, 8] to [batch, outputs, 8, 8]
    pub fn forward(&self, boards: Tensor<4>) -> Tensor<4> {
        let weight = self.weight.val();
        let around = weight.dims()[2] / 2;
        conv2d(boards, weight, None, ConvOptions::new([1, 1], [around, around], [1, 1], 1))
    }
}

/// A batch norm.
///
/// Burn's own is not used: its running variance divides by n where PyTorch divides by n - 1, and it
/// is kept per thread.
#[derive(Module, Debug)]
pub(super) struct Norm {
    weight: Param<Tensor<1>>,
    bias: Param<Tensor<1>>,
    running_mean: Param<Tensor<1>>,
    running_var: Param<Tensor<1>>,
}

impl Norm {
    pub fn new(channels: usize, device: &Device) -> Norm {
        let running = || zeros([channels], device).set_require_grad(false);
        Norm {
            weight: zeros([channels], device),
            bias: zeros([channels], device),
            running_mean: running(),
            running_var: running(),
        }
    }

    /// [batch, channels, 8, 8] to the same shape
    pub fn forward(&self, boards: Tensor<4>, pass: &mut Pass) -> Tensor<4> {
        let (weight, bias) = (self.weight.val(), self.bias.val());
        let Pass::Training(statistics) = pass else {
            let (mean, variance) = (self.running_mean.val(), self.running_var.val());
            return batch_norm(boards, weight, bias, mean, variance, NORM_EPSILON.into());
        };
        let [batch, _, height, width] = boards.dims();
        let count = (batch * height * width) as f64;
        let normed = batch_norm_train(boards, weight, bias, NORM_EPSILON.into());
        let variance = normed.variance.mul_scalar(count / (count - 1.0));
        statistics.insert(self.running_mean.id, normed.mean.without_autodiff());
        statistics.insert(self.running_var.id, variance.without_autodiff());
        normed.output
    }
}

#[derive(Module, Debug)]
pub(super) struct Linear {
    /// [outputs, inputs]
    weight: Param<Tensor<2>>,
    bias: Param<Tensor<1>>,
}

impl Linear {
    pub fn new([inputs, outputs]: [usize; 2], device: &Device) -> Linear {
        Linear { weight: zeros([outputs, inputs], device), bias: zeros([outputs], device) }
    }

    /// [batch, inputs] to [batch, outputs]
    pub fn forward(&self, rows: Tensor<2>) -> Tensor<2> {
        linear(rows, self.weight.val().transpose(), Some(self.bias.val()))
    }
}

/// The values are loaded later.
fn zeros<const D: usize>(shape: [usize; D], device: &Device) -> Param<Tensor<D>> {
    Param::from_tensor(Tensor::zeros(shape, device))
}
