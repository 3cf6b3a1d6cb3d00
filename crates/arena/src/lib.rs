//! Player specs, matches, ratings and their statistics.
//!
//! The arena builds players from specs ([`spec`], [`registry`], [`players`], [`engine`]), plays
//! games between them ([`game`], [`match_runner`]) from varied [`openings`], and computes what the
//! results mean ([`stats`], [`sprt`], [`rating`]). It does not depend on training.

pub mod adjudicate;
pub mod book;
pub mod engine;
pub mod game;
mod game_pool;
mod header;
pub mod ladder;
pub mod limit;
pub mod match_runner;
pub mod openings;
pub mod pairing;
pub mod players;
pub mod rate;
pub mod rating;
pub mod record;
pub mod registry;
pub mod remote;
pub mod report;
pub mod resolved_player;
pub mod selfplay;
pub mod spec;
pub mod sprt;
pub mod stats;
pub mod store;
pub mod suite;
pub mod svg;
pub mod tablebase_cache;
pub mod tuning;

pub use book::{BookConfig, BookReport, BookRules, LearnedBook, PolyglotBook, book_agreement};
pub use game::GameSettings;
pub use ladder::{LadderConfig, LadderEvent, LadderFormat, LadderReport, run_ladder};
pub use limit::{MatchLimit, TimeControl};
pub use match_runner::{MatchConfig, MatchError, MatchEvent, MatchRun, run_match, stored_match};
pub use openings::{Opening, OpeningSource, Openings};
pub use pairing::Pairing;
pub use rate::{RateConfig, RateReport, Rung, run_rate};
pub use record::MatchGame;
pub use registry::{PlayerKind, Registry};
pub use report::MatchReport;
pub use resolved_player::{Loaded, RemotePlayerSpec, ResolvedPlayer};
pub use selfplay::{SelfPlayConfig, SelfPlayTally, run_selfplay};
pub use spec::{PlayerSpec, SpecError, SpecOptions};
pub use sprt::Sprt;
pub use suite::{SuiteConfig, SuiteReport, run_suite};
pub use svg::rating_svg;
pub use tablebase_cache::TablebaseCache;
pub use tuning::{NetworkFile, Parameter, Tuning, TuningError};
