//! Self-play and matches on many machines, over NATS JetStream.
//!
//! A [`Cluster`] is a source of self-play games for a learner; a [`RemoteMatch`] plays the games of a
//! match. Both publish a [`job`] through the coordinator, which lends games to workers ([`lease`]).
//! The collector validates the games that come back ([`validation`]), replays a share of them
//! ([`audit`]), and acknowledges those that are on disk. [`worker`] is the other side. A game is a
//! pure function of its job and its number, so the result does not depend on which worker played it.
//! docs/cluster.md is the guide.
//!
//! # Who can ban a worker, and when
//!
//! Only the collector bans, and only for a game that carried the token of that worker. Each of these
//! three is enough:
//!
//! - Validation shows that the game is wrong ([`rejection::Rejection::is_proof`]): it cannot be
//!   decoded, breaks the rules of chess, or cannot be the game of its job and number.
//! - An audit replays the game and the result differs ([`audit::Agreement::Different`]). Audited are
//!   the first game of every worker, a secretly chosen share, and both copies of a game if two workers
//!   sent different ones.
//! - Too many audited games of the worker diverge by more than rounding
//!   ([`audit::diverges_too_often`]). This applies only to networks that are not
//!   exact: residual networks, and small ones with convolutions.
//!
//! These never lead to a ban: a game without the token of the worker that sent it, bytes that are not
//! an envelope, a game of a job that has ended, a duplicate (all of them counted in the status
//! report), a lease that expired, a lost connection, and a worker of another protocol version. On a
//! broker without permissions a token can be read by others, and a ban proves less.
//! A ban of a run is kept in its folder until someone removes the line; a ban of a match ends with it.
//!
//! This crate does not know how a network is trained. Only this crate and `web` use an asynchronous
//! runtime.

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
