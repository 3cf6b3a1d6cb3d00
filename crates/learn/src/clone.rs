//! The `clone` learner: a network that copies a teacher, from games the teacher plays, from PGN
//! files or from the games of another run.
//!
//! First the lessons are gathered, a sealed file of games at a time: what is there after a kill is
//! not played again, and another run can learn from the same files. Then the network learns, in
//! passes over all lessons. After each pass games that were held out show how well it copies; what
//! plays is the network of the best pass.

mod config;
mod pgn;
mod teacher;
mod validation;

use std::path::Path;

use selfmate_chess::Seed;
use selfmate_run::{Checkpoint, GameRecord, RunError, RunReader};
use serde::{Deserialize, Serialize};

pub use config::{CloneConfig, Config, ResidualCloneConfig, Source};
pub use pgn::{PgnConfig, Read, read};
pub use teacher::TeacherConfig;
pub use validation::{Validation, validate};

use crate::learner::{Hardware, LearnError};
use crate::rounds::{Method, Room, Round, SavingConfig, bytes, check_shape, json};
use crate::selfplay::{MODEL, Student, TRAINER, Targets, samples};
use crate::watch::Stage;

/// The file of a checkpoint that says how far the lessons are.
const STATE: &str = "lessons.json";

/// A network that copies a teacher.
pub struct Imitator<S: Student> {
    student: S,
    /// The network of the best pass, as a file.
    best: Vec<u8>,
    state: State,
    /// All lessons and the games held out; read when the learning begins.
    lessons: Option<Lessons<S::Sample>>,
}

/// How far the lessons are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct State {
    /// Sealed files of games gathered so far.
    chunks: u64,
    /// Games in them.
    games: u64,
    /// No more games will come.
    is_gathered: bool,
    /// Positions to learn from, once they have been read.
    #[serde(default)]
    positions: Option<u64>,
    /// Whole passes, and batches of the next one.
    passes: u64,
    batches: u64,
    /// The best result so far.
    best: Option<Validation>,
    /// Passes since.
    worse: u64,
}

struct Lessons<T> {
    samples: Vec<T>,
    held_out: Vec<GameRecord>,
}

impl<S: Student> Method for Imitator<S> {
    type Config = Config<S::Shape, S::Training>;
    const FILES: &'static [&'static str] = &[MODEL, TRAINER, STATE];
    const TRAINING: &'static [&'static str] = &[TRAINER];
    const ENDS_BY_GAMES: bool = false;

    fn saving(config: &Self::Config) -> SavingConfig {
        config.saving
    }

    fn new(config: &Self::Config, seed: Seed, hardware: Hardware) -> Result<Self, LearnError> {
        let student = S::new(&config.network, &config.trainer, seed, hardware)?;
        let best = student.model()?;
        Ok(Imitator { student, best, state: State::default(), lessons: None })
    }

    fn restore(
        config: &Self::Config,
        checkpoint: &Checkpoint,
        hardware: Hardware,
    ) -> Result<Self, LearnError> {
        let student = S::restore(bytes(checkpoint, TRAINER)?, &config.trainer, hardware)?;
        check_shape(checkpoint, TRAINER, &student.shape(), &config.network)?;
        Ok(Imitator {
            student,
            best: bytes(checkpoint, MODEL)?.to_vec(),
            state: json(checkpoint, STATE)?,
            lessons: None,
        })
    }

    fn files(&self) -> Result<Vec<(&'static str, Vec<u8>)>, LearnError> {
        let state = serde_json::to_vec(&self.state).expect("a state is plain data");
        // Before the first pass is over there is nothing to choose from.
        let best = match self.state.best {
            Some(_) => self.best.clone(),
            None => self.student.model()?,
        };
        Ok(vec![(MODEL, best), (TRAINER, self.student.state()?), (STATE, state)])
    }

    fn is_done(&self, config: &Self::Config) -> Option<String> {
        let State { passes, worse, .. } = self.state;
        if worse >= config.patience {
            return Some(format!("no better on games held out for {worse} passes"));
        }
        (passes >= config.passes).then(|| format!("{passes} passes over all lessons are done"))
    }

    fn round(
        &mut self,
        config: &Self::Config,
        room: &mut Room<'_>,
    ) -> Result<Option<Round>, LearnError> {
        if self.state.is_gathered { self.learn(config, room) } else { self.gather(config, room) }
    }
}

impl<S: Student> Imitator<S> {
    /// Gathers the next file of games; `None` when there was no time for it.
    fn gather(
        &mut self,
        config: &Config<S::Shape, S::Training>,
        room: &mut Room<'_>,
    ) -> Result<Option<Round>, LearnError> {
        room.tell(Stage::Play, 0.0);
        let gathered = match config.source {
            Source::Teacher => match taught(config, self.state.chunks, room)? {
                Some(games) => games,
                None => return Ok(None),
            },
            Source::Pgn => {
                let halt = room.halt;
                let Some(read) = read(&config.pgn, config.games, &|| halt.is_over())? else {
                    return Ok(None);
                };
                if read.broken + read.left_out > 0 {
                    let (left_out, broken) = (read.left_out, read.broken);
                    room.note(&format!("{left_out} games do not fit, {broken} are broken"));
                }
                for (chunk, games) in (0..).zip(read.games.chunks(config.chunk_games as usize)) {
                    seal(chunk, games, room)?;
                }
                self.state.is_gathered = true;
                read.games
            }
            Source::Run => {
                // They stay where they are.
                self.state.is_gathered = true;
                Vec::new()
            }
        };
        self.state.games += gathered.len() as u64;
        self.state.chunks += 1;
        if self.state.games >= config.games || self.is_late(config, room)? {
            self.state.is_gathered = true;
        }
        let positions = gathered.iter().map(|game| game.positions.len() as u64).sum();
        let mut round =
            Round { games: gathered.len() as u64, positions, steps: 1, ..Round::default() };
        round.add("lessons", self.state.games as f64);
        Ok(Some(round))
    }

    /// True when the next file of games would take what is left of the time for games. Files that
    /// were played before a kill count all the same.
    fn is_late(
        &self,
        config: &Config<S::Shape, S::Training>,
        room: &Room<'_>,
    ) -> Result<bool, LearnError> {
        let State { chunks, .. } = self.state;
        let with_next = room.time_spent() * (chunks + 1) as f64 / chunks as f64;
        Ok(with_next > config.gathering_share && !room.run.chunks()?.contains(&chunks))
    }

    /// Learns some batches; at the end of a pass also looks at the games held out.
    fn learn(
        &mut self,
        config: &Config<S::Shape, S::Training>,
        room: &mut Room<'_>,
    ) -> Result<Option<Round>, LearnError> {
        if self.lessons.is_none() {
            room.tell(Stage::Start, 0.0);
            let Some(lessons) = read_lessons::<S>(config, self.state.chunks, room)? else {
                return Ok(None);
            };
            let (before, now) = (self.state.positions, lessons.samples.len() as u64);
            if before.is_some_and(|before| before != now) {
                let before = before.unwrap_or_default();
                let message = format!("{now} positions to learn from, where there were {before}");
                return Err(LearnError::Teacher(message));
            }
            self.state.positions = Some(now);
            self.lessons = Some(lessons);
        }
        let Imitator { student, best, state, lessons } = self;
        let lessons = lessons.as_ref().expect("read just now");
        // The order of a pass is drawn anew for each.
        let mut order: Vec<u32> = (0..lessons.samples.len() as u32).collect();
        room.seed.derive("passes").index(state.passes).rng().shuffle(&mut order);
        let batches: Vec<&[u32]> = order.chunks(config.batch).collect();
        let count = batches.len() as u64;
        let first = state.batches;
        // A round that was cut short is ended first, so that later ones end where they would have.
        let until = ((first / config.round_batches + 1) * config.round_batches).min(count);
        let mut sums = [0.0; 3];
        for batch in &batches[first as usize..until as usize] {
            // The order of batches does not depend on where rounds end.
            if room.halt.is_over() {
                break;
            }
            let samples: Vec<&S::Sample> =
                batch.iter().map(|&place| &lessons.samples[place as usize]).collect();
            let done = state.passes as f64 + state.batches as f64 / count as f64;
            let rate = config.rate.at(done / config.passes as f64);
            let losses = student.learn(&samples, rate as f32)?;
            for (sum, loss) in
                sums.iter_mut().zip([losses.policy, losses.value, losses.gradient_norm])
            {
                *sum += f64::from(loss);
            }
            state.batches += 1;
            room.tell(Stage::Learn, state.batches as f64 / count as f64);
        }
        if state.batches == first && count > 0 {
            return Ok(None);
        }
        let steps = (state.batches - first).max(1);
        let mut round = Round { steps, ..Round::default() };
        round.positions = steps * config.batch as u64;
        for (name, sum) in ["loss.policy", "loss.value", "gradient_norm"].into_iter().zip(sums) {
            round.add(name, sum / steps as f64);
        }
        if state.batches < count {
            return Ok(Some(round));
        }
        (state.passes, state.batches) = (state.passes + 1, 0);
        room.tell(Stage::Rate, 0.0);
        let network = student.evaluators()?;
        let found = room.pool.install(|| validate(&lessons.held_out, &network))?;
        round.add("validation.top1", found.top1);
        round.add("validation.top5", found.top5);
        round.add("validation_policy", found.policy);
        round.add("validation_value", found.value);
        round.add("passes", state.passes as f64);
        if state.best.is_none_or(|best| found.loss() < best.loss()) {
            (state.best, state.worse) = (Some(found), 0);
            *best = student.model()?;
        } else {
            state.worse += 1;
        }
        Ok(Some(round))
    }
}

/// A sealed file of the teacher's games: one that is there already, or played now; `None` when there
/// was no time.
fn taught<N, T>(
    config: &Config<N, T>,
    chunk: u64,
    room: &mut Room<'_>,
) -> Result<Option<Vec<GameRecord>>, LearnError> {
    let first = chunk * config.chunk_games;
    let numbers = first..(first + config.chunk_games).min(config.games);
    if room.run.chunks()?.contains(&chunk) {
        let what = match room.run.read_chunk(chunk) {
            Ok(games) if games.iter().map(|game| game.number).eq(numbers.clone()) => {
                return Ok(Some(games));
            }
            Ok(_) => format!("the games of file {chunk} are not those to be played"),
            Err(RunError::Damaged(damage)) => damage.to_string(),
            Err(error) => return Err(error.into()),
        };
        room.note(&format!("{what}; set aside, playing them again"));
        room.run.set_aside(chunk)?;
    }
    let Some(games) = teacher::play(&config.teacher, numbers, room)? else { return Ok(None) };
    seal(chunk, &games, room)?;
    // What is learned is what is stored.
    Ok(Some(room.run.read_chunk(chunk)?))
}

/// Reads all games again, those to learn from as samples; `None` when games had to be played again
/// and there was no time.
fn read_lessons<S: Student>(
    config: &Config<S::Shape, S::Training>,
    taught_chunks: u64,
    room: &mut Room<'_>,
) -> Result<Option<Lessons<S::Sample>>, LearnError> {
    let other = RunReader::new(Path::new(&config.run));
    let targets = Targets { result_weight: config.result_weight as f32, discount: 1.0 };
    // A game of each teacher is held out, then one of each again.
    let (chunks, teachers) = match config.source {
        Source::Teacher => {
            ((0..taught_chunks).collect(), config.teacher.players.len().max(1) as u64)
        }
        Source::Pgn => (room.run.chunks()?, 1),
        Source::Run => (other.chunks()?, 1),
    };
    let (mut lessons, mut games) = (Lessons { samples: Vec::new(), held_out: Vec::new() }, 0);
    for chunk in chunks {
        if games >= config.games {
            break;
        }
        if room.halt.is_over() {
            return Ok(None);
        }
        let stored = match config.source {
            Source::Teacher => match taught(config, chunk, room)? {
                Some(stored) => stored,
                None => return Ok(None),
            },
            Source::Pgn => room.run.read_chunk(chunk)?,
            Source::Run => other.read_chunk(chunk)?,
        };
        games += stored.len() as u64;
        let is_held_out =
            |game: &GameRecord| (game.number / teachers).is_multiple_of(config.held_out);
        let (held_out, learned): (Vec<GameRecord>, Vec<GameRecord>) =
            stored.into_iter().partition(is_held_out);
        lessons.held_out.extend(held_out);
        lessons.samples.extend(room.pool.install(|| samples::<S>(&learned, targets))?);
    }
    if lessons.samples.is_empty() || lessons.held_out.is_empty() {
        let source: &RunReader = if config.source == Source::Run { &other } else { &*room.run };
        let folder = source.path().display();
        return Err(LearnError::Teacher(format!("{folder}: there are {games} games in it")));
    }
    Ok(Some(lessons))
}

fn seal(chunk: u64, games: &[GameRecord], room: &mut Room<'_>) -> Result<(), LearnError> {
    let (journal, _) = room.run.journal(chunk)?;
    Ok(journal.seal(room.run, games)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonsense_is_named() {
        for name in CloneConfig::PRESETS {
            CloneConfig::preset(name).unwrap().check().unwrap();
            ResidualCloneConfig::preset(name).unwrap().check().unwrap();
        }
        let error = |change: fn(&mut CloneConfig)| {
            let mut config = CloneConfig::tiny();
            change(&mut config);
            config.check().unwrap_err().to_string()
        };
        assert!(error(|c| c.teacher.players = vec!["nobody".into()]).contains("nobody"));
        assert!(error(|c| c.source = Source::Pgn).starts_with("pgn.files is empty"));
        assert!(error(|c| c.network.hidden = 3).contains("hidden"));
    }
}
