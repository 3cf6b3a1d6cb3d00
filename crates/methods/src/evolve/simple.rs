//! The simple evolution strategy (μ + λ): the next parents are the best of parents and children.
//!
//! A child is a parent with normal noise on every gene. Parents stay until children beat them
//! (elitism). The noise grows when more than a fifth of the children are better than the worst
//! parent, and shrinks otherwise (Rechenberg's rule).

use selfmate_chess::Rng;
use serde::{Deserialize, Serialize};

/// Parents, best first, and the size of mutations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Simple {
    parents: Vec<Member>,
    /// The standard deviation of mutations.
    pub sigma: f64,
    mu: usize,
    lambda: usize,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Member {
    point: Vec<f64>,
    /// The mean result, in which older results weigh less. Repeated trials expose a lucky parent.
    fitness: f64,
    trials: f64,
}

/// The weight of an old result relative to a new one.
const OLD_WEIGHT: f64 = 0.7;
/// The factor by which the noise changes.
const SIGMA_FACTOR: f64 = 1.15;

impl Simple {
    /// Starts with one parent.
    pub fn new(point: Vec<f64>, sigma: f64, mu: usize, lambda: usize) -> Simple {
        let parents = vec![Member { point, fitness: 0.5, trials: 0.0 }];
        Simple { parents, sigma, mu, lambda }
    }

    /// Starts with a whole population: all parents but the first are mutated.
    pub fn with_parents(
        point: Vec<f64>,
        sigma: f64,
        mu: usize,
        lambda: usize,
        rng: &mut Rng,
    ) -> Simple {
        let mut simple = Simple::new(point, sigma, mu, lambda);
        let first = simple.parents[0].clone();
        simple.parents.extend((1..mu).map(|_| {
            let point = first.point.iter().map(|gene| gene + sigma * rng.normal()).collect();
            Member { point, ..first.clone() }
        }));
        simple
    }

    /// The points to evaluate: the parents again, then the children.
    pub fn ask(&self, rng: &mut Rng) -> Vec<Vec<f64>> {
        let mut points: Vec<Vec<f64>> =
            self.parents.iter().map(|member| member.point.clone()).collect();
        for child in 0..self.lambda {
            let parent = &self.parents[child % self.parents.len()].point;
            points.push(parent.iter().map(|gene| gene + self.sigma * rng.normal()).collect());
        }
        points
    }

    /// Selects the next parents by the fitness of each point from [`Simple::ask`].
    pub fn tell(&mut self, points: Vec<Vec<f64>>, fitness: &[f64]) {
        let parents = self.parents.len();
        let mut members: Vec<Member> = Vec::with_capacity(points.len());
        for (index, (point, &fitness)) in points.into_iter().zip(fitness).enumerate() {
            let old = self.parents.get(index);
            let (before, weight) =
                old.map_or((0.0, 0.0), |old| (old.fitness, OLD_WEIGHT * old.trials));
            let trials = weight + 1.0;
            members.push(Member { point, fitness: (before * weight + fitness) / trials, trials });
        }
        let worst = members[..parents].iter().map(|m| m.fitness).fold(f64::INFINITY, f64::min);
        let better = members[parents..].iter().filter(|m| m.fitness > worst).count();
        let is_easy = 5 * better > self.lambda;
        self.sigma = if is_easy {
            self.sigma * SIGMA_FACTOR
        } else {
            self.sigma / libm::pow(SIGMA_FACTOR, 0.25)
        };
        // Stable, so that a parent wins a tie.
        members.sort_by(|a, b| b.fitness.total_cmp(&a.fitness));
        members.truncate(self.mu);
        self.parents = members;
    }

    /// True when there are parents and all of them have this many genes.
    pub fn has_genes(&self, genes: usize) -> bool {
        !self.parents.is_empty() && self.parents.iter().all(|parent| parent.point.len() == genes)
    }

    pub fn best(&self) -> &[f64] {
        &self.parents[0].point
    }
}

#[cfg(test)]
mod tests {
    use selfmate_chess::Seed;

    use super::*;

    #[test]
    fn it_finds_the_optimum_of_a_quadratic() {
        let top = [3.0, -2.0, 1.0];
        let height =
            |point: &[f64]| -point.iter().zip(top).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
        let mut simple = Simple::new(vec![0.0; 3], 0.5, 3, 9);
        let mut rng = Seed::new(1).rng();
        for _ in 0..200 {
            let points = simple.ask(&mut rng);
            let fitness: Vec<f64> = points.iter().map(|point| height(point)).collect();
            simple.tell(points, &fitness);
        }
        assert!(height(simple.best()) > -0.01, "{simple:?}");
    }

    #[test]
    fn parents_stay_until_they_are_beaten() {
        let mut simple = Simple::new(vec![1.0], 0.1, 2, 3);
        let mut rng = Seed::new(2).rng();
        for _ in 0..5 {
            let points = simple.ask(&mut rng);
            let fitness: Vec<f64> =
                (0..points.len()).map(|i| if i == 0 { 1.0 } else { 0.0 }).collect();
            simple.tell(points, &fitness);
            assert_eq!(simple.best(), [1.0]);
        }
        assert!(simple.sigma < 0.1);
    }

    #[test]
    fn a_population_keeps_its_size_and_its_better_half() {
        let mut rng = Seed::new(3).rng();
        let mut simple = Simple::with_parents(vec![0.0], 1.0, 10, 10, &mut rng);
        for _ in 0..3 {
            let points = simple.ask(&mut rng);
            assert_eq!(points.len(), 20);
            let mut sorted: Vec<f64> = points.iter().map(|point| point[0]).collect();
            sorted.sort_by(|a, b| b.total_cmp(a));
            let fitness: Vec<f64> = points.iter().map(|point| point[0]).collect();
            simple.tell(points, &fitness);
            let kept: Vec<f64> = simple.parents.iter().map(|parent| parent.point[0]).collect();
            assert_eq!(kept, sorted[..10]);
        }
    }
}
