//! The three ways to make a challenger.

use rayon::prelude::*;
use selfmate_arena::game::PlayedGame;
use selfmate_arena::{MatchGame, Tuning};
use selfmate_chess::Rng;
use selfmate_train::RoundContext;
use selfmate_train::TrainingError;
use selfmate_train::engine_match::openings;

use super::config::TuneConfig;
use super::spsa::Spsa;
use super::texel::{Example, FitExamples, examples, fit};
use crate::tuning::Genome;

/// The most variations drawn until one differs from the champion.
const TRIES: usize = 40;

/// A challenger before its trial.
pub(super) struct Challenger {
    pub tuning: Tuning,
    /// The state of SPSA after its iterations.
    pub spsa: Option<Spsa>,
    /// Matches played on the way: differences in genes, score minus one half, games.
    pub matches: Vec<(Vec<f64>, f64, f64)>,
    /// From Texel tuning, the importance of each gene.
    pub gradient: Option<Vec<f64>>,
    /// The number of games played to make it, and those that enter the book.
    pub games: u64,
    pub played: Vec<PlayedGame>,
    pub nodes: u64,
    /// Metrics of the round.
    pub values: Vec<(&'static str, f64)>,
}

impl Challenger {
    pub fn new(tuning: Tuning) -> Challenger {
        Challenger {
            tuning,
            spsa: None,
            matches: Vec::new(),
            gradient: None,
            games: 0,
            played: Vec::new(),
            nodes: 0,
            values: Vec::new(),
        }
    }

    /// Changes every weight of the champion up or down by a share of itself, or of its unit if the
    /// weight is smaller, times the factor of the weight. Rounding and bounds may undo all changes;
    /// then the share grows until one remains.
    pub fn vary(
        &mut self,
        genome: &Genome,
        champion: &Tuning,
        share: f64,
        factors: &[f64],
        rng: &mut Rng,
    ) {
        let shares = std::iter::successors(Some(share), |share| Some(1.3 * share));
        for share in shares.take(TRIES) {
            let varied = genome.point(champion).into_iter().zip(factors).map(|(value, factor)| {
                let sign = if rng.chance(0.5) { 1.0 } else { -1.0 };
                value + sign * share * factor * value.abs().max(1.0)
            });
            self.tuning = genome.tuning(&varied.collect::<Vec<f64>>());
            if self.tuning != *champion {
                return;
            }
        }
    }

    /// Continues SPSA; `None` when there was no time.
    pub fn perturbed(
        genome: &Genome,
        before: &Spsa,
        config: &TuneConfig,
        context: &RoundContext<'_>,
    ) -> Result<Option<Challenger>, TrainingError> {
        let mut spsa = before.clone();
        let (mut matches, mut all_nodes, cancel) = (Vec::new(), 0, context.cancel);
        for iteration in 0..config.spsa.iterations {
            let seed = context.seed_for("perturbations").index(iteration);
            let (probe, up, down) = spsa.probe(&config.spsa, &mut seed.rng());
            let (up, down) = (genome.tuning(&up), [genome.tuning(&down)]);
            let openings = openings(config.spsa.pairs, seed.derive("openings"))?;
            let played = context.pool.install(|| config.games.share(&up, &down, &openings, cancel));
            let Some((share, nodes)) = played else { return Ok(None) };
            all_nodes += nodes;
            spsa.learn(&config.spsa, &probe, 2.0 * (share - 0.5));
            let steps = probe.signs.iter().map(|sign| 2.0 * probe.width * sign).collect();
            matches.push((steps, share - 0.5, 2.0 * openings.len() as f64));
        }
        let mut challenger = Challenger::new(genome.tuning(&spsa.point));
        challenger.values.push(("spsa.iteration", spsa.iteration as f64));
        challenger.spsa = Some(spsa);
        challenger.games = config.spsa.iterations * 2 * config.spsa.pairs as u64;
        challenger.matches = matches;
        challenger.nodes = all_nodes;
        Ok(Some(challenger))
    }

    /// Plays games of the champion against itself and fits its weights to them and to the games of
    /// earlier trials; `None` when there was no time.
    pub fn fitted(
        genome: &Genome,
        champion: &Tuning,
        trials: &[MatchGame],
        config: &TuneConfig,
        context: &RoundContext<'_>,
    ) -> Result<Option<Challenger>, TrainingError> {
        let openings = openings(config.texel.games, context.seed_for("fit"))?;
        let (cancel, stop) = (context.cancel, context.cancel.flag());
        let game = |opening| {
            if cancel.is_cancelled() {
                return None;
            }
            config.games.play(champion, champion, opening, &stop)
        };
        let played: Option<Vec<PlayedGame>> =
            context.pool.install(|| openings.par_iter().map(game).collect());
        let Some(played) = played else { return Ok(None) };
        let point = genome.point(champion);
        let (found, count) = context.pool.install(|| {
            let all = trials.iter().map(|record| &record.played).chain(&played);
            // One game in ten is held out for validation.
            let (held_out, training): (Vec<_>, Vec<_>) =
                all.enumerate().partition(|(number, _)| number.is_multiple_of(10));
            let quiet = |games: Vec<(usize, &PlayedGame)>| -> Vec<Example> {
                let games = games.into_par_iter();
                let all: Vec<Example> = games.flat_map_iter(|(_, game)| examples(game)).collect();
                let stride = all.len().div_ceil(config.texel.positions).max(1);
                all.into_iter().step_by(stride).collect()
            };
            let fit_examples = FitExamples { training: quiet(training), held_out: quiet(held_out) };
            let found =
                fit(&config.texel, genome, &point, &fit_examples, &|| cancel.is_cancelled());
            (found, fit_examples.training.len())
        });
        let Some(found) = found else { return Ok(None) };
        let mut challenger = Challenger::new(genome.tuning(&found.point));
        challenger.values.extend([
            ("texel_k", found.k),
            ("texel.error_before", found.error.0),
            ("texel.error_after", found.error.1),
            ("texel_positions", count as f64),
        ]);
        challenger.nodes = played.iter().map(super::nodes).sum();
        challenger.gradient = Some(found.importance);
        challenger.games = played.len() as u64;
        challenger.played = played;
        Ok(Some(challenger))
    }
}

#[cfg(test)]
mod tests {
    use selfmate_chess::Seed;

    use super::*;

    #[test]
    fn a_variation_of_small_integers_differs_from_the_champion() {
        let champion = Tuning::default();
        let genome = Genome::new(&champion, &["search.singular_margin".to_owned()]).unwrap();
        for seed in 0..20 {
            let mut challenger = Challenger::new(champion.clone());
            challenger.vary(&genome, &champion, 0.05, &[1.0], &mut Seed::new(seed).rng());
            assert!(challenger.tuning != champion, "seed {seed}");
        }
    }
}
