//! The data of the live view.

use std::collections::{BTreeMap, VecDeque};

use selfmate_run::Budget;
use selfmate_run::{Alarm, Rating, Record};
use selfmate_selfplay::{Stage, Status};

use super::Message;
use super::game::LastGame;

#[derive(Default)]
pub struct Scene {
    pub title: Title,
    pub status: Status,
    /// Seconds since the last status.
    pub silent_s: f64,
    /// True after a request to stop.
    pub is_stopping: bool,
    /// The learner's metrics, one number per generation.
    pub curves: BTreeMap<String, Vec<f64>>,
    /// The last generation of the curves.
    recorded: u64,
    pub ratings: Vec<Rating>,
    pub alarms: Vec<Alarm>,
    pub notes: Vec<String>,
    pub game: Option<LastGame>,
    /// The speed over the last seconds of play.
    pub speed: Speed,
}

/// What does not change during a training.
#[derive(Clone, Default)]
pub struct Title {
    pub run: String,
    pub learner: String,
    pub seed: u64,
    pub threads: usize,
    pub budget: Budget,
    /// Nodes per move in rating games.
    pub rating_nodes: u64,
    /// Seconds between ratings; 0 for none.
    pub rating_seconds: f64,
}

impl Scene {
    /// A run with its stored records.
    pub fn new(title: Title, records: Vec<Record>) -> Scene {
        let mut scene = Scene { title, ..Scene::default() };
        for record in records {
            // Notes of earlier sessions are printed by `show`.
            if !matches!(record, Record::Resume { .. }) {
                scene.take(Message::Record(record));
            }
        }
        scene
    }

    /// Handles an event of the learner.
    pub fn take(&mut self, message: Message) {
        match message {
            Message::Status(status) => {
                self.speed.add(&self.status, &status);
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
                self.notes.push(format!("resuming from step {step}, generation {generation}"));
            }
            Record::Start { .. } | Record::End { .. } => {}
        }
    }

    /// Drops what comes after a generation, because it is played again.
    fn rewind(&mut self, generation: u64) {
        // The first generations may have no losses, but all curves end with the last generation.
        let after = self.recorded.saturating_sub(generation) as usize;
        for curve in self.curves.values_mut() {
            curve.truncate(curve.len().saturating_sub(after));
        }
        self.recorded = generation;
        self.ratings.retain(|rating| rating.generation <= generation);
        self.alarms.retain(|alarm| alarm.generation <= generation);
    }

    /// Seconds of training until now.
    pub fn elapsed_s(&self) -> f64 {
        self.status.elapsed_s + self.silent_s
    }

    /// Remaining seconds, if the budget is a time.
    pub fn left_s(&self) -> Option<f64> {
        self.title.budget.minutes.map(|minutes| (60.0 * minutes - self.elapsed_s()).max(0.0))
    }

    /// The last number of a curve.
    pub fn latest(&self, name: &str) -> Option<f64> {
        self.curves.get(name)?.last().copied()
    }
}

/// The speed of play over the last seconds.
#[derive(Default)]
pub struct Speed {
    /// Seconds, games, simulations.
    parts: VecDeque<(f64, u64, u64)>,
}

impl Speed {
    /// The time span, in seconds.
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

    /// Games and simulations per second.
    pub fn per_second(&self) -> Option<(f64, f64)> {
        let seconds = self.seconds();
        let sum = |of: fn(&(f64, u64, u64)) -> u64| self.parts.iter().map(of).sum::<u64>() as f64;
        (seconds > 0.0).then(|| (sum(|part| part.1) / seconds, sum(|part| part.2) / seconds))
    }
}
