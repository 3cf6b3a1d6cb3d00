//! The state of a distributed run.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;

use crate::app::App;
use crate::blocking::run_blocking;
use crate::cluster::ClusterView;
use crate::error::{ApiError, Problem};

/// Workers with their speed and lag, and rejected games by reason.
#[utoipa::path(get, path = "/api/cluster", tag = "server", responses(
    (status = 200, body = ClusterView),
    (status = 404, description = "this server does not watch a cluster", body = Problem),
    (status = 503, description = "the learner does not answer", body = Problem),
))]
pub async fn cluster(State(app): State<Arc<App>>) -> Result<Json<ClusterView>, ApiError> {
    let Some(watched) = app.cluster.clone() else {
        let what = "this server does not watch a cluster: start it with --nats URL";
        return Err(ApiError::NotFound(what.to_owned()));
    };
    run_blocking(&app, move |_| watched.look().map(Json).map_err(ApiError::Busy)).await
}
