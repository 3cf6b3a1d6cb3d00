//! The residual network as a graph.

use super::Attribute::{Integer, Integers};
use super::Graph;
use crate::residual::{MOVES, NORM_EPSILON, ValueHead, Weights};

pub fn graph(weights: &Weights) -> Graph {
    let config = weights.config();
    let mut graph = Graph::default();
    graph.input("planes", &[config.planes, 8, 8]);
    graph.note("positions", config.encoding().name());
    graph.note("moves", "az4672");
    convolve(&mut graph, weights, "planes", "stem", "stem.sum");
    let mut trunk = graph.node("Relu", &["stem.sum"], "stem", &[]);
    for block in 0..config.blocks {
        trunk = residual_block(&mut graph, weights, &trunk, block);
    }
    policy_head(&mut graph, weights, &trunk);
    value_head(&mut graph, weights, &trunk);
    graph
}

fn residual_block(graph: &mut Graph, weights: &Weights, input: &str, block: usize) -> String {
    let name = |part: &str| format!("blocks.{block}.{part}");
    convolve(graph, weights, input, &name("first"), &name("first.sum"));
    let middle = graph.node("Relu", &[&name("first.sum")], &name("middle"), &[]);
    let mut change = convolve(graph, weights, &middle, &name("second"), &name("second.sum"));
    if weights.config().squeeze > 0 {
        let squeeze = name("squeeze");
        let part = |part: &str| format!("{squeeze}.{part}");
        let mean = graph.node("GlobalAveragePool", &[&change], &part("mean"), &[]);
        let mean = graph.node("Flatten", &[&mean], &part("flat"), &[]);
        let few = linear(graph, weights, &mean, &part("reduce"));
        let few = graph.node("Relu", &[&few], &part("few"), &[]);
        let many = linear(graph, weights, &few, &part("expand"));
        let gates = graph.node("Sigmoid", &[&many], &part("gates"), &[]);
        graph.integers(&part("shape"), &[-1, weights.config().filters as i64, 1, 1]);
        let gates = graph.node("Reshape", &[&gates, &part("shape")], &part("each"), &[]);
        change = graph.node("Mul", &[&change, &gates], &part("scaled"), &[]);
    }
    let sum = graph.node("Add", &[input, &change], &name("sum"), &[]);
    graph.node("Relu", &[&sum], &name("output"), &[])
}

fn policy_head(graph: &mut Graph, weights: &Weights, trunk: &str) {
    convolve(graph, weights, trunk, "policy", "policy.sum");
    graph.node("Relu", &["policy.sum"], "policy.planes", &[]);
    graph.node("Flatten", &["policy.planes"], "policy.flat", &[]);
    add_linear(graph, weights, "policy.linear");
    graph.linear("policy.flat", "policy.linear.weight", "policy.linear.bias", "policy");
    graph.output("policy", &[MOVES]);
}

fn value_head(graph: &mut Graph, weights: &Weights, trunk: &str) {
    convolve(graph, weights, trunk, "value", "value.sum");
    graph.node("Relu", &["value.sum"], "value.planes", &[]);
    graph.node("Flatten", &["value.planes"], "value.flat", &[]);
    let hidden = linear(graph, weights, "value.flat", "value.hidden");
    let hidden = graph.node("Relu", &[&hidden], "value.units", &[]);
    let raw = linear(graph, weights, &hidden, "value.output");
    match weights.config().value {
        ValueHead::Scalar => {
            graph.node("Tanh", &[&raw], "value", &[]);
            graph.output("value", &[1]);
        }
        ValueHead::Wdl => {
            graph.node("Softmax", &[&raw], "value", &[("axis", Integer(1))]);
            graph.output("value", &[3]);
        }
    }
}

/// A convolution with its batch norm folded in.
fn convolve(
    graph: &mut Graph,
    weights: &Weights,
    input: &str,
    layer: &str,
    output: &str,
) -> String {
    let tensor = |part: &str| values(weights, &format!("{layer}.{part}"));
    let (shape, kernel) = tensor("conv.weight");
    let per_filter = kernel.len() / shape[0];
    let norms = [
        tensor("norm.weight").1,
        tensor("norm.bias").1,
        tensor("norm.running_mean").1,
        tensor("norm.running_var").1,
    ];
    let mut folded = Vec::with_capacity(kernel.len());
    let mut bias = Vec::with_capacity(shape[0]);
    for (filter, kernel) in kernel.chunks_exact(per_filter).enumerate() {
        let [weight, shift, mean, variance] = norms.map(|norm| f64::from(norm[filter]));
        let scale = weight / (variance + f64::from(NORM_EPSILON)).sqrt();
        folded.extend(kernel.iter().map(|&value| (f64::from(value) * scale) as f32));
        bias.push((shift - mean * scale) as f32);
    }
    let (weight_name, bias_name) = (format!("{layer}.weight"), format!("{layer}.bias"));
    graph.floats(&weight_name, shape, &folded);
    graph.floats(&bias_name, &shape[..1], &bias);
    let size = shape[2] as i64;
    let (sizes, margin) = ([size; 2], [size / 2; 4]);
    let attributes = [("kernel_shape", Integers(&sizes)), ("pads", Integers(&margin))];
    graph.node("Conv", &[input, &weight_name, &bias_name], output, &attributes)
}

/// A linear layer; its result has the layer's name.
fn linear(graph: &mut Graph, weights: &Weights, input: &str, layer: &str) -> String {
    add_linear(graph, weights, layer);
    graph.linear(input, &format!("{layer}.weight"), &format!("{layer}.bias"), layer)
}

fn add_linear(graph: &mut Graph, weights: &Weights, layer: &str) {
    for part in ["weight", "bias"] {
        let name = format!("{layer}.{part}");
        let (shape, values) = values(weights, &name);
        graph.floats(&name, shape, values);
    }
}

fn values<'a>(weights: &'a Weights, name: &str) -> (&'a [usize], &'a [f32]) {
    let tensor = weights.tensor(name).expect("the network has its tensors");
    (tensor.shape, tensor.values)
}
