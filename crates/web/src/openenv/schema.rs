//! What OpenEnv's clients and validators read about the environment.

use serde_json::{Value, json};

/// The version of OpenEnv's HTTP interface that this follows.
const INTERFACE: &str = "1.0.0";

/// `GET /metadata`.
pub fn metadata() -> Value {
    json!({
        "name": "selfmate-chess",
        "description": "Chess with all its draw rules: both sides, or against a player of the arena.",
        "version": env!("CARGO_PKG_VERSION"),
        "author": "selfmate",
    })
}

/// `GET /schema`.
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
                "description": "A move by its number in az4672, instead of its text.",
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
            "result": { "enum": ["1-0", "0-1", "1/2-1/2", "*", null] },
            "done": { "type": "boolean" },
            "reward": { "type": ["number", "null"] },
            "metadata": { "type": "object" },
        },
        "required": ["fen", "legal_moves", "is_check", "done"],
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
            "opponent": { "type": ["string", "null"], "description": "A player such as greedy or alphabeta:depth=2; without one the agent plays both sides." },
            "agent_color": { "enum": ["white", "black", "random", null] },
            "max_plies": { "type": ["integer", "null"] },
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
            "/reset": { "post": { "summary": "Begin a game", "requestBody": body(reset), "responses": answer("What the agent sees", result.clone()) } },
            "/step": { "post": { "summary": "Act", "requestBody": body(step), "responses": answer("What it led to", result) } },
            "/state": { "get": { "summary": "Where the game stands", "responses": answer("The state", state()) } },
            "/health": { "get": { "summary": "The server is there", "responses": answer("Its health", json!({ "type": "object" })) } },
            "/metadata": { "get": { "summary": "What the environment is", "responses": answer("Metadata", json!({ "type": "object" })) } },
            "/schema": { "get": { "summary": "Schemas of actions, observations and states", "responses": answer("Schemas", json!({ "type": "object" })) } },
            "/mcp": { "post": { "summary": "Tools over JSON-RPC 2.0", "responses": answer("A response of JSON-RPC", json!({ "type": "object" })) } },
        },
    })
}
