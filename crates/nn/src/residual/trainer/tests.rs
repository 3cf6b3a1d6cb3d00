use selfmate_chess::Seed;

use super::super::bench::positions;
use super::super::config::{Config, ValueHead};
use super::super::network::Network;
use super::super::reference::{Reference, varied};
use super::super::session::{Outputs, Session};
use super::*;

fn tiny() -> Config {
    Config {
        planes: 13,
        blocks: 2,
        filters: 16,
        squeeze: 0,
        value: ValueHead::Scalar,
        value_hidden: 256,
    }
}

fn trainer(weights: &Weights, threads: usize) -> Trainer {
    Trainer::new(weights.clone(), TrainingConfig::default(), threads).unwrap()
}

#[test]
fn gradients_match_finite_differences() {
    let kinds = [
        tiny(),
        Config { squeeze: 4, blocks: 1, value_hidden: 48, ..tiny() },
        Config { value: ValueHead::Wdl, blocks: 1, planes: 9, filters: 32, ..tiny() },
    ];
    for config in kinds {
        let weights = varied(config, 6);
        let batch = positions(config, 3, Seed::new(6));
        let mut trainer = trainer(&weights, 1);
        let (losses, gradient) = trainer.gradient(&batch).unwrap();
        let reference = Reference::new(&weights);
        let [policy, value] = reference.loss(&batch);
        assert!((policy - f64::from(losses.policy)).abs() < 1e-4, "{losses:?} {policy}");
        assert!((value - f64::from(losses.value)).abs() < 1e-4, "{losses:?} {value}");

        let mut rng = Seed::new(6).derive("places").rng();
        for tensor in gradient.tensors() {
            if !tensor.trained {
                assert!(tensor.values.iter().all(|value| *value == 0.0));
                continue;
            }
            let largest = tensor.values.iter().fold(0.0f32, |most, value| most.max(value.abs()));
            let index = tensor.values.iter().position(|value| value.abs() == largest).unwrap();
            for index in [index, rng.below(tensor.values.len())] {
                let loss = |step: f64| {
                    let mut moved = reference.clone();
                    moved.tensors.get_mut(tensor.name).unwrap()[index] += step;
                    moved.loss(&batch).iter().sum::<f64>()
                };
                let slope = (loss(1e-6) - loss(-1e-6)) / 2e-6;
                let got = f64::from(tensor.values[index]);
                let tolerance = 2e-3 * f64::from(largest) + 2e-5;
                assert!(
                    (slope - got).abs() < tolerance,
                    "{config:?} {} at {index}: {got}, not {slope}",
                    tensor.name
                );
            }
        }
    }
}

#[test]
fn results_do_not_depend_on_threads() {
    let config = Config { squeeze: 8, ..tiny() };
    let weights = varied(config, 7);
    let batch = positions(config, 70, Seed::new(7));
    let train = |threads| {
        let mut trainer = trainer(&weights, threads);
        let losses: Vec<Losses> = (0..3).map(|_| trainer.step(&batch, 0.05).unwrap()).collect();
        (losses, trainer.state().unwrap())
    };
    let one = train(1);
    assert!(one == train(2));
    assert!(one == train(5));
}

#[test]
fn a_small_batch_can_be_memorised() {
    for value in [ValueHead::Scalar, ValueHead::Wdl] {
        let config = Config { value, ..tiny() };
        let weights = Weights::random(config, Seed::new(3)).unwrap();
        let source = positions(config, 64, Seed::new(3));
        // One move each, so the entropy of the targets and the minimum of the loss are 0.
        let mut batch = Batch::new(config);
        for position in 0..64 {
            let planes = &source.planes()[position * 13 * 64..(position + 1) * 13 * 64];
            let moves = source.moves(position);
            let chosen = position % moves.len();
            let policy: Vec<(u16, f32)> = moves
                .iter()
                .enumerate()
                .map(|(index, (m, _))| (*m, if index == chosen { 1.0 } else { 0.0 }))
                .collect();
            batch.push(planes, &policy, source.value(position)).unwrap();
        }
        let config = TrainingConfig { optimiser: Optimiser::adam(), ..TrainingConfig::default() };
        let mut trainer = Trainer::new(weights, config, 2).unwrap();
        let first = trainer.step(&batch, 3e-3).unwrap();
        let mut last = first;
        for _ in 0..200 {
            last = trainer.step(&batch, 3e-3).unwrap();
        }
        assert!(first.policy > 2.0 && last.policy < 0.1, "{first:?} to {last:?}");
        assert!(first.value > 0.5 && last.value < 0.05, "{first:?} to {last:?}");
        // Inference with running statistics must give the same moves.
        let mut outputs = Outputs::default();
        Session::new(&Network::new(trainer.weights())).run(batch.planes(), &mut outputs);
        let right = (0..64).filter(|position| {
            let logits = &outputs.policy[position * MOVES..(position + 1) * MOVES];
            let best = batch
                .moves(*position)
                .iter()
                .max_by(|a, b| logits[usize::from(a.0)].total_cmp(&logits[usize::from(b.0)]));
            best.unwrap().1 == 1.0
        });
        assert!(right.count() >= 58, "played as trained");
    }
}

#[test]
fn a_restored_trainer_continues_with_the_same_bits() {
    let weights = varied(tiny(), 8);
    let batch = positions(tiny(), 20, Seed::new(8));
    for optimiser in [Optimiser::sgd(), Optimiser::adam()] {
        let config = TrainingConfig { optimiser, ..TrainingConfig::default() };
        let mut trainer = Trainer::new(weights.clone(), config, 2).unwrap();
        trainer.step(&batch, 0.01).unwrap();
        let mut restored = Trainer::restore(&trainer.state().unwrap(), config, 1).unwrap();
        assert_eq!(restored.steps(), 1);
        assert_eq!(trainer.step(&batch, 0.01).unwrap(), restored.step(&batch, 0.01).unwrap());
        assert!(trainer.state().unwrap() == restored.state().unwrap());
        let other = match optimiser {
            Optimiser::Sgd { .. } => Optimiser::adam(),
            Optimiser::Adam { .. } => Optimiser::sgd(),
        };
        let config = TrainingConfig { optimiser: other, ..config };
        let error = Trainer::restore(&trainer.state().unwrap(), config, 1).unwrap_err();
        assert!(error.to_string().contains("with prefix 'first.'"), "{error}");
    }
}

#[test]
fn steps_match_the_formula() {
    // Plain gradient descent, unclipped, with decay, against the formula; running statistics too.
    let weights = varied(tiny(), 9);
    let batch = positions(tiny(), 4, Seed::new(9));
    let config = TrainingConfig { clip_norm: 1e9, weight_decay: 0.01, ..Default::default() };
    let mut trainer = Trainer::new(weights.clone(), config, 1).unwrap();
    let mut velocity = vec![0.0f32; weights.values.len()];
    let mut expected = weights.clone();
    for _ in 0..2 {
        let gradient = trainer.gradient(&batch).unwrap().1.clone();
        trainer.step(&batch, 0.1).unwrap();
        for tensor in weights.layout().entries.iter().filter(|entry| entry.trained) {
            for index in tensor.range.clone() {
                let slope = gradient.values[index] + 0.01 * expected.values[index];
                velocity[index] = 0.9 * velocity[index] + slope;
                expected.values[index] -= 0.1 * velocity[index];
            }
        }
        for tensor in expected.tensors().filter(|tensor| tensor.trained) {
            let got = trainer.weights().tensor(tensor.name).unwrap().values;
            for (got, expected) in got.iter().zip(tensor.values) {
                assert!((got - expected).abs() < 1e-5, "{}: {got} {expected}", tensor.name);
            }
        }
    }
    let clipped = TrainingConfig { clip_norm: 1e-3, weight_decay: 0.0, ..Default::default() };
    let mut trainer = Trainer::new(weights.clone(), clipped, 1).unwrap();
    let losses = trainer.step(&batch, 1.0).unwrap();
    assert!(losses.gradient_norm > 0.1);
    let moved: f64 = weights
        .tensors()
        .zip(trainer.weights().tensors())
        .filter(|(before, _)| before.trained)
        .flat_map(|(before, after)| before.values.iter().zip(after.values))
        .map(|(before, after)| f64::from(before - after).powi(2))
        .sum();
    assert!((moved.sqrt() - 1e-3).abs() < 2e-5, "moved {}", moved.sqrt());
}

#[test]
fn invalid_batches_change_nothing() {
    let weights = varied(tiny(), 10);
    let mut trainer = trainer(&weights, 1);
    let error = trainer.step(&Batch::new(tiny()), 0.1).unwrap_err();
    assert_eq!(error.to_string(), "the batch is empty");
    let other = Config { planes: 9, ..tiny() };
    let error = trainer.step(&positions(other, 2, Seed::new(1)), 0.1).unwrap_err();
    assert_eq!(
        error.to_string(),
        "positions of 576 numbers: expected 832, as in the network's encoding"
    );
    assert_eq!(trainer.weights(), &weights);

    let mut broken = weights.clone();
    broken.tensor_mut("value.output.bias").unwrap()[0] = f32::NAN;
    let mut trainer = Trainer::new(broken.clone(), TrainingConfig::default(), 1).unwrap();
    let error = trainer.step(&positions(tiny(), 2, Seed::new(1)), 0.1).unwrap_err();
    assert!(error.to_string().starts_with("step 0: policy loss"), "{error}");
    assert_eq!(trainer.weights().values[..100], broken.values[..100]);
}
