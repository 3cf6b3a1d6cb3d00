//! The residual network: our convolutions, gradients and steps against Burn's.

use burn::tensor::{Device, Tensor, TensorData};
use selfmate_chess::env::ActionSpace;
use selfmate_chess::{Rng, Seed};
use selfmate_encode::MoveSpace;
use selfmate_nn::residual::{
    self, Batch, Config, Losses, Optimiser, Outputs, Session, TrainingConfig, ValueHead, Weights,
};
use selfmate_nn::{burn as burned, sparse};
use selfmate_search::{Evaluation, Evaluator, Leaf, Need, Wdl};

/// The smallest shapes that have every part.
pub fn shapes() -> [Config; 3] {
    let small = Config {
        planes: 13,
        blocks: 2,
        filters: 16,
        squeeze: 0,
        value: ValueHead::Scalar,
        value_hidden: 256,
    };
    [
        small,
        Config { squeeze: 8, value: ValueHead::Wdl, value_hidden: 48, ..small },
        Config { planes: 119, blocks: 1, filters: 32, squeeze: 4, ..small },
    ]
}

/// Random weights, with batch norms and heads that have an effect.
pub fn weights(config: Config) -> Weights {
    let mut weights = Weights::random(config, Seed::new(1)).unwrap();
    let mut rng = Seed::new(2).rng();
    let names: Vec<String> = weights.tensors().map(|tensor| tensor.name.to_owned()).collect();
    for name in names {
        let values = weights.tensor_mut(&name).unwrap();
        let mut between = |low: f32, high: f32| {
            values.iter_mut().for_each(|v| *v = low + (high - low) * rng.unit() as f32);
        };
        if name.ends_with("norm.weight") {
            between(0.5, 1.5);
        } else if name.ends_with("running_var") {
            between(0.5, 2.0);
        } else if name.ends_with("bias") || name.ends_with("running_mean") {
            between(-0.3, 0.3);
        } else if matches!(&*name, "policy.linear.weight" | "value.output.weight") {
            values.iter_mut().for_each(|v| *v *= 10.0);
        }
    }
    weights
}

pub fn leaves(count: usize) -> Vec<Leaf> {
    sparse::bench::leaves(count, Seed::new(3), Need::Both)
}

/// Positions of random games with random targets.
pub fn batch(config: Config, leaves: &[Leaf]) -> Batch {
    let mut rng: Rng = Seed::new(4).rng();
    let mut batch = Batch::new(config);
    for leaf in leaves {
        let mut policy: Vec<(u16, f32)> = Vec::new();
        for &m in &leaf.legal {
            let index = MoveSpace::Az4672.index(leaf.game.position(), m).unwrap();
            policy.push((index as u16, rng.unit() as f32));
        }
        let sum: f32 = policy.iter().map(|(_, share)| share).sum();
        policy.iter_mut().for_each(|(_, share)| *share /= sum);
        let value = Wdl::new(rng.unit() as f32 * 2.0 - 1.0, 0.3);
        batch.push(&config.encoding().encoded(&leaf.game), &policy, value).unwrap();
    }
    batch
}

/// The largest difference of two lists, and the largest absolute value of the second.
pub fn compare(ours: &[f32], theirs: &[f32]) -> (f32, f32) {
    assert_eq!(ours.len(), theirs.len());
    let furthest = ours.iter().zip(theirs).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    (furthest, theirs.iter().map(|b| b.abs()).fold(0.0, f32::max))
}

/// Compares tensor by tensor, relative to the largest value of each.
pub fn assert_near(ours: &Weights, theirs: &Weights, share: f32) {
    for (ours, theirs) in ours.tensors().zip(theirs.tensors()) {
        assert_eq!((ours.name, ours.shape), (theirs.name, theirs.shape));
        let (furthest, largest) = compare(ours.values, theirs.values);
        println!("{}: off by {furthest:e}, largest {largest:e}", ours.name);
        assert!(furthest <= share * largest, "{}: {furthest:e} of {largest:e}", ours.name);
    }
}

#[test]
fn weights_round_trip_through_a_device() {
    for config in shapes() {
        let weights = weights(config);
        let network = burned::Network::new(&weights, &Device::flex());
        assert!(network.weights().unwrap() == weights);
    }
}

/// Logits and values to 1e-4.
#[test]
fn our_forward_pass_matches_burn() {
    let device = Device::flex();
    for config in shapes() {
        let weights = weights(config);
        let planes: Vec<f32> =
            leaves(19).iter().flat_map(|leaf| config.encoding().encoded(&leaf.game)).collect();
        let mut ours = Outputs::default();
        Session::new(&residual::Network::new(&weights)).run(&planes, &mut ours);

        let data = TensorData::new(planes, [19, config.planes, 8, 8]);
        let theirs =
            burned::Network::new(&weights, &device).forward(Tensor::from_data(data, &device));
        let policy = theirs.policy.try_into_vec_as::<f32>().unwrap();
        let value = theirs.value.try_into_vec_as::<f32>().unwrap();
        for (ours, theirs) in [(&ours.policy, &policy), (&ours.value, &value)] {
            let (furthest, largest) = compare(ours, theirs);
            println!("{config:?}: off by {furthest:e}, largest {largest:e}");
            assert!(largest > 0.1, "{largest}");
            assert!(furthest < 1e-4, "{config:?}: {furthest:e} of {largest:e}");
        }
    }
}

/// Every derivative to 1e-3 of the largest of its tensor.
#[test]
fn our_gradients_match_automatic_differentiation() {
    let training =
        TrainingConfig { value_weight: 1.5, policy_weight: 0.7, ..TrainingConfig::default() };
    for config in shapes() {
        let (weights, batch) = (weights(config), batch(config, &leaves(12)));
        let mut ours = residual::Trainer::new(weights.clone(), training, 2).unwrap();
        let theirs = burned::Trainer::new(&weights, training, selfmate_nn::Device::Flex).unwrap();
        let (our_losses, our_gradient) = ours.gradient(&batch).unwrap();
        let (their_losses, their_gradient) = theirs.gradient(&batch).unwrap();
        println!("{our_losses:?} against {their_losses:?}");
        let list = |l: Losses| [l.policy, l.value, l.gradient_norm, l.weight_norm];
        for (ours, theirs) in list(our_losses).into_iter().zip(list(their_losses)) {
            assert!((ours / theirs - 1.0).abs() < 1e-4, "{our_losses:?} against {their_losses:?}");
        }
        assert_near(our_gradient, &their_gradient, 1e-3);
        for tensor in their_gradient.tensors() {
            let largest = tensor.values.iter().map(|v| v.abs()).fold(0.0, f32::max);
            assert_eq!(largest > 1e-5, tensor.trained, "{}: {largest:e}", tensor.name);
        }
    }
}

/// With both optimisers, clipping and decay, weights and running statistics change in the same way.
#[test]
fn our_steps_match_burn() {
    let config = shapes()[1];
    let optimisers = [
        Optimiser::Sgd { momentum: 0.9 },
        // A large epsilon, so that the direction of a step does not depend on derivatives near
        // zero.
        Optimiser::Adam { beta1: 0.9, beta2: 0.999, epsilon: 1e-2 },
    ];
    for optimiser in optimisers {
        let training = TrainingConfig {
            optimiser,
            weight_decay: 0.1,
            clip_norm: 0.5,
            ..TrainingConfig::default()
        };
        let weights = weights(config);
        let mut ours = residual::Trainer::new(weights.clone(), training, 2).unwrap();
        let mut theirs =
            burned::Trainer::new(&weights, training, selfmate_nn::Device::Flex).unwrap();
        let leaves = leaves(48);
        for leaves in leaves.chunks(12) {
            let batch = batch(config, leaves);
            let our_losses = ours.step(&batch, 1e-2).unwrap();
            let their_losses = theirs.step(&batch, 1e-2).unwrap();
            println!("{our_losses:?} against {their_losses:?}");
            assert!(their_losses.gradient_norm > training.clip_norm, "the test should clip");
            assert!((our_losses.policy - their_losses.policy).abs() < 1e-3);
            assert!((our_losses.value - their_losses.value).abs() < 1e-3);
        }
        assert_eq!((ours.steps(), theirs.steps()), (4, 4));
        let after = theirs.weights().unwrap();
        let moved = |name: &str| {
            let (moved, _) =
                compare(after.tensor(name).unwrap().values, weights.tensor(name).unwrap().values);
            moved
        };
        for name in ["stem.conv.weight", "stem.norm.running_var", "value.output.bias"] {
            assert!(moved(name) > 1e-3, "{name} moved by {}", moved(name));
        }
        assert_near(ours.weights(), &after, 1e-3);
    }
}

/// A batch seen often enough is learned, and a restored trainer continues with the same bits.
#[test]
fn a_trainer_on_burn_learns_and_resumes() {
    let config = shapes()[1];
    let adam = Optimiser::Adam { beta1: 0.9, beta2: 0.999, epsilon: 1e-8 };
    let training = TrainingConfig { optimiser: adam, ..TrainingConfig::default() };
    let (weights, batch) = (weights(config), batch(config, &leaves(16)));
    let device = selfmate_nn::Device::Flex;
    let mut trainer = burned::Trainer::new(&weights, training, device).unwrap();
    let first = trainer.step(&batch, 3e-3).unwrap();
    for _ in 0..20 {
        trainer.step(&batch, 3e-3).unwrap();
    }
    let mut twin = burned::Trainer::restore(&trainer.state().unwrap(), training, device).unwrap();
    assert_eq!(twin.steps(), 21);
    let last = trainer.step(&batch, 3e-3).unwrap();
    println!("{first:?} to {last:?}");
    assert!(last.policy < first.policy - 0.5, "{first:?} to {last:?}");
    assert!(last.value < first.value, "{first:?} to {last:?}");
    assert_eq!(twin.step(&batch, 3e-3).unwrap(), last);
    assert!(twin.weights().unwrap() == trainer.weights().unwrap());

    // Our own trainer resumes from this state too, and the other way round.
    let mut ours = residual::Trainer::restore(&trainer.state().unwrap(), training, 1).unwrap();
    let mut back = burned::Trainer::restore(&ours.state().unwrap(), training, device).unwrap();
    let (last, ours, back) = (
        trainer.step(&batch, 3e-3).unwrap(),
        ours.step(&batch, 3e-3).unwrap(),
        back.step(&batch, 3e-3).unwrap(),
    );
    assert_eq!(back, last);
    assert!((ours.policy - last.policy).abs() < 1e-3, "{ours:?} against {last:?}");
}

#[test]
fn an_evaluator_on_burn_matches_ours() {
    for config in shapes() {
        let weights = weights(config);
        let mut leaves = leaves(7);
        leaves[2].need = Need::Value;
        let (mut ours, mut theirs) =
            (vec![Evaluation::default(); 7], vec![Evaluation::default(); 7]);
        let network = residual::Network::new(&weights);
        residual::NetworkEvaluator::new(&network).evaluate(&leaves, &mut ours);
        let device = selfmate_nn::Device::Flex;
        let mut evaluator = burned::NetworkEvaluator::new(&weights, device).unwrap();
        evaluator.evaluate(&leaves, &mut theirs);
        evaluator.evaluate(&[], &mut []);
        for (ours, theirs) in ours.iter().zip(&theirs) {
            assert!((ours.wdl.value() - theirs.wdl.value()).abs() < 1e-4);
            assert!(compare(&ours.logits, &theirs.logits).0 < 1e-4);
        }
        assert!(theirs[2].logits.is_empty() && !theirs[0].logits.is_empty());
    }
}

#[test]
fn an_invalid_batch_changes_nothing() {
    let config = shapes()[0];
    let mut broken = weights(config);
    broken.tensor_mut("value.output.bias").unwrap()[0] = f32::NAN;
    let device = selfmate_nn::Device::Flex;
    let mut trainer = burned::Trainer::new(&broken, TrainingConfig::default(), device).unwrap();
    assert!(trainer.step(&Batch::new(config), 1e-2).is_err());
    let error = trainer.step(&batch(config, &leaves(4)), 1e-2).unwrap_err().to_string();
    assert!(error.contains("NaN"), "{error}");
    assert_eq!(trainer.steps(), 0);
    let after = trainer.weights().unwrap();
    assert_eq!(after.tensor("stem.conv.weight"), broken.tensor("stem.conv.weight"));
    let cpu = burned::Trainer::new(&broken, TrainingConfig::default(), selfmate_nn::Device::Cpu);
    assert_eq!(cpu.err().unwrap().to_string(), "the device cpu is not a Burn device");
}
