//! The `qlearn` learner: a table with a value for every move that was ever tried
//! (Watkins 1989), for a game of two sides.
//!
//! A round is a number of games with the table as it is, on all threads, and then their lessons,
//! one game after the other. A table cannot guess: it shows how far remembering alone goes. On an
//! ending of a few men that is all the way; on whole games it is the first few moves.

mod config;
mod episode;
mod knowledge;
mod player;
mod start;
mod state;
mod table;

use std::sync::Arc;

use rayon::prelude::*;
use selfmate_arena::adjudicate::Adjudication;
use selfmate_arena::game::{PlayedGame, Side, play_game};
use selfmate_arena::players::RandomPlayer;
use selfmate_arena::{GameSettings, Opening, Registry};
use selfmate_chess::{Color, Seed};
use selfmate_run::Checkpoint;

pub use config::{Opponent, QLearnConfig};
pub use knowledge::describe;
pub use player::{TablePlayer, kind};
pub use table::{Table, TableError};

use crate::exam::examine;
use crate::learner::LearnError;
use crate::rounds::{Method, Room, Round, SavingConfig, TOTALS, bytes, fault};
use crate::watch::Stage;
use episode::{Episode, Manner};
use start::Starts;

/// The file of a checkpoint that holds the table.
pub const TABLE: &str = "table.q";

/// A table in training.
pub struct QLearn {
    /// Shared with the players of an exam.
    table: Arc<Table>,
    starts: Starts,
}

impl Method for QLearn {
    type Config = QLearnConfig;
    const FILES: &'static [&'static str] = &[TABLE];
    const TRAINING: &'static str = TOTALS;

    fn saving(config: &QLearnConfig) -> SavingConfig {
        config.saving
    }

    fn new(config: &QLearnConfig, _: Seed, _: usize) -> Result<QLearn, LearnError> {
        let starts = Starts::load(&config.start)?;
        Ok(QLearn { table: Arc::new(Table::new(config.table_mb)), starts })
    }

    fn restore(
        config: &QLearnConfig,
        checkpoint: &Checkpoint,
        _: usize,
    ) -> Result<QLearn, LearnError> {
        let table = Table::decode(bytes(checkpoint, TABLE)?);
        let table = table.map_err(|error| fault(checkpoint, TABLE, &error))?;
        Ok(QLearn { table: Arc::new(table), starts: Starts::load(&config.start)? })
    }

    fn files(&self) -> Result<Vec<(&'static str, Vec<u8>)>, LearnError> {
        Ok(vec![(TABLE, self.table.encode())])
    }

    fn round(
        &mut self,
        config: &QLearnConfig,
        room: &mut Room<'_>,
    ) -> Result<Option<Round>, LearnError> {
        let progress = room.totals.games as f64 / config.plan_games as f64;
        room.tell(Stage::Play, 0.0);
        let Some(episodes) = self.play(config, config.epsilon.at(progress), room)? else {
            return Ok(None);
        };
        room.tell(Stage::Learn, 0.0);
        let (alpha, gamma) = (config.alpha.at(progress) as f32, config.gamma as f32);
        let (mut wrong, mut round) = (0.0, Round::default());
        let table = Arc::make_mut(&mut self.table);
        for episode in &episodes {
            wrong += episode.teach(table, alpha, gamma);
            round.positions += episode.moves() as u64;
        }
        round.games = episodes.len() as u64;
        round.steps = round.positions;
        let games = round.games as f64;
        let part = |is_counted: &dyn Fn(&Episode) -> bool| {
            episodes.iter().filter(|episode| is_counted(episode)).count() as f64 / games
        };
        round.add("error", wrong / (round.positions as f64).max(1.0));
        round.add("white_share", part(&|episode| episode.winner == Some(Color::White)));
        round.add("black_share", part(&|episode| episode.winner == Some(Color::Black)));
        round.add("capped_share", part(&|episode| episode.reward.is_none()));
        let plies: f64 = episodes.iter().map(|episode| f64::from(episode.plies)).sum();
        round.add("plies", plies / games);
        round.add("epsilon", config.epsilon.at(progress));
        round.add("alpha", f64::from(alpha));
        round.add("states", self.table.states() as f64);
        round.add("pairs", self.table.pairs() as f64);
        round.add("fullness", self.table.fullness());
        if config.exam.is_due(room.totals.rounds) {
            room.tell(Stage::Rate, 0.0);
            self.examine(config, room, &mut round)?;
        }
        Ok(Some(round))
    }
}

impl QLearn {
    /// The games of a round; `None` when there was no time for all of them.
    fn play(
        &self,
        config: &QLearnConfig,
        epsilon: f64,
        room: &Room<'_>,
    ) -> Result<Option<Vec<Episode>>, LearnError> {
        let registry = Registry::standard();
        let finisher =
            registry.parse(&config.finisher).map_err(selfmate_arena::MatchError::from)?;
        let seed = room.seed.derive("games");
        let (first, halt) = (room.totals.games, room.halt);
        let game = |number: u64| {
            if halt.is_over() {
                return Ok(None);
            }
            let seed = seed.index(number);
            let mut rng = seed.rng();
            let start = self.starts.draw(false, &mut rng);
            let mut manner = Manner {
                epsilon: [epsilon; 2],
                table_plies: config.table_plies,
                max_plies: config.max_plies,
            };
            if config.opponent == Opponent::Random {
                manner.epsilon[usize::from(number.is_multiple_of(2))] = 1.0;
            }
            let mut finisher = registry
                .build(&finisher, seed.derive("finisher"))
                .map_err(selfmate_arena::MatchError::from)?;
            let episode = Episode::play(&self.table, start, &manner, &mut *finisher, &mut rng);
            Ok::<_, LearnError>(Some(episode))
        };
        room.pool
            .install(|| (first..first + config.round_games).into_par_iter().map(game).collect())
    }

    /// Adds what the table can do against an opponent that plays any move.
    fn examine(
        &self,
        config: &QLearnConfig,
        room: &Room<'_>,
        round: &mut Round,
    ) -> Result<(), LearnError> {
        if let Starts::Ending(_) = self.starts {
            let Some(games) = self.play_endings(config, room) else { return Ok(()) };
            let won = games.iter().filter(|game| game.winner == Some(Side::White));
            let plies: usize = won.clone().map(|game| game.moves.len()).sum();
            let won = won.count() as f64;
            round.add("exam.mates", won / games.len() as f64);
            round.add("exam_plies", plies as f64 / won.max(1.0));
            return Ok(());
        }
        let table = Arc::clone(&self.table);
        let report = examine(&config.exam, |name| kind(name, table), room.seed_for("exam"), room)?;
        if let Some(report) = report {
            round.add("exam.score", report.score);
            if let Some(elo) = report.elo {
                round.add("exam_elo", elo);
            }
        }
        Ok(())
    }

    /// Starts that were never trained from, the table with White against a random defender.
    fn play_endings(&self, config: &QLearnConfig, room: &Room<'_>) -> Option<Vec<PlayedGame>> {
        // The same starts in every exam, so that its curve shows the table alone.
        let seed = room.seed.derive("exam");
        let adjudication =
            Adjudication { max_plies: Some(config.max_plies), ..Adjudication::default() };
        let settings = GameSettings { adjudication, ..GameSettings::default() };
        let stop = room.halt.flag();
        let game = |number: u64| {
            let seed = seed.index(number);
            let start = self.starts.draw(true, &mut seed.rng());
            let opening = Opening { game: start, name: None };
            let mut white = TablePlayer::new("table", Arc::clone(&self.table), seed);
            let mut black = RandomPlayer::new("random", seed);
            play_game(&mut white, &mut black, &opening, &settings, None, &stop)
        };
        room.pool.install(|| (0..config.exam.games).into_par_iter().map(game).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonsense_is_named() {
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
