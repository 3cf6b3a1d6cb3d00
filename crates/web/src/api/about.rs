//! What this server is and what it can do.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::blocking::work;
use crate::counter::prometheus;
use crate::error::ApiError;
use crate::learner::{Learner, learners};
use crate::player::KindView;

/// What a page needs to know before anything else.
#[derive(Serialize, ToSchema)]
pub struct About {
    /// Of selfmate.
    pub version: &'static str,
    /// Cores of the machine.
    pub cores: usize,
    /// Changes need a token.
    pub asks_for_token: bool,
    /// A run on many machines is watched.
    pub watches_cluster: bool,
    /// What can be trained.
    pub learners: Vec<Learner>,
    /// Who can play.
    pub players: Vec<KindView>,
}

/// What this server is and what it can do.
#[utoipa::path(get, path = "/api/about", tag = "server", responses((status = 200, body = About)))]
pub async fn about(State(app): State<Arc<App>>) -> Json<About> {
    Json(About {
        version: env!("CARGO_PKG_VERSION"),
        cores: app.cores,
        asks_for_token: app.guard.asks_for_token(),
        watches_cluster: app.cluster.is_some(),
        learners: learners(),
        players: app.players.kinds(),
    })
}

/// Counts for Prometheus.
#[utoipa::path(get, path = "/metrics", tag = "server", responses((status = 200, body = String, content_type = "text/plain")))]
pub async fn metrics(State(app): State<Arc<App>>) -> Result<impl IntoResponse, ApiError> {
    let text = work(&app, |app| Ok(prometheus(app))).await?;
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text))
}
