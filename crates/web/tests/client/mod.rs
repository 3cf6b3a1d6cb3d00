//! A client that sends arbitrary bytes, also those that no browser would send.

#![allow(dead_code, reason = "every test file uses its own part")]

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use selfmate_web::{Config, Limits, Server};
use serde_json::Value;

/// A server for a folder of runs, on a free port.
pub fn config(runs: &Path) -> Config {
    Config {
        address: "127.0.0.1:0".parse().unwrap(),
        runs: runs.to_owned(),
        program: "/no/such/program".into(),
        token: None,
        hosts: Vec::new(),
        limits: Limits::default(),
        cluster: None,
    }
}

pub fn serve(runs: &Path) -> Server {
    Server::start(config(runs)).unwrap()
}

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }

    /// The lines of a stream.
    pub fn lines(&self) -> Vec<Value> {
        self.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let line = self.head.lines().find(|line| {
            line.split(':').next().is_some_and(|found| found.eq_ignore_ascii_case(name))
        })?;
        Some(line.split_once(':')?.1.trim())
    }
}

/// A server that is silent for this long has failed; the test then fails instead of hanging.
const PATIENCE: Duration = Duration::from_secs(60);

pub fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Reads until the server closes the connection.
pub fn rest(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    match stream.read_to_end(&mut bytes) {
        Err(error) if error.kind() == ErrorKind::WouldBlock => {
            panic!("the server did not close the connection")
        }
        // A client that is disconnected during a request gets a reset.
        _ => bytes,
    }
}

/// Sends bytes and reads until the server closes.
pub fn raw(address: SocketAddr, request: &[u8]) -> Answer {
    let mut stream = connect(address);
    // A server that rejects a body may close before all of it is sent.
    let _ = stream.write_all(request);
    parse(&rest(&mut stream))
}

fn parse(bytes: &[u8]) -> Answer {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
    let end = end.unwrap_or_else(|| panic!("no head: {}", String::from_utf8_lossy(bytes)));
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let mut answer = Answer { status, head, body: bytes[end + 4..].to_vec() };
    if answer.header("transfer-encoding") == Some("chunked") {
        answer.body = unchunk(&answer.body);
    }
    answer
}

fn unchunk(mut bytes: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(end) = bytes.windows(2).position(|two| two == b"\r\n") {
        let size = usize::from_str_radix(&String::from_utf8_lossy(&bytes[..end]), 16).unwrap();
        if size == 0 {
            break;
        }
        body.extend_from_slice(&bytes[end + 2..end + 2 + size]);
        bytes = &bytes[end + 4 + size..];
    }
    body
}

pub fn get(address: SocketAddr, path: &str) -> Answer {
    get_with(address, path, "")
}

/// `headers` are complete lines.
pub fn get_with(address: SocketAddr, path: &str, headers: &str) -> Answer {
    let text =
        format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n{headers}Connection: close\r\n\r\n");
    raw(address, text.as_bytes())
}

pub fn post(address: SocketAddr, path: &str, body: &str) -> Answer {
    post_with(address, path, "Content-Type: application/json\r\n", body)
}

pub fn post_with(address: SocketAddr, path: &str, headers: &str, body: &str) -> Answer {
    let length = body.len();
    let text = format!(
        "POST {path} HTTP/1.1\r\nHost: {address}\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
    raw(address, text.as_bytes())
}

/// A connection whose response is read line by line, for events.
pub struct Lines {
    stream: TcpStream,
    rest: Vec<u8>,
}

impl Lines {
    pub fn open(address: SocketAddr, path: &str) -> Lines {
        let mut stream = connect(address);
        let text = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n");
        stream.write_all(text.as_bytes()).unwrap();
        Lines { stream, rest: Vec::new() }
    }

    /// The next line; `None` at the end.
    pub fn line(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.rest.iter().position(|&byte| byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                return Some(String::from_utf8_lossy(&line).trim_end().to_owned());
            }
            let mut chunk = [0; 4096];
            match self.stream.read(&mut chunk) {
                Ok(0) | Err(_) => return None,
                Ok(count) => self.rest.extend_from_slice(&chunk[..count]),
            }
        }
    }

    /// Skips to the first line with this start.
    pub fn find(&mut self, start: &str) -> String {
        loop {
            let line = self.line().unwrap_or_else(|| panic!("the stream ended before '{start}'"));
            if line.starts_with(start) {
                return line;
            }
        }
    }
}

/// A minimal WebSocket client.
pub struct Socket {
    stream: TcpStream,
}

impl Socket {
    pub fn open(address: SocketAddr, path: &str) -> Socket {
        let mut stream = connect(address);
        let text = format!(
            "GET {path} HTTP/1.1\r\nHost: {address}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        );
        stream.write_all(text.as_bytes()).unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        let head = String::from_utf8_lossy(&head).into_owned();
        assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
        Socket { stream }
    }

    /// Sends a text and returns the reply.
    pub fn ask(&mut self, text: &str) -> Value {
        self.send(text);
        self.hear().expect("an answer")
    }

    /// Sends a text without waiting for a reply.
    pub fn send(&mut self, text: &str) {
        let length = u8::try_from(text.len()).ok().filter(|length| *length < 126).unwrap_or(126);
        let mut frame = vec![0x81, 0x80 | length];
        if length == 126 {
            frame.extend((text.len() as u16).to_be_bytes());
        }
        // A mask of zeros leaves the text as it is.
        frame.extend([0; 4]);
        frame.extend(text.as_bytes());
        self.stream.write_all(&frame).unwrap();
    }

    /// Sends only the head of a text frame of this length.
    pub fn send_claim(&mut self, length: u64) {
        let mut frame = vec![0x81, 0x80 | 127];
        frame.extend(length.to_be_bytes());
        frame.extend([0; 4]);
        self.stream.write_all(&frame).unwrap();
    }

    /// The next text, skipping pings; `None` when the server has closed.
    pub fn hear(&mut self) -> Option<Value> {
        loop {
            let (kind, payload) = self.frame()?;
            match kind {
                1 => return Some(serde_json::from_slice(&payload).unwrap()),
                8 => return None,
                _ => {}
            }
        }
    }

    /// The opcode and payload of the next frame; `None` at the end.
    fn frame(&mut self) -> Option<(u8, Vec<u8>)> {
        let mut head = [0; 2];
        match self.stream.read_exact(&mut head) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => panic!("there was no reply"),
            read => read.ok()?,
        }
        let length = match head[1] & 0x7F {
            126 => {
                let mut length = [0; 2];
                self.stream.read_exact(&mut length).unwrap();
                usize::from(u16::from_be_bytes(length))
            }
            127 => panic!("a reply of more than 64 KB"),
            length => usize::from(length),
        };
        let mut payload = vec![0; length];
        self.stream.read_exact(&mut payload).unwrap();
        Some((head[0] & 0x0F, payload))
    }
}
