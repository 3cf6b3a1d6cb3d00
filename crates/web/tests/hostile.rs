//! Hostile requests. docs/security.md has the table of these.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod client;

use std::io::Write;
use std::time::Duration;

use client::{Lines, Socket, config, connect, get, get_with, post, post_with, raw, rest, serve};
use selfmate_run::{Progress, Record, Run};
use selfmate_web::{Limits, ServeError, Server};

#[test]
fn a_page_of_another_site_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(folder.path());
    let address = server.address();
    let order = r#"{"name": "evil"}"#;
    for headers in [
        "Origin: http://evil.example\r\nContent-Type: application/json\r\n",
        "Origin: null\r\nContent-Type: application/json\r\n",
        "Sec-Fetch-Site: cross-site\r\nContent-Type: application/json\r\n",
    ] {
        assert_eq!(post_with(address, "/api/runs", headers, order).status, 403, "{headers}");
        assert_eq!(get_with(address, "/api/runs", headers).status, 403, "{headers}");
        assert_eq!(post_with(address, "/openenv/reset", headers, "").status, 403, "{headers}");
        let upgrade = format!("{headers}Upgrade: websocket\r\n");
        assert_eq!(get_with(address, "/openenv/ws", &upgrade).status, 403, "{headers}");
    }
    let own = format!("Origin: http://{address}\r\n");
    assert_eq!(get_with(address, "/api/runs", &own).status, 200);
    // HTML forms of other sites cannot send JSON.
    for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"] {
        let headers = format!("Content-Type: {kind}\r\n");
        for path in ["/api/runs", "/openenv/reset", "/openenv/step", "/openenv/mcp"] {
            let status = post_with(address, path, &headers, order).status;
            assert_eq!(status, 415, "{kind} to {path}");
        }
    }
    // Cross-origin reads are never allowed.
    let preflight = format!(
        "OPTIONS /api/runs HTTP/1.1\r\nHost: {address}\r\nOrigin: http://evil.example\r\n\
         Access-Control-Request-Method: POST\r\nConnection: close\r\n\r\n"
    );
    let answer = raw(address, preflight.as_bytes());
    assert_eq!(answer.status, 403);
    assert_eq!(answer.header("access-control-allow-origin"), None);
}

#[test]
fn dns_rebinding_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let address = serve(folder.path());
    let address = address.address();
    let ask = |host: &str| {
        let text = format!("GET /api/runs HTTP/1.1\r\n{host}Connection: close\r\n\r\n");
        raw(address, text.as_bytes()).status
    };
    assert_eq!(ask(&format!("Host: evil.example:{}\r\n", address.port())), 403);
    assert_eq!(ask("Host: localhost\r\nHost: evil.example\r\n"), 403);
    assert!(matches!(ask(""), 400 | 403));
    assert_eq!(ask("Host: localhost\r\n"), 200);
}

#[test]
fn paths_cannot_reach_files() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("secret"), "the secret").unwrap();
    let runs = folder.path().join("runs");
    let mut run = Run::open(&runs.join("first")).unwrap();
    run.write_config("learner = \"zero\"").unwrap();
    let server = serve(&runs);
    for path in [
        "/../secret",
        "/..%2fsecret",
        "/%2e%2e/secret",
        "//etc/passwd",
        "/assets/../../secret",
        "/missing.txt",
        "/api/runs/..%2fsecret",
        "/api/runs/first%2f..%2f..%2fsecret",
        "/api/runs/%2e%2e",
        "/api/runs/first/games/..%2f..%2fsecret",
        "/api/matches/..%2f..%2fsecret",
        "/api/matches/000001%00",
    ] {
        let answer = get(server.address(), path);
        assert!((400..=404).contains(&answer.status), "{path}: {answer:?}");
        assert!(!answer.text().contains("the secret"), "{path}");
    }
    // Errors do not contain the path of the runs.
    let here = folder.path().to_str().unwrap();
    let answer = get(server.address(), "/api/runs/nothing");
    assert!(answer.status == 404 && !answer.text().contains(here), "{answer:?}");
    for (path, body) in [
        ("/api/search", r#"{"player": "run:none"}"#),
        // A run without a checkpoint: found when the player is built.
        ("/api/search", r#"{"player": "run:first"}"#),
        ("/api/matches", r#"{"players": ["random", "run:first"], "games": 2}"#),
        ("/openenv/reset", r#"{"opponent": "run:first"}"#),
    ] {
        let answer = post(server.address(), path, body);
        assert!(answer.text().contains("first"), "{path} {body}: {answer:?}");
        assert!(!answer.text().contains(here), "{path} {body}: {answer:?}");
    }
    assert_eq!(get(server.address(), "/api/runs/first").status, 200);
}

#[test]
fn a_huge_body_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(folder.path());
    let huge = "x".repeat(1 << 20);
    let refused = post(server.address(), "/api/position", &huge);
    assert_eq!(refused.status, 413);
    assert!(refused.json()["error"].as_str().unwrap().contains("length limit"), "{refused:?}");
    // A huge Content-Length is rejected before the body is sent.
    let text = format!(
        "POST /api/position HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n\
         Content-Length: 10000000000\r\nConnection: close\r\n\r\n",
        server.address()
    );
    assert_eq!(raw(server.address(), text.as_bytes()).status, 413);
    let long = format!("X-Long: {}\r\n", "x".repeat(100 << 10));
    assert_eq!(get_with(server.address(), "/api/runs", &long).status, 431);
}

#[test]
fn invalid_requests_get_an_error_and_the_server_keeps_running() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(folder.path());
    let address = server.address();
    for (body, status) in [
        ("", 400),
        ("{", 400),
        ("[]", 400),
        ("{\"moves\": 3}", 400),
        ("{\"fen\": \"nonsense\"}", 422),
        ("{\"moves\": [\"e2e5\"]}", 422),
        ("{\"moves\": [\"\\u0000\"]}", 422),
    ] {
        let answer = post(address, "/api/position", body);
        assert_eq!(answer.status, status, "{body}: {answer:?}");
        assert!(!answer.json()["error"].as_str().unwrap().is_empty(), "{body}");
    }
    for player in [
        "uci:sh",
        "net:/etc/passwd",
        "run:../x",
        "material:memory=999999",
        "material:syzygy=/",
        "x",
    ] {
        let body = format!("{{\"player\": \"{player}\"}}");
        let answer = post(address, "/api/search", &body);
        assert_eq!(answer.status, 422, "{player}");
        assert!(!answer.text().contains(&folder.path().display().to_string()), "{answer:?}");
    }
    for name in ["../x", "", "-x", "a b"] {
        let body = serde_json::json!({ "name": name }).to_string();
        assert_eq!(post(address, "/api/runs", &body).status, 400, "{name}");
    }
    for setting in ["evaluation.opponent=uci:sh", "tune.start=../secret", "--runs=/"] {
        let body = serde_json::json!({ "name": "a", "set": [setting] }).to_string();
        assert_eq!(post(address, "/api/runs", &body).status, 422, "{setting}");
    }
    assert_eq!(raw(address, b"nonsense\r\n\r\n").status, 400);
    assert_eq!(get(address, "/api/runs").status, 200);
}

#[test]
fn a_wrong_token_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(folder.path());
    config.token = Some("the-token-of-this-test".into());
    let server = Server::start(config).unwrap();
    let address = server.address();
    let ask = |token: &str| {
        let headers = format!("Content-Type: application/json\r\n{token}");
        post_with(address, "/api/position", &headers, "{}").status
    };
    assert_eq!(ask(""), 401);
    for forged in ["the-token-of-this-tes", "the-token-of-this-test2", "", "THE-TOKEN-OF-THIS-TEST"]
    {
        assert_eq!(ask(&format!("Authorization: Bearer {forged}\r\n")), 401, "{forged}");
    }
    assert_eq!(ask("Authorization: Bearer the-token-of-this-test\r\n"), 200);
    assert_eq!(get(address, "/api/runs").status, 200);
    assert_eq!(get_with(address, "/openenv/ws", "Upgrade: websocket\r\n").status, 401);
}

#[test]
fn a_public_address_needs_a_token() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(folder.path());
    config.address = "0.0.0.0:0".parse().unwrap();
    assert!(matches!(Server::start(config.clone()), Err(ServeError::Open(_))));
    config.token = Some("0123456789".into());
    assert!(matches!(Server::start(config), Err(ServeError::ShortToken(10))));
}

#[test]
fn a_slow_client_is_disconnected_and_does_not_delay_others() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(folder.path());
    config.limits = Limits { head_timeout: Duration::from_millis(100), ..Limits::default() };
    let server = Server::start(config).unwrap();
    let mut slow = connect(server.address());
    slow.write_all(b"GET / HTTP/1.1\r\nHost: loc").unwrap();
    assert_eq!(get(server.address(), "/api/runs").status, 200);
    // With or without a response, its connection ends.
    let said = rest(&mut slow);
    assert!(!said.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&said));
}

#[test]
fn a_slow_body_times_out() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(folder.path());
    config.limits = Limits { answer_timeout: Duration::from_millis(100), ..Limits::default() };
    let server = Server::start(config).unwrap();
    for path in ["/api/position", "/api/search", "/api/runs", "/openenv/reset", "/openenv/mcp"] {
        // The rest of the body never comes, and the client does not close.
        let text = format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n\
             Content-Length: 1000\r\n\r\n{{\"moves\": [",
            server.address()
        );
        assert_eq!(raw(server.address(), text.as_bytes()).status, 408, "{path}");
    }
}

#[test]
fn an_opponent_with_an_escaped_key_does_not_block_other_requests() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(folder.path());
    let mut sockets: Vec<Socket> =
        (0..4).map(|_| Socket::open(server.address(), "/openenv/ws")).collect();
    for socket in &mut sockets {
        // The key is escaped, so that a search for the word in the bytes does not find it.
        socket.send(r#"{"type": "reset", "data": {"\u006fpponent": "alphabeta:depth=40", "agent_color": "black"}}"#);
    }
    for _ in 0..8 {
        assert_eq!(get(server.address(), "/api/about").status, 200);
        assert_eq!(get(server.address(), "/api/runs").status, 200);
    }
}

#[test]
fn the_search_time_of_opponents_is_limited() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(folder.path());
    let address = server.address();
    let reset = r#"{"opponent": "alphabeta:depth=40,hash=1024", "agent_color": "white"}"#;
    assert_eq!(post(address, "/openenv/reset", reset).status, 200);
    let step = r#"{"action": {"move": "e2e4"}, "timeout_s": 0.05}"#;
    let answer = post(address, "/openenv/step", step);
    assert_eq!(answer.json()["observation"]["move_count"], 2, "{answer:?}");
}

#[test]
fn a_silent_websocket_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(folder.path());
    config.limits = Limits { socket_idle: Duration::from_millis(200), ..Limits::default() };
    let server = Server::start(config).unwrap();
    let mut socket = Socket::open(server.address(), "/openenv/ws");
    assert_eq!(socket.hear(), None);
    // A message that is too long closes only its own connection.
    let mut long = Socket::open(server.address(), "/openenv/ws");
    long.send(&"x".repeat(65_000));
    assert_eq!(long.hear().unwrap()["data"]["code"], "INVALID_JSON");
    long.send_claim(100_000);
    assert_eq!(long.hear(), None);
    assert_eq!(get(server.address(), "/api/runs").status, 200);
}

#[test]
fn streams_beyond_the_limit_are_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let mut run = Run::open(&folder.path().join("first")).unwrap();
    run.write_config("learner = \"zero\"").unwrap();
    run.append_metric(&Record::Progress(Progress::default())).unwrap();
    let server = serve(folder.path());
    let limit = Limits::default().streams;
    let mut open: Vec<Lines> =
        (0..limit).map(|_| Lines::open(server.address(), "/api/runs/first/feed")).collect();
    for stream in &mut open {
        stream.find("event: record");
    }
    for _ in limit..1000 {
        let answer = get(server.address(), "/api/runs/first/feed");
        assert_eq!((answer.status, answer.header("retry-after")), (503, Some("5")));
    }
    assert_eq!(get(server.address(), "/api/runs").status, 200);
}

#[test]
fn every_response_has_security_headers() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(folder.path());
    for path in ["/", "/api/runs", "/api/nothing", "/nothing", "/metrics", "/openapi.json"] {
        let answer = get(server.address(), path);
        let policy = answer.header("content-security-policy").unwrap_or_default();
        assert!(policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"));
        assert!(!policy.contains("unsafe"), "{path}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{path}");
        assert_eq!(answer.header("referrer-policy"), Some("no-referrer"), "{path}");
    }
    let answer = get_with(server.address(), "/api/runs", "Origin: http://evil.example\r\n");
    assert!(answer.header("content-security-policy").is_some());
}
