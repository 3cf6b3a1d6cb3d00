//! The server: address, runtime, connections and shutdown.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tower::Service;

use crate::api;
use crate::app::App;
use crate::cluster::ClusterWatcher;
use crate::connection::{Connection, ConnectionPermits};

/// The maximum size of a request head.
const HEAD_BYTES: usize = 32 << 10;
/// The minimum number of characters of a token.
const SHORTEST_TOKEN: usize = 16;
/// How long open requests may continue when the server stops.
const SHUTDOWN_TIME: Duration = Duration::from_secs(2);

/// Settings of a server.
#[derive(Clone, Debug)]
pub struct Config {
    /// Port 0 selects a free port.
    pub address: SocketAddr,
    pub runs: PathBuf,
    /// The `selfmate` binary, which is started for trainings.
    pub program: PathBuf,
    /// Required for all changes. Required if other machines can reach the address.
    pub token: Option<String>,
    /// Host names of the server, besides addresses and `localhost`.
    pub hosts: Vec<String>,
    pub limits: Limits,
    /// A distributed run to show, if there is one.
    pub cluster: Option<ClusterWatcher>,
}

/// Limits that keep one client from starving the others.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Open connections, including WebSockets. Further ones wait in the system's queue.
    pub connections: usize,
    /// The maximum per address of another machine; further ones are closed at once.
    pub connections_each: usize,
    /// The maximum number of open streams.
    pub streams: usize,
    /// The time to send a request head.
    pub head_timeout: Duration,
    /// The time to send a body and to start the response.
    pub answer_timeout: Duration,
    /// A client that does not read a response for this long is disconnected.
    pub write_timeout: Duration,
    /// A WebSocket that does not even answer pings for this long is closed. Agents that compute
    /// between moves may be silent for a while.
    pub socket_idle: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connections: 512,
            connections_each: 64,
            streams: 200,
            head_timeout: Duration::from_secs(10),
            answer_timeout: Duration::from_secs(30),
            write_timeout: Duration::from_secs(60),
            socket_idle: Duration::from_secs(30 * 60),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("cannot serve on {address}: {error}")]
    Bind { address: SocketAddr, error: io::Error },
    /// Other machines can reach the address, but there is no token.
    #[error("other machines can reach {0}: expected a token")]
    Open(SocketAddr),
    #[error("the token has {0} characters: expected at least {SHORTEST_TOKEN}")]
    ShortToken(usize),
    #[error("cannot start the server's threads: {0}")]
    Runtime(io::Error),
    #[error("cannot create a token: {0}")]
    Token(String),
}

/// A running server. Dropping it stops the server and its trainings.
pub struct Server {
    runtime: Option<Runtime>,
    app: Arc<App>,
    address: SocketAddr,
    stopping: watch::Sender<bool>,
}

impl Server {
    /// Starts a server. It answers requests when this returns.
    pub fn start(config: Config) -> Result<Server, ServeError> {
        let wanted = config.address;
        if !wanted.ip().is_loopback() && config.token.is_none() {
            return Err(ServeError::Open(wanted));
        }
        if let Some(length) = config.token.as_ref().map(|token| token.chars().count())
            && length < SHORTEST_TOKEN
        {
            return Err(ServeError::ShortToken(length));
        }
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .max_blocking_threads(64)
            .thread_name("web")
            .enable_all()
            .build()
            .map_err(ServeError::Runtime)?;
        let bind = |error| ServeError::Bind { address: wanted, error };
        let listener = runtime.block_on(TcpListener::bind(wanted)).map_err(bind)?;
        let address = listener.local_addr().map_err(bind)?;
        let limits = config.limits;
        let app = Arc::new(App::new(config));
        let (stopping, stopped) = watch::channel(false);
        let router = api::router(Arc::clone(&app), limits.answer_timeout);
        runtime.spawn(accept(listener, router, limits, stopped));
        Ok(Server { runtime: Some(runtime), app, address, stopping })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Names of the runs that this server is training.
    pub fn trainings(&self) -> Vec<String> {
        self.app.trainings.names()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stopping.send_replace(true);
        self.app.arena.stop_all();
        // Waits for trainings to write their checkpoints.
        self.app.trainings.stop_all();
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(SHUTDOWN_TIME);
        }
    }
}

/// Accepts connections until the server stops.
async fn accept(
    listener: TcpListener,
    router: Router,
    limits: Limits,
    mut stopped: watch::Receiver<bool>,
) {
    let places = ConnectionPermits::new(limits);
    loop {
        let next = async {
            let place = places.wait().await?;
            Some((listener.accept().await, place))
        };
        let accepted = tokio::select! {
            accepted = next => accepted,
            _ = stopped.changed() => return,
        };
        match accepted {
            Some((Ok((stream, peer)), place)) => {
                // An address with too many connections is closed at once.
                let Some(place) = places.share(place, peer.ip()) else { continue };
                // Without it small events would be delayed. Failing to set it is harmless.
                let _ = stream.set_nodelay(true);
                let stream = Connection::new(stream, place, limits.write_timeout);
                let (router, stopped) = (router.clone(), stopped.clone());
                tokio::spawn(serve_connection(stream, router, limits.head_timeout, stopped));
            }
            // For example out of file descriptors: wait until some are free.
            Some((Err(_), _)) => tokio::time::sleep(Duration::from_millis(50)).await,
            None => return,
        }
    }
}

/// Serves the requests of one connection.
async fn serve_connection(
    stream: Connection,
    router: Router,
    head_timeout: Duration,
    mut stopped: watch::Receiver<bool>,
) {
    let service =
        hyper::service::service_fn(move |request: Request<Incoming>| router.clone().call(request));
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(head_timeout).max_buf_size(HEAD_BYTES);
    let connection = builder.serve_connection(TokioIo::new(stream), service).with_upgrades();
    let mut connection = pin!(connection);
    // Errors of a single connection are not reported.
    tokio::select! {
        _ = connection.as_mut() => {}
        _ = stopped.changed() => {
            connection.as_mut().graceful_shutdown();
            let _ = tokio::time::timeout(SHUTDOWN_TIME, connection).await;
        }
    }
}
