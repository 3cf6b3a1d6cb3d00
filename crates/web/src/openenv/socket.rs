//! The environment over WebSockets: each connection is a session.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use axum::body::Bytes;
use axum::extract::State;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::episode::{ChessAction, Episode, Reset, StepResult};
use super::mcp as rpc;
use super::session::{LONGEST_ANSWER, MAX_SOCKETS, Shared, act, begin};
use crate::app::App;
use crate::error::ApiError;

/// The maximum size of a message.
const MESSAGE_BYTES: usize = 64 << 10;

/// How often a silent client is pinged.
const PING: Duration = Duration::from_secs(20);

pub async fn environment(State(app): State<Arc<App>>, upgrade: WebSocketUpgrade) -> Response {
    let upgrade = upgrade.max_message_size(MESSAGE_BYTES).max_frame_size(MESSAGE_BYTES);
    upgrade.on_upgrade(|socket| converse(app, socket, Protocol::Environment))
}

pub async fn mcp(State(app): State<Arc<App>>, upgrade: WebSocketUpgrade) -> Response {
    let upgrade = upgrade.max_message_size(MESSAGE_BYTES).max_frame_size(MESSAGE_BYTES);
    upgrade.on_upgrade(|socket| converse(app, socket, Protocol::Tools))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Protocol {
    Environment,
    Tools,
}

/// A place for a WebSocket, returned when dropped.
struct SocketPermit(Arc<App>);

impl Drop for SocketPermit {
    fn drop(&mut self) {
        self.0.episodes.leave();
    }
}

async fn converse(app: Arc<App>, mut socket: WebSocket, protocol: Protocol) {
    if !app.episodes.enter() {
        let data = json!({
            "message": "all sessions are in use", "code": "CAPACITY_REACHED",
            "active_sessions": app.episodes.sockets(), "max_sessions": MAX_SOCKETS,
        });
        // The connection ends here even if sending fails.
        let _ = socket.send(text(&json!({ "type": "error", "data": data }))).await;
        return;
    }
    let place = SocketPermit(Arc::clone(&app));
    let Ok(episode) = Episode::alone(&app.players) else { return };
    let episode: Shared = Arc::new(tokio::sync::Mutex::new(episode));
    while let Some(body) = receive(&mut socket, app.socket_idle).await {
        let reply = match protocol {
            Protocol::Environment => answer(&app, &body, &episode).await,
            Protocol::Tools => Some(tools(&app, body, &episode).await),
        };
        let Some(reply) = reply else { break };
        if socket.send(text(&reply)).await.is_err() {
            break;
        }
    }
    drop(place);
}

/// The next message; `None` at the end. A silent client is pinged from time to time; one that does
/// not react for too long is disconnected.
async fn receive(socket: &mut WebSocket, idle: Duration) -> Option<Vec<u8>> {
    let mut last_seen = Instant::now();
    loop {
        match timeout(PING.min(idle / 4), socket.recv()).await {
            Ok(Some(Ok(Message::Text(text)))) => return Some(text.as_bytes().to_vec()),
            Ok(Some(Ok(Message::Binary(bytes)))) => return Some(bytes.to_vec()),
            Ok(Some(Ok(Message::Ping(_) | Message::Pong(_)))) => last_seen = Instant::now(),
            Ok(Some(Ok(Message::Close(_)) | Err(_)) | None) => return None,
            Err(_) if last_seen.elapsed() >= idle => return None,
            Err(_) => socket.send(Message::Ping(Bytes::new())).await.ok()?,
        }
    }
}

async fn tools(app: &Arc<App>, body: Vec<u8>, episode: &Shared) -> Value {
    let turn = move |episode: &mut Episode, stop: &Arc<AtomicBool>| {
        Ok(rpc::answer_in(&body, episode, stop))
    };
    let answered = act(app, Arc::clone(episode), LONGEST_ANSWER, turn).await;
    answered.unwrap_or_else(|error| fault("EXECUTION_ERROR", &error.to_string()))
}

fn text(value: &Value) -> Message {
    Message::Text(value.to_string().into())
}

#[derive(Deserialize)]
struct Incoming {
    #[serde(default, rename = "type")]
    kind: String,
    #[serde(default)]
    data: Value,
}

/// Answers a message; `None` when the client closes the session.
async fn answer(app: &Arc<App>, body: &[u8], episode: &Shared) -> Option<Value> {
    let message: Incoming = match serde_json::from_slice(body) {
        Ok(message) => message,
        Err(error) => return Some(fault("INVALID_JSON", &format!("Invalid JSON: {error}"))),
    };
    Some(match message.kind.as_str() {
        "reset" => {
            let data = if message.data.is_null() { json!({}) } else { message.data };
            match serde_json::from_value::<Reset>(data) {
                Err(error) => fault("VALIDATION_ERROR", &error.to_string()),
                Ok(reset) => match begin(app, reset).await {
                    Err(error) => observed(Err(error)),
                    Ok(new) => {
                        let first = new.first();
                        *episode.lock().await = new;
                        observed(Ok(first))
                    }
                },
            }
        }
        "step" => match serde_json::from_value::<ChessAction>(message.data) {
            Err(error) => fault("VALIDATION_ERROR", &error.to_string()),
            Ok(action) => {
                app.counters.stepped();
                let step = move |episode: &mut Episode, stop: &Arc<AtomicBool>| {
                    episode.step(&action, stop)
                };
                observed(act(app, Arc::clone(episode), LONGEST_ANSWER, step).await)
            }
        },
        "state" => json!({ "type": "state", "data": episode.lock().await.state() }),
        "mcp" => {
            let body = message.data.to_string().into_bytes();
            json!({ "type": "mcp", "data": tools(app, body, episode).await })
        }
        "close" => return None,
        other => fault("UNKNOWN_TYPE", &format!("Unknown message type: {other}")),
    })
}

fn observed(result: Result<StepResult, ApiError>) -> Value {
    match result {
        Ok(result) => json!({ "type": "observation", "data": result }),
        Err(error @ ApiError::Bad(_)) => fault("VALIDATION_ERROR", &error.to_string()),
        Err(error) => fault("EXECUTION_ERROR", &error.to_string()),
    }
}

fn fault(code: &str, message: &str) -> Value {
    json!({ "type": "error", "data": { "message": message, "code": code } })
}
