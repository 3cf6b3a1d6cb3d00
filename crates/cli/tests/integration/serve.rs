//! `selfmate serve` as a user starts it: a training begins from the page's API, its curve moves, it
//! stops with a checkpoint.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

struct Lab {
    child: Child,
    address: String,
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Lab {
    fn open(runs: &std::path::Path) -> Lab {
        let mut child = Command::new(env!("CARGO_BIN_EXE_selfmate"))
            .arg("--runs")
            .arg(runs)
            .args(["serve", "--port", "0"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().rsplit("http://").next().unwrap().to_owned();
        Lab { child, address }
    }

    fn send(&self, method: &str, path: &str, body: &Value) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let body = body.to_string();
        let text = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            self.address,
            body.len()
        );
        stream.write_all(text.as_bytes()).unwrap();
        stream
    }

    fn ask(&self, method: &str, path: &str, body: &Value) -> (u16, String) {
        let mut text = String::new();
        self.send(method, path, body).read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }
}

#[cfg(unix)]
#[test]
fn a_training_begins_moves_its_curve_and_stops() {
    let folder = tempfile::tempdir().unwrap();
    let lab = Lab::open(folder.path());
    let order = json!({ "name": "first", "preset": "tiny", "threads": 1, "minutes": 60 });
    assert_eq!(lab.ask("POST", "/api/runs", &order).0, 201);
    assert_eq!(lab.ask("POST", "/api/runs", &order).0, 409);
    // The feed is there once the folder is.
    let mut feed = loop {
        let stream = lab.send("GET", "/api/runs/first/feed", &json!({}));
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if line.contains(" 200 ") {
            break reader;
        }
        assert!(line.contains(" 404 "), "{line}");
    };
    let mut generations = 0;
    while generations < 2 {
        let mut line = String::new();
        assert_ne!(feed.read_line(&mut line).unwrap(), 0, "the feed ended");
        generations += u32::from(line.contains("\"kind\":\"progress\""));
    }
    assert_eq!(lab.ask("POST", "/api/runs/first/stop", &json!({})).0, 202);
    loop {
        let mut line = String::new();
        assert_ne!(feed.read_line(&mut line).unwrap(), 0, "the feed ended");
        if line.contains("\"kind\":\"end\"") {
            break;
        }
    }
    let (status, body) = lab.ask("GET", "/api/runs/first", &json!({}));
    assert_eq!(status, 200, "{body}");
    let detail: Value = serde_json::from_str(&body).unwrap();
    assert!(!detail["checkpoints"].as_array().unwrap().is_empty(), "{detail}");
    // What was trained can play.
    let think = json!({ "player": "run:first", "limit": { "sims": 10 } });
    let (status, body) = lab.ask("POST", "/api/search", &think);
    assert!(status == 200 && body.contains("\"kind\":\"choice\""), "{body}");
}

#[test]
fn what_others_can_reach_needs_a_token_which_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_selfmate"))
        .arg("--runs")
        .arg(folder.path())
        .args(["serve", "--bind", "0.0.0.0", "--port", "0"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let _ = child.kill();
    let _ = child.wait();
    assert!(!line.contains("0.0.0.0"), "{line}");
    let token = line.trim().rsplit("#/?token=").next().unwrap();
    assert!(token.len() == 32 && token.bytes().all(|byte| byte.is_ascii_hexdigit()), "{line}");
}

#[test]
fn a_token_that_can_be_guessed_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for token in ["", "short"] {
        let output = Command::new(env!("CARGO_BIN_EXE_selfmate"))
            .arg("--runs")
            .arg(folder.path())
            .args(["serve", "--port", "0"])
            .env("SELFMATE_TOKEN", token)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains("at least 16"), "'{token}': {said}");
    }
}
