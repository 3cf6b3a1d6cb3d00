//! The OpenEnv endpoints over plain HTTP.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};

use super::episode::{ChessAction, Episode, Reset};
use super::session::{LONGEST_ANSWER, act, begin};
use super::{mcp as rpc, schema};
use crate::app::App;
use crate::error::ApiError;

const COOKIE: &str = "openenv_session";
const SESSION: &str = "x-session-id";

/// An error in the format of OpenEnv's clients.
pub struct Detail(ApiError);

impl From<ApiError> for Detail {
    fn from(error: ApiError) -> Detail {
        Detail(error)
    }
}

impl IntoResponse for Detail {
    fn into_response(self) -> Response {
        let detail = json!([{ "type": "value_error", "loc": ["body"], "msg": self.0.to_string() }]);
        (self.0.status(), Json(json!({ "detail": detail }))).into_response()
    }
}

pub async fn reset(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Detail> {
    // OpenEnv sends no body for a reset with default settings.
    let reset: Reset = if body.is_empty() { Reset::default() } else { parse(&headers, &body)? };
    let name = session(&headers)?;
    let is_named = name.is_some();
    let episode = begin(&app, reset).await?;
    let result = episode.first();
    let name = app.episodes.begin(name, episode)?;
    let mut response = Json(result).into_response();
    if !is_named {
        let cookie = format!("{COOKIE}={name}; Path=/openenv; HttpOnly; SameSite=Strict");
        if let Ok(cookie) = cookie.parse() {
            response.headers_mut().insert(header::SET_COOKIE, cookie);
        }
    }
    Ok(response)
}

/// The body of a step. Unknown fields are ignored, as OpenEnv does.
#[derive(Deserialize)]
struct StepRequest {
    action: ChessAction,
    /// The maximum search time of the opponent.
    #[serde(default)]
    timeout_s: Option<f64>,
}

impl StepRequest {
    fn at_most(&self) -> Duration {
        let seconds = self.timeout_s.filter(|seconds| *seconds > 0.0);
        let wanted = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        wanted.map_or(LONGEST_ANSWER, |wanted| wanted.min(LONGEST_ANSWER))
    }
}

pub async fn step(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Detail> {
    let request: StepRequest = parse(&headers, &body)?;
    let name = session(&headers)?;
    app.counters.stepped();
    let episode = app.episodes.find(name.as_deref())?;
    let at_most = request.at_most();
    let step =
        move |episode: &mut Episode, stop: &Arc<AtomicBool>| episode.step(&request.action, stop);
    let result = act(&app, episode, at_most, step).await?;
    Ok(Json(result).into_response())
}

/// The state of the game; empty before the first reset.
pub async fn state(State(app): State<Arc<App>>, headers: HeaderMap) -> Result<Json<Value>, Detail> {
    let name = session(&headers)?;
    Ok(Json(match app.episodes.find(name.as_deref()) {
        Ok(episode) => episode.lock().await.state(),
        Err(_) => json!({ "episode_id": null, "step_count": 0 }),
    }))
}

pub async fn health() -> Json<Value> {
    Json(json!({ "status": "healthy" }))
}

pub async fn metadata() -> Json<Value> {
    Json(schema::metadata())
}

/// Schemas of actions, observations and states.
pub async fn schemas() -> Json<Value> {
    Json(schema::schemas())
}

/// The OpenAPI document, relative to the base path.
pub async fn openapi() -> Json<Value> {
    Json(schema::openapi())
}

/// Tools over JSON-RPC. Errors are JSON-RPC errors with status 200.
pub async fn mcp(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Json<Value>, Detail> {
    check_type(&headers)?;
    Ok(Json(rpc::answer_http(&app, &body).await))
}

fn parse<T: for<'de> Deserialize<'de>>(headers: &HeaderMap, body: &[u8]) -> Result<T, Detail> {
    check_type(headers)?;
    let parsed = serde_json::from_slice(body);
    parsed.map_err(|error| Detail(ApiError::Bad(format!("invalid body: {error}"))))
}

/// HTML forms of other pages cannot send JSON.
fn check_type(headers: &HeaderMap) -> Result<(), Detail> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = kind.and_then(|kind| kind.split(';').next()).unwrap_or_default().trim();
    if kind.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    let text = format!("Content-Type '{kind}': expected application/json");
    Err(Detail(ApiError::Refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, text)))
}

/// The session named by a request's header or cookie.
fn session(headers: &HeaderMap) -> Result<Option<String>, Detail> {
    let named = headers.get(SESSION).map(|value| value.to_str().unwrap_or_default().to_owned());
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let cookie = cookies
        .flat_map(|value| value.split(';'))
        .find_map(|pair| pair.trim().strip_prefix(COOKIE)?.strip_prefix('=').map(str::to_owned));
    let name = named.or(cookie);
    let fits = |name: &String| {
        (1..=64).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_graphic())
    };
    match name {
        Some(name) if !fits(&name) => {
            let text = format!("{SESSION}: expected 1 to 64 printable ASCII characters");
            Err(Detail(ApiError::Bad(text)))
        }
        name => Ok(name),
    }
}
