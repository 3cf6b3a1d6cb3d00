//! The devices that evaluate and train the residual network, by their names in settings.

mod residual;

use std::fmt;
use std::str::FromStr;

pub use residual::{Evaluators, Trainer, evaluators};

/// Our own kernels, or one of Burn's backends.
///
/// Every build accepts every device name. Opening a device whose cargo feature is missing is an
/// error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Device {
    /// Our own kernels on the CPU.
    Cpu,
    /// Burn on the CPU.
    Flex,
    /// Burn on the best graphics device that wgpu finds.
    Wgpu,
    /// Burn on the CUDA device with this number.
    Cuda(usize),
}

/// Why a device cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeviceError {
    #[error("unknown device '{0}': expected cpu, flex, wgpu, cuda or cuda:NUMBER")]
    Unknown(String),
    #[error("the device {device} is not in this build: build with `--features {feature}`")]
    NotBuilt {
        device: Device,
        /// The cargo feature that adds it.
        feature: &'static str,
    },
    #[error("this machine has no device {0}")]
    Missing(Device),
    /// The device of our own kernels where one of Burn's is required.
    #[error("the device {0} is not a Burn device")]
    NotBurn(Device),
    #[error("the device failed: {0}")]
    Failed(String),
}

impl Device {
    /// The devices that this build can use on this machine.
    pub fn available() -> Vec<Device> {
        let mut devices = vec![Device::Cpu];
        if cfg!(feature = "burn") {
            devices.push(Device::Flex);
        }
        #[cfg(feature = "wgpu")]
        if found(::burn::tensor::DeviceType::Wgpu) > 0 {
            devices.push(Device::Wgpu);
        }
        #[cfg(feature = "cuda")]
        devices.extend((0..found(::burn::tensor::DeviceType::Cuda)).map(Device::Cuda));
        devices
    }

    /// The cargo feature that adds this device; `None` when it needs none.
    pub fn feature(self) -> Option<&'static str> {
        match self {
            Device::Cpu => None,
            Device::Flex => Some("burn"),
            Device::Wgpu => Some("wgpu"),
            Device::Cuda(_) => Some("cuda"),
        }
    }

    /// Checks that the build supports the device and the machine has it.
    pub fn check(self) -> Result<(), DeviceError> {
        let built = match self {
            Device::Cpu => true,
            Device::Flex => cfg!(feature = "burn"),
            Device::Wgpu => cfg!(feature = "wgpu"),
            Device::Cuda(_) => cfg!(feature = "cuda"),
        };
        match self.feature() {
            Some(feature) if !built => Err(DeviceError::NotBuilt { device: self, feature }),
            _ if !Device::available().contains(&self) => Err(DeviceError::Missing(self)),
            _ => Ok(()),
        }
    }
}

/// The number of devices of a kind; 0 without a driver.
#[cfg(any(feature = "wgpu", feature = "cuda"))]
fn found(kind: ::burn::tensor::DeviceType) -> usize {
    ::burn::tensor::Device::enumerate(kind).len()
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Device::Cpu => f.write_str("cpu"),
            Device::Flex => f.write_str("flex"),
            Device::Wgpu => f.write_str("wgpu"),
            Device::Cuda(number) => write!(f, "cuda:{number}"),
        }
    }
}

impl FromStr for Device {
    type Err = DeviceError;

    fn from_str(text: &str) -> Result<Device, DeviceError> {
        let unknown = || DeviceError::Unknown(text.to_owned());
        match text {
            "cpu" => Ok(Device::Cpu),
            "flex" => Ok(Device::Flex),
            "wgpu" => Ok(Device::Wgpu),
            "cuda" => Ok(Device::Cuda(0)),
            _ => {
                let number = text.strip_prefix("cuda:").ok_or_else(unknown)?;
                number.parse().map(Device::Cuda).map_err(|_| unknown())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_names_round_trip() {
        for device in [Device::Cpu, Device::Flex, Device::Wgpu, Device::Cuda(0), Device::Cuda(3)] {
            assert_eq!(device.to_string().parse(), Ok(device));
        }
        assert_eq!("cuda".parse(), Ok(Device::Cuda(0)));
        for text in ["", "CPU", "cuda:", "cuda:-1", "gpu", "wgpu:x"] {
            let error = text.parse::<Device>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("unknown device '{text}'")), "{error}");
        }
    }

    #[test]
    fn an_error_for_a_missing_device_names_its_feature() {
        assert_eq!(Device::Cpu.check(), Ok(()));
        assert!(Device::available().contains(&Device::Cpu));
        if !cfg!(feature = "cuda") {
            let error = Device::Cuda(1).check().unwrap_err().to_string();
            assert_eq!(
                error,
                "the device cuda:1 is not in this build: build with `--features cuda`"
            );
        }
    }

    #[test]
    #[cfg(feature = "burn")]
    fn flex_is_available_in_builds_with_burn() {
        assert_eq!(Device::Flex.check(), Ok(()));
    }
}
