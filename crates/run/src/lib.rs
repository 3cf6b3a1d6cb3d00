//! Run folders: everything that one training run stores on disk.
//!
//! ```text
//! runs/NAME/
//!   run.toml               the resolved config, written first
//!   lock                   held by the one process that writes
//!   checkpoints/STEP/      files, and a MANIFEST with the hash of each, written last
//!   games/NNNNNNNN.games   the sealed games of a generation
//!   games/NNNNNNNN.open    the games of the current generation
//!   live.json              the games in progress, while training runs
//!   metrics.jsonl          typed records, one per line
//!   metrics.damaged        lines of it that could not be read
//!   matches/               results of the arena
//! ```
//!
//! The folder can be read after a kill at any moment. Hashes and checksums detect damage, and errors
//! name the damaged file. This crate contains no learning.

pub mod atomic_file;
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
pub use error::{Damage, RunError, SkippedCheckpoints};
pub use follower::{Follower, MetricsUpdate};
pub use game::{GameRecord, PositionRecord, RecordError};
pub use journal::{Journal, OpenGames};
pub use live::LiveGame;
pub use metric::{Alarm, Budget, Progress, Rating, Record};
pub use name::{NameError, check_name};
pub use reader::{CONFIG, RunReader, list};
pub use totals::RunTotals;
pub use writer::Run;
