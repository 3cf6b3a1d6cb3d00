//! CMA-ES: an evolution strategy that adapts its covariance matrix (Hansen and Ostermeier 2001; the
//! constants are from table 1 of Hansen's tutorial, arXiv 1604.00772).
//!
//! Points are drawn from a normal distribution. Its mean moves towards the better half of them, its
//! covariance grows along successful steps, and its step size depends on the length of the
//! evolution path.

use selfmate_chess::Rng;
use serde::{Deserialize, Serialize};

use super::eigen::{Eigen, eigen};

/// A normal distribution over points.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cma {
    mean: Vec<f64>,
    pub sigma: f64,
    /// Row-major.
    covariance: Vec<f64>,
    /// The eigenvectors of the covariance `stale` generations ago.
    axes: Eigen,
    stale: u64,
    path_sigma: Vec<f64>,
    path_covariance: Vec<f64>,
    lambda: usize,
    generation: u64,
}

/// Constants that depend only on the number of genes and of points.
struct Constants {
    weights: Vec<f64>,
    mu_eff: f64,
    c_sigma: f64,
    d_sigma: f64,
    c_c: f64,
    c_1: f64,
    c_mu: f64,
    /// The expected length of a standard normal vector.
    chi: f64,
}

impl Constants {
    fn new(n: usize, lambda: usize) -> Constants {
        let n = n as f64;
        let mu = (lambda / 2).max(1);
        let raw: Vec<f64> = (1..=mu)
            .map(|i| libm::log((lambda as f64 + 1.0) / 2.0) - libm::log(i as f64))
            .collect();
        let sum: f64 = raw.iter().sum();
        let weights: Vec<f64> = if sum > 0.0 {
            raw.iter().map(|w| w / sum).collect()
        } else {
            vec![1.0 / mu as f64; mu]
        };
        let mu_eff = 1.0 / weights.iter().map(|w| w * w).sum::<f64>();
        let c_sigma = (mu_eff + 2.0) / (n + mu_eff + 5.0);
        let d_sigma = 1.0 + 2.0 * (((mu_eff - 1.0) / (n + 1.0)).sqrt() - 1.0).max(0.0) + c_sigma;
        let c_c = (4.0 + mu_eff / n) / (n + 4.0 + 2.0 * mu_eff / n);
        let c_1 = 2.0 / ((n + 1.3).powi(2) + mu_eff);
        let c_mu = (2.0 * (mu_eff - 2.0 + 1.0 / mu_eff) / ((n + 2.0).powi(2) + mu_eff))
            .clamp(0.0, 1.0 - c_1);
        let chi = n.sqrt() * (1.0 - 1.0 / (4.0 * n) + 1.0 / (21.0 * n * n));
        Constants { weights, mu_eff, c_sigma, d_sigma, c_c, c_1, c_mu, chi }
    }
}

impl Cma {
    /// True when all vectors and matrices have this dimension.
    pub fn has_genes(&self, genes: usize) -> bool {
        let lists = [&self.mean, &self.path_sigma, &self.path_covariance, &self.axes.values];
        let squares = [&self.covariance, &self.axes.vectors];
        lists.iter().all(|list| list.len() == genes)
            && squares.iter().all(|square| square.len() == genes * genes)
            && self.lambda >= 2
    }

    /// Starts at `mean` with step size `sigma`; `lambda` points per generation.
    pub fn new(mean: Vec<f64>, sigma: f64, lambda: usize) -> Cma {
        let n = mean.len();
        Cma {
            sigma,
            covariance: identity(n),
            axes: Eigen { values: vec![1.0; n], vectors: identity(n) },
            stale: 0,
            path_sigma: vec![0.0; n],
            path_covariance: vec![0.0; n],
            lambda: lambda.max(2),
            generation: 0,
            mean,
        }
    }

    /// The points to evaluate next.
    pub fn ask(&self, rng: &mut Rng) -> Vec<Vec<f64>> {
        let n = self.mean.len();
        (0..self.lambda)
            .map(|_| {
                let normal: Vec<f64> =
                    self.axes.values.iter().map(|v| v.max(0.0).sqrt() * rng.normal()).collect();
                let step = self.axes.to_standard(&normal);
                (0..n).map(|i| self.mean[i] + self.sigma * step[i]).collect()
            })
            .collect()
    }

    /// Updates the distribution with the fitness of each point from [`Cma::ask`]; higher is better.
    pub fn tell(&mut self, points: &[Vec<f64>], fitness: &[f64]) {
        let n = self.mean.len();
        let c = Constants::new(n, self.lambda);
        let mut order: Vec<usize> = (0..points.len()).collect();
        // Stable, so that ties keep their order.
        order.sort_by(|&a, &b| fitness[b].total_cmp(&fitness[a]));
        // The steps of the better half, in units of the step size.
        let steps: Vec<Vec<f64>> = order
            .iter()
            .take(c.weights.len())
            .map(|&i| (0..n).map(|k| (points[i][k] - self.mean[k]) / self.sigma).collect())
            .collect();
        let mut step = vec![0.0; n];
        for (weight, one) in c.weights.iter().zip(&steps) {
            for (sum, value) in step.iter_mut().zip(one) {
                *sum += weight * value;
            }
        }
        for (mean, value) in self.mean.iter_mut().zip(&step) {
            *mean += self.sigma * value;
        }
        self.generation += 1;

        // C^(-1/2) · step, with the eigenvectors of C.
        let along = self.axes.to_axes(&step);
        let scaled: Vec<f64> =
            along.iter().zip(&self.axes.values).map(|(a, v)| a / v.max(1e-20).sqrt()).collect();
        let white = self.axes.to_standard(&scaled);
        let gain = (c.c_sigma * (2.0 - c.c_sigma) * c.mu_eff).sqrt();
        for (path, value) in self.path_sigma.iter_mut().zip(&white) {
            *path = (1.0 - c.c_sigma) * *path + gain * value;
        }
        let length = self.path_sigma.iter().map(|p| p * p).sum::<f64>().sqrt();
        let fading = 1.0 - libm::pow(1.0 - c.c_sigma, 2.0 * self.generation as f64);
        let is_steady = length / fading.sqrt() < (1.4 + 2.0 / (n as f64 + 1.0)) * c.chi;
        let gain = (c.c_c * (2.0 - c.c_c) * c.mu_eff).sqrt();
        for (path, value) in self.path_covariance.iter_mut().zip(&step) {
            *path = (1.0 - c.c_c) * *path + if is_steady { gain * value } else { 0.0 };
        }
        let lost = if is_steady { 0.0 } else { c.c_1 * c.c_c * (2.0 - c.c_c) };
        let keep = 1.0 - c.c_1 - c.c_mu + lost;
        for row in 0..n {
            for column in 0..n {
                let mut rank_mu = 0.0;
                for (weight, one) in c.weights.iter().zip(&steps) {
                    rank_mu += weight * one[row] * one[column];
                }
                let rank_one = self.path_covariance[row] * self.path_covariance[column];
                let value = &mut self.covariance[row * n + column];
                *value = keep * *value + c.c_1 * rank_one + c.c_mu * rank_mu;
            }
        }
        self.sigma *= libm::exp(((c.c_sigma / c.d_sigma) * (length / c.chi - 1.0)).min(1.0));
        // The eigenvectors change slowly, and computing them every generation costs more than it
        // gains.
        self.stale += 1;
        let rest = 1.0 / (10.0 * n as f64 * (c.c_1 + c.c_mu));
        if self.stale as f64 >= rest {
            self.axes = eigen(&self.covariance, n);
            self.stale = 0;
        }
    }

    /// The mean of the distribution.
    pub fn best(&self) -> &[f64] {
        &self.mean
    }
}

fn identity(n: usize) -> Vec<f64> {
    (0..n * n).map(|i| if i % (n + 1) == 0 { 1.0 } else { 0.0 }).collect()
}

#[cfg(test)]
mod tests {
    use selfmate_chess::Seed;

    use super::*;

    fn optimise(height: impl Fn(&[f64]) -> f64, n: usize, generations: usize) -> Cma {
        let mut cma = Cma::new(vec![0.5; n], 0.5, 4 + (3.0 * (n as f64).ln()) as usize);
        let mut rng = Seed::new(3).rng();
        for _ in 0..generations {
            let points = cma.ask(&mut rng);
            let fitness: Vec<f64> = points.iter().map(|point| height(point)).collect();
            cma.tell(&points, &fitness);
        }
        cma
    }

    #[test]
    fn it_finds_the_optimum_of_sphere_ellipsoid_and_rosenbrock() {
        let sphere = |x: &[f64]| -x.iter().map(|v| v * v).sum::<f64>();
        let cma = optimise(sphere, 8, 200);
        assert!(sphere(cma.best()) > -1e-8, "{}", sphere(cma.best()));
        // Axes that differ a thousandfold need an adapted covariance.
        let ellipsoid = |x: &[f64]| {
            let n = x.len() as f64 - 1.0;
            -x.iter().enumerate().map(|(i, v)| 1e6f64.powf(i as f64 / n) * v * v).sum::<f64>()
        };
        let cma = optimise(ellipsoid, 6, 600);
        assert!(ellipsoid(cma.best()) > -1e-8, "{}", ellipsoid(cma.best()));
        // The valley of the Rosenbrock function is curved.
        let rosenbrock = |x: &[f64]| {
            -x.windows(2)
                .map(|w| 100.0 * (w[1] - w[0] * w[0]).powi(2) + (1.0 - w[0]).powi(2))
                .sum::<f64>()
        };
        let cma = optimise(rosenbrock, 4, 800);
        assert!(rosenbrock(cma.best()) > -1e-6, "{}", rosenbrock(cma.best()));
    }

    #[test]
    fn weights_add_up_and_the_state_round_trips() {
        let constants = Constants::new(10, 12);
        assert!((constants.weights.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        // From the tutorial: mu_eff is about a quarter of lambda.
        assert!((2.5..5.0).contains(&constants.mu_eff), "{}", constants.mu_eff);
        let cma = optimise(|x| -x[0].abs(), 3, 5);
        let text = serde_json::to_string(&cma).unwrap();
        assert_eq!(serde_json::from_str::<Cma>(&text).unwrap(), cma);
    }
}
