//! The environment over HTTP and WebSocket, as OpenEnv 0.10 defines it, under `/openenv`.
//!
//! Upstream's HTTP endpoints make a new environment for each request. Here a reset begins a session
//! that later steps find again: by the cookie it sets, by the header `X-Session-Id`, and without
//! either, the one that was last begun without either. A WebSocket is a session of its own.

mod episode;
mod http;
mod mcp;
mod schema;
mod session;
mod socket;

pub use session::Episodes;

use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post};

use crate::app::App;

/// The endpoints, relative to their base.
pub fn router() -> Router<Arc<App>> {
    Router::new()
        .route("/reset", post(http::reset))
        .route("/step", post(http::step))
        .route("/state", get(http::state))
        .route("/health", get(http::health))
        .route("/metadata", get(http::metadata))
        .route("/schema", get(http::schemas))
        .route("/openapi.json", get(http::openapi))
        .route("/mcp", post(http::mcp).get(socket::mcp))
        .route("/ws", get(socket::environment))
}
