//! A run on many machines.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;

use crate::app::App;
use crate::blocking::work;
use crate::cluster::ClusterView;
use crate::error::{ApiError, Problem};

/// Workers, their speed and lag, what was refused and why.
#[utoipa::path(get, path = "/api/cluster", tag = "server", responses(
    (status = 200, body = ClusterView),
    (status = 404, description = "this server watches no cluster", body = Problem),
    (status = 503, description = "no learner answers", body = Problem),
))]
pub async fn cluster(State(app): State<Arc<App>>) -> Result<Json<ClusterView>, ApiError> {
    let Some(watched) = app.cluster.clone() else {
        let what = "this server watches no cluster: start it with --nats URL";
        return Err(ApiError::NotFound(what.to_owned()));
    };
    work(&app, move |_| watched.look().map(Json).map_err(ApiError::Busy)).await
}
