//! A run: the folder that holds everything of one training.
//!
//! ```text
//! runs/NAME/
//!   run.toml               the resolved config, written first
//!   lock                   held by the one process that writes
//!   checkpoints/STEP/      files, and a MANIFEST with the hash of each, written last
//!   games/NNNNNNNN.games   the sealed games of a generation
//!   games/NNNNNNNN.open    the games of the generation that is being played
//!   live.json              the games that are being played, while they are
//!   metrics.jsonl          typed records, one a line
//!   metrics.damaged        lines of it that could not be read
//!   matches/               what the arena found
//! ```
//!
//! A kill at any moment leaves a folder that can be read. Damage is found by a hash or a checksum,
//! and named. This crate does not know how learning works.

pub mod atomic;
pub mod bounded_file;
mod checkpoint;
mod chunk;
mod error;
mod follower;
mod frame;
mod game;
mod journal;
mod live;
mod manifest;
mod metric;
mod name;
mod policy;
mod reader;
mod record;
mod totals;
mod writer;

pub use checkpoint::{Checkpoint, CheckpointStamp, Latest};
pub use error::{Damage, PassedOver, RunError};
pub use follower::{Follower, News};
pub use game::{GameRecord, PositionRecord, RecordError};
pub use journal::{Journal, OpenGames};
pub use live::LiveGame;
pub use metric::{Alarm, Budget, Progress, Rating, Record};
pub use name::{NameError, check_name};
pub use reader::{CONFIG, RunReader, list};
pub use totals::RunTotals;
pub use writer::Run;
