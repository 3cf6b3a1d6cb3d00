//! What the picture shows, as plain data.

use std::collections::{BTreeMap, VecDeque};

use selfmate_learn::{Budget, Stage, Status};
use selfmate_run::{Alarm, Rating, Record};

use super::Message;
use super::game::LastGame;

/// Everything that the picture shows.
#[derive(Default)]
pub struct Scene {
    pub title: Title,
    pub status: Status,
    /// Seconds since the status came.
    pub silent_s: f64,
    /// It was told to stop.
    pub is_stopping: bool,
    /// The learner's curves, a number for each generation.
    pub curves: BTreeMap<String, Vec<f64>>,
    /// The generation that the curves end with.
    recorded: u64,
    pub ratings: Vec<Rating>,
    pub alarms: Vec<Alarm>,
    pub notes: Vec<String>,
    pub game: Option<LastGame>,
    /// What was done in the last seconds of play.
    pub pace: Pace,
}

/// What does not change while a run is trained.
#[derive(Clone, Default)]
pub struct Title {
    pub run: String,
    pub learner: String,
    pub seed: u64,
    pub threads: usize,
    pub budget: Budget,
    /// Nodes for a move in rating games.
    pub rating_nodes: u64,
    /// Seconds between ratings; 0 for none.
    pub rating_seconds: f64,
}

impl Scene {
    /// A run with what it has recorded so far.
    pub fn new(title: Title, records: Vec<Record>) -> Scene {
        let mut scene = Scene { title, ..Scene::default() };
        for record in records {
            // What earlier sessions had to note is told by `show`.
            if !matches!(record, Record::Resume { .. }) {
                scene.take(Message::Record(record));
            }
        }
        scene
    }

    /// Takes in what the learner says.
    pub fn take(&mut self, message: Message) {
        match message {
            Message::Status(status) => {
                self.pace.add(&self.status, &status);
                self.status = status;
            }
            Message::Record(record) => self.record(record),
            Message::Game(game) => match LastGame::new(&game) {
                Ok(game) => self.game = Some(game),
                Err(error) => self.notes.push(error.to_string()),
            },
            Message::Note(note) => self.notes.push(note),
        }
    }

    fn record(&mut self, record: Record) {
        match record {
            Record::Progress(progress) => {
                let status = &mut self.status;
                (status.elapsed_s, status.generation) = (progress.elapsed_s, progress.generation);
                (status.games, status.positions) = (progress.games, progress.positions);
                (status.simulations, status.steps) = (progress.simulations, progress.steps);
                self.recorded = progress.generation;
                for (name, value) in progress.values {
                    self.curves.entry(name).or_default().push(value);
                }
            }
            Record::Rating(rating) => self.ratings.push(rating),
            Record::Alarm(alarm) => self.alarms.push(alarm),
            Record::Resume { step, generation, elapsed_s, .. } => {
                self.rewind(generation);
                self.status.elapsed_s = elapsed_s;
                self.notes.push(format!("going on from step {step}, generation {generation}"));
            }
            Record::Start { .. } | Record::End { .. } => {}
        }
    }

    /// Drops what comes after a generation: it will be played again.
    fn rewind(&mut self, generation: u64) {
        // The first generations may have no losses, but all curves end with the last one.
        let after = self.recorded.saturating_sub(generation) as usize;
        for curve in self.curves.values_mut() {
            curve.truncate(curve.len().saturating_sub(after));
        }
        self.recorded = generation;
        self.ratings.retain(|rating| rating.generation <= generation);
        self.alarms.retain(|alarm| alarm.generation <= generation);
    }

    /// Seconds of training, now.
    pub fn elapsed_s(&self) -> f64 {
        self.status.elapsed_s + self.silent_s
    }

    /// Seconds left, where the budget is a time.
    pub fn left_s(&self) -> Option<f64> {
        self.title.budget.minutes.map(|minutes| (60.0 * minutes - self.elapsed_s()).max(0.0))
    }

    /// The newest number of a curve.
    pub fn latest(&self, name: &str) -> Option<f64> {
        self.curves.get(name)?.last().copied()
    }
}

/// How fast games are played, over the last seconds of play.
#[derive(Default)]
pub struct Pace {
    /// Seconds, games, simulations.
    parts: VecDeque<(f64, u64, u64)>,
}

impl Pace {
    /// Seconds to look back.
    const SPAN_S: f64 = 8.0;

    fn add(&mut self, before: &Status, now: &Status) {
        let is_same = before.stage == Stage::Play
            && now.stage == Stage::Play
            && before.generation == now.generation;
        let seconds = now.elapsed_s - before.elapsed_s;
        if !is_same || seconds <= 0.0 {
            return;
        }
        let games = now.games.saturating_sub(before.games);
        let simulations = now.simulations.saturating_sub(before.simulations);
        self.parts.push_back((seconds, games, simulations));
        while let Some(first) = self.parts.front() {
            if self.seconds() - first.0 < Self::SPAN_S {
                break;
            }
            self.parts.pop_front();
        }
    }

    fn seconds(&self) -> f64 {
        self.parts.iter().map(|part| part.0).sum()
    }

    /// Games and simulations a second.
    pub fn per_second(&self) -> Option<(f64, f64)> {
        let seconds = self.seconds();
        let sum = |of: fn(&(f64, u64, u64)) -> u64| self.parts.iter().map(of).sum::<u64>() as f64;
        (seconds > 0.0).then(|| (sum(|part| part.1) / seconds, sum(|part| part.2) / seconds))
    }
}
