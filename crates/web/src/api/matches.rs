//! The arena: matches, their games, and rating lists.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use selfmate_arena::MatchReport;
use selfmate_arena::record::Event;
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::arena::{Ladder, MatchGameRow, MatchOrder, MatchView};
use crate::blocking::{run_blocking, run_on_core};
use crate::error::{ApiError, JsonBody, PathParams, Problem};
use crate::view::{GameView, matched};

/// The maximum time for building the players.
const LONGEST_START: Duration = Duration::from_secs(30);

/// A match with a row for each finished game.
#[derive(Serialize, ToSchema)]
pub struct MatchDetail {
    /// Summary of the match.
    #[serde(flatten)]
    pub view: MatchView,
    /// Finished games by number.
    pub games: Vec<MatchGameRow>,
}

/// All matches, the newest first.
#[utoipa::path(get, path = "/api/matches", tag = "arena", responses((status = 200, body = Vec<MatchView>)))]
pub async fn list(State(app): State<Arc<App>>) -> Result<Json<Vec<MatchView>>, ApiError> {
    run_blocking(&app, |app| Ok(Json(app.arena.list()))).await
}

/// Queues a match for each pair of players.
#[utoipa::path(post, path = "/api/matches", tag = "arena", request_body = MatchOrder,
    responses((status = 201, body = Vec<String>), (status = 422, body = Problem), (status = 503, body = Problem)))]
pub async fn start(
    State(app): State<Arc<App>>,
    JsonBody(order): JsonBody<MatchOrder>,
) -> Result<(StatusCode, Json<Vec<String>>), ApiError> {
    // Building the players shows whether their specs are valid.
    run_on_core(&app, LONGEST_START, move |app, _| {
        let ids = app.arena.start(&app.players, &order)?;
        Ok((StatusCode::CREATED, Json(ids)))
    })
    .await
}

/// One match.
#[utoipa::path(get, path = "/api/matches/{id}", tag = "arena", params(("id" = String, Path)),
    responses((status = 200, body = MatchDetail), (status = 404, body = Problem)))]
pub async fn show(
    State(app): State<Arc<App>>,
    PathParams(id): PathParams<String>,
) -> Result<Json<MatchDetail>, ApiError> {
    run_blocking(&app, move |app| {
        let (view, games) = app.arena.show(&id)?;
        Ok(Json(MatchDetail { view, games }))
    })
    .await
}

/// Stops a match; finished games are kept.
#[utoipa::path(post, path = "/api/matches/{id}/stop", tag = "arena", params(("id" = String, Path)),
    responses((status = 202), (status = 404, body = Problem)))]
pub async fn stop(
    State(app): State<Arc<App>>,
    PathParams(id): PathParams<String>,
) -> Result<StatusCode, ApiError> {
    run_blocking(&app, move |app| app.arena.stop(&id).map(|()| StatusCode::ACCEPTED)).await
}

/// Resumes a match.
#[utoipa::path(post, path = "/api/matches/{id}/resume", tag = "arena", params(("id" = String, Path)),
    responses((status = 202), (status = 404, body = Problem), (status = 503, body = Problem)))]
pub async fn resume(
    State(app): State<Arc<App>>,
    PathParams(id): PathParams<String>,
) -> Result<StatusCode, ApiError> {
    run_blocking(&app, move |app| app.arena.resume(&id).map(|()| StatusCode::ACCEPTED)).await
}

/// A game of a match.
#[utoipa::path(get, path = "/api/matches/{id}/games/{number}", tag = "arena",
    params(("id" = String, Path), ("number" = u64, Path)),
    responses((status = 200, body = GameView), (status = 404, body = Problem)))]
pub async fn game(
    State(app): State<Arc<App>>,
    PathParams((id, number)): PathParams<(String, u64)>,
) -> Result<Json<GameView>, ApiError> {
    run_blocking(&app, move |app| {
        let (MatchView { report, .. }, games) = app.arena.games(&id)?;
        let game = games.iter().flatten().find(|game| game.game == number);
        let game =
            game.ok_or_else(|| ApiError::NotFound(format!("match {id} has no game {number} yet")))?;
        let view = matched(game, &report.a, &report.b);
        view.map(Json)
            .ok_or_else(|| ApiError::Internal(format!("game {number} cannot be replayed")))
    })
    .await
}

/// The games of a match as PGN.
#[utoipa::path(get, path = "/api/matches/{id}/pgn", tag = "arena", params(("id" = String, Path)),
    responses((status = 200, body = String, content_type = "application/x-chess-pgn"), (status = 404, body = Problem)))]
pub async fn pgn(
    State(app): State<Arc<App>>,
    PathParams(id): PathParams<String>,
) -> Result<impl IntoResponse, ApiError> {
    run_blocking(&app, move |app| {
        let (view, games) = app.arena.games(&id)?;
        let MatchReport { a, b, .. } = &view.report;
        let event = Event { name: "selfmate match", a, b, limit: &view.limit, has_times: true };
        let games = games.iter().flatten().filter_map(|game| game.pgn(&event));
        let text: Vec<String> = games.map(|game| game.to_string()).collect();
        let kind = (header::CONTENT_TYPE, "application/x-chess-pgn".to_owned());
        let place = (
            header::CONTENT_DISPOSITION,
            format!("attachment; filename=\"match-{}.pgn\"", view.id),
        );
        Ok(([kind, place], text.join("\n")))
    })
    .await
}

/// Rating lists, one for each set of match settings.
#[utoipa::path(get, path = "/api/ladders", tag = "arena", responses((status = 200, body = Vec<Ladder>)))]
pub async fn ladders(State(app): State<Arc<App>>) -> Result<Json<Vec<Ladder>>, ApiError> {
    run_blocking(&app, |app| Ok(Json(app.arena.ladders()))).await
}
