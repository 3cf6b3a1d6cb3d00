//! The moving average of the weights in training, which should be used for play.

use super::weights::Weights;

/// Prefix of the average in a training state.
pub(crate) const AVERAGE: &str = "average.";
/// Batches between two updates of the average.
const EVERY: u64 = 8;

/// Whether the average is updated after this many batches.
pub(crate) fn is_due(steps: u64) -> bool {
    steps.is_multiple_of(EVERY)
}

/// Adds the weights to the average; `rate` is their share per batch.
pub(crate) fn mix(average: &mut Weights, weights: &Weights, rate: f32, steps: u64) {
    // Early on, the plain mean of all weights so far forgets the initial weights faster.
    let rate = (1.0 - (1.0 - rate).powi(EVERY as i32)).max(1.0 / (steps / EVERY).max(1) as f32);
    for (average, value) in average.values.iter_mut().zip(&weights.values) {
        *average += rate * (value - *average);
    }
}

#[cfg(test)]
mod tests {
    use selfmate_chess::Seed;

    use super::super::config::Config;
    use super::*;

    #[test]
    fn an_average_is_first_a_mean_and_then_exponential() {
        let config = Config { blocks: 1, filters: 16, ..Config::small() };
        let [mut average, one, two] =
            [1, 2, 3].map(|seed| Weights::random(config, Seed::new(seed)).unwrap());
        let mixed = |share: f32, a: &Weights, b: &Weights| -> Vec<f32> {
            a.values.iter().zip(&b.values).map(|(a, b)| a + share * (b - a)).collect()
        };
        let is_near = |average: &Weights, expected: &[f32]| {
            average.values.iter().zip(expected).all(|(got, expected)| (got - expected).abs() < 1e-6)
        };
        assert!(!is_due(7) && is_due(8));
        mix(&mut average, &one, 0.005, 8);
        assert!(is_near(&average, &one.values), "the initial weights are forgotten");
        mix(&mut average, &two, 0.005, 16);
        assert!(is_near(&average, &mixed(0.5, &one, &two)));
        // Much later, one update has the share of eight batches.
        let expected = mixed(1.0 - 0.995f32.powi(8), &average, &one);
        mix(&mut average, &one, 0.005, 80_000);
        assert!(is_near(&average, &expected));
    }
}
