//! The `qlearn` learner: tabular Q-learning (Watkins 1989) for a game of two sides.
//!
//! A round plays a number of games with a fixed table, on all threads, and then updates the table
//! one game after the other. A table does not generalise, so this shows how far memorising alone
//! goes: endings with few pieces are learned completely, whole games only for the first few moves.

mod config;
mod describe;
mod episode;
mod player;
mod start;
mod state;
mod table;

use std::sync::Arc;

use rayon::prelude::*;
use selfmate_arena::adjudicate::Adjudication;
use selfmate_arena::game::{PlayedGame, Side, play_game};
use selfmate_arena::{GameSettings, MatchError, Opening, Registry};
use selfmate_chess::{Color, Seed};
use selfmate_run::{Checkpoint, Run};
use selfmate_search::Player;
use selfmate_search::memory::{MemoryError, check_limit, check_room};
use selfmate_selfplay::{GameSource, Stage, Watch};
use selfmate_train::{
    ConfigError, End, Hardware, Learner, Round, RoundContext, SavingConfig, TOTALS, TrainOptions,
    TrainingError, read_bytes, state_error, train,
};

pub use config::{Opponent, QLearnConfig};
pub use describe::describe;
pub use player::TablePlayer;
pub use table::{LearningRate, Table, TableError};

use crate::charts::{Chart, EPSILON, GAMES_PER_SECOND, PLIES, Unit, chart, curve, schedule};
use crate::table::{
    Description, LearnerConfig, LearnerInfo, Loader, PlayerFormat, SearchKind, boxed, parse,
};
use episode::{Episode, PlayConfig};
use start::Starts;
use state::State;

/// The checkpoint file of the table.
pub const TABLE: &str = "table.q";

const CHARTS: &[Chart] = &[
    chart(
        "Evaluation",
        "without random moves: points, wins and losses against random, or mates from held-out starts of an ending; known: starts that the table has met",
        Unit::Share,
        &[
            curve("evaluation.score", "score"),
            curve("evaluation.wins", "won"),
            curve("evaluation.losses", "lost"),
            curve("evaluation.mates", "mates"),
            curve("evaluation.known", "known"),
        ],
    ),
    chart(
        "Error",
        "mean distance of a value from its target before the update",
        Unit::Amount,
        &[curve("error", "")],
    ),
    chart(
        "Table",
        "positions and moves in the table",
        Unit::Amount,
        &[curve("states", "positions"), curve("pairs", "moves")],
    ),
    chart("Use of the table", "share of its memory", Unit::Share, &[curve("fullness", "")]),
    chart(
        "Games",
        "won by White, by Black; truncated",
        Unit::Share,
        &[
            curve("white_share", "White"),
            curve("black_share", "Black"),
            curve("truncated_share", "truncated"),
        ],
    ),
    PLIES,
    GAMES_PER_SECOND,
    EPSILON,
    schedule("Learning rate (α)", &[curve("alpha", "")]),
];

pub const INFO: LearnerInfo = LearnerInfo {
    name: "qlearn",
    summary: "a table of state-action values",
    presets: &QLearnConfig::PRESETS,
    preset: |name| boxed(QLearnConfig::preset(name)),
    parse: parse::<QLearnConfig>,
    bounds: config::BOUNDS,
    is_distributed: false,
    has_device: false,
    search: SearchKind::NoTree,
    player: PlayerFormat { file: TABLE, load: Loader::Own { options: &[], load: player::load } },
    charts: CHARTS,
    descriptions: &[Description { file: TABLE, lines: describe::lines }],
};

impl LearnerConfig for QLearnConfig {
    fn check(&self) -> Result<(), ConfigError> {
        QLearnConfig::check(self)
    }

    fn train(
        &self,
        run: &mut Run,
        options: &TrainOptions<'_>,
        source: &mut dyn GameSource,
        watch: &mut dyn Watch,
    ) -> Result<End, TrainingError> {
        train::<QLearn>(run, self, options, source, watch)
    }

    fn memory_mb(&self, _threads: usize) -> Vec<(&'static str, u64)> {
        // Encoding a checkpoint makes a second copy.
        vec![("table_mb", 2 * self.table_mb.next_power_of_two() as u64)]
    }

    fn plan_games(&mut self) -> Option<&mut u64> {
        Some(&mut self.plan_games)
    }
}

pub struct QLearn {
    /// Shared with the players of an evaluation.
    table: Arc<Table>,
    starts: Starts,
}

impl Learner for QLearn {
    type Config = QLearnConfig;
    const FILES: &'static [&'static str] = &[TABLE];
    const TRAINING_FILES: &'static [&'static str] = &[TOTALS];

    fn saving(config: &QLearnConfig) -> SavingConfig {
        config.saving
    }

    fn new(config: &QLearnConfig, _: Seed, _: Hardware) -> Result<QLearn, TrainingError> {
        let starts = Starts::load(&config.start)?;
        check_memory(config.table_mb)?;
        Ok(QLearn { table: Arc::new(Table::new(config.table_mb)), starts })
    }

    fn restore(
        config: &QLearnConfig,
        checkpoint: &Checkpoint,
        _: Hardware,
    ) -> Result<QLearn, TrainingError> {
        check_memory(config.table_mb)?;
        let table = Table::decode(read_bytes(checkpoint, TABLE)?);
        let table = table.map_err(|error| state_error(checkpoint, TABLE, &error))?;
        Ok(QLearn { table: Arc::new(table), starts: Starts::load(&config.start)? })
    }

    fn files(&self) -> Result<Vec<(&'static str, Vec<u8>)>, TrainingError> {
        Ok(vec![(TABLE, self.table.encode())])
    }

    fn round(
        &mut self,
        config: &QLearnConfig,
        context: &mut RoundContext<'_>,
    ) -> Result<Option<Round>, TrainingError> {
        let progress = context.totals.games as f64 / config.plan_games as f64;
        context.report(Stage::Play, 0.0);
        let Some(episodes) = self.play(config, config.epsilon.at(progress), context)? else {
            return Ok(None);
        };
        context.report(Stage::Learn, 0.0);
        let learning_rate =
            LearningRate { alpha: config.alpha.at(progress) as f32, doubt: config.doubt };
        let (mut error_sum, mut round) = (0.0, Round::default());
        let table = Arc::make_mut(&mut self.table);
        for episode in &episodes {
            error_sum += episode.update(table, learning_rate, config.gamma as f32);
            round.positions += episode.moves() as u64;
        }
        round.games = episodes.len() as u64;
        round.steps = round.positions;
        let games = round.games as f64;
        let part = |is_counted: &dyn Fn(&Episode) -> bool| {
            episodes.iter().filter(|episode| is_counted(episode)).count() as f64 / games
        };
        round.add("error", error_sum / (round.positions as f64).max(1.0));
        round.add("white_share", part(&|episode| episode.winner == Some(Color::White)));
        round.add("black_share", part(&|episode| episode.winner == Some(Color::Black)));
        round.add("truncated_share", part(&|episode| episode.reward.is_none()));
        let plies: f64 = episodes.iter().map(|episode| f64::from(episode.plies)).sum();
        round.add("plies", plies / games);
        round.add("epsilon", config.epsilon.at(progress));
        round.add("alpha", f64::from(learning_rate.alpha));
        round.add("states", self.table.states() as f64);
        round.add("pairs", self.table.pairs() as f64);
        round.add("fullness", self.table.fullness());
        if config.evaluation.is_due(context.totals.rounds) {
            context.report(Stage::Rate, 0.0);
            self.evaluate(config, context, &mut round)?;
        }
        Ok(Some(round))
    }
}

/// An error when there is not enough memory for the table.
fn check_memory(table_mb: usize) -> Result<(), MemoryError> {
    let purpose = "the table of values";
    // The number of lines is a power of two.
    let megabytes = table_mb.checked_next_power_of_two().unwrap_or(usize::MAX);
    check_limit(megabytes, purpose)?;
    check_room(megabytes << 20, purpose)
}

impl QLearn {
    /// The games of a round; `None` when there was no time for all of them.
    fn play(
        &self,
        config: &QLearnConfig,
        epsilon: f64,
        context: &RoundContext<'_>,
    ) -> Result<Option<Vec<Episode>>, TrainingError> {
        let registry = Registry::standard();
        let finisher = registry.parse(&config.finisher).map_err(MatchError::from)?;
        let seed = context.seed.derive("games");
        let (first, cancel) = (context.totals.games, context.cancel);
        let game = |number: u64| {
            if cancel.is_cancelled() {
                return Ok(None);
            }
            let seed = seed.index(number);
            let mut rng = seed.rng();
            let start = self.starts.draw(false, &mut rng);
            let play_config = PlayConfig {
                epsilon,
                side: match config.opponent {
                    Opponent::Itself => None,
                    Opponent::Random => Some(Color::from_white(number.is_multiple_of(2))),
                },
                table_plies: config.table_plies,
                max_plies: config.max_plies,
                new_states: config.new_states,
            };
            let mut finisher = match config.table_plies {
                0 => None,
                _ => Some(
                    registry.build(&finisher, seed.derive("finisher")).map_err(MatchError::from)?,
                ),
            };
            let finisher = finisher.as_deref_mut().map(|player| player as &mut dyn Player);
            let episode = Episode::play(&self.table, start, &play_config, finisher, &mut rng);
            Ok::<_, TrainingError>(Some(episode?))
        };
        context
            .pool
            .install(|| (first..first + config.round_games).into_par_iter().map(game).collect())
    }

    /// Adds the table's results against the evaluation's opponent, without random moves of its own.
    fn evaluate(
        &self,
        config: &QLearnConfig,
        context: &RoundContext<'_>,
        round: &mut Round,
    ) -> Result<(), TrainingError> {
        let Some(games) = self.play_evaluation(config, context)? else { return Ok(()) };
        let total = games.len() as f64;
        let share = |counts: &dyn Fn(&EvaluationGame) -> bool| {
            games.iter().filter(|played| counts(played)).count() as f64 / total
        };
        let is_won = |played: &EvaluationGame| played.game.winner == Some(played.side);
        if let Starts::Ending(_) = self.starts {
            let won = games.iter().filter(|played| is_won(played));
            let plies: usize = won.clone().map(|played| played.game.moves.len()).sum();
            round.add("evaluation.mates", share(&is_won));
            round.add("evaluation.known", share(&|played| played.is_known));
            round.add("evaluation.plies", plies as f64 / (won.count() as f64).max(1.0));
            return Ok(());
        }
        let lost = share(&|played| played.game.winner.is_some_and(|winner| winner != played.side));
        round.add("evaluation.wins", share(&is_won));
        round.add("evaluation.losses", lost);
        round.add("evaluation.score", 0.5 + 0.5 * (share(&is_won) - lost));
        Ok(())
    }

    /// Games from the starts that are held out for evaluations. They are the same every time, so
    /// that the curve depends on the table alone. In endings the table has the side with the
    /// pieces, otherwise both sides in turn.
    fn play_evaluation(
        &self,
        config: &QLearnConfig,
        context: &RoundContext<'_>,
    ) -> Result<Option<Vec<EvaluationGame>>, TrainingError> {
        let seed = context.seed.derive("evaluation");
        let is_ending = matches!(self.starts, Starts::Ending(_));
        let max_plies =
            Some(if is_ending { config.max_plies } else { config.evaluation.max_plies });
        let adjudication = Adjudication { max_plies, ..Adjudication::default() };
        let settings = GameSettings { adjudication, ..GameSettings::default() };
        let (cancel, stop) = (context.cancel, context.cancel.flag());
        let registry = Registry::standard();
        let opponent = registry.parse(&config.evaluation.opponent).map_err(MatchError::from)?;
        let play = |number: u64| {
            if cancel.is_cancelled() {
                return Ok(None);
            }
            let seed = seed.index(number);
            let start = self.starts.draw(true, &mut seed.rng());
            let is_known = self.table.get(State::of(start.position()).key).is_some();
            let opening = Opening { game: start, name: None };
            let mut table = TablePlayer::new("table", Arc::clone(&self.table), seed);
            let mut other = registry.build(&opponent, seed).map_err(MatchError::from)?;
            let (side, game) = if is_ending || number.is_multiple_of(2) {
                (Side::White, play_game(&mut table, &mut *other, &opening, &settings, None, &stop))
            } else {
                (Side::Black, play_game(&mut *other, &mut table, &opening, &settings, None, &stop))
            };
            Ok(game.map(|game| EvaluationGame { game, side, is_known }))
        };
        context.pool.install(|| (0..config.evaluation.games).into_par_iter().map(play).collect())
    }
}

struct EvaluationGame {
    game: PlayedGame,
    /// The table's side.
    side: Side,
    /// The table has an entry for the start.
    is_known: bool,
}

#[cfg(test)]
mod tests {
    use selfmate_nn::Device;
    use selfmate_search::memory::limit_mb;

    use super::*;

    #[test]
    fn a_table_larger_than_the_memory_is_an_error_at_start_and_on_resume() {
        let checkpoint = Checkpoint { step: 1, files: [].into() };
        let hardware = Hardware { threads: 1, device: Device::Cpu };
        // A size that would fit if it were not rounded up.
        for table_mb in [(limit_mb() + 1).next_power_of_two() / 2 + 1, usize::MAX] {
            let config = QLearnConfig { table_mb, ..QLearnConfig::tiny() };
            let created = QLearn::new(&config, Seed::new(1), hardware).err();
            let resumed = QLearn::restore(&config, &checkpoint, hardware).err();
            for error in [created, resumed] {
                assert!(matches!(error, Some(TrainingError::Memory(_))), "{error:?}");
            }
        }
    }

    #[test]
    fn invalid_settings_are_rejected_by_name() {
        for name in QLearnConfig::PRESETS {
            QLearnConfig::preset(name).unwrap().check().unwrap();
        }
        let error = |change: fn(&mut QLearnConfig)| {
            let mut config = QLearnConfig::default();
            change(&mut config);
            config.check().unwrap_err().to_string()
        };
        assert_eq!(error(|c| c.gamma = 1.5), "gamma is 1.5: expected a share from 0 to 1");
        assert!(error(|c| c.finisher = "nobody".into()).starts_with("finisher is nobody"));
        assert!(error(|c| c.start = "nowhere".into()).starts_with("start is 'nowhere'"));
    }
}
