//! Playing: positions, a player's search and move, reviews, games as PGN. The client keeps the
//! game; the server keeps no state between requests.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use selfmate_chess::fen::to_fen;
use selfmate_chess::pgn::{PgnGame, PgnResult};
use selfmate_chess::{Color, Position};
use selfmate_search::player::Limit;
use selfmate_search::white_value;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::app::App;
use crate::blocking::{self, Cost, run_blocking, search};
use crate::error::{ApiError, JsonBody, Problem, int64};
use crate::player::{LimitRequest, threads};
use crate::view::{ChoiceView, Line, MoveView, PositionView, SearchInfoView};

/// The maximum number of lines of a search.
const MAX_LINES: u64 = 32;
/// The maximum time for building a player.
const LONGEST_START: Duration = Duration::from_secs(30);
/// The length of a date: `YYYY.MM.DD`.
const MAX_DATE: usize = 10;
/// The maximum time for one move.
const LONGEST_MOVE: Duration = Duration::from_secs(60);
/// The maximum time for the review of a game.
const LONGEST_REVIEW: Duration = Duration::from_secs(300);

/// A position with its legal moves.
#[utoipa::path(post, path = "/api/position", tag = "play", request_body = Line,
    responses((status = 200, body = PositionView), (status = 422, body = Problem)))]
pub async fn position(
    State(app): State<Arc<App>>,
    JsonBody(line): JsonBody<Line>,
) -> Result<Json<PositionView>, ApiError> {
    run_blocking(&app, move |_| Ok(Json(PositionView::new(&line.game()?)))).await
}

/// A player and its search limit.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Opponent {
    /// The player's spec.
    #[schema(min_length = 1, max_length = 300)]
    player: String,
    /// The search limit per move.
    #[serde(default)]
    limit: LimitRequest,
}

/// A player that can be built.
#[derive(Serialize, ToSchema)]
pub struct PlayerView {
    /// The spec with this server's defaults.
    spec: String,
    /// True for a tree search, which reports several lines at no cost. Alpha-beta needs extra
    /// search for each line and plays weaker.
    searches_tree: bool,
}

/// Checks that a player's spec is valid and that what it names exists.
#[utoipa::path(post, path = "/api/player", tag = "play", request_body = Opponent,
    responses((status = 200, body = PlayerView), (status = 422, body = Problem), (status = 503, body = Problem)))]
pub async fn player(
    State(app): State<Arc<App>>,
    JsonBody(asked): JsonBody<Opponent>,
) -> Result<Json<PlayerView>, ApiError> {
    let (spec, _) = app.players.parse_for(&asked.player, asked.limit)?;
    // Building a player may take as much memory as a search.
    blocking::run_on_core(&app, LONGEST_START, move |app, _| {
        let searches_tree = app.players.build(&spec, 1)?.look(&[]).is_some();
        Ok(Json(PlayerView { spec: spec.to_string(), searches_tree }))
    })
    .await
}

/// The player and the position to search.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SearchRequest {
    /// The player's spec.
    #[schema(min_length = 1, max_length = 300)]
    player: String,
    /// The start position; the standard one by default.
    #[serde(default)]
    fen: Option<String>,
    /// Moves from the start, in UCI or SAN notation.
    #[serde(default)]
    #[schema(max_items = 2000)]
    moves: Vec<String>,
    /// The search limit.
    #[serde(default)]
    limit: LimitRequest,
    /// The number of best lines to report; 1 by default.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 32)]
    lines: Option<u64>,
    /// The seed of the player's randomness.
    #[serde(default, deserialize_with = "int64")]
    seed: Option<u64>,
}

/// Searches a position. Sends one line of JSON for each report, then one for the chosen move.
#[utoipa::path(post, path = "/api/search", tag = "play", request_body = SearchRequest, responses(
    (status = 200, body = SearchInfoView, content_type = "application/x-ndjson"),
    (status = 422, body = Problem), (status = 503, body = Problem)))]
pub async fn choose_move(
    State(app): State<Arc<App>>,
    JsonBody(asked): JsonBody<SearchRequest>,
) -> Result<Response, ApiError> {
    let game = Line { fen: asked.fen, moves: asked.moves }.game()?;
    if game.outcome().is_some() {
        return Err(ApiError::Bad("the game is over: there is no move to search for".into()));
    }
    let (spec, limit) = app.players.parse_for(&asked.player, asked.limit)?;
    let lines = asked.lines.unwrap_or(1);
    if !(1..=MAX_LINES).contains(&lines) {
        return Err(ApiError::Malformed(format!("lines is {lines}: expected 1 to {MAX_LINES}")));
    }
    let lines = lines as usize;
    let seed = asked.seed.unwrap_or(1);
    let cost = Cost { threads: threads(&spec), at_most: LONGEST_MOVE };
    search(&app, cost, move |app, sender| {
        let limit = Limit { lines, stop: Some(Arc::clone(sender.stop())), ..limit };
        let started = Instant::now();
        let choice = app.players.with(&spec, seed, |player| {
            player.choose_observed(&game, &limit, &mut |info| {
                sender.send_if_ready(&SearchInfoView::new(&game, info));
            })
        })?;
        let ms = started.elapsed().as_millis().try_into().unwrap_or(u64::MAX);
        let warning = app.skipped_checkpoints(&spec);
        sender.send(&ChoiceView { warning, ..ChoiceView::new(&game, &choice, ms) });
        Ok(())
    })
}

/// The player that reviews and the game.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Review {
    /// The player's spec.
    #[schema(min_length = 1, max_length = 300)]
    player: String,
    /// The start position; the standard one by default.
    #[serde(default)]
    fen: Option<String>,
    /// Moves from the start, in UCI or SAN notation.
    #[serde(default)]
    #[schema(max_items = 2000)]
    moves: Vec<String>,
    /// The search limit per position.
    #[serde(default)]
    limit: LimitRequest,
}

/// The review of one position of the game.
#[derive(Serialize, ToSchema)]
pub struct Verdict {
    /// `verdict`.
    kind: &'static str,
    /// Plies before this position.
    ply: usize,
    /// The position.
    fen: String,
    /// True when the side to move is in check.
    check: bool,
    /// The move that led here; `null` at the start.
    played: Option<MoveView>,
    /// White's expected result, from -1 to 1; `null` for players without an evaluation.
    value: Option<f32>,
    /// The reviewer's move; `null` when the game is over.
    best: Option<MoveView>,
}

/// Reviews every position of a game. Sends one line of JSON for each.
#[utoipa::path(post, path = "/api/review", tag = "play", request_body = Review, responses(
    (status = 200, body = Verdict, content_type = "application/x-ndjson"),
    (status = 422, body = Problem), (status = 503, body = Problem)))]
pub async fn review(
    State(app): State<Arc<App>>,
    JsonBody(review): JsonBody<Review>,
) -> Result<Response, ApiError> {
    let whole = Line { fen: review.fen, moves: review.moves }.game()?;
    let (mut spec, limit) = app.players.parse_for(&review.player, review.limit)?;
    // Book moves have no evaluation.
    spec.options.push(("book".to_owned(), "off".to_owned()));
    let cost = Cost { threads: threads(&spec), at_most: LONGEST_REVIEW };
    search(&app, cost, move |app, sender| {
        let limit = Limit { stop: Some(Arc::clone(sender.stop())), ..limit };
        let mut player = app.players.build(&spec, 1)?;
        for ply in 0..=whole.ply() {
            let mut game = whole.clone();
            game.rewind(ply);
            if sender.is_stopped() {
                let seconds = LONGEST_REVIEW.as_secs();
                return Err(ApiError::Busy(format!("the review took longer than {seconds} s")));
            }
            let white = |value: f32| white_value(value, game.turn());
            let (value, best) = match game.outcome() {
                Some(outcome) => (Some(outcome.points(Color::White) as f32 * 2.0 - 1.0), None),
                None => {
                    let choice = player
                        .choose(&game, &limit)
                        .map_err(|error| ApiError::Internal(error.to_string()))?;
                    let view = ChoiceView::new(&game, &choice, 0);
                    (view.value.map(white), Some(view.played))
                }
            };
            let before = game.positions_back().nth(1);
            sender.send(&Verdict {
                kind: "verdict",
                ply,
                fen: to_fen(game.position()),
                check: game.position().is_check(),
                played: before.zip(game.last_move()).map(|(at, m)| MoveView::new(at, m)),
                value,
                best,
            });
        }
        Ok(())
    })
}

/// A game to be written as PGN.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Written {
    /// The start position; the standard one by default.
    #[serde(default)]
    fen: Option<String>,
    /// Moves from the start, in UCI or SAN notation.
    #[serde(default)]
    #[schema(max_items = 2000)]
    moves: Vec<String>,
    /// Name of White.
    #[serde(default)]
    white: String,
    /// Name of Black.
    #[serde(default)]
    black: String,
    /// The date as `YYYY.MM.DD`.
    #[serde(default)]
    #[schema(max_length = 10)]
    date: Option<String>,
    /// The result if the rules have not ended the game, such as `0-1` after a resignation.
    #[serde(default)]
    #[schema(pattern = r"^(1-0|0-1|1/2-1/2|\*)$")]
    result: Option<String>,
}

/// A game as PGN.
#[utoipa::path(post, path = "/api/pgn", tag = "play", request_body = Written, responses(
    (status = 200, body = String, content_type = "application/x-chess-pgn"), (status = 422, body = Problem)))]
pub async fn pgn(
    State(app): State<Arc<App>>,
    JsonBody(written): JsonBody<Written>,
) -> Result<impl IntoResponse, ApiError> {
    run_blocking(&app, move |_| {
        let game = Line { fen: written.fen, moves: written.moves }.game()?;
        let is_over = game.outcome().is_some();
        let mut pgn = PgnGame::new(game);
        if let (Some(text), false) = (&written.result, is_over) {
            pgn.result = PgnResult::parse(text).ok_or_else(|| {
                ApiError::Malformed(format!("result '{text}': expected 1-0, 0-1, 1/2-1/2 or *"))
            })?;
        }
        pgn.set("Event", "selfmate");
        if let Some(date) = written.date {
            if date.chars().count() > MAX_DATE {
                let text = format!("date '{date}': expected at most {MAX_DATE} characters");
                return Err(ApiError::Malformed(text));
            }
            pgn.set("Date", date);
        }
        pgn.set("White", name_or_unknown(written.white));
        pgn.set("Black", name_or_unknown(written.black));
        Ok(([(header::CONTENT_TYPE, "application/x-chess-pgn")], pgn.to_string()))
    })
    .await
}

fn name_or_unknown(name: String) -> String {
    if name.is_empty() { "?".to_owned() } else { name }
}
