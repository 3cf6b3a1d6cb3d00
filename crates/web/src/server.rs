//! The server: an address, a runtime, and connections that cannot starve each other.

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
use crate::cluster::Watched;
use crate::connection::{Connection, Places};

/// The longest head of a request.
const HEAD_BYTES: usize = 32 << 10;
/// The fewest characters of a token.
const SHORTEST_TOKEN: usize = 16;
/// How long open requests may go on once the server is to stop.
const GOODBYE: Duration = Duration::from_secs(2);

/// Where to serve, and what.
#[derive(Clone, Debug)]
pub struct Config {
    /// The address; port 0 takes a free one.
    pub address: SocketAddr,
    /// The folder of runs.
    pub runs: PathBuf,
    /// The `selfmate` binary, which trains in processes of its own.
    pub program: PathBuf,
    /// Needed for everything that changes state. An address that others can reach must have one.
    pub token: Option<String>,
    /// Names under which the server is reached, besides addresses and `localhost`.
    pub hosts: Vec<String>,
    /// How much of it there is.
    pub limits: Limits,
    /// A run on many machines to be shown, if there is one.
    pub cluster: Option<Watched>,
}

/// What keeps one client from starving the others.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Open connections, WebSockets among them. More wait in the system's queue until one closes.
    pub connections: usize,
    /// Of those, the most that one address of another machine may have; more are closed at once.
    pub connections_each: usize,
    /// Streams among them.
    pub streams: usize,
    /// Whoever has not sent the head of a request by then is let go.
    pub head_timeout: Duration,
    /// And whoever has not sent its body, or cannot be answered, by then.
    pub answer_timeout: Duration,
    /// And so is whoever has taken nothing of an answer for so long.
    pub write_timeout: Duration,
    /// And a WebSocket that does not even answer pings for so long. Agents that compute between
    /// their moves may not answer for a while.
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
    /// The address is taken, or not ours.
    #[error("cannot serve on {address}: {error}")]
    Bind {
        address: SocketAddr,
        error: io::Error,
    },
    /// Others can reach the address, and there is no token.
    #[error("{0} can be reached from other machines: expected a token")]
    Open(SocketAddr),
    /// A token that can be guessed is none.
    #[error("the token has {0} characters: expected at least {SHORTEST_TOKEN}")]
    ShortToken(usize),
    /// The threads cannot be started.
    #[error("cannot start the server's threads: {0}")]
    Runtime(io::Error),
    /// The system has no random numbers.
    #[error("cannot make a token: {0}")]
    Token(String),
}

/// A running server. It stops when it is dropped, and its trainings with it.
pub struct Server {
    runtime: Option<Runtime>,
    app: Arc<App>,
    address: SocketAddr,
    stopping: watch::Sender<bool>,
}

impl Server {
    /// Starts to serve; requests are answered once this returns.
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

    /// Where it serves.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The names of the runs that this server trains just now.
    pub fn trainings(&self) -> Vec<String> {
        self.app.trainings.names()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stopping.send_replace(true);
        self.app.arena.stop_all();
        // Trainings write a checkpoint before they end; nothing is lost by waiting for that.
        self.app.trainings.stop_all();
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(GOODBYE);
        }
    }
}

/// Takes connections until it is told to stop.
async fn accept(
    listener: TcpListener,
    router: Router,
    limits: Limits,
    mut stopped: watch::Receiver<bool>,
) {
    let places = Places::new(limits);
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
                // Whoever has more than its share is closed at once.
                let Some(place) = places.share(place, peer.ip()) else { continue };
                // Without it small events would wait for each other; the connection works all the
                // same.
                let _ = stream.set_nodelay(true);
                let stream = Connection::new(stream, place, limits.write_timeout);
                let (router, stopped) = (router.clone(), stopped.clone());
                tokio::spawn(converse(stream, router, limits.head_timeout, stopped));
            }
            // Out of file descriptors, say: those in use come back.
            Some((Err(_), _)) => tokio::time::sleep(Duration::from_millis(50)).await,
            None => return,
        }
    }
}

/// Answers the requests of one connection.
async fn converse(
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
    // How a connection ends is its client's business.
    tokio::select! {
        _ = connection.as_mut() => {}
        _ = stopped.changed() => {
            connection.as_mut().graceful_shutdown();
            let _ = tokio::time::timeout(GOODBYE, connection).await;
        }
    }
}
