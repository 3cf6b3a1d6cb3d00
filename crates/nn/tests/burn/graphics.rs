//! The residual network on a graphics device, which may be software such as Mesa's llvmpipe.

use selfmate_nn::residual::{self, TrainingConfig};
use selfmate_nn::{Device, burn as burned};
use selfmate_search::{Evaluation, Evaluator};

use super::residual::{assert_near, batch, compare, leaves, shapes, weights};

/// Training steps on the device match those of our own kernels.
#[test]
fn training_on_a_graphics_device_matches_the_cpu() {
    let training = TrainingConfig::default();
    for config in shapes() {
        let weights = weights(config);
        let mut ours = residual::Trainer::new(weights.clone(), training, 1).unwrap();
        let mut theirs = burned::Trainer::new(&weights, training, Device::Wgpu).unwrap();
        for leaves in leaves(24).chunks(12) {
            let batch = batch(config, leaves);
            let our_losses = ours.step(&batch, 1e-2).unwrap();
            let their_losses = theirs.step(&batch, 1e-2).unwrap();
            assert!((our_losses.policy - their_losses.policy).abs() < 1e-3);
            assert!((our_losses.value - their_losses.value).abs() < 1e-3);
        }
        assert_near(ours.weights(), &theirs.weights().unwrap(), 1e-3);
    }
}

/// In half precision if supported, so to some thousandths.
#[test]
fn inference_on_a_graphics_device_matches_the_cpu() {
    const COUNT: usize = 64;
    for config in shapes() {
        let weights = weights(config);
        let leaves = leaves(COUNT);
        let (mut ours, mut theirs) =
            (vec![Evaluation::default(); COUNT], vec![Evaluation::default(); COUNT]);
        let network = residual::Network::new(&weights);
        residual::NetworkEvaluator::new(&network).evaluate(&leaves, &mut ours);
        let mut evaluator = burned::NetworkEvaluator::new(&weights, Device::Wgpu).unwrap();
        evaluator.evaluate(&leaves, &mut theirs);
        let tolerance = if evaluator.is_half_precision() { 0.02 } else { 1e-4 };
        let best = |evaluation: &Evaluation| {
            let logits = evaluation.logits.iter().enumerate();
            logits.max_by(|a, b| a.1.total_cmp(b.1)).map(|(index, _)| index)
        };
        let mut same = 0;
        for (ours, theirs) in ours.iter().zip(&theirs) {
            assert!((ours.wdl.value() - theirs.wdl.value()).abs() < tolerance);
            assert!(compare(&ours.logits, &theirs.logits).0 < tolerance);
            same += usize::from(best(ours) == best(theirs));
        }
        println!(
            "{config:?}: {same} of {COUNT} best moves, half precision: {}",
            evaluator.is_half_precision()
        );
        assert!(same >= COUNT * 95 / 100, "{same} of {COUNT}");
    }
}
