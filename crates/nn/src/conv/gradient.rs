//! The gradient of the loss of [`crate::mlp`].

use rayon::prelude::*;

use super::network::{Forward, Network};
use super::trunk::Backward;
use crate::mlp::{Goal, LossWeights, Losses, Target, Touched, add, add_policy_gradient};
use crate::small::Parameters;

/// A training sample: a position, its policy target and its result.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Nine planes.
    pub planes: Vec<f32>,
    /// The numbers of the legal moves.
    pub moves: Box<[u16]>,
    pub target: Target,
    /// For the side to move, from -1 to 1.
    pub result: f32,
}

impl Sample {
    fn goal(&self) -> Goal<'_> {
        Goal { target: &self.target, advantage: 1.0, result: self.result }
    }
}

/// Positions whose gradients are summed together: fixed, so that sums do not depend on threads.
const CHUNK: usize = 8;

/// The mean losses of a batch, without the gradient.
pub fn loss(network: &Network, samples: &[Sample]) -> Losses {
    let mut forward = Forward::default();
    let mut sum = Losses::default();
    for sample in samples {
        network.forward(&sample.planes, &sample.moves, &mut forward);
        sum = sum.plus(sample.goal().losses(&forward.logits, forward.value));
    }
    sum.mean(samples.len())
}

/// What the outputs of a position add to the gradient.
struct OutputDerivatives {
    hidden: Vec<f32>,
    logits: Vec<f32>,
    value: f32,
    losses: Losses,
}

/// The mean losses of a batch and their gradient.
pub fn gradient(
    network: &Network,
    samples: &[Sample],
    weights: &LossWeights,
) -> (Losses, Parameters) {
    let config = network.config();
    let backward = Backward::new(config.trunk(), &network.weights);
    let trunk_layout = config.trunk().layout(&[]);
    let chunks: Vec<(Parameters, Vec<OutputDerivatives>)> = samples
        .par_chunks(CHUNK)
        .map(|chunk| {
            let mut gradient = Parameters::zeros(&trunk_layout);
            let mut forward = Forward::default();
            let outputs = chunk.iter().map(|sample| {
                network.forward(&sample.planes, &sample.moves, &mut forward);
                let (derivatives, slopes) =
                    output_derivatives(network, sample, &forward, weights, samples.len());
                let activations = &mut forward.activations;
                backward.add_gradient(&sample.planes, activations, slopes, &mut gradient);
                derivatives
            });
            let outputs = outputs.collect();
            (gradient, outputs)
        })
        .collect();
    let mut total = Parameters::zeros(network.weights.layout());
    for (chunk, _) in &chunks {
        // The trunk's parts are the first ones of the network.
        add(&mut total.values, 1.0, &chunk.values);
    }
    let outputs = || chunks.iter().flat_map(|(_, outputs)| outputs);
    let index = config.value_index();
    for derivatives in outputs() {
        total.part_mut(index + 1)[0] += derivatives.value;
        add(total.part_mut(index), derivatives.value, &derivatives.hidden);
    }
    let touched: Vec<Touched<'_>> = samples
        .iter()
        .zip(outputs())
        .map(|(sample, derivatives)| Touched {
            moves: &sample.moves,
            slopes: &derivatives.logits,
            inputs: &derivatives.hidden,
        })
        .collect();
    let mut parts = total.parts_mut();
    let [rows, biases, ..] = &mut parts[config.policy_index()..] else {
        unreachable!("the policy has its weight, then its bias")
    };
    add_policy_gradient(&touched, rows, biases, config.hidden);
    let losses = outputs().map(|one| one.losses).fold(Losses::default(), Losses::plus);
    (losses.mean(samples.len()), total)
}

/// The derivatives by the outputs, and those by the hidden units.
fn output_derivatives(
    network: &Network,
    sample: &Sample,
    forward: &Forward,
    weights: &LossWeights,
    count: usize,
) -> (OutputDerivatives, Vec<f32>) {
    let config = network.config();
    let (losses, logits, value) =
        sample.goal().derivatives(&forward.logits, forward.value, weights, count);
    let mut slopes = vec![0.0; config.hidden];
    add(&mut slopes, value, network.weights.part(config.value_index()));
    let rows = network.weights.part(config.policy_index());
    for (&m, &slope) in sample.moves.iter().zip(&logits) {
        add(&mut slopes, slope, &rows[usize::from(m) * config.hidden..][..config.hidden]);
    }
    let hidden = forward.activations.hidden.clone();
    (OutputDerivatives { hidden, logits, value, losses }, slopes)
}

#[cfg(test)]
pub(super) mod tests {
    use selfmate_chess::Seed;

    use super::super::network::{ConvConfig, ENCODING};
    use super::super::trunk::Trunk;
    use super::*;

    const WEIGHTS: LossWeights = LossWeights { value: 0.7, entropy: 0.3 };

    pub(in super::super) fn samples(count: usize) -> Vec<Sample> {
        let mut rng = Seed::new(9).rng();
        (0..count)
            .map(|_| Sample {
                planes: (0..ENCODING.size()).map(|_| f32::from(rng.chance(0.1))).collect(),
                moves: (0..3).map(|i| (i * 1300 + rng.below(1300)) as u16).collect(),
                target: Target::Policy([0.5, 0.2, 0.3].into()),
                result: (2.0 * rng.unit() - 1.0) as f32,
            })
            .collect()
    }

    #[test]
    fn the_gradient_matches_finite_differences() {
        for has_skips in [false, true] {
            let config = ConvConfig { channels: 3, blocks: 2, has_skips, head: 2, hidden: 5 };
            let mut network = Network::random(config, Seed::new(2)).unwrap();
            let mut rng = Seed::new(3).rng();
            // Blocks and outputs large enough to have an effect.
            for block in 0..2 {
                network.weights.randomise(Trunk::second_of(block), 27, 1.0, &mut rng);
            }
            network.weights.randomise(config.policy_index(), 5, 2.0, &mut rng);
            network.weights.randomise(config.value_index(), 5, 1.0, &mut rng);
            let samples = samples(3);
            let (_, gradient) = gradient(&network, &samples, &WEIGHTS);
            let touched = (0..gradient.len()).filter(|&index| gradient.values[index] != 0.0);
            let mut off_by: Vec<f64> = Vec::new();
            for index in touched.step_by(3) {
                let at = |by: f32| {
                    let mut moved = network.clone();
                    moved.weights.values[index] += by;
                    loss(&moved, &samples).total(&WEIGHTS)
                };
                let slope = (at(1e-3) - at(-1e-3)) / 2e-3;
                let expected = f64::from(gradient.values[index]);
                off_by.push((slope - expected).abs() / (0.01 + expected.abs()));
            }
            assert!(off_by.len() > 100, "{}", off_by.len());
            // At the corner of a ReLU, the slope differs on the two sides.
            off_by.sort_by(f64::total_cmp);
            let most = off_by[off_by.len() * 95 / 100];
            assert!(most < 0.1, "{has_skips}: {most}");
        }
    }

    #[test]
    fn results_do_not_depend_on_threads() {
        let config = ConvConfig { channels: 4, blocks: 1, has_skips: true, head: 2, hidden: 8 };
        let network = Network::random(config, Seed::new(5)).unwrap();
        let samples = samples(30);
        let on = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| gradient(&network, &samples, &WEIGHTS))
        };
        assert!(on(1) == on(3));
    }
}
