//! The chess environment over HTTP and WebSocket, as defined by OpenEnv 0.10, under `/openenv`.
//!
//! OpenEnv's HTTP endpoints create a new environment for each request. Here a reset starts a
//! session, which later steps find by the cookie it sets or by the header `X-Session-Id`. Without
//! either they use the last session that was started without either. A WebSocket is its own
//! session.

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

/// Routes, relative to the base path.
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
