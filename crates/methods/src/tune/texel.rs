//! Texel tuning: finds the weights that predict game results best (Österlund 2014).
//!
//! A logistic curve turns the static evaluation of quiet positions into an expected score; its
//! steepness K is fitted first. Gradient descent on the squared error then fits the weights. Near
//! the start the evaluation is almost linear in its weights, so each weight is changed once and the
//! effect on every position is kept as its derivative. A penalty on the distance from the start
//! keeps weights in place that the positions do not determine. The result is the step with the
//! smallest error on held-out games.

use rayon::prelude::*;
use selfmate_arena::Tuning;
use selfmate_arena::game::{PlayedGame, Termination};
use selfmate_arena::players::best_exchange;
use selfmate_chess::{Chess, Color, Position};
use selfmate_search::alphabeta::StaticEval;
use serde::{Deserialize, Serialize};

use crate::tuning::Genome;

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TexelConfig {
    /// Games of the champion against itself for the fit.
    pub games: usize,
    /// Earlier trials whose games are used too.
    pub trials: usize,
    /// The most positions; if there are more, every n-th is used.
    pub positions: usize,
    /// The weight of a game's result in the target; the rest is the score of the search.
    pub result_weight: f64,
    pub steps: u32,
    /// The learning rate, in units of a gene.
    pub rate: f64,
    /// The weight of the penalty on the distance from the start.
    pub pull: f64,
}

impl Default for TexelConfig {
    fn default() -> TexelConfig {
        TexelConfig {
            games: 300,
            trials: 20,
            positions: 150_000,
            result_weight: 0.4,
            steps: 300,
            rate: 0.02,
            pull: 2e-5,
        }
    }
}

impl TexelConfig {
    /// The target score of each example.
    fn targets(&self, examples: &[Example], k: f64) -> Vec<f64> {
        let target = |example: &Example| {
            let searched =
                example.search_score.map_or(example.result, |cp| expected(k, f64::from(cp)));
            self.result_weight * example.result + (1.0 - self.result_weight) * searched
        };
        examples.iter().map(target).collect()
    }
}

/// A quiet position with the result of its game.
#[derive(Clone, Debug)]
pub struct Example {
    position: Chess,
    /// For the side to move: 1, ½ or 0.
    result: f64,
    /// The score of the search, in centipawns for the side to move.
    search_score: Option<i32>,
}

/// Examples of a fit; the two lists are of different games.
#[derive(Clone, Debug)]
pub struct FitExamples {
    pub training: Vec<Example>,
    /// Decides which step of the fit is best.
    pub held_out: Vec<Example>,
}

/// Positions with scores beyond this are decided and not used.
const DECIDED: i32 = 1500;

/// The quiet positions of a game after its opening: no check, and no capture wins material.
/// A truncated game has no result, so it has no examples.
pub fn examples(game: &PlayedGame) -> Vec<Example> {
    if game.termination == Termination::Truncated {
        return Vec::new();
    }
    let Ok(replayed) = game.replay() else { return Vec::new() };
    let mut position = replayed.start().clone();
    let mut examples = Vec::new();
    for (ply, m) in replayed.moves().enumerate() {
        if let Some(eval) = ply.checked_sub(game.opening_plies).and_then(|i| game.evals.get(i)) {
            let is_calm = eval.mate.is_none()
                && eval.cp.is_none_or(|cp| cp.abs() < DECIDED)
                && !position.is_check()
                && !m.is_capture()
                && !m.is_promotion()
                && best_exchange(&position) <= 0;
            if is_calm {
                let white = game.white_points();
                let result = if position.turn() == Color::White { white } else { 1.0 - white };
                examples.push(Example {
                    position: position.clone(),
                    result,
                    search_score: eval.cp,
                });
            }
        }
        position.play_unchecked(m);
    }
    examples
}

#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// The weights after the fit.
    pub point: Vec<f64>,
    /// The steepness of the logistic curve.
    pub k: f64,
    /// The mean squared error on the held-out examples before and after.
    pub error: (f64, f64),
    /// For each gene, the change of the expected score per unit, root mean square.
    pub importance: Vec<f64>,
}

/// Fits an engine's weights to the training examples and returns the step with the smallest
/// held-out error. The result does not depend on the number of threads; `None` when time ran out.
pub fn fit(
    config: &TexelConfig,
    genome: &Genome,
    start: &[f64],
    examples: &FitExamples,
    is_over: &(dyn Fn() -> bool + Sync),
) -> Option<Fit> {
    let FitExamples { training, held_out } = examples;
    let tuning = genome.tuning(start);
    let scores = scores(&tuning, training);
    let results: Vec<f64> = training.iter().map(|example| example.result).collect();
    let k = steepness(&scores, &results);
    let problem = Problem::new(config, genome, start, k, training, is_over)?;
    let validation = Problem::new(config, genome, start, k, held_out, is_over)?;
    let importance = importance(&problem.rows, &scores, k, genome.len());
    let mut moved = vec![0.0; genome.len()];
    let before = validation.error(&moved);
    let mut best = (before, moved.clone());
    let mut adam = Adam::new(genome.len());
    for step in 1..=config.steps {
        if is_over() {
            return None;
        }
        let mut gradient = problem.gradient(&moved);
        for (slope, moved) in gradient.iter_mut().zip(&moved) {
            *slope += 2.0 * config.pull * moved;
        }
        adam.step(&mut moved, &gradient, config.rate);
        if step.is_multiple_of(VALIDATE_EVERY) || step == config.steps {
            let error = validation.error(&moved);
            if error < best.0 {
                best = (error, moved.clone());
            }
        }
    }
    let point = start.iter().zip(&best.1).map(|(start, moved)| start + moved).collect();
    Some(Fit { point, k, error: (before, best.0), importance })
}

/// The expected score at this evaluation.
fn expected(k: f64, centipawns: f64) -> f64 {
    1.0 / (1.0 + libm::exp10(-k * centipawns / 400.0))
}

fn scores(tuning: &Tuning, examples: &[Example]) -> Vec<f64> {
    let mut eval = StaticEval::new(tuning.evaluation.clone());
    examples.iter().map(|example| f64::from(eval.score(&example.position))).collect()
}

/// The K with the smallest squared error, by golden-section search.
fn steepness(scores: &[f64], results: &[f64]) -> f64 {
    let error = |k: f64| -> f64 {
        scores
            .iter()
            .zip(results)
            .map(|(score, result)| (expected(k, *score) - result).powi(2))
            .sum()
    };
    let ratio = (5f64.sqrt() - 1.0) / 2.0;
    let (mut low, mut high) = (0.01, 5.0);
    for _ in 0..40 {
        let (left, right) = (high - ratio * (high - low), low + ratio * (high - low));
        if error(left) < error(right) { high = right } else { low = left }
    }
    0.5 * (low + high)
}

/// For each example, the genes that affect it and the change of its score per unit of each.
type Rows = Vec<Vec<(u32, f32)>>;

fn slopes(
    genome: &Genome,
    point: &[f64],
    scores: &[f64],
    examples: &[Example],
    is_over: &(dyn Fn() -> bool + Sync),
) -> Option<Rows> {
    let columns: Option<Vec<Vec<(u32, f32)>>> = (0..genome.len())
        .into_par_iter()
        .map(|gene| {
            if is_over() {
                return None;
            }
            let (tuning, by) = genome.nudged(point, gene);
            let nudged = self::scores(&tuning, examples).into_iter().zip(scores).enumerate();
            let changed = nudged.filter(|(_, (nudged, score))| nudged != *score);
            let column =
                changed.map(|(row, (nudged, score))| (row as u32, ((nudged - score) / by) as f32));
            Some(column.collect())
        })
        .collect();
    let mut rows: Rows = vec![Vec::new(); examples.len()];
    for (gene, column) in columns?.into_iter().enumerate() {
        for (row, slope) in column {
            rows[row as usize].push((gene as u32, slope));
        }
    }
    Some(rows)
}

fn importance(rows: &Rows, scores: &[f64], k: f64, genes: usize) -> Vec<f64> {
    let mut squares = vec![0.0; genes];
    for (row, score) in rows.iter().zip(scores) {
        let slope = curve_slope(k, expected(k, *score));
        for &(gene, by) in row {
            squares[gene as usize] += (slope * f64::from(by)).powi(2);
        }
    }
    squares.into_iter().map(|sum: f64| (sum / (rows.len() as f64).max(1.0)).sqrt()).collect()
}

/// The derivative of the expected score with respect to centipawns.
fn curve_slope(k: f64, expected: f64) -> f64 {
    std::f64::consts::LN_10 * k / 400.0 * expected * (1.0 - expected)
}

/// The squared error as a function of the change of the weights.
struct Problem {
    rows: Rows,
    scores: Vec<f64>,
    targets: Vec<f64>,
    k: f64,
}

/// Steps between validations.
const VALIDATE_EVERY: u32 = 10;

/// Examples per partial sum. Fixed, so that sums do not depend on the number of threads.
const CHUNK: usize = 2048;

impl Problem {
    fn new(
        config: &TexelConfig,
        genome: &Genome,
        start: &[f64],
        k: f64,
        examples: &[Example],
        is_over: &(dyn Fn() -> bool + Sync),
    ) -> Option<Problem> {
        let scores = scores(&genome.tuning(start), examples);
        let rows = slopes(genome, start, &scores, examples, is_over)?;
        Some(Problem { rows, scores, targets: config.targets(examples, k), k })
    }

    fn predicted(&self, index: usize, moved: &[f64]) -> f64 {
        let row = &self.rows[index];
        let added: f64 = row.iter().map(|&(gene, by)| f64::from(by) * moved[gene as usize]).sum();
        expected(self.k, self.scores[index] + added)
    }

    fn chunks(&self) -> impl IndexedParallelIterator<Item = std::ops::Range<usize>> {
        let count = self.rows.len();
        (0..count.div_ceil(CHUNK)).into_par_iter().map(move |chunk| {
            let first = chunk * CHUNK;
            first..(first + CHUNK).min(count)
        })
    }

    fn error(&self, moved: &[f64]) -> f64 {
        let sums: Vec<f64> = self
            .chunks()
            .map(|range| range.map(|i| (self.predicted(i, moved) - self.targets[i]).powi(2)).sum())
            .collect();
        sums.iter().sum::<f64>() / (self.rows.len() as f64).max(1.0)
    }

    fn gradient(&self, moved: &[f64]) -> Vec<f64> {
        let sums: Vec<Vec<f64>> = self
            .chunks()
            .map(|range| {
                let mut sum = vec![0.0; moved.len()];
                for index in range {
                    let predicted = self.predicted(index, moved);
                    let slope =
                        2.0 * (predicted - self.targets[index]) * curve_slope(self.k, predicted);
                    for &(gene, by) in &self.rows[index] {
                        sum[gene as usize] += slope * f64::from(by);
                    }
                }
                sum
            })
            .collect();
        let mut total = vec![0.0; moved.len()];
        for sum in sums {
            for (total, part) in total.iter_mut().zip(sum) {
                *total += part / self.rows.len() as f64;
            }
        }
        total
    }
}

/// Adam with its default constants.
struct Adam {
    first: Vec<f64>,
    second: Vec<f64>,
    step: i32,
}

impl Adam {
    fn new(count: usize) -> Adam {
        Adam { first: vec![0.0; count], second: vec![0.0; count], step: 0 }
    }

    fn step(&mut self, values: &mut [f64], gradient: &[f64], rate: f64) {
        self.step += 1;
        let (one, two) = (1.0 - 0.9f64.powi(self.step), 1.0 - 0.999f64.powi(self.step));
        for (index, value) in values.iter_mut().enumerate() {
            let slope = gradient[index];
            let (first, second) = (&mut self.first[index], &mut self.second[index]);
            *first = 0.9 * *first + 0.1 * slope;
            *second = 0.999 * *second + 0.001 * slope * slope;
            *value -= rate * (*first / one) / ((*second / two).sqrt() + 1e-9);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use selfmate_chess::{Game, Seed};

    use super::*;

    /// Positions of random games; the results are the expected scores of an engine's static
    /// evaluation.
    fn labelled_by(tuning: &Tuning, k: f64) -> Vec<Example> {
        let mut eval = StaticEval::new(tuning.evaluation.clone());
        let mut examples = Vec::new();
        for number in 0..60 {
            let mut rng = Seed::new(7).index(number).rng();
            let mut game = Game::new();
            while game.outcome().is_none() && game.ply() < 80 {
                let legal = game.legal_moves();
                game.play_unchecked(legal[rng.below(legal.len())]);
                let score = f64::from(eval.score(game.position()));
                let position = game.position().clone();
                examples.push(Example { position, result: expected(k, score), search_score: None });
            }
        }
        examples
    }

    #[test]
    fn the_steepness_of_the_curve_is_found() {
        let scores: Vec<f64> = (-50..50).map(|i| 12.0 * f64::from(i)).collect();
        for k in [0.4, 1.0, 2.5] {
            let results: Vec<f64> = scores.iter().map(|score| expected(k, *score)).collect();
            assert!((steepness(&scores, &results) - k).abs() < 1e-3);
        }
    }

    #[test]
    fn the_fit_recovers_changed_weights() {
        let target = Tuning::plain();
        let genome = Genome::new(&target, &["piece_value".to_owned()]).unwrap();
        let mut start = target.clone();
        start.evaluation.piece_value.mg = [60, 320, 330, 500, 700];
        start.evaluation.piece_value.eg = [60, 320, 330, 500, 700];
        let examples = labelled_by(&target, 0.6);
        let config =
            TexelConfig { steps: 1500, result_weight: 1.0, pull: 0.0, ..TexelConfig::default() };
        let fit_examples = FitExamples { training: examples.clone(), held_out: examples };
        let point = genome.point(&start);
        // Time runs out before and during the steps.
        for checks in [0, 2 * genome.len() + 100] {
            let left = AtomicUsize::new(checks);
            let is_over = || left.fetch_update(Relaxed, Relaxed, |n| n.checked_sub(1)).is_err();
            assert_eq!(fit(&config, &genome, &point, &fit_examples, &is_over), None);
        }
        let fit = fit(&config, &genome, &point, &fit_examples, &|| false).unwrap();
        assert!(fit.error.1 < 0.05 * fit.error.0, "{fit:?}");
        // K absorbs a common factor; the ratio of queen to pawn does not depend on it.
        let values = genome.tuning(&fit.point).evaluation.piece_value.mg;
        let ratio = f64::from(values[4]) / f64::from(values[0]);
        assert!((7.5..10.5).contains(&ratio), "{values:?}");
        assert!(fit.importance.iter().all(|importance| *importance > 0.0));
    }

    #[test]
    fn the_gradient_matches_finite_differences() {
        let tuning = Tuning::default();
        let genome = Genome::new(&tuning, &["piece_value".into(), "passed".into()]).unwrap();
        let point = genome.point(&tuning);
        let mut examples = labelled_by(&tuning, 1.0);
        let mut rng = Seed::new(1).rng();
        examples.truncate(500);
        examples.iter_mut().for_each(|example| example.result = rng.unit());
        let config = TexelConfig { result_weight: 1.0, ..TexelConfig::default() };
        let problem = Problem::new(&config, &genome, &point, 1.0, &examples, &|| false).unwrap();
        let moved: Vec<f64> = (0..genome.len()).map(|_| 0.1 * rng.normal()).collect();
        let gradient = problem.gradient(&moved);
        for gene in 0..genome.len() {
            let at = |by: f64| {
                let mut moved = moved.clone();
                moved[gene] += by;
                problem.error(&moved)
            };
            let slope = (at(1e-4) - at(-1e-4)) / 2e-4;
            assert!((slope - gradient[gene]).abs() < 1e-6 + 1e-4 * slope.abs(), "{gene}");
        }
    }
}
