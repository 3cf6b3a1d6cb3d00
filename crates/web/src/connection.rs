//! Limits on connections, so that clients cannot starve each other: a total number, a number per
//! address, and a timeout for clients that do not read.

use std::collections::HashMap;
use std::future::Future as _;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Sleep, sleep};

use crate::run::lock;
use crate::server::Limits;

/// Permits for connections.
pub struct ConnectionPermits {
    all: Arc<Semaphore>,
    each: usize,
    taken: Arc<Mutex<HashMap<IpAddr, usize>>>,
}

/// A permit, returned when it is dropped.
pub struct ConnectionPermit {
    _place: OwnedSemaphorePermit,
    address: IpAddr,
    taken: Arc<Mutex<HashMap<IpAddr, usize>>>,
}

impl ConnectionPermits {
    pub fn new(limits: Limits) -> ConnectionPermits {
        let all = Arc::new(Semaphore::new(limits.connections));
        ConnectionPermits { all, each: limits.connections_each, taken: Arc::default() }
    }

    /// Waits for a free connection.
    pub async fn wait(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.all).acquire_owned().await.ok()
    }

    /// The permit of an address; `None` when it has its maximum. This machine has no such maximum,
    /// because a proxy on it serves many clients.
    pub fn share(&self, place: OwnedSemaphorePermit, address: IpAddr) -> Option<ConnectionPermit> {
        let mut taken = lock(&self.taken);
        let count = taken.entry(address).or_default();
        if *count >= self.each && !address.is_loopback() {
            return None;
        }
        *count += 1;
        Some(ConnectionPermit { _place: place, address, taken: Arc::clone(&self.taken) })
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut taken = lock(&self.taken);
        if let Some(count) = taken.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                taken.remove(&self.address);
            }
        }
    }
}

/// A connection that holds its permit while it is open, also as a WebSocket.
pub struct Connection {
    stream: TcpStream,
    /// Runs while data waits to be written.
    waiting: Option<Pin<Box<Sleep>>>,
    timeout: Duration,
    _place: ConnectionPermit,
}

impl Connection {
    pub fn new(stream: TcpStream, place: ConnectionPermit, timeout: Duration) -> Connection {
        Connection { stream, waiting: None, timeout, _place: place }
    }

    /// Fails when nothing could be written for too long.
    fn watch<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.waiting = None;
            return written;
        }
        let timeout = self.timeout;
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(sleep(timeout)));
        match waiting.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watch(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.watch(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Flushing a TCP stream never waits, so it says nothing about the client.
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt;
    use tokio::net::TcpListener;

    use super::*;

    fn limits() -> Limits {
        Limits { connections: 4, connections_each: 2, ..Limits::default() }
    }

    #[tokio::test]
    async fn each_address_has_a_maximum_except_this_machine() {
        let places = ConnectionPermits::new(limits());
        let far: IpAddr = "192.0.2.7".parse().unwrap();
        let take = async |address| places.share(places.wait().await.unwrap(), address);
        let first = take(far).await.unwrap();
        let second = take(far).await;
        assert!(second.is_some() && take(far).await.is_none());
        assert!(take("192.0.2.8".parse().unwrap()).await.is_some());
        drop(first);
        assert!(take(far).await.is_some(), "the permit was returned");
        drop(second);
        assert!(lock(&places.taken).is_empty(), "addresses without connections are forgotten");
        let near = IpAddr::from([127, 0, 0, 1]);
        let mut all = Vec::new();
        for _ in 0..4 {
            all.push(take(near).await.unwrap());
        }
        assert_eq!(places.all.available_permits(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_read_is_disconnected() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let _silent = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, peer) = listener.accept().await.unwrap();
        let places = ConnectionPermits::new(limits());
        let place = places.share(places.wait().await.unwrap(), peer.ip()).unwrap();
        let mut connection = Connection::new(stream, place, Duration::from_secs(60));
        let error = loop {
            if let Err(error) = connection.write_all(&[0; 1 << 16]).await {
                break error;
            }
        };
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drop(connection);
        assert_eq!(places.all.available_permits(), 4);
    }
}
