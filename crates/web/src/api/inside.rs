//! Shows the inside of a tree search.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::blocking::{Cost, run_blocking, search};
use crate::error::{ApiError, JsonBody, PathParams, Problem, QueryParams};
use crate::tree::{self, NodeInfo, Root, Snapshot, tree_spec};
use crate::view::Line;

/// The maximum time for all searches of a request.
const LONGEST: Duration = Duration::from_secs(120);

/// The search to show.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Inside {
    /// The player's spec; its search is set by the other fields.
    #[schema(min_length = 1, max_length = 300)]
    player: String,
    /// The start position; the standard one by default.
    #[serde(default)]
    fen: Option<String>,
    /// Moves from the start, in UCI or SAN notation.
    #[serde(default)]
    #[schema(max_items = 2000)]
    moves: Vec<String>,
    /// The root rule.
    #[serde(default)]
    root: Root,
    /// Simulations of the last search.
    #[schema(minimum = 1, maximum = 200_000)]
    sims: u64,
}

/// Searches with 1, 2, 4… simulations. Sends one line of JSON for each, then one with the name of
/// the tree.
#[utoipa::path(post, path = "/api/inside", tag = "inside", request_body = Inside, responses(
    (status = 200, body = Snapshot, content_type = "application/x-ndjson"),
    (status = 422, body = Problem), (status = 503, body = Problem)))]
pub async fn grow(
    State(app): State<Arc<App>>,
    JsonBody(inside): JsonBody<Inside>,
) -> Result<Response, ApiError> {
    let game = Line { fen: inside.fen, moves: inside.moves }.game()?;
    tree::check(&game, inside.sims)?;
    let spec = tree_spec(&app.players, &inside.player, inside.root)?;
    let cost = Cost { threads: 1, at_most: LONGEST };
    search(&app, cost, move |app, sender| {
        let player = app.players.build(&spec, 1)?;
        app.trees.grow(player, &game, inside.sims, sender)
    })
}

/// The node to show.
#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub struct NodeLine {
    /// Moves from the root in UCI notation, separated by commas; empty for the root.
    #[serde(default)]
    line: String,
}

/// A node of an open tree.
#[utoipa::path(get, path = "/api/inside/{tree}", tag = "inside", params(("tree" = String, Path), NodeLine),
    responses((status = 200, body = NodeInfo), (status = 404, body = Problem), (status = 422, body = Problem)))]
pub async fn node(
    State(app): State<Arc<App>>,
    PathParams(tree): PathParams<String>,
    QueryParams(asked): QueryParams<NodeLine>,
) -> Result<Json<NodeInfo>, ApiError> {
    run_blocking(&app, move |app| {
        let line: Vec<&str> = asked.line.split(',').filter(|text| !text.is_empty()).collect();
        app.trees.look(&tree, &line).map(Json)
    })
    .await
}
