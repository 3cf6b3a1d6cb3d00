//! The same run on many machines, over NATS JetStream.
//!
//! A [`Cluster`] is a source of games for any learner from self-play: it lends games to workers
//! ([`lease`]), looks at all that comes back ([`intake`]), plays a share of it again ([`audit`]),
//! and acknowledges what is on its own disk. [`worker`] is the other side. A game is a pure function
//! of an [`order`] and a number, so nothing depends on who played it. docs/cluster.md is the guide.
//!
//! This crate does not know how learning works, and only it and `web` know an asynchronous runtime.

mod alone;
pub mod audit;
mod auditor;
mod backoff;
mod ban;
pub mod broker;
mod centre;
pub mod document;
pub mod ending;
pub mod error;
pub mod fixture;
mod hall;
pub mod hash;
mod host;
pub mod intake;
pub mod key;
pub mod lease;
pub mod message;
mod office;
pub mod order;
pub mod parcel;
mod presence;
mod provenance;
pub mod refusal;
mod round;
mod shift;
pub mod source;
pub mod status;
pub mod subject;
pub mod tournament;
pub mod worker;

pub use alone::Alone;
pub use broker::{Access, Storage};
pub use error::ClusterError;
pub use source::Cluster;
pub use status::{Member, Report, status};
pub use subject::WorkerName;
pub use tournament::Tournament;
