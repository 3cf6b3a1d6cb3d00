//! The `evolve` learner: weights of the hand-written evaluation by evolution.
//!
//! A round is a generation: new weights are drawn around the best so far, all of them play the same
//! openings against the same pool of opponents, and those that score best shape the next generation.
//! What evolves is a list of named weights; the strategy is (μ + λ) or CMA-ES.

mod cma;
mod config;
mod eigen;
mod genome;
mod simple;

use rayon::prelude::*;
use selfmate_arena::game::Side;
use selfmate_arena::players::alphabeta;
use selfmate_arena::{PlayerKind, Tuning};
use selfmate_chess::{Rng, Seed};
use selfmate_run::Checkpoint;
use serde::{Deserialize, Serialize};

pub use cma::Cma;
pub use config::{EvolveConfig, Strategy, first};
pub use genome::Genome;
pub use simple::Simple;

use crate::bout::openings;
use crate::exam::examine;
use crate::learner::{Hardware, LearnError};
use crate::rounds::{Method, Room, Round, SavingConfig, bytes, fault, json};
use crate::watch::Stage;

/// The file of a checkpoint that holds the best weights.
pub const WEIGHTS: &str = "weights.toml";
/// The file that holds the population.
const STATE: &str = "evolution.json";
/// Pairs of games of the best against the first weights in an exam.
const START_PAIRS: usize = 20;

/// Weights in evolution.
pub struct Evolve {
    genome: Genome,
    state: State,
}

/// What a checkpoint remembers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct State {
    population: Population,
    /// The first weights, then past bests, the oldest first.
    pool: Vec<Tuning>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Population {
    Simple(Simple),
    Cma(Cma),
}

impl Population {
    fn ask(&self, rng: &mut Rng) -> Vec<Vec<f64>> {
        match self {
            Population::Simple(simple) => simple.ask(rng),
            Population::Cma(cma) => cma.ask(rng),
        }
    }

    fn tell(&mut self, points: Vec<Vec<f64>>, fitness: &[f64]) {
        match self {
            Population::Simple(simple) => simple.tell(points, fitness),
            Population::Cma(cma) => cma.tell(&points, fitness),
        }
    }

    fn best(&self) -> &[f64] {
        match self {
            Population::Simple(simple) => simple.best(),
            Population::Cma(cma) => cma.best(),
        }
    }

    fn sigma(&self) -> f64 {
        match self {
            Population::Simple(simple) => simple.sigma,
            Population::Cma(cma) => cma.sigma,
        }
    }
}

impl Method for Evolve {
    type Config = EvolveConfig;
    const FILES: &'static [&'static str] = &[WEIGHTS, STATE];
    const TRAINING: &'static [&'static str] = &[STATE];

    fn saving(config: &EvolveConfig) -> SavingConfig {
        config.saving
    }

    fn new(config: &EvolveConfig, _: Seed, _: Hardware) -> Result<Evolve, LearnError> {
        let (genome, first) = (config.genome()?, config.first()?);
        let (point, sigma) = (genome.point(&first), config.sigma);
        let population = match config.strategy {
            Strategy::Simple => {
                Population::Simple(Simple::new(point, sigma, config.parents, config.population))
            }
            Strategy::Cma => Population::Cma(Cma::new(point, sigma, config.population)),
        };
        Ok(Evolve { genome, state: State { population, pool: vec![first] } })
    }

    fn restore(
        config: &EvolveConfig,
        checkpoint: &Checkpoint,
        _: Hardware,
    ) -> Result<Evolve, LearnError> {
        let evolve = Evolve { genome: config.genome()?, state: json(checkpoint, STATE)? };
        let genes = evolve.state.population.best().len();
        if genes != evolve.genome.len() || evolve.state.pool.is_empty() {
            let expected = evolve.genome.len();
            return Err(fault(checkpoint, STATE, &format!("{genes} genes: expected {expected}")));
        }
        Ok(evolve)
    }

    fn files(&self) -> Result<Vec<(&'static str, Vec<u8>)>, LearnError> {
        let state = serde_json::to_vec(&self.state).expect("a state is plain data");
        Ok(vec![(WEIGHTS, self.best().to_toml().into_bytes()), (STATE, state)])
    }

    fn round(
        &mut self,
        config: &EvolveConfig,
        room: &mut Room<'_>,
    ) -> Result<Option<Round>, LearnError> {
        room.tell(Stage::Play, 0.0);
        // Beyond a bound all points are the same engine; the population should not stray there.
        let points = self.state.population.ask(&mut room.seed_for("mutations").rng());
        let points: Vec<Vec<f64>> = points.iter().map(|point| self.genome.bounded(point)).collect();
        let Some((fitness, nodes)) = self.judge(config, &points, room)? else { return Ok(None) };
        let mut round = Round {
            games: (points.len() * config.pairs * 2) as u64,
            nodes,
            steps: 1,
            ..Round::default()
        };
        let mean = fitness.iter().sum::<f64>() / fitness.len() as f64;
        let spread = fitness.iter().map(|f| (f - mean).powi(2)).sum::<f64>() / fitness.len() as f64;
        round.add("fitness.best", fitness.iter().copied().fold(0.0, f64::max));
        round.add("fitness.mean", mean);
        round.add("fitness.spread", spread.sqrt());
        self.state.population.tell(points, &fitness);
        round.add("sigma", self.state.population.sigma());
        if (room.totals.rounds + 1).is_multiple_of(config.pool_every) {
            let best = self.best();
            self.state.pool.push(best);
            if self.state.pool.len() > config.pool + 1 {
                // The first weights stay: progress is measured from them.
                self.state.pool.remove(1);
            }
        }
        round.add("pool", self.state.pool.len() as f64);
        if config.exam.is_due(room.totals.rounds) {
            room.tell(Stage::Rate, 0.0);
            self.examine(config, room, &mut round)?;
        }
        Ok(Some(round))
    }
}

impl Evolve {
    /// The best weights.
    pub fn best(&self) -> Tuning {
        self.genome.tuning(self.state.population.best())
    }

    /// The share of points of each in the same games, and the nodes of all of them; `None` when
    /// there was no time.
    fn judge(
        &self,
        config: &EvolveConfig,
        points: &[Vec<f64>],
        room: &Room<'_>,
    ) -> Result<Option<(Vec<f64>, u64)>, LearnError> {
        let members: Vec<Tuning> = points.iter().map(|point| self.genome.tuning(point)).collect();
        let openings = openings(config.pairs, room.seed_for("openings"))?;
        let games = 2 * config.pairs;
        let (halt, stop) = (room.halt, room.halt.flag());
        let game = |number: usize| {
            if halt.is_over() {
                return None;
            }
            let (member, game) = (number / games, number % games);
            let (pair, side) = (game / 2, [Side::White, Side::Black][game % 2]);
            let opponent = &self.state.pool[pair % self.state.pool.len()];
            config.games.points(&members[member], opponent, &openings[pair], side, &stop)
        };
        let played: Option<Vec<(f64, u64)>> =
            room.pool.install(|| (0..members.len() * games).into_par_iter().map(game).collect());
        Ok(played.map(|played| {
            let share = |results: &[(f64, u64)]| {
                results.iter().map(|(points, _)| points).sum::<f64>() / games as f64
            };
            let nodes = played.iter().map(|(_, nodes)| nodes).sum();
            (played.chunks(games).map(share).collect(), nodes)
        }))
    }

    /// Adds how the best does against its examiner and against the first weights.
    fn examine(
        &self,
        config: &EvolveConfig,
        room: &Room<'_>,
        round: &mut Round,
    ) -> Result<(), LearnError> {
        let best = self.best();
        let nodes = config.games.nodes;
        let report = examine(
            &config.exam,
            |name| engine_kind(name, &best, nodes),
            room.seed_for("exam"),
            room,
        )?;
        if let Some(report) = report {
            round.add("exam.score", report.score);
        }
        let pairs = START_PAIRS.min(config.pairs * config.population);
        let openings = openings(pairs, room.seed_for("start"))?;
        let stop = room.halt.flag();
        let game = |number: usize| {
            let side = [Side::White, Side::Black][number % 2];
            config.games.points(&best, &self.state.pool[0], &openings[number / 2], side, &stop)
        };
        let played: Option<Vec<(f64, u64)>> =
            room.pool.install(|| (0..2 * pairs).into_par_iter().map(game).collect());
        if let Some(played) = played {
            let points: f64 = played.iter().map(|(points, _)| points).sum();
            round.add("start.score", points / played.len() as f64);
        }
        Ok(())
    }
}

/// An engine with these numbers as a kind of player, with so many nodes a move unless its spec or
/// the match says otherwise.
pub fn engine_kind(name: &str, tuning: &Tuning, nodes: u64) -> PlayerKind {
    let tuning = tuning.clone();
    let kind = PlayerKind::new(name, "an engine in training", move |options| {
        let mut spec = options.spec.clone();
        if ["nodes", "depth", "movetime"].iter().all(|option| spec.option(option).is_none()) {
            spec.options.push(("nodes".to_owned(), nodes.to_string()));
        }
        spec.options.push(("hash".to_owned(), "1".to_owned()));
        let options = selfmate_arena::SpecOptions { spec: &spec, ..*options };
        alphabeta::build(&options, &tuning)
    });
    alphabeta::declare(kind)
}

/// The weights of a checkpoint.
pub fn weights(checkpoint: &Checkpoint) -> Result<Tuning, LearnError> {
    let text = String::from_utf8_lossy(bytes(checkpoint, WEIGHTS)?);
    Tuning::parse(&text).map_err(|message| fault(checkpoint, WEIGHTS, &message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonsense_is_named() {
        for name in EvolveConfig::PRESETS {
            EvolveConfig::preset(name).unwrap().check().unwrap();
        }
        let mut config = EvolveConfig::tiny();
        config.genes = vec!["piece".to_owned()];
        let error = config.check().unwrap_err().to_string();
        assert!(error.starts_with("genes is piece: expected the beginning"), "{error}");
        config.genes.clear();
        assert!(config.check().is_err());
        let config = EvolveConfig { start: "nowhere.toml".to_owned(), ..EvolveConfig::tiny() };
        assert!(config.check().unwrap_err().to_string().contains("nowhere.toml"));
    }
}
