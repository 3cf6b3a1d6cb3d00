//! Player specs, matches, ratings and their statistics.
//!
//! The arena knows who can play ([`spec`], [`registry`], [`players`], [`engine`]), lets them play,
//! and says what the results mean ([`stats`], [`sprt`]). It knows nothing of training.

pub mod engine;
pub mod limit;
pub mod openings;
pub mod players;
pub mod registry;
pub mod spec;
pub mod sprt;
pub mod stats;

pub use limit::{MoveLimit, TimeControl};
pub use openings::{Opening, OpeningSource, Openings};
pub use registry::{PlayerKind, Registry};
pub use spec::{PlayerSpec, SpecError, SpecOptions};
