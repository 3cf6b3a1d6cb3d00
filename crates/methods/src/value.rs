//! The `value` learner: a small convolutional network that predicts the result of a game, trained
//! on the results of its own games (Monte Carlo returns; Sutton and Barto, chapter 5).
//!
//! The network chooses moves by one-ply look-ahead, with some random moves (epsilon-greedy). A
//! round plays a few games on all threads, adds their positions to the replay buffer and trains on
//! a few batches from it. The player is the network with the best evaluation (its score or its win
//! rate), once one has reached `best_from`; until then it is the latest network.

mod config;
mod evaluation;
mod game;
mod player;
mod replay;

use rayon::prelude::*;
use selfmate_chess::Seed;
use selfmate_nn::sparse::WeightsInfo;
use selfmate_nn::valuenet::{BatchNetwork, Network, Sample, Trainer};
use selfmate_run::{Checkpoint, Run};
use selfmate_selfplay::{GameSource, Stage, Watch};
use selfmate_train::{
    ConfigError, Curves, End, Hardware, Learner, Round, RoundContext, SavingConfig, TrainOptions,
    TrainingError, check_shape, read_bytes, read_json, state_error, train,
};
use serde::{Deserialize, Serialize};

pub use config::{BestBy, Epsilon, EvaluationGames, ValueConfig};
pub use player::{ValuePlayer, kind};
pub use replay::{ReplayBuffer, StoredPosition};

use crate::charts::{
    Chart, EPSILON, EVALUATION, GAMES_PER_SECOND, PLIES, Unit, VALUE_LOSS, chart, curve,
};
use crate::opponent::{GameOpponent, Opponent, add_to_pool};
use crate::table::{
    LearnerConfig, LearnerInfo, Loader, PlayerFormat, SearchKind, boxed, megabytes, parse,
};
use evaluation::{Results, evaluate};
use game::{Episode, PlayConfig};

/// The checkpoint file of the network that plays.
pub const VALUE: &str = "value.safetensors";
/// Files that only training needs: the optimiser, the replay buffer, the pool of earlier networks
/// and the best evaluation score.
const TRAINER: &str = "trainer.safetensors";
const REPLAY: &str = "replay.bin";
const POOL: &str = "pool.safetensors";
const STATE: &str = "value.json";

const CHARTS: &[Chart] = &[
    EVALUATION,
    chart(
        "Win rate of the evaluation",
        "share of games won",
        Unit::Share,
        &[curve("evaluation.win_rate", "")],
    ),
    chart(
        "Games of the evaluation",
        "won, drawn and lost",
        Unit::Amount,
        &[
            curve("evaluation_games.wins", "won"),
            curve("evaluation_games.draws", "drawn"),
            curve("evaluation_games.losses", "lost"),
        ],
    ),
    VALUE_LOSS,
    chart(
        "Games",
        "of the network against its opponents, with random moves",
        Unit::Share,
        &[
            curve("win_share", "won"),
            curve("loss_share", "lost"),
            curve("truncated_share", "truncated"),
        ],
    ),
    PLIES,
    GAMES_PER_SECOND,
    EPSILON,
];

pub const INFO: LearnerInfo = LearnerInfo {
    name: "value",
    summary: "a small convolutional value network, from the results of its games",
    presets: &ValueConfig::PRESETS,
    preset: |name| boxed(ValueConfig::preset(name)),
    parse: parse::<ValueConfig>,
    bounds: config::BOUNDS,
    is_distributed: false,
    has_device: false,
    search: SearchKind::NoTree,
    player: PlayerFormat { file: VALUE, load: Loader::Own { options: &[], load: player::load } },
    charts: CHARTS,
    descriptions: &[],
};

impl LearnerConfig for ValueConfig {
    fn check(&self) -> Result<(), ConfigError> {
        ValueConfig::check(self)
    }

    fn train(
        &self,
        run: &mut Run,
        options: &TrainOptions<'_>,
        source: &mut dyn GameSource,
        watch: &mut dyn Watch,
    ) -> Result<End, TrainingError> {
        train::<Value>(run, self, options, source, watch)
    }

    fn memory_mb(&self, _threads: usize) -> Vec<(&'static str, u64)> {
        /// Twice the size of a position, because a round keeps a copy of the buffer.
        const POSITION_BYTES: u64 = 208;
        vec![("replay", megabytes(self.replay as u64 * POSITION_BYTES))]
    }
}

pub struct Value {
    trainer: Trainer,
    replay: ReplayBuffer,
    /// Earlier networks, oldest first.
    pool: Vec<Network>,
    best: Option<Best>,
    state: State,
}

/// The rest of the training state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct State {
    /// The score or win rate of the best network in its evaluation.
    best_score: Option<f64>,
    /// The number of rounds at the latest evaluation.
    evaluated: u64,
    /// The latest score, until a round has reported it.
    score: Option<f64>,
    /// The games behind it; missing in older checkpoints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    results: Option<Results>,
}

impl State {
    /// The curves of an evaluation that no round has reported yet.
    fn take_curves(&mut self) -> Curves {
        let mut curves = Curves::new();
        let mut add = |name: &str, value| _ = curves.insert(name.to_owned(), value);
        if let Some(score) = self.score.take() {
            add("evaluation.score", score);
        }
        if let Some(results) = self.results.take() {
            add("evaluation.win_rate", results.win_rate());
            add("evaluation_games.wins", results.wins as f64);
            add("evaluation_games.draws", results.draws as f64);
            add("evaluation_games.losses", results.losses as f64);
        }
        curves
    }
}

#[derive(Clone, Debug, PartialEq)]
struct Best {
    network: Network,
    step: u64,
}

impl Learner for Value {
    type Config = ValueConfig;
    const FILES: &'static [&'static str] = &[VALUE, TRAINER, REPLAY, STATE, POOL];
    const TRAINING_FILES: &'static [&'static str] = &[TRAINER, REPLAY, POOL];

    fn saving(config: &ValueConfig) -> SavingConfig {
        config.saving
    }

    fn new(config: &ValueConfig, seed: Seed, _: Hardware) -> Result<Value, TrainingError> {
        let network = Network::random(config.network, seed).map_err(|error| {
            ConfigError::Parse { file: "network".to_owned(), message: error.to_string() }
        })?;
        Ok(Value {
            pool: vec![network.clone()],
            trainer: Trainer::new(network),
            replay: ReplayBuffer::new(config.replay),
            best: None,
            state: State::default(),
        })
    }

    fn restore(
        config: &ValueConfig,
        checkpoint: &Checkpoint,
        _: Hardware,
    ) -> Result<Value, TrainingError> {
        let state: State = read_json(checkpoint, STATE)?;
        let replay = ReplayBuffer::decode(read_bytes(checkpoint, REPLAY)?, config.replay);
        let (network, info) = Network::decode(read_bytes(checkpoint, VALUE)?)?;
        let trainer = Trainer::restore(read_bytes(checkpoint, TRAINER)?)?;
        check_shape(checkpoint, TRAINER, &trainer.network().config(), &config.network)?;
        Ok(Value {
            trainer,
            replay: replay.map_err(|message| state_error(checkpoint, REPLAY, &message))?,
            pool: Network::decode_many(read_bytes(checkpoint, POOL)?)?,
            best: state.best_score.map(|_| Best { network, step: info.step }),
            state,
        })
    }

    fn files(&self) -> Result<Vec<(&'static str, Vec<u8>)>, TrainingError> {
        let (playing, step) = match &self.best {
            Some(best) => (&best.network, best.step),
            None => (self.trainer.network(), self.trainer.step()),
        };
        Ok(vec![
            (VALUE, playing.encode(WeightsInfo { step })?),
            (TRAINER, self.trainer.state()?),
            (REPLAY, self.replay.encode()),
            (STATE, serde_json::to_vec(&self.state).expect("a state is plain data")),
            (POOL, Network::encode_many(&self.pool)?),
        ])
    }

    fn round(
        &mut self,
        config: &ValueConfig,
        context: &mut RoundContext<'_>,
    ) -> Result<Option<Round>, TrainingError> {
        // The evaluation of the earlier rounds comes first. It decides which network plays, so the
        // round counts only if there was time for it.
        if self.is_due(config, context.totals.rounds) && !self.evaluate(config, context)? {
            return Ok(None);
        }
        context.report(Stage::Play, 0.0);
        let Some(games) = self.play(config, context) else { return Ok(None) };
        let mut round = Round { games: games.len() as u64, ..Round::default() };
        let before = (self.trainer.clone(), self.replay.clone());
        if !self.learn(config, &games, context, &mut round)? {
            (self.trainer, self.replay) = before;
            return Ok(None);
        }
        for (name, value) in self.state.take_curves() {
            round.add(&name, value);
        }
        if (context.totals.rounds + 1).is_multiple_of(config.pool_every) && config.pool > 0 {
            add_to_pool(&mut self.pool, self.trainer.network().clone(), config.pool);
        }
        Ok(Some(round))
    }

    fn finish(
        &mut self,
        config: &ValueConfig,
        context: &mut RoundContext<'_>,
    ) -> Result<Curves, TrainingError> {
        if self.is_due(config, context.totals.rounds) {
            self.evaluate(config, context)?;
        }
        Ok(self.state.take_curves())
    }
}

impl Value {
    /// Whether an evaluation of the rounds so far is due.
    fn is_due(&self, config: &ValueConfig, rounds: u64) -> bool {
        rounds > 0 && config.evaluation.is_due(rounds - 1) && self.state.evaluated < rounds
    }

    /// Evaluates the network and keeps it if it is the best; false when there was no time.
    fn evaluate(
        &mut self,
        config: &ValueConfig,
        context: &mut RoundContext<'_>,
    ) -> Result<bool, TrainingError> {
        context.report(Stage::Rate, 0.0);
        let Some(results) = evaluate(config, self.trainer.network(), context)? else {
            return Ok(false);
        };
        self.state.evaluated = context.totals.rounds;
        self.state.score = Some(results.score());
        self.state.results = Some(results);
        let reached = match config.best_by {
            BestBy::Score => results.score(),
            BestBy::WinRate => results.win_rate(),
        };
        let is_good = reached >= config.best_from;
        if is_good && self.state.best_score.is_none_or(|best| reached > best) {
            self.state.best_score = Some(reached);
            let (network, step) = (self.trainer.network().clone(), self.trainer.step());
            self.best = Some(Best { network, step });
        }
        Ok(true)
    }

    /// The games of a round; `None` when there was no time for all of them.
    fn play(&self, config: &ValueConfig, context: &RoundContext<'_>) -> Option<Vec<Episode>> {
        let (seed, first) = (context.seed.derive("games"), context.totals.games);
        let (network, cancel) = (BatchNetwork::new(self.trainer.network()), context.cancel);
        let pool: Vec<BatchNetwork> = match config.opponents.contains(&Opponent::Pool) {
            true => self.pool.iter().map(BatchNetwork::new).collect(),
            false => Vec::new(),
        };
        let game = |number: u64| {
            if cancel.is_cancelled() {
                return None;
            }
            let mut rng = seed.index(number).rng();
            let (opponent, side) =
                GameOpponent::of_game(number, &config.opponents, &pool, &mut rng);
            let play_config = PlayConfig {
                epsilon: config.epsilon.at(number),
                opening_plies: config.opening_plies,
                late_share: config.late_share,
                late_plies: config.late_plies,
                max_plies: config.max_plies,
                discount: config.discount as f32,
            };
            Some(game::play(&network, opponent, side, &play_config, &mut rng))
        };
        let numbers = first..first + config.round_games;
        context.pool.install(|| numbers.into_par_iter().map(game).collect())
    }

    /// Adds the games to the replay buffer and trains on a few batches; false when there was no
    /// time for all of them.
    fn learn(
        &mut self,
        config: &ValueConfig,
        games: &[Episode],
        context: &mut RoundContext<'_>,
        round: &mut Round,
    ) -> Result<bool, TrainingError> {
        for game in games {
            round.positions += game.positions.len() as u64;
            game.positions.iter().for_each(|position| self.replay.push(*position));
        }
        let total = games.len() as f64;
        let share = |is_counted: &dyn Fn(&Episode) -> bool| {
            games.iter().filter(|game| is_counted(game)).count() as f64 / total
        };
        round.add("win_share", share(&|game| game.outcome.winner == Some(game.side)));
        round.add("loss_share", share(&|game| game.outcome.winner == Some(!game.side)));
        round.add("truncated_share", share(&|game| game.outcome.is_truncated()));
        round.add("plies", games.iter().map(|game| f64::from(game.plies)).sum::<f64>() / total);
        round.add("epsilon", config.epsilon.at(context.totals.games));
        round.add("replay", self.replay.len() as f64);
        if self.replay.len() < config.replay_min {
            return Ok(true);
        }
        let (mut loss_sum, mut norm_sum) = (0.0, 0.0);
        for batch in 0..config.round_batches {
            if context.cancel.is_cancelled() {
                return Ok(false);
            }
            let mut rng = context.seed_for("batches").index(batch).rng();
            let mut positions = match config.with_replacement {
                true => self.replay.draw(config.batch, &mut rng),
                false => self.replay.draw_distinct(config.batch, &mut rng),
            };
            if config.mirror_images {
                positions.iter_mut().for_each(|position| *position = position.image(&mut rng));
            }
            let mut planes = Vec::new();
            positions.iter().for_each(|position| position.planes(&mut planes));
            let size = planes.len() / positions.len().max(1);
            let samples: Vec<Sample<'_>> = planes
                .chunks_exact(size)
                .zip(&positions)
                .map(|(planes, position)| Sample { planes, result: position.result() })
                .collect();
            let trainer = &mut self.trainer;
            let (loss, norm) = context
                .pool
                .install(|| trainer.learn(&samples, &config.optimiser, config.rate as f32))?;
            loss_sum += loss;
            norm_sum += f64::from(norm);
            context.report(Stage::Learn, (batch + 1) as f64 / config.round_batches as f64);
        }
        round.steps = config.round_batches;
        round.add("loss.value", loss_sum / config.round_batches as f64);
        round.add("gradient_norm", norm_sum / config.round_batches as f64);
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_settings_are_rejected_by_name() {
        for name in ValueConfig::PRESETS {
            ValueConfig::preset(name).unwrap().check().unwrap();
        }
        let mut config = ValueConfig::tiny();
        config.network.blocks = 0;
        assert!(config.check().unwrap_err().to_string().contains("blocks is 0"));
        let error = |change: fn(&mut ValueConfig)| {
            let mut config = ValueConfig::preset("spec").unwrap();
            change(&mut config);
            config.check().unwrap_err().to_string()
        };
        assert!(error(|config| config.replay_min = 50_001).contains("replay_min is 50001"));
        assert!(error(|config| config.network.convolutions = 3).contains("convolutions is 3"));
        let small = |config: &mut ValueConfig| (config.replay, config.replay_min) = (255, 1);
        assert!(error(small).contains("batch is 256"));
        let opponent = |config: &mut ValueConfig| config.evaluation.opponent = "greedy".to_owned();
        assert!(error(opponent).contains("evaluation.opponent is greedy"));
    }

    #[test]
    fn an_evaluation_is_reported_once_and_older_states_are_read() {
        let mut state = State { results: Some(Results::default()), ..State::default() };
        assert_eq!(state.take_curves().len(), 4);
        assert_eq!(state, State::default());
        // The state of a checkpoint from before the results were stored.
        let old = r#"{"best_score":0.7,"evaluated":3,"score":0.7}"#;
        let mut old: State = serde_json::from_str(old).unwrap();
        assert_eq!(old.take_curves(), Curves::from([("evaluation.score".to_owned(), 0.7)]));
    }

    #[test]
    fn epsilon_decreases_with_games() {
        let epsilon = ValueConfig::default().epsilon;
        assert_eq!((epsilon.at(0), epsilon.at(1500), epsilon.at(9000)), (0.3, 0.05, 0.05));
        assert!((epsilon.at(750) - 0.175).abs() < 1e-12);
    }
}
