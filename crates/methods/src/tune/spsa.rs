//! Simultaneous perturbation stochastic approximation (Spall 1992): all weights are perturbed up or
//! down at once, the two engines that result play each other, and each weight moves in the
//! direction that scored better.

use selfmate_chess::Rng;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpsaConfig {
    /// Iterations per challenger.
    pub iterations: u64,
    /// Pairs of games per iteration.
    pub pairs: usize,
    /// The size of perturbations in units of a gene; decreases slowly.
    pub width: f64,
    /// The size of a step when one side wins all games.
    pub step: f64,
    /// The number of iterations after which steps have decreased to about two thirds.
    pub stability: f64,
}

impl Default for SpsaConfig {
    fn default() -> SpsaConfig {
        SpsaConfig { iterations: 40, pairs: 4, width: 0.3, step: 0.05, stability: 100.0 }
    }
}

/// The current weights.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spsa {
    /// In the genome's units.
    pub point: Vec<f64>,
    pub iteration: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Probe {
    /// 1 or -1 for each weight.
    pub signs: Vec<f64>,
    pub width: f64,
}

impl Spsa {
    pub fn new(point: Vec<f64>) -> Spsa {
        Spsa { point, iteration: 0 }
    }

    /// The next perturbation and its two points.
    pub fn probe(&self, config: &SpsaConfig, rng: &mut Rng) -> (Probe, Vec<f64>, Vec<f64>) {
        let signs: Vec<f64> =
            self.point.iter().map(|_| if rng.chance(0.5) { 1.0 } else { -1.0 }).collect();
        // Spall's exponents; smaller than the asymptotically optimal ones, which decrease too fast.
        let width = config.width / libm::pow(1.0 + self.iteration as f64, 0.101);
        let at = |side: f64| {
            let moved = self.point.iter().zip(&signs);
            moved.map(|(value, sign)| value + side * width * sign).collect::<Vec<f64>>()
        };
        let (up, down) = (at(1.0), at(-1.0));
        (Probe { signs, width }, up, down)
    }

    /// Moves the weights; `difference` is the score of the first point from -1 (lost all) to 1 (won
    /// all).
    pub fn learn(&mut self, config: &SpsaConfig, probe: &Probe, difference: f64) {
        let shrunk = libm::pow(1.0 + self.iteration as f64 / config.stability.max(1e-9), 0.602);
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
    fn it_finds_an_optimum_from_noisy_comparisons() {
        let top = [2.0, -1.0, 0.5, 3.0];
        let height =
            |point: &[f64]| -point.iter().zip(top).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
        let config = SpsaConfig { width: 0.5, step: 0.4, ..SpsaConfig::default() };
        let mut spsa = Spsa::new(vec![0.0; 4]);
        let mut rng = Seed::new(1).rng();
        for _ in 0..3000 {
            let (probe, up, down) = spsa.probe(&config, &mut rng);
            let chance = 1.0 / (1.0 + libm::exp(height(&down) - height(&up)));
            let won = if rng.chance(chance) { 1.0 } else { -1.0 };
            spsa.learn(&config, &probe, won);
        }
        assert!(height(&spsa.point) > -1.0, "{:?}", spsa.point);
        assert!(height(&spsa.point) > height(&[0.0; 4]) / 5.0);
    }
}
