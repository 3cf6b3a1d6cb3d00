//! The web page with its API, and the OpenEnv endpoints: watch a run learn, play against it, look
//! inside its search.
//!
//! The libraries below are synchronous and run on threads (`blocking`). This crate turns their
//! results into view types, streams and status codes, and rejects requests that are not allowed
//! (`access`). docs/web.md is the guide, docs/security.md lists what is rejected.

mod access;
mod api;
mod app;
mod arena;
mod asset;
mod blocking;
mod cluster;
mod connection;
mod counter;
mod endgame;
mod error;
mod learner;
mod openapi;
mod openenv;
mod player;
mod response_cache;
mod run;
mod server;
mod training_process;
mod tree;
mod view;

pub use cluster::{ClusterQuery, ClusterView, ClusterWatcher, WorkerView};
pub use server::{Config, Limits, ServeError, Server};

/// Why this binary has no page; `None` if it has one.
pub fn missing_page() -> Option<String> {
    asset::missing()
}

/// An unguessable token: 128 random bits of the system, as text.
pub fn random_token() -> Result<String, ServeError> {
    let mut bits = [0; 16];
    getrandom::fill(&mut bits).map_err(|error| ServeError::Token(error.to_string()))?;
    Ok(bits.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// An unguessable name for things that only their owner should find.
fn secret_name() -> Result<String, error::ApiError> {
    random_token().map_err(|error| error::ApiError::Internal(error.to_string()))
}
