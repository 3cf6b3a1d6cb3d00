//! The same run on many machines, over NATS JetStream.
//!
//! A [`Cluster`] is a source of games for any learner from self-play, a [`RemoteMatch`] the same for
//! matches. Both announce a [`job`] through the `coordinator`, which lends games to workers
//! ([`lease`]); the `collector` validates what comes back ([`validation`]), has a share of it played
//! again ([`audit`]) and acknowledges what is on disk. [`worker`] is the other side. A game is a pure
//! function of a job and a number, so nothing depends on who played it. docs/cluster.md is the guide.
//!
//! This crate does not know how learning works. Only it and `web` use an asynchronous runtime.

pub mod audit;
mod auditor;
mod backoff;
mod ban;
pub mod broker;
mod collector;
mod coordinator;
mod detached;
pub mod envelope;
pub mod error;
pub mod hash;
pub mod job;
pub mod key;
mod leader;
pub mod lease;
pub mod message;
mod provenance;
pub mod rejection;
pub mod remote_match;
pub mod source;
pub mod status;
pub mod subject;
pub mod validation;
pub mod worker;
mod worker_pool;

pub use broker::{Access, Storage};
pub use detached::Detached;
pub use error::ClusterError;
pub use remote_match::RemoteMatch;
pub use source::Cluster;
pub use status::{Member, Report, status};
pub use subject::WorkerName;
