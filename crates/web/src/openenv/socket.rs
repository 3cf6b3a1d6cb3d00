//! The environment over WebSockets: a connection is a session.

use std::sync::Arc;

use axum::extract::State;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};

use super::episode::{ChessAction, Episode, Reset, StepResult};
use super::mcp as rpc;
use super::session::MAX_SOCKETS;
use crate::app::App;
use crate::error::ApiError;

/// The longest message that is read.
const MESSAGE_BYTES: usize = 64 << 10;

/// `GET /ws`.
pub async fn environment(State(app): State<Arc<App>>, upgrade: WebSocketUpgrade) -> Response {
    let upgrade = upgrade.max_message_size(MESSAGE_BYTES).max_frame_size(MESSAGE_BYTES);
    upgrade.on_upgrade(|socket| converse(app, socket, Protocol::Environment))
}

/// `GET /mcp`.
pub async fn mcp(State(app): State<Arc<App>>, upgrade: WebSocketUpgrade) -> Response {
    let upgrade = upgrade.max_message_size(MESSAGE_BYTES).max_frame_size(MESSAGE_BYTES);
    upgrade.on_upgrade(|socket| converse(app, socket, Protocol::Tools))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Protocol {
    Environment,
    Tools,
}

/// A place among the sockets, given back in any case.
struct Place(Arc<App>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.episodes.leave();
    }
}

async fn converse(app: Arc<App>, mut socket: WebSocket, protocol: Protocol) {
    if !app.episodes.enter() {
        let data = json!({
            "message": "all sessions are taken", "code": "CAPACITY_REACHED",
            "active_sessions": app.episodes.sockets(), "max_sessions": MAX_SOCKETS,
        });
        // Whether it is heard or not, this ends here.
        let _ = socket.send(text(&json!({ "type": "error", "data": data }))).await;
        return;
    }
    let place = Place(Arc::clone(&app));
    let Ok(mut episode) = Episode::new(&Reset::default(), &app.players) else { return };
    while let Some(Ok(message)) = socket.recv().await {
        let body = match message {
            Message::Text(text) => text.as_bytes().to_vec(),
            Message::Binary(bytes) => bytes.to_vec(),
            Message::Close(_) => break,
            Message::Ping(_) | Message::Pong(_) => continue,
        };
        // An opponent thinks on a thread of its own, also when a reset is about to bring one;
        // anything else takes microseconds.
        let is_slow = episode.is_slow() || body.windows(8).any(|part| part == b"opponent");
        let turn = move |app: &App, mut episode: Episode| {
            let answer = match protocol {
                Protocol::Environment => answer(app, &body, &mut episode),
                Protocol::Tools => Some(rpc::answer_in(&body, &mut episode)),
            };
            (answer, episode)
        };
        let (reply, after) = if is_slow {
            let app = Arc::clone(&app);
            match tokio::task::spawn_blocking(move || turn(&app, episode)).await {
                Ok(done) => done,
                Err(_) => break,
            }
        } else {
            turn(&app, episode)
        };
        episode = after;
        let Some(reply) = reply else { break };
        if socket.send(text(&reply)).await.is_err() {
            break;
        }
    }
    drop(place);
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

/// Answers a message; `None` when the client says goodbye.
fn answer(app: &App, body: &[u8], episode: &mut Episode) -> Option<Value> {
    let message: Incoming = match serde_json::from_slice(body) {
        Ok(message) => message,
        Err(error) => return Some(fault("INVALID_JSON", &format!("Invalid JSON: {error}"))),
    };
    Some(match message.kind.as_str() {
        "reset" => {
            let wishes = if message.data.is_null() { json!({}) } else { message.data };
            match serde_json::from_value::<Reset>(wishes) {
                Err(error) => fault("VALIDATION_ERROR", &error.to_string()),
                Ok(reset) => observed(Episode::new(&reset, &app.players).map(|new| {
                    *episode = new;
                    episode.first()
                })),
            }
        }
        "step" => match serde_json::from_value::<ChessAction>(message.data) {
            Err(error) => fault("VALIDATION_ERROR", &error.to_string()),
            Ok(action) => {
                app.counters.stepped();
                observed(episode.step(&action))
            }
        },
        "state" => json!({ "type": "state", "data": episode.state() }),
        "mcp" => {
            let body = message.data.to_string();
            json!({ "type": "mcp", "data": rpc::answer_in(body.as_bytes(), episode) })
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
