//! The residual network on Burn: the same weights as [`crate::residual`], also on graphics devices,
//! with gradients by automatic differentiation.
//!
//! Only Burn's tensors are used, not its layers or optimisers. Names and shapes follow the weight
//! files; running variances, momentum and clipping follow PyTorch, as in `residual`.

mod evaluator;
mod layer;
mod network;
mod optimiser;
mod trainer;

use std::collections::HashMap;

use ::burn::module::ParamId;
use ::burn::tensor::{Device as BurnDevice, Tensor};

pub use evaluator::NetworkEvaluator;
pub use network::{Network, Output};
pub use trainer::Trainer;

use crate::device::{Device, DeviceError};

/// Flat tensors by parameter.
type Tensors = HashMap<ParamId, Tensor<1>>;

/// Opens one of Burn's devices.
pub fn open(device: Device) -> Result<BurnDevice, DeviceError> {
    device.check()?;
    match device {
        Device::Cpu => Err(DeviceError::NotBurn(device)),
        Device::Flex => Ok(BurnDevice::flex()),
        #[cfg(feature = "wgpu")]
        Device::Wgpu => Ok(BurnDevice::wgpu(::burn::tensor::DeviceKind::DefaultDevice)),
        #[cfg(feature = "cuda")]
        Device::Cuda(number) => Ok(BurnDevice::cuda(number)),
        #[cfg(not(all(feature = "wgpu", feature = "cuda")))]
        device => Err(DeviceError::Missing(device)),
    }
}

/// The values of a tensor as f32, whatever precision the device uses.
fn values<const D: usize>(tensor: Tensor<D>) -> Result<Vec<f32>, DeviceError> {
    let read = tensor.try_into_vec_as::<f32>();
    read.map_err(|error| DeviceError::Failed(error.to_string()))
}

/// The tensor flattened to one dimension.
fn flat<const D: usize>(tensor: Tensor<D>) -> Tensor<1> {
    let count = tensor.shape().num_elements();
    tensor.reshape([count])
}
