use selfmate_chess::Seed;
use selfmate_search::{Need, Wdl};

use super::super::bench;
use super::super::float::evaluate;
use super::super::{SparseConfig, ValueHead};
use super::*;

fn tiny(value_head: ValueHead) -> Weights {
    let config = SparseConfig { hidden: 64, value_hidden: 8, value_head };
    let mut weights = Weights::random(config, Seed::new(5)).unwrap();
    // Larger than in a new network, so that no derivative is nearly zero.
    weights.value2.iter_mut().for_each(|w| *w *= 10.0);
    weights.policy.iter_mut().for_each(|w| *w *= 10.0);
    weights
}

/// The mean loss, from the plain forward pass, in f64.
fn loss(weights: &Weights, batch: &[&Sample], config: &TrainerConfig) -> f64 {
    let one = |sample: &&Sample| -> f64 {
        let output = evaluate(weights, sample);
        let [win, draw, lose] = sample.wdl().map(f64::from);
        let Wdl { win: w, draw: d, loss: l } = output.wdl;
        let value = match weights.config().value_head {
            ValueHead::Wdl => -win * ln(w) - draw * ln(d) - lose * ln(l),
            ValueHead::Score => -(win + draw / 2.0) * ln(w) - (lose + draw / 2.0) * ln(l),
        };
        let highest = output.logits.iter().copied().fold(f32::MIN, f32::max);
        let exp = |logit: f32| f64::from(logit - highest).exp();
        let sum: f64 = output.logits.iter().copied().map(exp).sum();
        let total: f64 = sample.shares().iter().map(|s| f64::from(*s)).sum();
        let shares = sample.shares().iter().zip(&output.logits);
        let policy: f64 =
            shares.map(|(s, &logit)| -f64::from(*s) / total * (exp(logit) / sum).ln()).sum();
        f64::from(config.value_weight) * value + f64::from(config.policy_weight) * policy
    };
    batch.iter().map(one).sum::<f64>() / batch.len() as f64
}

fn ln(p: f32) -> f64 {
    f64::from(p).ln()
}

#[test]
fn gradients_match_finite_differences() {
    let samples = bench::samples(40, Seed::new(2));
    let batch: Vec<&Sample> = samples.iter().collect();
    let config = TrainerConfig { value_weight: 1.5, policy_weight: 0.7, ..Default::default() };
    let losses = LossWeights { value: config.value_weight, policy: config.policy_weight };
    for head in [ValueHead::Wdl, ValueHead::Score] {
        for kernel in Kernel::all() {
            let weights = tiny(head);
            let mut gradient = Gradient::new(weights.config()).unwrap();
            let sums = gradient.add(kernel, &weights, &batch, losses);
            let total = f64::from(config.value_weight) * sums[0]
                + f64::from(config.policy_weight) * sums[1];
            assert!((total / 40.0 - loss(&weights, &batch, &config)).abs() < 1e-4);
            for (number, tensor) in gradient.sums.tensors().into_iter().enumerate() {
                // The largest derivatives of each tensor, and one that must be zero or tiny.
                let mut order: Vec<usize> = (0..tensor.values.len()).collect();
                order.sort_by(|a, b| tensor.values[*b].abs().total_cmp(&tensor.values[*a].abs()));
                let chosen = [0, 1, 2, order.len() / 50, order.len() / 10, order.len() - 1];
                for index in chosen.map(|nth| order[nth.min(order.len() - 1)]) {
                    let shifted = |by: f32| {
                        let mut weights = weights.clone();
                        weights.tensors_mut()[number].values[index] += by;
                        loss(&weights, &batch, &config)
                    };
                    let step = 2e-3;
                    let numeric = (shifted(step) - shifted(-step)) / (2.0 * f64::from(step));
                    let ours = f64::from(tensor.values[index]) / 40.0;
                    let error = (ours - numeric).abs();
                    assert!(
                        error < 2e-4 + 0.02 * numeric.abs(),
                        "{head:?} {}[{index}]: {ours} against {numeric}",
                        tensor.name
                    );
                }
            }
        }
    }
}

#[test]
fn one_thread_and_three_give_the_same_bits() {
    // Parts and pieces that are full, and ones that are not.
    let samples = bench::samples(1500, Seed::new(3));
    let batch: Vec<&Sample> = samples.iter().collect();
    let train = |threads: usize| {
        let mut trainer =
            Trainer::new(tiny(ValueHead::Wdl), TrainerConfig::default(), threads).unwrap();
        let losses: Vec<Losses> = (0..9).map(|_| trainer.train(&batch, 1e-3).unwrap()).collect();
        (trainer.state().unwrap(), losses)
    };
    let (one, three) = (train(1), train(3));
    assert_eq!(one.1, three.1);
    assert!(one.0 == three.0, "the weights differ");
}

#[test]
fn a_restored_trainer_continues_with_the_same_bits() {
    let samples = bench::samples(100, Seed::new(4));
    let batch: Vec<&Sample> = samples.iter().collect();
    let config = TrainerConfig { weight_decay: 0.01, ..Default::default() };
    let mut trainer = Trainer::new(tiny(ValueHead::Wdl), config, 1).unwrap();
    for _ in 0..5 {
        trainer.train(&batch, 1e-3).unwrap();
    }
    let mut twin = Trainer::restore(&trainer.state().unwrap(), config, 2).unwrap();
    for _ in 0..5 {
        trainer.train(&batch, 1e-3).unwrap();
        twin.train(&batch, 1e-3).unwrap();
    }
    assert_eq!(twin.step(), 10);
    assert!(trainer.state().unwrap() == twin.state().unwrap());
    let weights = super::super::encode(trainer.weights(), WeightsInfo { step: 1 }).unwrap();
    let error = Trainer::restore(&weights, config, 1).err().unwrap().to_string();
    assert!(error.contains("prefix 'first.'"), "{error}");
}

#[test]
fn weights_stay_within_their_bounds() {
    let samples = bench::samples(64, Seed::new(6));
    let batch: Vec<&Sample> = samples.iter().collect();
    let mut trainer = Trainer::new(tiny(ValueHead::Wdl), TrainerConfig::default(), 1).unwrap();
    for _ in 0..10 {
        trainer.train(&batch, 1.0).unwrap();
    }
    for tensor in trainer.weights().tensors() {
        assert!(tensor.values.iter().all(|v| v.abs() <= tensor.bound), "{}", tensor.name);
    }
}

#[test]
fn an_invalid_batch_changes_nothing() {
    let mut trainer = Trainer::new(tiny(ValueHead::Wdl), TrainerConfig::default(), 1).unwrap();
    assert!(matches!(trainer.train(&[], 1e-3), Err(TrainError::Empty)));
    let samples = bench::samples(8, Seed::new(7));
    let batch: Vec<&Sample> = samples.iter().collect();
    trainer.weights.value2_bias[0] = f32::NAN;
    trainer.weights.input[0] = 0.5;
    let before = trainer.weights.input.clone();
    let result = trainer.train(&batch, 1e-3);
    assert!(matches!(result, Err(TrainError::NotFinite { step: 0, .. })), "{result:?}");
    assert_eq!(trainer.weights.input, before);
    assert!(trainer.gradient.sums.tensors().iter().all(|t| t.values.iter().all(|v| *v == 0.0)));
}

#[test]
fn unused_rows_are_not_updated() {
    let samples = bench::samples(3, Seed::new(8));
    let batch: Vec<&Sample> = samples.iter().collect();
    let config = TrainerConfig { weight_decay: 1.0, ..Default::default() };
    let start = tiny(ValueHead::Wdl);
    let mut trainer = Trainer::new(start.clone(), config, 1).unwrap();
    trainer.train(&batch, 1e-2).unwrap();
    for row in 0..3084u16 {
        let used = samples.iter().any(|sample| sample.features().contains(&row));
        let rows = usize::from(row) * 64..(usize::from(row) + 1) * 64;
        let moved = trainer.weights.input[rows.clone()] != start.input[rows];
        assert_eq!(used, moved, "feature {row}");
    }
    assert!(bench::leaves(5, Seed::new(1), Need::Value).iter().all(|l| l.need == Need::Value));
}
