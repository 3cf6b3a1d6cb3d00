//! The games of a run: by generation, single games and the newest.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use selfmate_run::{GameRecord, LiveGame, OpenGames};
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::blocking::run_blocking;
use crate::error::{ApiError, PathParams, Problem};
use crate::view::{GameView, OutcomeView, selfplay};

/// Live games older than this are not being played any more: the run is learning or was killed.
const STALE: Duration = Duration::from_secs(10);

/// A game that is being played.
#[derive(Serialize, ToSchema)]
pub struct LiveView {
    /// Its number in the run.
    pub number: u64,
    /// The position.
    pub fen: String,
    /// The last move, in UCI notation.
    pub last: Option<String>,
    /// Plies so far.
    pub plies: usize,
    /// White's expected result, from -1 to 1.
    pub value: Option<f32>,
}

/// Generations with games.
#[derive(Serialize, ToSchema)]
pub struct Generations {
    /// Generations that are complete.
    pub sealed: Vec<u64>,
    /// The generation that is being played.
    pub open: Option<u64>,
    /// Finished games of the open generation.
    pub open_games: usize,
}

/// A game in a list.
#[derive(Serialize, ToSchema)]
pub struct GameRow {
    /// Its number in the run.
    pub number: u64,
    /// The step of the network that played.
    pub network: u64,
    /// Plies of both sides.
    pub plies: usize,
    /// How it ended.
    #[serde(flatten)]
    pub outcome: OutcomeView,
    /// True when it did not start from the standard position.
    pub from_position: bool,
}

impl GameRow {
    fn new(game: &GameRecord) -> GameRow {
        GameRow {
            number: game.number,
            network: game.network,
            plies: game.moves.len(),
            outcome: game.outcome.into(),
            from_position: game.start.is_some(),
        }
    }
}

/// The generations of a run that have games.
#[utoipa::path(get, path = "/api/runs/{run}/games", tag = "games", params(("run" = String, Path)),
    responses((status = 200, body = Generations), (status = 404, body = Problem)))]
pub async fn generations(
    State(app): State<Arc<App>>,
    PathParams(run): PathParams<String>,
) -> Result<Json<Generations>, ApiError> {
    run_blocking(&app, move |app| {
        let reader = app.runs.find(&run).map_err(|error| app.absent(&error))?;
        let sealed = reader.chunks().map_err(|error| app.fault(&error))?;
        let open = reader.open_games().map_err(|error| app.fault(&error))?;
        let open_games = open.as_ref().map_or(0, OpenGames::count);
        Ok(Json(Generations { sealed, open: open.map(|open| open.generation), open_games }))
    })
    .await
}

/// The games of a generation.
#[utoipa::path(get, path = "/api/runs/{run}/games/{generation}", tag = "games",
    params(("run" = String, Path), ("generation" = u64, Path)),
    responses((status = 200, body = Vec<GameRow>), (status = 404, body = Problem)))]
pub async fn list(
    State(app): State<Arc<App>>,
    PathParams((run, generation)): PathParams<(String, u64)>,
) -> Result<Json<Vec<GameRow>>, ApiError> {
    run_blocking(&app, move |app| {
        let games = app.runs.games(&run, generation).map_err(|error| app.absent(&error))?;
        Ok(Json(games.iter().map(GameRow::new).collect()))
    })
    .await
}

/// One game with the search results of every move.
#[utoipa::path(get, path = "/api/runs/{run}/games/{generation}/{number}", tag = "games",
    params(("run" = String, Path), ("generation" = u64, Path), ("number" = u64, Path)),
    responses((status = 200, body = GameView), (status = 404, body = Problem)))]
pub async fn show(
    State(app): State<Arc<App>>,
    PathParams((run, generation, number)): PathParams<(String, u64, u64)>,
) -> Result<Json<GameView>, ApiError> {
    run_blocking(&app, move |app| {
        let games = app.runs.games(&run, generation).map_err(|error| app.absent(&error))?;
        let game = games.iter().find(|game| game.number == number).ok_or_else(|| {
            ApiError::NotFound(format!("generation {generation} has no game {number}"))
        })?;
        Ok(Json(selfplay(game).map_err(|error| app.fault(&error))?))
    })
    .await
}

/// Some of the games that are being played; updated every second.
#[utoipa::path(get, path = "/api/runs/{run}/live", tag = "games", params(("run" = String, Path)),
    responses((status = 200, body = Vec<LiveView>), (status = 404, body = Problem)))]
pub async fn live(
    State(app): State<Arc<App>>,
    PathParams(run): PathParams<String>,
) -> Result<Json<Vec<LiveView>>, ApiError> {
    run_blocking(&app, move |app| {
        let reader = app.runs.find(&run).map_err(|error| app.absent(&error))?;
        let (age, games) = reader.live_games().map_err(|error| app.fault(&error))?;
        let games = if age > STALE { Vec::new() } else { games };
        let view = |game: LiveGame| LiveView {
            number: game.number,
            fen: game.fen,
            last: game.last,
            plies: game.plies,
            value: game.value,
        };
        Ok(Json(games.into_iter().map(view).collect()))
    })
    .await
}

/// The newest finished game; `null` if there is none.
#[utoipa::path(get, path = "/api/runs/{run}/games/latest", tag = "games", params(("run" = String, Path)),
    responses((status = 200, body = Option<GameView>), (status = 404, body = Problem)))]
pub async fn latest(
    State(app): State<Arc<App>>,
    PathParams(run): PathParams<String>,
) -> Result<Json<Option<GameView>>, ApiError> {
    run_blocking(&app, move |app| {
        let reader = app.runs.find(&run).map_err(|error| app.absent(&error))?;
        let open = reader.open_games().map_err(|error| app.fault(&error))?;
        let last = open.map(|open| open.last()).transpose().map_err(|error| app.fault(&error))?;
        let game = match last.flatten() {
            Some(game) => Some(game),
            None => {
                let chunks = reader.chunks().map_err(|error| app.fault(&error))?;
                let newest = chunks.last().map(|&newest| app.runs.games(&run, newest));
                let games = newest.transpose().map_err(|error| app.fault(&error))?;
                games.and_then(|games| games.last().cloned())
            }
        };
        let view = game.as_ref().map(selfplay).transpose().map_err(|error| app.fault(&error))?;
        Ok(Json(view))
    })
    .await
}
