//! Tools over JSON-RPC 2.0, for agents that speak the Model Context Protocol.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde_json::{Map, Value, json};

use super::episode::{ChessAction, Episode};
use super::session::{LONGEST_ANSWER, act};
use crate::app::App;
use crate::error::ApiError;

const PARSE: i64 = -32_700;
const INVALID_REQUEST: i64 = -32_600;
const NO_METHOD: i64 = -32_601;
const INVALID_PARAMS: i64 = -32_602;
const INTERNAL: i64 = -32_603;

/// Answers a request over HTTP, in the session it names or in a new game.
pub async fn answer_http(app: &Arc<App>, body: &[u8]) -> Value {
    let request = match read(body) {
        Ok(request) => request,
        Err(failure) => return failure,
    };
    let id = request.id.clone();
    let session = request.params.get("session_id").and_then(Value::as_str).map(str::to_owned);
    let unknown = |name: &str| failure(&id, INVALID_PARAMS, &format!("Unknown session_id: {name}"));
    let answered = match (request.method.as_str(), session) {
        ("openenv/session/create", _) => {
            create(app).map(|name| success(&id, &json!({ "session_id": name })))
        }
        ("openenv/session/close", Some(name)) => Ok(match app.episodes.end(&name) {
            true => success(&id, &json!({ "session_id": name, "closed": true })),
            false => unknown(&name),
        }),
        (_, Some(name)) => match app.episodes.find(Some(&name)) {
            Ok(episode) => {
                let turn = move |episode: &mut Episode, stop: &Arc<AtomicBool>| {
                    Ok(answer(&request, episode, stop))
                };
                act(app, episode, LONGEST_ANSWER, turn).await
            }
            Err(_) => Ok(unknown(&name)),
        },
        (_, None) => Episode::alone(&app.players)
            .map(|mut episode| answer(&request, &mut episode, &Arc::default())),
    };
    answered.unwrap_or_else(|error| failure(&id, INTERNAL, &error.to_string()))
}

fn create(app: &App) -> Result<String, ApiError> {
    let episode = Episode::alone(&app.players)?;
    app.episodes.begin(Some(crate::secret_name()?), episode)
}

/// Answers a request in a running game.
pub fn answer_in(body: &[u8], episode: &mut Episode, stop: &Arc<AtomicBool>) -> Value {
    match read(body) {
        Ok(request) => answer(&request, episode, stop),
        Err(failure) => failure,
    }
}

struct Request {
    id: Value,
    method: String,
    params: Map<String, Value>,
}

fn read(body: &[u8]) -> Result<Request, Value> {
    let Ok(value) = serde_json::from_slice::<Value>(body) else {
        return Err(failure(&Value::Null, PARSE, "Parse error"));
    };
    let id = value.get("id").cloned().unwrap_or_default();
    let method = value.get("method").and_then(Value::as_str);
    match (value.get("jsonrpc").and_then(Value::as_str), method) {
        (Some("2.0"), Some(method)) => Ok(Request {
            method: method.to_owned(),
            params: value.get("params").and_then(Value::as_object).cloned().unwrap_or_default(),
            id,
        }),
        _ => Err(failure(&id, INVALID_REQUEST, "expected jsonrpc \"2.0\" and a method")),
    }
}

fn answer(request: &Request, episode: &mut Episode, stop: &Arc<AtomicBool>) -> Value {
    match request.method.as_str() {
        "tools/list" => success(&request.id, &json!({ "tools": tools() })),
        "tools/call" => call(request, episode, stop),
        method => failure(&request.id, NO_METHOD, &format!("Method not found: {method}")),
    }
}

fn tools() -> Value {
    json!([
        {
            "name": "look",
            "description": "Shows the position, the moves so far and the legal moves.",
            "inputSchema": { "type": "object", "properties": {} },
        },
        {
            "name": "play_move",
            "description": "Plays a move for the side to move.",
            "inputSchema": {
                "type": "object",
                "properties": { "move": { "type": "string", "description": "In UCI or SAN, such as e2e4 or Nf3." } },
                "required": ["move"],
            },
        },
    ])
}

fn call(request: &Request, episode: &mut Episode, stop: &Arc<AtomicBool>) -> Value {
    let arguments = request.params.get("arguments");
    match request.params.get("name").and_then(Value::as_str) {
        Some("look") => {
            let mut state = without_board(episode.state());
            state["legal_moves"] = json!(episode.legal());
            success(&request.id, &state)
        }
        Some("play_move") => {
            let Some(text) = arguments.and_then(|all| all.get("move")).and_then(Value::as_str)
            else {
                return failure(
                    &request.id,
                    INVALID_PARAMS,
                    "play_move: expected the argument move",
                );
            };
            let action =
                ChessAction { text: Some(text.to_owned()), action_id: None, metadata: None };
            match episode.step(&action, stop) {
                Ok(mut result) => {
                    result.observation = without_board(result.observation);
                    success(&request.id, &json!(result))
                }
                Err(error) => failure(&request.id, INTERNAL, &error.to_string()),
            }
        }
        Some(other) => failure(&request.id, INVALID_PARAMS, &format!("Tool not found: {other}")),
        None => failure(&request.id, INVALID_PARAMS, "Missing 'name' in params"),
    }
}

/// Language models read the position from the FEN; the tensor would only cost them tokens.
fn without_board(mut value: Value) -> Value {
    if let Some(fields) = value.as_object_mut() {
        fields.remove("board");
    }
    value
}

fn success(id: &Value, result: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

fn failure(id: &Value, code: i64, message: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::player::Players;

    #[test]
    fn tools_are_listed_and_can_be_called() {
        let players = Players::new(Path::new("nowhere"), 2);
        let mut episode = Episode::alone(&players).unwrap();
        let mut ask = |text: &str| answer_in(text.as_bytes(), &mut episode, &Arc::default());
        let list = ask(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
        assert_eq!(list["result"]["tools"][1]["name"], "play_move");
        let call = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"play_move","arguments":{"move":"e4"}}}"#;
        let played = &ask(call)["result"]["observation"];
        assert_eq!(played["move_count"], 1);
        assert!(played.get("board").is_none());
        let look = r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"look"}}"#;
        assert_eq!(ask(look)["result"]["move_history"], json!(["e2e4"]));
        assert_eq!(ask("{}")["error"]["code"], INVALID_REQUEST);
        assert_eq!(ask("{")["error"]["code"], PARSE);
        assert_eq!(ask(r#"{"jsonrpc":"2.0","method":"x"}"#)["error"]["code"], NO_METHOD);
    }
}
