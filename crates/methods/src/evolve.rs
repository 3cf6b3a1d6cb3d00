//! The `evolve` learner: evolves weights of the hand-written evaluation, or of the one-ply player.
//!
//! A round is one generation: new weights are drawn, all of them play the same openings against the
//! same pool of opponents, and those with the highest scores shape the next generation. The strategy
//! is (μ + λ), truncation selection or CMA-ES.

mod cma;
mod config;
mod eigen;
mod simple;
mod space;

use rayon::prelude::*;
use selfmate_chess::{Rng, Seed};
use selfmate_run::{Checkpoint, Run};
use selfmate_selfplay::{GameSource, Stage, Watch};
use selfmate_train::engine_match::openings;
use selfmate_train::evaluation::evaluate;
use selfmate_train::{
    ConfigError, End, Hardware, Learner, Round, RoundContext, SavingConfig, TrainOptions,
    TrainingError, read_json, state_error, train,
};
use serde::{Deserialize, Serialize};

pub use cma::Cma;
pub use config::{EvolveConfig, Strategy};
pub use simple::Simple;

use crate::charts::{Chart, EVALUATION, GAMES_PER_SECOND, Unit, chart, curve, schedule};
use crate::table::{LearnerConfig, LearnerInfo, SearchKind, boxed, parse};
use crate::tuning::{self, PlayerWeights, WEIGHTS};
use space::Space;

/// The file of the population and the pool.
const STATE: &str = "evolution.json";
/// Pairs of games of the best against the first weights in an evaluation.
const START_PAIRS: usize = 100;

const CHARTS: &[Chart] = &[
    chart(
        "Best against the first weights",
        "share of points in 200 games: the curve that must rise",
        Unit::Share,
        &[curve("start.score", "")],
    ),
    chart(
        "Fitness",
        "share of points against the pool, which gets stronger, so the mean need not rise",
        Unit::Share,
        &[curve("fitness.best", "best"), curve("fitness.mean", "mean")],
    ),
    chart(
        "Spread of the fitness",
        "standard deviation within a generation",
        Unit::Amount,
        &[curve("fitness.spread", "")],
    ),
    chart("Width of mutations", "σ", Unit::Amount, &[curve("sigma", "")]),
    EVALUATION,
    GAMES_PER_SECOND,
    schedule("Opponents in the pool", &[curve("pool", "")]),
];

pub const INFO: LearnerInfo = LearnerInfo {
    name: "evolve",
    summary: "weights of the hand-written evaluation, by evolution",
    presets: &EvolveConfig::PRESETS,
    preset: |name| boxed(EvolveConfig::preset(name)),
    parse: parse::<EvolveConfig>,
    bounds: config::BOUNDS,
    is_distributed: false,
    has_device: false,
    search: SearchKind::NoTree,
    player: tuning::PLAYER,
    charts: CHARTS,
    descriptions: &[tuning::DESCRIPTION],
};

impl LearnerConfig for EvolveConfig {
    fn check(&self) -> Result<(), ConfigError> {
        EvolveConfig::check(self)
    }

    fn train(
        &self,
        run: &mut Run,
        options: &TrainOptions<'_>,
        source: &mut dyn GameSource,
        watch: &mut dyn Watch,
    ) -> Result<End, TrainingError> {
        train::<Evolve>(run, self, options, source, watch)
    }

    fn memory_mb(&self, threads: usize) -> Vec<(&'static str, u64)> {
        vec![("games.hash_mb", 2 * (threads * self.games.hash_mb) as u64)]
    }
}

pub struct Evolve {
    space: Space,
    state: State,
}

/// The training state in a checkpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct State {
    population: Population,
    /// The first weights, then earlier bests, oldest first.
    pool: Vec<PlayerWeights>,
    /// Generations so far. Older checkpoints do not have it.
    #[serde(default)]
    generations: u64,
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

    /// True when all its vectors have this length.
    fn has_genes(&self, genes: usize) -> bool {
        match self {
            Population::Simple(simple) => simple.has_genes(genes),
            Population::Cma(cma) => cma.has_genes(genes),
        }
    }
}

impl Learner for Evolve {
    type Config = EvolveConfig;
    const FILES: &'static [&'static str] = &[WEIGHTS, STATE];
    const TRAINING_FILES: &'static [&'static str] = &[STATE];

    fn saving(config: &EvolveConfig) -> SavingConfig {
        config.saving
    }

    fn new(config: &EvolveConfig, seed: Seed, _: Hardware) -> Result<Evolve, TrainingError> {
        let ((space, point), first) = (config.space()?, config.start_weights()?);
        let sigma = config.sigma;
        let population = match config.strategy {
            Strategy::Truncation => {
                let (parents, children) = (config.parents, config.population - config.parents);
                let mut rng = seed.derive("population").rng();
                let simple = Simple::with_parents(point, sigma, parents, children, &mut rng);
                Population::Simple(simple)
            }
            Strategy::Simple => {
                Population::Simple(Simple::new(point, sigma, config.parents, config.population))
            }
            Strategy::Cma => Population::Cma(Cma::new(point, sigma, config.population)),
        };
        Ok(Evolve { space, state: State { population, pool: vec![first], generations: 0 } })
    }

    fn restore(
        config: &EvolveConfig,
        checkpoint: &Checkpoint,
        _: Hardware,
    ) -> Result<Evolve, TrainingError> {
        let evolve = Evolve { space: config.space()?.0, state: read_json(checkpoint, STATE)? };
        let genes = evolve.space.len();
        if !evolve.state.population.has_genes(genes) {
            let message = format!("not a population of {genes} genes");
            return Err(state_error(checkpoint, STATE, &message));
        }
        if evolve.state.pool.is_empty() {
            return Err(state_error(checkpoint, STATE, &"the pool of opponents is empty"));
        }
        Ok(evolve)
    }

    fn files(&self) -> Result<Vec<(&'static str, Vec<u8>)>, TrainingError> {
        let state = serde_json::to_vec(&self.state).expect("a state is plain data");
        Ok(vec![(WEIGHTS, self.best().to_toml().into_bytes()), (STATE, state)])
    }

    fn round(
        &mut self,
        config: &EvolveConfig,
        context: &mut RoundContext<'_>,
    ) -> Result<Option<Round>, TrainingError> {
        context.report(Stage::Play, 0.0);
        // Points beyond the bounds give the same engine as points on them.
        let points = self.state.population.ask(&mut context.seed_for("mutations").rng());
        let points: Vec<Vec<f64>> = points.iter().map(|point| self.space.bounded(point)).collect();
        let Some((fitness, nodes)) = self.fitness(config, &points, context)? else {
            return Ok(None);
        };
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
        self.state.generations += 1;
        round.add("sigma", self.state.population.sigma());
        if (context.totals.rounds + 1).is_multiple_of(config.pool_every) {
            let best = self.best();
            self.state.pool.push(best);
            if self.state.pool.len() > config.pool + 1 {
                // The first weights stay: progress is measured from them.
                self.state.pool.remove(1);
            }
        }
        round.add("pool", self.state.pool.len() as f64);
        if config.evaluation.is_due(context.totals.rounds) {
            context.report(Stage::Rate, 0.0);
            self.evaluate(config, context, &mut round)?;
        }
        Ok(Some(round))
    }

    fn end(&self, config: &EvolveConfig) -> Option<End> {
        let is_over = config.generations > 0 && self.state.generations >= config.generations;
        is_over.then(|| End::Done(format!("{} generations are over", config.generations)))
    }
}

impl Evolve {
    pub fn best(&self) -> PlayerWeights {
        self.space.weights(self.state.population.best())
    }

    /// The score of each point in the same games, and the nodes of all games; `None` when there was
    /// no time.
    fn fitness(
        &self,
        config: &EvolveConfig,
        points: &[Vec<f64>],
        context: &RoundContext<'_>,
    ) -> Result<Option<(Vec<f64>, u64)>, TrainingError> {
        let members: Vec<PlayerWeights> =
            points.iter().map(|point| self.space.weights(point)).collect();
        let openings = openings(config.pairs, context.seed_for("openings"))?;
        let (pool, cancel) = (&self.state.pool, context.cancel);
        let play = |member| config.games.share(member, pool, &openings, cancel);
        let played: Option<Vec<(f64, u64)>> =
            context.pool.install(|| members.par_iter().map(play).collect());
        Ok(played.map(|played| {
            let (fitness, nodes): (Vec<f64>, Vec<u64>) = played.into_iter().unzip();
            (fitness, nodes.iter().sum())
        }))
    }

    /// Adds the scores of the best weights against the evaluation's opponent and against the first
    /// weights.
    fn evaluate(
        &self,
        config: &EvolveConfig,
        context: &RoundContext<'_>,
        round: &mut Round,
    ) -> Result<(), TrainingError> {
        let best = self.best();
        let kind = |name: &'static str| best.kind(name, &config.games);
        let report = evaluate(&config.evaluation, kind, context.seed_for("evaluation"), context)?;
        if let Some(report) = report {
            round.add("evaluation.score", report.score);
        }
        let pairs = START_PAIRS.min(config.pairs * config.population);
        let openings = openings(pairs, context.seed_for("start"))?;
        let (first, cancel) = (&self.state.pool[..1], context.cancel);
        let share = context.pool.install(|| config.games.share(&best, first, &openings, cancel));
        if let Some((share, _)) = share {
            round.add("start.score", share);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_settings_are_rejected_by_name() {
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
        let mut config = EvolveConfig::preset("spec").unwrap();
        config.parents = 20;
        let error = config.check().unwrap_err().to_string();
        assert_eq!(error, "parents is 20: expected fewer than population");
        config = EvolveConfig { genes: vec!["tempo".to_owned()], ..config };
        let error = config.check().unwrap_err().to_string();
        assert!(error.starts_with("genes is tempo: expected material, centre"), "{error}");
    }
}
