//! Positions with a network's outputs, to check other runtimes.

use selfmate_chess::Seed;
use selfmate_encode::sparse::THREATS3084_LEN;
use selfmate_search::{Leaf, Need, Wdl};

use crate::Model;
use crate::file::{self, Stored, WeightsError};
use crate::residual::{Network, Outputs, Session, ValueHead};
use crate::sparse::{self, Sample, bench};

/// Positions of random games with the network's outputs, as a safetensors file with the names of
/// the ONNX file's inputs and outputs. The logits of a sparse network are listed move by move, with
/// the position and the two entries of each move.
pub fn examples(model: &Model, count: usize, seed: Seed) -> Result<Vec<u8>, WeightsError> {
    let leaves = bench::leaves(count, seed, Need::Both);
    let tensors = match model {
        Model::Residual(weights) => residual(weights, &leaves)?,
        Model::Sparse(weights) => sparse(weights, &leaves)?,
        Model::Mlp(_) | Model::Conv(_) => return Err(super::unsupported()),
    };
    file::encode(&"examples", &tensors)
}

fn residual(
    weights: &crate::residual::Weights,
    leaves: &[Leaf],
) -> Result<Vec<Stored>, WeightsError> {
    let (config, count) = (weights.config(), leaves.len());
    let planes: Vec<f32> =
        leaves.iter().flat_map(|leaf| config.encoding().encoded(&leaf.game)).collect();
    let mut outputs = Outputs::default();
    Session::new(&Network::new(weights)).run(&planes, &mut outputs);
    let value: Vec<f32> = (0..count)
        .flat_map(|index| match config.value {
            ValueHead::Scalar => vec![outputs.wdl(index).value()],
            ValueHead::Wdl => numbers(outputs.wdl(index)).to_vec(),
        })
        .collect();
    let moves = outputs.policy.len() / count;
    Ok(vec![
        Stored::floats("planes".into(), vec![count, config.planes, 8, 8], &planes)?,
        Stored::floats("policy".into(), vec![count, moves], &outputs.policy)?,
        Stored::floats("value".into(), vec![count, value.len() / count], &value)?,
    ])
}

fn sparse(weights: &sparse::Weights, leaves: &[Leaf]) -> Result<Vec<Stored>, WeightsError> {
    let mut features = vec![0.0; leaves.len() * THREATS3084_LEN];
    // Small integers are exact as floats.
    let (mut entries, mut logits, mut value) = ([vec![], vec![], vec![]], vec![], vec![]);
    for (position, leaf) in leaves.iter().enumerate() {
        let nothing = vec![0.0; leaf.legal.len()];
        let sample = Sample::new(&leaf.game, &leaf.legal, &nothing, Wdl::EVEN)
            .expect("one probability for each legal move");
        for &feature in sample.features() {
            features[position * THREATS3084_LEN + usize::from(feature)] = 1.0;
        }
        let output = sparse::evaluate(weights, &sample);
        value.extend(match weights.config().value_head {
            sparse::ValueHead::Wdl => numbers(output.wdl).to_vec(),
            sparse::ValueHead::Score => vec![output.wdl.value()],
        });
        for ((&row, &entry), logit) in sample.rows().iter().zip(sample.table()).zip(output.logits) {
            let numbers = [position as f32, f32::from(row), f32::from(entry)];
            entries.iter_mut().zip(numbers).for_each(|(list, number)| list.push(number));
            logits.push(logit);
        }
    }
    let count = leaves.len();
    let [position, row, entry] = entries;
    let list =
        |name: &str, values: &[f32]| Stored::floats(name.to_owned(), vec![values.len()], values);
    Ok(vec![
        Stored::floats("features".into(), vec![count, THREATS3084_LEN], &features)?,
        Stored::floats("value".into(), vec![count, value.len() / count], &value)?,
        list("move.position", &position)?,
        list("move.row", &row)?,
        list("move.table", &entry)?,
        list("move.logit", &logits)?,
    ])
}

fn numbers(wdl: Wdl) -> [f32; 3] {
    [wdl.win, wdl.draw, wdl.loss]
}
