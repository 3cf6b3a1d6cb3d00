//! The HTTP API: routes and the layers that every request passes through.

pub mod about;
pub mod cluster;
pub mod endgame;
pub mod feed;
pub mod game;
pub mod inside;
pub mod matches;
pub mod play;
pub mod runs;

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{DefaultBodyLimit, Request};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{DefaultPredicate, NotForContentType, Predicate};
use tower_http::timeout::TimeoutLayer;

use crate::app::App;
use crate::error::ApiError;
use crate::{access, asset, counter, openapi, openenv, response_cache};

/// The largest request body; a game of 2000 moves fits.
const BODY_BYTES: usize = 64 << 10;

/// The page may load only its own files, and other pages must not embed it in frames.
const CONTENT_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'";

/// Streams are not compressed, because a compressor would delay their lines.
const NOT_STREAMS: NotForContentType = NotForContentType::const_new("application/x-ndjson");

/// All routes. A request fails if its response has not started within `answer_timeout`; started
/// streams continue.
pub fn router(app: Arc<App>, answer_timeout: Duration) -> Router {
    let api = Router::new()
        .route("/about", get(about::about))
        .route("/runs", get(runs::list).post(runs::start))
        .route("/runs/{run}", get(runs::show))
        .route("/runs/{run}/curves", get(runs::curves))
        .route("/runs/{run}/feed", get(feed::feed))
        .route("/runs/{run}/resume", post(runs::resume))
        .route("/runs/{run}/stop", post(runs::stop))
        .route("/runs/{run}/games", get(game::generations))
        .route("/runs/{run}/games/latest", get(game::latest))
        .route("/runs/{run}/live", get(game::live))
        .route("/runs/{run}/games/{generation}", get(game::list))
        .route("/runs/{run}/games/{generation}/{number}", get(game::show))
        .route("/position", post(play::position))
        .route("/player", post(play::player))
        .route("/search", post(play::choose_move))
        .route("/review", post(play::review))
        .route("/pgn", post(play::pgn))
        .route("/inside", post(inside::grow))
        .route("/inside/{tree}", get(inside::node))
        .route("/matches", get(matches::list).post(matches::start))
        .route("/matches/{id}", get(matches::show))
        .route("/matches/{id}/stop", post(matches::stop))
        .route("/matches/{id}/resume", post(matches::resume))
        .route("/matches/{id}/pgn", get(matches::pgn))
        .route("/matches/{id}/games/{number}", get(matches::game))
        .route("/ladders", get(matches::ladders))
        .route("/endgames", get(endgame::list))
        .route("/endgames/{run}/values", get(endgame::values))
        .route("/endgames/{run}/position", get(endgame::position))
        .route("/cluster", get(cluster::cluster))
        .fallback(unknown_path);
    Router::new()
        .nest("/api", api)
        .nest("/openenv", openenv::router())
        .route("/openapi.json", get(|| async { Json(openapi::document()) }))
        .route("/metrics", get(about::metrics))
        .fallback(asset::serve)
        .with_state(Arc::clone(&app))
        .layer(TimeoutLayer::with_status_code(StatusCode::REQUEST_TIMEOUT, answer_timeout))
        .layer(DefaultBodyLimit::max(BODY_BYTES))
        .layer(middleware::from_fn(limit_body))
        .layer(CompressionLayer::new().compress_when(DefaultPredicate::new().and(NOT_STREAMS)))
        .layer(middleware::from_fn_with_state(Arc::clone(&app), response_cache::layer))
        .layer(middleware::from_fn_with_state(Arc::clone(&app), access::layer))
        .layer(CatchPanicLayer::new())
        .layer(middleware::from_fn_with_state(app, counter::layer))
        .layer(middleware::from_fn(harden))
}

async fn unknown_path() -> ApiError {
    ApiError::NotFound("there is no such path; /openapi.json lists all paths".into())
}

/// Rejects a body with a too large Content-Length before it is sent. A body without one is read up
/// to the limit.
async fn limit_body(request: Request, next: Next) -> Response {
    let length = request.headers().get(header::CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    if length.is_some_and(|length| length > BODY_BYTES) {
        let text = format!("length limit exceeded: expected a body of at most {BODY_BYTES} bytes");
        return ApiError::Refused(StatusCode::PAYLOAD_TOO_LARGE, text).into_response();
    }
    next.run(request).await
}

/// Adds security headers to every response, including errors.
async fn harden(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    let mut set = |name: HeaderName, value: &'static str| {
        headers.insert(name, HeaderValue::from_static(value));
    };
    set(header::CONTENT_SECURITY_POLICY, CONTENT_POLICY);
    set(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    set(header::X_FRAME_OPTIONS, "DENY");
    set(header::REFERRER_POLICY, "no-referrer");
    set(HeaderName::from_static("cross-origin-opener-policy"), "same-origin");
    set(HeaderName::from_static("cross-origin-resource-policy"), "same-origin");
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}
