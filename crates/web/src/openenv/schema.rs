//! Metadata and schemas for OpenEnv's clients and validators.

use serde_json::{Value, json};

/// The version of OpenEnv's HTTP interface that is implemented.
const INTERFACE: &str = "1.0.0";

pub fn metadata() -> Value {
    json!({
        "name": "selfmate-chess",
        "description": "Chess with all draw rules. The agent plays both sides, or one side against a player of the arena.",
        "version": env!("CARGO_PKG_VERSION"),
        "author": "selfmate",
    })
}

pub fn schemas() -> Value {
    json!({ "action": action(), "observation": observation(), "state": state() })
}

fn action() -> Value {
    json!({
        "title": "ChessAction",
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "move": { "type": "string", "description": "A move in UCI (e2e4, e7e8q) or SAN (e4, e8=Q)." },
            "action_id": {
                "type": "integer", "minimum": 0, "maximum": 4671,
                "description": "A move as an index of the move space az4672, instead of its text.",
            },
            "metadata": { "type": "object" },
        },
    })
}

fn observation() -> Value {
    json!({
        "title": "ChessObservation",
        "type": "object",
        "properties": {
            "fen": { "type": "string" },
            "legal_moves": { "type": "array", "items": { "type": "string" } },
            "legal_action_ids": { "type": "array", "items": { "type": "integer" } },
            "is_check": { "type": "boolean" },
            "side_to_move": { "enum": ["white", "black"] },
            "move_count": { "type": "integer" },
            "board": board(),
            "done": { "type": "boolean", "description": "The game is over: terminated or truncated." },
            "terminated": { "type": "boolean", "description": "The rules ended the game." },
            "truncated": { "type": "boolean", "description": "The ply cap ended the game; it has no result." },
            "result": result(),
            "reward": { "type": ["number", "null"] },
            "metadata": { "type": "object" },
        },
        "required": ["fen", "legal_moves", "is_check", "side_to_move", "done", "terminated", "truncated", "result"],
    })
}

fn board() -> Value {
    let list = |length: usize, items: Value| json!({ "type": "array", "minItems": length, "maxItems": length, "items": items });
    let mut board = list(8, list(8, list(12, json!({ "enum": [0, 1] }))));
    board["description"] =
        "board[rank][file][piece], as White sees it: rank 1 and file a first, pieces in the order \
        P N B R Q K p n b r q k. Left out after a reset with include_board = false."
            .into();
    board
}

fn result() -> Value {
    json!({
        "enum": ["1-0", "0-1", "1/2-1/2", "*", null],
        "description": "* for a truncated game, null while the game is not over.",
    })
}

fn state() -> Value {
    json!({
        "title": "ChessState",
        "type": "object",
        "properties": {
            "episode_id": { "type": ["string", "null"] },
            "step_count": { "type": "integer", "minimum": 0 },
            "seed": { "type": "integer" },
            "fen": { "type": "string" },
            "start_fen": { "type": "string" },
            "current_player": { "enum": ["white", "black"] },
            "agent_color": { "enum": ["white", "black", null] },
            "move_history": { "type": "array", "items": { "type": "string" } },
            "board": board(),
            "done": { "type": "boolean" },
            "terminated": { "type": "boolean" },
            "truncated": { "type": "boolean" },
            "result": result(),
        },
        "required": ["episode_id", "step_count"],
    })
}

/// `GET /openapi.json`, with paths relative to the base of the environment.
pub fn openapi() -> Value {
    let answer = |description: &str, schema: Value| json!({ "200": { "description": description, "content": { "application/json": { "schema": schema } } } });
    let body = |schema: Value| json!({ "content": { "application/json": { "schema": schema } } });
    let result = json!({
        "type": "object",
        "properties": {
            "observation": observation(),
            "reward": { "type": ["number", "null"] },
            "done": { "type": "boolean" },
        },
        "required": ["observation", "done"],
    });
    let reset = json!({
        "type": "object",
        "properties": {
            "seed": { "type": ["integer", "null"], "minimum": 0 },
            "episode_id": { "type": ["string", "null"], "maxLength": 255 },
            "fen": { "type": ["string", "null"] },
            "opponent": { "type": ["string", "null"], "description": "A player such as greedy or alphabeta:depth=2; without an opponent the agent plays both sides." },
            "agent_color": { "enum": ["white", "black", "random", null] },
            "max_plies": { "type": ["integer", "null"] },
            "include_board": { "type": ["boolean", "null"], "default": true, "description": "Whether observations and states have the board tensor." },
        },
    });
    let step = json!({
        "type": "object",
        "properties": {
            "action": action(),
            "timeout_s": { "type": ["number", "null"] },
            "request_id": { "type": ["string", "null"] },
        },
        "required": ["action"],
    });
    json!({
        "openapi": "3.1.0",
        "info": { "title": "selfmate chess environment", "version": INTERFACE },
        "paths": {
            "/reset": { "post": { "summary": "Start a game", "requestBody": body(reset), "responses": answer("The first observation", result.clone()) } },
            "/step": { "post": { "summary": "Play a move", "requestBody": body(step), "responses": answer("The observation and the reward", result) } },
            "/state": { "get": { "summary": "The state of the game", "responses": answer("The state", state()) } },
            "/health": { "get": { "summary": "Whether the server is running", "responses": answer("The health status", json!({ "type": "object" })) } },
            "/metadata": { "get": { "summary": "Name and version of the environment", "responses": answer("Metadata", json!({ "type": "object" })) } },
            "/schema": { "get": { "summary": "Schemas of actions, observations and states", "responses": answer("Schemas", json!({ "type": "object" })) } },
            "/mcp": { "post": { "summary": "Tools over JSON-RPC 2.0", "responses": answer("A JSON-RPC response", json!({ "type": "object" })) } },
        },
    })
}
