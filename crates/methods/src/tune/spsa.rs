//! Simultaneous perturbation (Spall 1992): all weights are tried up or down at once, two engines
//! that differ in every weight play, and each weight moves towards the side that scored.

use selfmate_chess::Rng;
use serde::{Deserialize, Serialize};

/// How weights move.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpsaConfig {
    /// Iterations between two trials.
    pub iterations: u64,
    /// Pairs of games of an iteration.
    pub pairs: usize,
    /// How far weights are tried, in units of a gene; shrinks slowly.
    pub width: f64,
    /// How far they move for a clean win.
    pub step: f64,
    /// Iterations after which steps have shrunk to two thirds.
    pub stability: f64,
}

impl Default for SpsaConfig {
    fn default() -> SpsaConfig {
        SpsaConfig { iterations: 40, pairs: 4, width: 0.3, step: 0.05, stability: 100.0 }
    }
}

/// Where the weights are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spsa {
    /// In the genome's units.
    pub point: Vec<f64>,
    /// Iterations so far.
    pub iteration: u64,
}

/// One perturbation.
#[derive(Clone, Debug, PartialEq)]
pub struct Probe {
    /// Up or down, for each weight.
    pub signs: Vec<f64>,
    /// How far.
    pub width: f64,
}

impl Spsa {
    /// Starts at a point.
    pub fn new(point: Vec<f64>) -> Spsa {
        Spsa { point, iteration: 0 }
    }

    /// What to try next, and the two points that it gives.
    pub fn probe(&self, config: &SpsaConfig, rng: &mut Rng) -> (Probe, Vec<f64>, Vec<f64>) {
        let signs: Vec<f64> =
            self.point.iter().map(|_| if rng.chance(0.5) { 1.0 } else { -1.0 }).collect();
        // Spall's exponents, which keep the steps from shrinking too soon.
        let width = config.width / (1.0 + self.iteration as f64).powf(0.101);
        let at = |side: f64| {
            let moved = self.point.iter().zip(&signs);
            moved.map(|(value, sign)| value + side * width * sign).collect::<Vec<f64>>()
        };
        let (up, down) = (at(1.0), at(-1.0));
        (Probe { signs, width }, up, down)
    }

    /// Moves by how much better the upper point did: from -1 for no points at all to 1.
    pub fn learn(&mut self, config: &SpsaConfig, probe: &Probe, difference: f64) {
        let shrunk = (1.0 + self.iteration as f64 / config.stability.max(1e-9)).powf(0.602);
        let step = config.step / shrunk;
        for (value, sign) in self.point.iter_mut().zip(&probe.signs) {
            *value += step * difference * sign;
        }
        self.iteration += 1;
    }
}

#[cfg(test)]
mod tests {
    use selfmate_chess::Seed;

    use super::*;

    #[test]
    fn it_climbs_a_hill_that_it_only_sees_by_noisy_comparisons() {
        let top = [2.0, -1.0, 0.5, 3.0];
        let height =
            |point: &[f64]| -point.iter().zip(top).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
        let config = SpsaConfig { width: 0.5, step: 0.4, ..SpsaConfig::default() };
        let mut spsa = Spsa::new(vec![0.0; 4]);
        let mut rng = Seed::new(1).rng();
        for _ in 0..3000 {
            let (probe, up, down) = spsa.probe(&config, &mut rng);
            let chance = 1.0 / (1.0 + (height(&down) - height(&up)).exp());
            let won = if rng.chance(chance) { 1.0 } else { -1.0 };
            spsa.learn(&config, &probe, won);
        }
        assert!(height(&spsa.point) > -1.0, "{:?}", spsa.point);
        assert!(height(&spsa.point) > height(&[0.0; 4]) / 5.0);
    }
}
