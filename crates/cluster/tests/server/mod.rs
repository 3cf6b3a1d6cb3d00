//! A real nats-server for tests. It is killed when it goes out of scope.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a server may take to accept connections.
const START_TIMEOUT: Duration = Duration::from_secs(60);

pub struct Server {
    folder: PathBuf,
    port: u16,
    /// Port of the monitoring endpoint.
    monitor_port: u16,
    child: Option<Child>,
}

impl Server {
    /// Starts a single server, configured like `deploy/nats/single.conf`.
    pub fn single(folder: &Path) -> Server {
        Server::with(folder, "")
    }

    /// Starts a server with further lines in its config.
    pub fn with(folder: &Path, more: &str) -> Server {
        let mut server = Server::prepare(folder, free_port(), more);
        server.start();
        server
    }

    /// Writes the config without starting the server.
    pub fn prepare(folder: &Path, port: u16, more: &str) -> Server {
        fs::create_dir_all(folder).unwrap();
        let (store, monitor_port) = (folder.join("store"), free_port());
        let config = format!(
            "listen: \"127.0.0.1:{port}\"\nhttp: \"127.0.0.1:{monitor_port}\"\n\
             jetstream {{ store_dir: {store:?}, sync_interval: always }}\n{more}\n"
        );
        fs::write(folder.join("nats.conf"), config).unwrap();
        Server { folder: folder.to_owned(), port, monitor_port, child: None }
    }

    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Starts the server with its stored data. Returns when it accepts connections.
    pub fn start(&mut self) {
        let log =
            fs::File::options().create(true).append(true).open(self.folder.join("log")).unwrap();
        let child = Command::new(program())
            .arg("-c")
            .arg(self.folder.join("nats.conf"))
            .current_dir(&self.folder)
            .stdout(Stdio::null())
            .stderr(log)
            .spawn();
        self.child = Some(child.expect("nats-server starts"));
        let began = Instant::now();
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(began.elapsed() < START_TIMEOUT, "nats-server does not answer");
            let child = self.child.as_mut().unwrap();
            if let Some(status) = child.try_wait().unwrap() {
                let log = fs::read_to_string(self.folder.join("log")).unwrap_or_default();
                panic!("nats-server ended with {status}:\n{log}");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// `kill -9`.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// The answer of the monitoring endpoint; empty when there is none.
    pub fn query_monitor(&self, path: &str) -> String {
        let mut text = String::new();
        if let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.monitor_port)) {
            stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
            let request = format!("GET {path} HTTP/1.0\r\n\r\n");
            // The server may be killed meanwhile.
            let _ = stream
                .write_all(request.as_bytes())
                .and_then(|()| stream.read_to_string(&mut text));
        }
        text
    }

    /// Sends a signal by its name, such as STOP or CONT.
    pub fn signal(&self, name: &str) {
        let id = self.child.as_ref().expect("the server runs").id().to_string();
        let status = Command::new("kill").args([&format!("-{name}"), &id]).status().unwrap();
        assert!(status.success());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A port that was free a moment ago.
pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A cluster of three servers.
pub fn three(folder: &Path) -> [Server; 3] {
    let routes = [free_port(), free_port(), free_port()];
    let all: Vec<String> = routes.iter().map(|port| format!("nats://127.0.0.1:{port}")).collect();
    let mut servers = [0, 1, 2].map(|index| {
        let more = format!(
            "server_name: node-{index}\n\
             cluster {{ name: selfmate, listen: \"127.0.0.1:{}\", routes: [{}] }}",
            routes[index],
            all.iter().map(|url| format!("{url:?}")).collect::<Vec<_>>().join(", ")
        );
        Server::prepare(&folder.join(index.to_string()), free_port(), &more)
    });
    for server in &mut servers {
        server.start();
    }
    servers
}

/// Which of three servers leads a stream, according to one of them; `None` while there is no leader.
pub fn leader(asked: &Server, stream: &str) -> Option<usize> {
    let text = asked.query_monitor("/jsz?acc=$G&streams=true");
    let (_, detail) = text.split_once(&format!("\"name\": \"{stream}\""))?;
    let (_, rest) = detail.split_once("\"leader\": \"node-")?;
    rest.split('"').next()?.parse().ok()
}

/// The binary of nats-server.
pub fn program() -> PathBuf {
    if let Some(path) = std::env::var_os("SELFMATE_NATS_SERVER") {
        return path.into();
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let path = root.join("target/venv/bin/nats-server");
    assert!(path.exists(), "nats-server is missing: `cargo xtask setup` installs it");
    path
}
