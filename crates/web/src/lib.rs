//! The page and its API: watch a run learn, play it, look inside; and the OpenEnv endpoints.
//!
//! The libraries below are synchronous. What they do runs on threads (`bridge`); this crate turns
//! it into view types, streams and status codes, and lets nothing in that does not belong
//! (`guard`). docs/web.md is the guide, docs/security.md says what is refused.

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

pub use cluster::{Ask, ClusterView, Watched, WorkerView};
pub use server::{Config, Limits, ServeError, Server};

/// Why this binary has no page; `None` when it has one.
pub fn missing_page() -> Option<String> {
    asset::missing()
}

/// A token that nobody guesses: 128 random bits of the system as text.
pub fn random_token() -> Result<String, ServeError> {
    let mut bits = [0; 16];
    getrandom::fill(&mut bits).map_err(|error| ServeError::Token(error.to_string()))?;
    Ok(bits.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// A name that nobody guesses, for what only its owner should find.
fn secret_name() -> Result<String, error::ApiError> {
    random_token().map_err(|error| error::ApiError::Internal(error.to_string()))
}
