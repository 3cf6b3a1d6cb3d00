//! Export of networks as ONNX files for other programs.
//!
//! ONNX is a protobuf format. The few messages and operators that our networks need are written by
//! hand; there is no reader. Batch norms are folded into the convolutions before them.

mod example;
mod message;
mod residual;
mod sparse;

pub use example::examples;

use message::Message;

use crate::Model;
use crate::file::WeightsError;

/// The operator set version; all recent runtimes support it.
const OPSET: i64 = 17;
/// The file format version that goes with it.
const IR_VERSION: i64 = 8;
/// ONNX's type codes for 32-bit floats and 64-bit integers.
const FLOAT: i64 = 1;
const INT64: i64 = 7;

/// A network as an ONNX file.
///
/// The first dimension of inputs and outputs is the batch size. A residual network maps `planes` to
/// `policy` (raw logits of all moves) and `value`. A sparse network maps `features` (1 for each
/// active feature, else 0) to `policy_rows`, `policy_table` and `value`; a move's logit is the sum
/// of its entries in the first two. A value is win, draw and loss for the side to move, or one
/// number from -1 to 1.
pub fn encode(model: &Model) -> Result<Vec<u8>, WeightsError> {
    let graph = match model {
        Model::Residual(weights) => residual::graph(weights),
        Model::Sparse(weights) => sparse::graph(weights),
        Model::Mlp(_) | Model::Conv(_) => return Err(unsupported()),
    };
    Ok(graph.into_file())
}

fn unsupported() -> WeightsError {
    let message = "a network of an ending has no ONNX form: expected a sparse or residual network";
    WeightsError::Config(message.to_owned())
}

/// A graph under construction.
#[derive(Default)]
struct Graph {
    nodes: Vec<Message>,
    constants: Vec<Message>,
    inputs: Vec<Message>,
    outputs: Vec<Message>,
    notes: Vec<(&'static str, String)>,
}

/// The value of an attribute.
enum Attribute<'a> {
    Integer(i64),
    Integers(&'a [i64]),
}

impl Graph {
    /// Declares an input with this shape per position.
    fn input(&mut self, name: &str, shape: &[usize]) {
        self.inputs.push(value_info(name, shape, true));
    }

    fn output(&mut self, name: &str, shape: &[usize]) {
        self.outputs.push(value_info(name, shape, true));
    }

    /// Declares an output without a batch dimension.
    fn constant_output(&mut self, name: &str, shape: &[usize]) {
        self.outputs.push(value_info(name, shape, false));
    }

    /// Adds a constant float tensor.
    fn floats(&mut self, name: &str, shape: &[usize], values: &[f32]) {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.constants.push(tensor(name, FLOAT, shape, &bytes));
    }

    /// Adds a constant integer vector.
    fn integers(&mut self, name: &str, values: &[i64]) {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.constants.push(tensor(name, INT64, &[values.len()], &bytes));
    }

    /// Adds an operation. Returns the name of its result, which is also the name of the node.
    fn node(
        &mut self,
        operator: &str,
        inputs: &[&str],
        output: &str,
        attributes: &[(&str, Attribute<'_>)],
    ) -> String {
        let mut node = Message::default();
        for input in inputs {
            node.text(1, input);
        }
        node.text(2, output);
        node.text(3, output);
        node.text(4, operator);
        for (name, value) in attributes {
            let mut attribute = Message::default();
            attribute.text(1, name);
            match value {
                Attribute::Integer(value) => {
                    attribute.integer(3, *value);
                    attribute.integer(20, 2);
                }
                Attribute::Integers(values) => {
                    for value in *values {
                        attribute.integer(8, *value);
                    }
                    attribute.integer(20, 7);
                }
            }
            node.message(5, &attribute);
        }
        self.nodes.push(node);
        output.to_owned()
    }

    /// A linear layer; the weights have one row per output.
    fn linear(&mut self, input: &str, weight: &str, bias: &str, output: &str) -> String {
        self.node("Gemm", &[input, weight, bias], output, &[("transB", Attribute::Integer(1))])
    }

    /// Adds an entry to the file's metadata.
    fn note(&mut self, key: &'static str, value: &str) {
        self.notes.push((key, value.to_owned()));
    }

    fn into_file(self) -> Vec<u8> {
        let mut graph = Message::default();
        let lists = [(1, self.nodes), (5, self.constants), (11, self.inputs), (12, self.outputs)];
        graph.text(2, "network");
        for (field, messages) in lists {
            for message in &messages {
                graph.message(field, message);
            }
        }
        let mut operators = Message::default();
        operators.text(1, "");
        operators.integer(2, OPSET);
        let mut model = Message::default();
        model.integer(1, IR_VERSION);
        model.text(2, "selfmate");
        model.text(3, env!("CARGO_PKG_VERSION"));
        model.message(7, &graph);
        model.message(8, &operators);
        for (key, value) in &self.notes {
            let mut entry = Message::default();
            entry.text(1, key);
            entry.text(2, value);
            model.message(14, &entry);
        }
        model.into_bytes()
    }
}

fn tensor(name: &str, kind: i64, shape: &[usize], bytes: &[u8]) -> Message {
    let mut tensor = Message::default();
    for &dimension in shape {
        tensor.integer(1, dimension as i64);
    }
    tensor.integer(2, kind);
    tensor.text(8, name);
    tensor.bytes(9, bytes);
    tensor
}

/// Describes a float tensor of this shape, with or without a batch dimension.
fn value_info(name: &str, shape: &[usize], is_batch: bool) -> Message {
    let mut dimensions = Message::default();
    if is_batch {
        let mut dimension = Message::default();
        dimension.text(2, "batch");
        dimensions.message(1, &dimension);
    }
    for &size in shape {
        let mut dimension = Message::default();
        dimension.integer(1, size as i64);
        dimensions.message(1, &dimension);
    }
    let mut tensor = Message::default();
    tensor.integer(1, FLOAT);
    tensor.message(2, &dimensions);
    let mut kind = Message::default();
    kind.message(1, &tensor);
    let mut info = Message::default();
    info.text(1, name);
    info.message(2, &kind);
    info
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_follow_the_onnx_format() {
        let mut graph = Graph::default();
        graph.input("x", &[2]);
        graph.node("Relu", &["x"], "y", &[]);
        graph.output("y", &[2]);
        let value = |name: &str| {
            let dims = b"\x0a\x07\x12\x05batch\x0a\x02\x08\x02";
            let mut tensor = vec![0x08, 0x01, 0x12, dims.len() as u8];
            tensor.extend(dims);
            let mut kind = vec![0x0a, tensor.len() as u8];
            kind.extend(tensor);
            let mut info = vec![0x0a, 1, name.as_bytes()[0], 0x12, kind.len() as u8];
            info.extend(kind);
            info
        };
        let mut expected =
            b"\x12\x07network\x0a\x0f\x0a\x01x\x12\x01y\x1a\x01y\x22\x04Relu".to_vec();
        for (field, name) in [(0x5a, "x"), (0x62, "y")] {
            let info = value(name);
            expected.extend([field, info.len() as u8]);
            expected.extend(info);
        }
        let mut file = b"\x08\x08\x12\x08selfmate\x1a".to_vec();
        file.push(env!("CARGO_PKG_VERSION").len() as u8);
        file.extend(env!("CARGO_PKG_VERSION").as_bytes());
        file.extend([0x3a, expected.len() as u8]);
        file.extend(expected);
        file.extend(b"\x42\x04\x0a\x00\x10\x11");
        assert_eq!(graph.into_file(), file);
    }
}
