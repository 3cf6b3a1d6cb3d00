//! Information about the server, and its metrics.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::blocking::run_blocking;
use crate::counter::prometheus;
use crate::error::ApiError;
use crate::learner::{Learner, learners};
use crate::player::KindView;

/// What the page needs to know first.
#[derive(Serialize, ToSchema)]
pub struct About {
    /// Version of selfmate.
    pub version: &'static str,
    /// CPU cores of the machine.
    pub cores: usize,
    /// True when changes need a token.
    pub asks_for_token: bool,
    /// True when a distributed run is watched.
    pub watches_cluster: bool,
    /// Learners that can be trained.
    pub learners: Vec<Learner>,
    /// Kinds of players.
    pub players: Vec<KindView>,
}

/// Version, learners and players of this server.
#[utoipa::path(get, path = "/api/about", tag = "server", responses((status = 200, body = About)))]
pub async fn about(State(app): State<Arc<App>>) -> Json<About> {
    Json(About {
        version: env!("CARGO_PKG_VERSION"),
        cores: app.cores,
        asks_for_token: app.access.asks_for_token(),
        watches_cluster: app.cluster.is_some(),
        learners: learners(),
        players: app.players.kinds(),
    })
}

/// Metrics for Prometheus.
#[utoipa::path(get, path = "/metrics", tag = "server", responses((status = 200, body = String, content_type = "text/plain")))]
pub async fn metrics(State(app): State<Arc<App>>) -> Result<impl IntoResponse, ApiError> {
    let text = run_blocking(&app, |app| Ok(prometheus(app))).await?;
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text))
}
