//! The network as a Burn module. Its fields are the tree of names in a weight file.

use ::burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use ::burn::tensor::activation::{relu, sigmoid};
use ::burn::tensor::{Device, FloatDType, Tensor, TensorData};

use super::Tensors;
use super::layer::{Convolution, Linear, Norm, Pass};
use crate::device::DeviceError;
use crate::residual::{Config, ConfigError, MOVES, Weights};

#[derive(Module, Debug)]
pub struct Network {
    stem: Stage,
    blocks: Vec<Block>,
    policy: PolicyHead,
    value: ValueHead,
    #[module(skip)]
    config: Config,
}

/// The outputs for a batch, before softmax or tanh.
#[derive(Clone, Debug)]
pub struct Output {
    /// [batch, 4672]
    pub policy: Tensor<2>,
    /// [batch, 1], or [batch, 3] for win, draw and loss
    pub value: Tensor<2>,
}

/// A convolution and its batch norm.
#[derive(Module, Debug)]
struct Stage {
    conv: Convolution,
    norm: Norm,
}

#[derive(Module, Debug)]
struct Block {
    first: Stage,
    second: Stage,
    squeeze: Option<Squeeze>,
}

/// Squeeze and excitation: scales each channel by a gate computed from the means of all channels.
#[derive(Module, Debug)]
struct Squeeze {
    reduce: Linear,
    expand: Linear,
}

#[derive(Module, Debug)]
struct PolicyHead {
    conv: Convolution,
    norm: Norm,
    linear: Linear,
}

#[derive(Module, Debug)]
struct ValueHead {
    conv: Convolution,
    norm: Norm,
    hidden: Linear,
    output: Linear,
}

impl Network {
    /// A network of this shape with all weights zero.
    pub fn init(config: Config, device: &Device) -> Result<Network, ConfigError> {
        config.check()?;
        let filters = config.filters;
        let stage = |inputs, outputs, size| Stage {
            conv: Convolution::new([inputs, outputs], size, device),
            norm: Norm::new(outputs, device),
        };
        let squeeze = || Squeeze {
            reduce: Linear::new([filters, config.squeeze], device),
            expand: Linear::new([config.squeeze, filters], device),
        };
        let block = |_| Block {
            first: stage(filters, filters, 3),
            second: stage(filters, filters, 3),
            squeeze: (config.squeeze > 0).then(squeeze),
        };
        let (policy, value) = (stage(filters, 2, 1), stage(filters, 1, 1));
        Ok(Network {
            stem: stage(config.planes, filters, 3),
            blocks: (0..config.blocks).map(block).collect(),
            policy: PolicyHead {
                conv: policy.conv,
                norm: policy.norm,
                linear: Linear::new([2 * 64, MOVES], device),
            },
            value: ValueHead {
                conv: value.conv,
                norm: value.norm,
                hidden: Linear::new([64, config.value_hidden], device),
                output: Linear::new([config.value_hidden, config.value.outputs()], device),
            },
            config,
        })
    }

    pub fn new(weights: &Weights, device: &Device) -> Network {
        let network = Network::init(weights.config(), device).expect("weights have a valid shape");
        network.load(weights)
    }

    /// Replaces the weights; they must have the same shape.
    pub(super) fn load(self, weights: &Weights) -> Network {
        self.map(&mut Load { weights, path: Vec::new() })
    }

    /// The same network in half precision.
    pub(super) fn half_precision(self) -> Network {
        self.map(&mut Halve)
    }

    /// Copies the weights from the device.
    pub fn weights(&self) -> Result<Weights, DeviceError> {
        let weights = Weights::zeros(self.config).expect("a network has a valid shape");
        let mut save = Save { weights, path: Vec::new(), outcome: Ok(()) };
        self.visit(&mut save);
        save.outcome.map(|()| save.weights)
    }

    /// Arranges tensors of the network's shapes as weights; missing parameters become zeros.
    pub(super) fn arrange(&self, tensors: &Tensors) -> Result<Weights, DeviceError> {
        self.clone().map(&mut Arrange { tensors }).weights()
    }

    /// All parameters, flattened.
    pub(super) fn tensors(&self) -> Tensors {
        let mut list = List(Tensors::new());
        self.visit(&mut list);
        list.0
    }

    pub fn config(&self) -> Config {
        self.config
    }

    /// Evaluates boards [batch, planes, 8, 8]. The result of a board does not depend on the others.
    pub fn forward(&self, boards: Tensor<4>) -> Output {
        self.pass(boards, &mut Pass::Inference)
    }

    pub(super) fn pass(&self, boards: Tensor<4>, pass: &mut Pass) -> Output {
        // [batch, filters, 8, 8] from here to the heads
        let mut boards = relu(self.stem.forward(boards, pass));
        for block in &self.blocks {
            boards = block.forward(boards, pass);
        }
        Output {
            policy: self.policy.forward(boards.clone(), pass),
            value: self.value.forward(boards, pass),
        }
    }
}

impl Stage {
    fn forward(&self, boards: Tensor<4>, pass: &mut Pass) -> Tensor<4> {
        self.norm.forward(self.conv.forward(boards), pass)
    }
}

impl Block {
    fn forward(&self, boards: Tensor<4>, pass: &mut Pass) -> Tensor<4> {
        let inner = relu(self.first.forward(boards.clone(), pass));
        let inner = self.second.forward(inner, pass);
        let inner = match &self.squeeze {
            Some(squeeze) => squeeze.forward(inner),
            None => inner,
        };
        relu(inner + boards)
    }
}

impl Squeeze {
    fn forward(&self, boards: Tensor<4>) -> Tensor<4> {
        let [batch, filters, height, width] = boards.dims();
        // [batch, filters]
        let means = boards.clone().reshape([batch, filters, height * width]).mean_dim(2);
        let gates = relu(self.reduce.forward(means.reshape([batch, filters])));
        let gates = sigmoid(self.expand.forward(gates));
        boards * gates.reshape([batch, filters, 1, 1])
    }
}

impl PolicyHead {
    fn forward(&self, boards: Tensor<4>, pass: &mut Pass) -> Tensor<2> {
        // [batch, 2, 8, 8], then [batch, 128], then [batch, 4672]
        let boards = relu(self.norm.forward(self.conv.forward(boards), pass));
        self.linear.forward(boards.flatten(1, 3))
    }
}

impl ValueHead {
    fn forward(&self, boards: Tensor<4>, pass: &mut Pass) -> Tensor<2> {
        // [batch, 1, 8, 8], then [batch, 64], then [batch, 256], then [batch, outputs]
        let boards = relu(self.norm.forward(self.conv.forward(boards), pass));
        let hidden = relu(self.hidden.forward(boards.flatten(1, 3)));
        self.output.forward(hidden)
    }
}

/// Loads weights into a network by name.
struct Load<'a> {
    weights: &'a Weights,
    path: Vec<String>,
}

impl ModuleMapper for Load<'_> {
    fn enter_module(&mut self, name: &str, _: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.pop();
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let tensor = self
            .weights
            .tensor(&self.path.join("."))
            .expect("the field names match the weight file");
        let data = TensorData::new(tensor.values.to_vec(), tensor.shape.to_vec());
        param.map(|zeros| Tensor::from_data(data, &zeros.device()))
    }
}

/// Reads weights out of a network by name.
struct Save {
    weights: Weights,
    path: Vec<String>,
    outcome: Result<(), DeviceError>,
}

impl ModuleVisitor for Save {
    fn enter_module(&mut self, name: &str, _: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let place = self
            .weights
            .tensor_mut(&self.path.join("."))
            .expect("the field names match the weight file");
        match super::values(param.val()) {
            Ok(values) => place.copy_from_slice(&values),
            Err(error) => self.outcome = Err(error),
        }
    }
}

/// Converts weights to half precision.
struct Halve;

impl ModuleMapper for Halve {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        param.map(|tensor| tensor.cast(FloatDType::F16))
    }
}

struct Arrange<'a> {
    tensors: &'a Tensors,
}

impl ModuleMapper for Arrange<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let tensor = self.tensors.get(&param.id).cloned();
        param.map(|old| match tensor {
            Some(tensor) => tensor.reshape(old.dims()),
            None => old.zeros_like(),
        })
    }
}

struct List(Tensors);

impl ModuleVisitor for List {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.0.insert(param.id, super::flat(param.val()));
    }
}
