//! What a run tells while it learns.

use selfmate_run::{GameRecord, Record};

/// Sees a run learn. Every method does nothing unless it is given a body.
pub trait Watch {
    /// Where the run stands, several times a second.
    fn status(&mut self, _status: &Status) {}

    /// A record that was added to the metrics.
    fn record(&mut self, _record: &Record) {}

    /// A game of self-play has ended.
    fn game(&mut self, _game: &GameRecord) {}

    /// Something worth knowing: a damaged file, a setting that was measured.
    fn note(&mut self, _text: &str) {}
}

/// Watches nothing.
impl Watch for () {}

/// Where a run stands.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Status {
    /// What it is doing.
    pub stage: Stage,
    /// How much of the stage is done, from 0 to 1.
    pub done: f64,
    /// Time spent training, earlier sessions included.
    pub elapsed_s: f64,
    /// The generation under way.
    pub generation: u64,
    /// Games so far.
    pub games: u64,
    /// Positions recorded so far.
    pub positions: u64,
    /// Simulations so far.
    pub simulations: u64,
    /// Batches learned so far.
    pub steps: u64,
}

/// What a run is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stage {
    /// Reads what is there.
    #[default]
    Start,
    /// Plays against itself.
    Play,
    /// Learns from its games.
    Learn,
    /// Meets players of known strength.
    Rate,
}

impl Stage {
    /// One word for it.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Start => "starting",
            Stage::Play => "playing",
            Stage::Learn => "learning",
            Stage::Rate => "rating",
        }
    }
}
