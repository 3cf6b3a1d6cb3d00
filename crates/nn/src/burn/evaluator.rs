//! The network on a Burn device as an evaluator for search.

use ::burn::tensor::{Device as BurnDevice, FloatDType, Tensor, TensorData};
use selfmate_chess::env::ActionSpace;
use selfmate_encode::{MoveSpace, Planes};
use selfmate_search::{Evaluation, Evaluator, Leaf};

use super::network::{Network, Output};
use crate::device::{Device, DeviceError};
use crate::residual::{MOVES, Weights, wdl_of_outputs};

/// Evaluates leaves on a Burn device. Use large batches; single positions are slow there.
#[derive(Clone, Debug)]
pub struct NetworkEvaluator {
    network: Network,
    device: BurnDevice,
    precision: FloatDType,
}

impl NetworkEvaluator {
    /// Uses half precision on graphics devices that support it, where it is much faster.
    pub fn new(weights: &Weights, device: Device) -> Result<NetworkEvaluator, DeviceError> {
        let is_graphics = matches!(device, Device::Wgpu | Device::Cuda(_));
        let device = super::open(device)?;
        let network = Network::new(weights, &device);
        if is_graphics && device.supports_dtype(FloatDType::F16) {
            let network = network.half_precision();
            return Ok(NetworkEvaluator { network, device, precision: FloatDType::F16 });
        }
        Ok(NetworkEvaluator { network, device, precision: FloatDType::F32 })
    }

    pub fn is_half_precision(&self) -> bool {
        self.precision == FloatDType::F16
    }

    /// Policy logits and value outputs for a batch of encoded boards.
    fn run(&self, planes: Vec<f32>, batch: usize) -> Result<[Vec<f32>; 2], DeviceError> {
        let data = TensorData::new(planes, [batch, self.network.config().planes, 8, 8]);
        let boards = Tensor::<4>::from_data(data, &self.device).cast(self.precision);
        let Output { policy, value } = self.network.forward(boards);
        Ok([super::values(policy)?, super::values(value)?])
    }
}

impl Evaluator for NetworkEvaluator {
    fn evaluate(&mut self, leaves: &[Leaf], evaluations: &mut [Evaluation]) {
        if leaves.is_empty() {
            return;
        }
        let encoding = self.network.config().encoding();
        let mut planes = vec![0.0; leaves.len() * encoding.size()];
        for (leaf, planes) in leaves.iter().zip(planes.chunks_exact_mut(encoding.size())) {
            encoding.encode(&leaf.game, planes);
        }
        let head = self.network.config().value;
        let [policy, value] = self.run(planes, leaves.len()).expect("the device still works");
        let outputs = policy.chunks_exact(MOVES).zip(value.chunks_exact(head.outputs()));
        for ((leaf, evaluation), (row, value)) in leaves.iter().zip(evaluations).zip(outputs) {
            if leaf.need.value() {
                evaluation.wdl = wdl_of_outputs(head, value);
            }
            evaluation.logits.clear();
            if leaf.need.policy() {
                let position = leaf.game.position();
                let number = |&m| MoveSpace::Az4672.index(position, m);
                let logits = leaf.legal.iter().map(|m| row[number(m).expect("a legal move")]);
                evaluation.logits.extend(logits);
            }
        }
    }

    fn history(&self) -> usize {
        match self.network.config().encoding() {
            Planes::Planes119 => 8,
            _ => 1,
        }
    }
}
