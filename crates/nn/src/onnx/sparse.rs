//! The sparse network as a graph in floats, before rounding to integers.

use selfmate_encode::sparse::{MOVE_ROWS, MOVE_TABLE, THREAT_ROWS, THREATS3084, THREATS3084_LEN};

use super::Attribute::Integer;
use super::Graph;
use crate::sparse::{ValueHead, Weights};

pub fn graph(weights: &Weights) -> Graph {
    let mut graph = Graph::default();
    graph.input("features", &[THREATS3084_LEN]);
    graph.note("positions", THREATS3084);
    graph.note("moves", THREAT_ROWS);
    for tensor in weights.tensors() {
        graph.floats(tensor.name, &tensor.shape, tensor.values);
    }
    // Activations are clipped to [0, 1] and squared; those of the value head are clipped to [0,
    // 16].
    for (name, value) in [("zero", 0.0), ("one", 1.0), ("most", 16.0)] {
        graph.floats(name, &[], &[value]);
    }
    graph.node("Gemm", &["features", "input.weight", "input.bias"], "sums", &[]);
    graph.node("Clip", &["sums", "zero", "one"], "clipped", &[]);
    graph.node("Mul", &["clipped", "clipped"], "hidden", &[]);

    graph.linear("hidden", "policy.weight", "policy.bias", "policy_rows");
    graph.output("policy_rows", &[MOVE_ROWS]);
    graph.node("Identity", &["policy.table"], "policy_table", &[]);
    graph.constant_output("policy_table", &[MOVE_TABLE]);

    graph.linear("hidden", "value1.weight", "value1.bias", "value_sums");
    graph.node("Clip", &["value_sums", "zero", "most"], "value_units", &[]);
    let raw = graph.linear("value_units", "value2.weight", "value2.bias", "value_raw");
    match weights.config().value_head {
        ValueHead::Wdl => {
            graph.node("Softmax", &[&raw], "value", &[("axis", Integer(1))]);
            graph.output("value", &[3]);
        }
        ValueHead::Score => {
            // From log odds to a number from -1 to 1.
            graph.floats("half", &[], &[0.5]);
            graph.node("Mul", &[&raw, "half"], "value_half", &[]);
            graph.node("Tanh", &["value_half"], "value", &[]);
            graph.output("value", &[1]);
        }
    }
    graph
}
