//! What a run reports while it learns.

use selfmate_run::{GameRecord, Record};

/// Receives the reports of a run. Every method does nothing by default.
pub trait Watch {
    /// Called several times a second.
    fn status(&mut self, _status: &Status) {}

    /// A record was added to the metrics.
    fn record(&mut self, _record: &Record) {}

    /// A game of self-play has ended.
    fn game(&mut self, _game: &GameRecord) {}

    /// A message for people: a damaged file, a setting that was measured.
    fn note(&mut self, _text: &str) {}
}

impl Watch for () {}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Status {
    pub stage: Stage,
    /// The share of the stage that is done.
    pub done: f64,
    /// Seconds of training, including earlier sessions.
    pub elapsed_s: f64,
    /// The generation or round under way.
    pub generation: u64,
    pub games: u64,
    pub positions: u64,
    /// Simulations, or nodes of alpha-beta.
    pub simulations: u64,
    pub steps: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stage {
    #[default]
    Start,
    Play,
    Learn,
    Rate,
}

impl Stage {
    pub fn name(self) -> &'static str {
        match self {
            Stage::Start => "starting",
            Stage::Play => "playing",
            Stage::Learn => "learning",
            Stage::Rate => "rating",
        }
    }
}
