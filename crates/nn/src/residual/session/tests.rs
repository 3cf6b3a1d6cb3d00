use selfmate_chess::Seed;

use super::super::bench::positions;
use super::super::config::Config;
use super::super::kernel::{IntegerKernel, Kernel};
use super::super::reference::{Reference, Statistics, distance, varied};
use super::*;

/// A small network of every kind.
fn kinds() -> [Config; 4] {
    let small = Config {
        planes: 119,
        blocks: 2,
        filters: 32,
        squeeze: 0,
        value: ValueHead::Scalar,
        value_hidden: 256,
    };
    [
        small,
        Config { squeeze: 8, value_hidden: 48, ..small },
        Config { planes: 13, filters: 48, value: ValueHead::Wdl, ..small },
        Config { planes: 9, blocks: 1, filters: 80, ..small },
    ]
}

#[test]
fn networks_match_the_reference() {
    for config in kinds().into_iter().chain([Config::toy()]) {
        let weights = varied(config, 3);
        let batch = positions(config, 3, Seed::new(8));
        let exact = Reference::new(&weights).evaluate(batch.planes(), Statistics::Running);
        for kernel in Kernel::all() {
            let mut outputs = Outputs::default();
            let network = Network::with_kernel(&weights, kernel);
            Session::new(&network).run(batch.planes(), &mut outputs);
            let (policy, value) = distance(&exact, &outputs.policy, &outputs.value);
            assert!(policy < 1e-4 && value < 1e-4, "{config:?} {kernel:?}: {policy} {value}");
            let range = outputs.policy.iter().fold(0.0f32, |most, logit| most.max(logit.abs()));
            assert!(range > 0.3, "logits up to {range} are too small for this test");
        }
    }
}

#[test]
fn a_position_has_the_same_bits_in_any_batch_and_with_any_threads() {
    for config in kinds() {
        let network = Network::new(&varied(config, 5));
        let count = GROUP + BLOCK + 3;
        let batch = positions(config, count, Seed::new(9));
        let (mut all, mut one) = (Outputs::default(), Outputs::default());
        Session::new(&network).run(batch.planes(), &mut all);
        for threads in [2, 3] {
            let mut session = Session::with_threads(&network, threads).unwrap();
            session.run(batch.planes(), &mut one);
            assert!(all.policy == one.policy && all.value == one.value);
        }
        let mut session = Session::with_threads(&network, 2).unwrap();
        let size = config.planes * 64;
        for position in [0, 7, 8, count - 1] {
            session.run(&batch.planes()[position * size..(position + 1) * size], &mut one);
            assert_eq!(&one.policy[..], &all.policy[position * MOVES..(position + 1) * MOVES]);
            assert_eq!(one.wdl(0), all.wdl(position));
        }
        session.run(&[], &mut one);
        assert!(one.policy.is_empty() && one.value.is_empty());
    }
}

#[test]
fn probabilities_follow_the_value_head() {
    let wdl = wdl_of_outputs(ValueHead::Scalar, &[0.5]);
    assert!((wdl.value() - 0.5f32.tanh()).abs() < 1e-6 && wdl.draw == 0.0);
    let wdl = wdl_of_outputs(ValueHead::Wdl, &[2f32.ln(), 0.0, 0.0]);
    assert!((wdl.win - 0.5).abs() < 1e-6 && (wdl.draw - 0.25).abs() < 1e-6);
}

#[test]
fn quantised_networks_are_close_and_have_the_same_bits_everywhere() {
    for config in kinds() {
        let weights = varied(config, 11);
        let calibration = positions(config, 64, Seed::new(11));
        let batch = positions(config, 40, Seed::new(12));
        let (mut exact, mut integers) = (Outputs::default(), Outputs::default());
        Session::new(&Network::new(&weights)).run(batch.planes(), &mut exact);
        let results = [IntegerKernel::Portable, IntegerKernel::detect()].map(|kernel| {
            let network = Network::quantised_with(&weights, calibration.planes(), kernel);
            Session::with_threads(&network, 2).unwrap().run(batch.planes(), &mut integers);
            assert!(network.is_quantised());
            integers.clone()
        });
        assert!(results[0].policy == results[1].policy && results[0].value == results[1].value);
        let (mut error, mut spread) = (0.0f64, 0.0f64);
        for (exact, got) in exact.policy.iter().zip(&integers.policy) {
            error += f64::from(exact - got).powi(2);
            spread += f64::from(*exact).powi(2);
        }
        assert!(error > 0.0 && error < 0.01 * spread, "{config:?}: {error} of {spread}");
    }
}
