//! The connection to the NATS server: the only module that knows streams and object stores.
//!
//! Games wait in a stream until the coordinator has them on its own disk. Jobs and networks are in an
//! object store under the hash of their content. Nothing that exists only at the broker is needed:
//! the coordinator publishes missing objects again, and lost games are played again.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use async_nats::jetstream::consumer::{AckPolicy, PullConsumer, pull};
use async_nats::jetstream::object_store::{self, ObjectStore};
use async_nats::jetstream::stream::{self, DiscardPolicy, RetentionPolicy};
use async_nats::jetstream::{self, Context};
use async_nats::{
    Client, ConnectError, ConnectErrorKind, ConnectOptions, HeaderMap, RequestErrorKind,
    ServerAddr, header,
};
use futures_util::StreamExt;
use selfmate_run::bounded_file;

use crate::backoff::Backoff;
use crate::envelope::MAX_MESSAGE;
use crate::error::ClusterError;
use crate::hash::Hash;
use crate::message::MAX_HELD;
use crate::subject::{BUCKET, CONSUMER, GAMES, STREAM, WorkerName};

/// How to reach a broker.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// One address or several separated by commas: `nats://host:4222`, `tls://host:4222`.
    pub url: String,
    /// A credentials file as written by `nsc`.
    pub credentials: Option<PathBuf>,
    /// A file with the seed of an nkey.
    pub nkey: Option<PathBuf>,
    /// The certificate of the authority that signed the broker's certificate.
    pub authority: Option<PathBuf>,
    /// The client's own certificate and its key.
    pub certificate: Option<(PathBuf, PathBuf)>,
}

impl Access {
    /// Parses the addresses.
    pub fn servers(&self) -> Result<Vec<ServerAddr>, ClusterError> {
        self.url.split(',').map(|address| parse_address(address.trim())).collect()
    }

    /// Checks that the TLS files are readable and not too large: the client library would read a file
    /// without end, such as a device.
    fn check_files(&self) -> Result<(), ClusterError> {
        let certificate = self.certificate.iter().flat_map(|(certificate, key)| [certificate, key]);
        self.authority.iter().chain(certificate).try_for_each(|path| read_text(path).map(drop))
    }
}

/// Of credentials and certificates, in bytes.
const MAX_FILE: u64 = 1 << 20;

fn read_text(path: &Path) -> Result<String, ClusterError> {
    let bytes = bounded_file::read(path, MAX_FILE).map_err(ClusterError::io(path))?;
    String::from_utf8(bytes).map_err(|_| ClusterError::File {
        path: path.to_owned(),
        what: "expected a text file in UTF-8".to_owned(),
    })
}

fn parse_address(text: &str) -> Result<ServerAddr, ClusterError> {
    let wrong = |reason: String| ClusterError::Address { address: text.to_owned(), reason };
    let address: ServerAddr = text.parse().map_err(|error: io::Error| wrong(error.to_string()))?;
    match (address.scheme(), address.host(), address.port()) {
        ("nats" | "tls", "", _) => Err(wrong("it has no host".to_owned())),
        ("nats" | "tls", _, 0) => Err(wrong("port 0 is not valid".to_owned())),
        ("nats" | "tls", ..) => Ok(address),
        (scheme, ..) => Err(wrong(format!("the scheme '{scheme}' is not supported"))),
    }
}

/// Whether a name or a certificate must be changed before a connection is possible.
fn is_unreachable(error: &ConnectError) -> bool {
    match error.kind() {
        ConnectErrorKind::ServerParse | ConnectErrorKind::Dns | ConnectErrorKind::Tls => true,
        // A rejected certificate arrives as invalid data.
        ConnectErrorKind::Io => error
            .source()
            .and_then(|source| source.downcast_ref::<io::Error>())
            .is_some_and(|source| source.kind() == io::ErrorKind::InvalidData),
        _ => false,
    }
}

#[derive(Clone, Copy, Debug)]
pub enum Role<'a> {
    /// The coordinator of a run or match.
    Learner,
    Worker(&'a WorkerName),
    /// Requests status reports.
    Watcher,
}

impl Role<'_> {
    /// The prefix of reply subjects. The example permissions let no other user subscribe to it.
    fn inbox(self) -> String {
        match self {
            Role::Learner => "_INBOX_learner".to_owned(),
            Role::Worker(name) => name.inbox(),
            Role::Watcher => "_INBOX_watcher".to_owned(),
        }
    }

    /// The connection is given up after three pings without an answer. A worker pings rarely, because
    /// a network download may block its line for long; it also notices when games are not confirmed.
    const fn ping(self) -> Duration {
        match self {
            Role::Learner | Role::Watcher => Duration::from_millis(1500),
            Role::Worker(_) => Duration::from_secs(10),
        }
    }
}

impl fmt::Display for Role<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Role::Learner => f.write_str("learner"),
            Role::Worker(name) => write!(f, "worker {name}"),
            Role::Watcher => f.write_str("watcher"),
        }
    }
}

#[derive(Clone)]
pub struct Broker {
    client: Client,
    jetstream: Context,
    has_alternatives: bool,
}

/// How the broker stores games.
#[derive(Clone, Copy, Debug)]
pub struct Storage {
    /// Servers that store a copy.
    pub replicas: usize,
    /// Bytes of games in the stream. When it is full, the broker refuses games and workers retry.
    pub max_bytes: i64,
}

impl Default for Storage {
    fn default() -> Storage {
        Storage { replicas: 1, max_bytes: 1 << 30 }
    }
}

/// Shorter than [`CONNECT_TIMEOUT`], because there are other servers to try.
const ALTERNATIVE_TIMEOUT: Duration = Duration::from_secs(2);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// For each chunk of an object.
const CHUNK_TIMEOUT: Duration = Duration::from_secs(30);
/// How long the broker may take to confirm a message. Afterwards it is sent again, and stored once.
const CONFIRM_TIMEOUT: Duration = Duration::from_secs(3);
/// Messages that are not acknowledged, for example while the learner trains, are delivered again
/// after this time.
const ACK_WAIT: Duration = Duration::from_secs(60);
/// A message that is sent twice within this time is stored once.
const DUPLICATE_WINDOW: Duration = Duration::from_secs(600);
const MAX_UNACKNOWLEDGED: i64 = 4096;

impl Broker {
    /// Makes the first connection. Afterwards the client reconnects without limit.
    pub async fn connect(access: &Access, role: Role<'_>) -> Result<Broker, ClusterError> {
        let servers = access.servers()?;
        access.check_files()?;
        let has_alternatives = servers.len() > 1;
        // When a server comes back, clients should not reconnect at the same moment.
        let jitter = Backoff::new(&role.to_string()).jitter();
        let mut options = ConnectOptions::new()
            .name(format!("selfmate {role}"))
            .custom_inbox_prefix(role.inbox())
            .connection_timeout(if has_alternatives {
                ALTERNATIVE_TIMEOUT
            } else {
                CONNECT_TIMEOUT
            })
            .request_timeout(Some(Duration::from_secs(10)))
            .ping_interval(role.ping())
            .reconnect_delay_callback(move |tries| {
                Duration::from_millis(100 * 2u64.pow(tries.min(6) as u32)).mul_f64(jitter)
            });
        if let Some(path) = &access.credentials {
            let read = options.credentials(&read_text(path)?);
            options = read.map_err(ClusterError::io(path))?;
        }
        if let Some(path) = &access.nkey {
            options = options.nkey(read_text(path)?.trim().to_owned());
        }
        if let Some(path) = &access.authority {
            options = options.add_root_certificates(path.clone()).require_tls(true);
        }
        if let Some((certificate, key)) = &access.certificate {
            options = options.add_client_certificate(certificate.clone(), key.clone());
        }
        let client = options.connect(servers).await.map_err(|error| {
            if is_unreachable(&error) {
                let (url, what) = (access.url.clone(), error.to_string());
                return ClusterError::Unreachable { url, what };
            }
            ClusterError::broker(&format!("connecting to {}", access.url))(error)
        })?;
        let jetstream = jetstream::new(client.clone());
        Ok(Broker { client, jetstream, has_alternatives })
    }

    pub const fn client(&self) -> &Client {
        &self.client
    }

    /// Creates the stream and the object store if they do not exist.
    pub async fn set_up(&self, storage: Storage) -> Result<(), ClusterError> {
        let games = stream::Config {
            name: STREAM.to_owned(),
            subjects: vec![format!("{GAMES}.*")],
            retention: RetentionPolicy::WorkQueue,
            // When the stream is full, new messages are refused; stored ones are never dropped.
            discard: DiscardPolicy::New,
            max_bytes: storage.max_bytes,
            max_message_size: MAX_MESSAGE as i32 + 1024,
            // A single worker cannot fill the stream.
            max_messages_per_subject: 2 * MAX_HELD as i64,
            discard_new_per_subject: true,
            duplicate_window: DUPLICATE_WINDOW,
            num_replicas: storage.replicas,
            ..stream::Config::default()
        };
        let made = self.jetstream.create_or_update_stream(games).await;
        made.map_err(ClusterError::broker(&format!("creating the stream {STREAM}")))?;
        let objects = object_store::Config {
            bucket: BUCKET.to_owned(),
            num_replicas: storage.replicas,
            ..object_store::Config::default()
        };
        // An existing store with other settings is good enough.
        if self.jetstream.create_object_store(objects).await.is_err() {
            self.store().await?;
        }
        Ok(())
    }

    /// The coordinator's consumer of the stream of games.
    pub async fn games(&self) -> Result<PullConsumer, ClusterError> {
        let doing = format!("reading the stream {STREAM}");
        let stream = self.jetstream.get_stream(STREAM).await;
        let stream = stream.map_err(ClusterError::broker(&doing))?;
        let config = pull::Config {
            durable_name: Some(CONSUMER.to_owned()),
            ack_policy: AckPolicy::Explicit,
            ack_wait: ACK_WAIT,
            max_ack_pending: MAX_UNACKNOWLEDGED,
            ..pull::Config::default()
        };
        let consumer = stream.get_or_create_consumer(CONSUMER, config).await;
        consumer.map_err(ClusterError::broker(&doing))
    }

    /// Messages in the stream; `None` if the broker does not answer.
    pub async fn waiting(&self) -> Option<u64> {
        let stream = self.jetstream.get_stream(STREAM).await.ok()?;
        Some(stream.cached_info().state.messages)
    }

    /// Sends a message of games. Returns when the broker has stored it. A message with a known id is not
    /// stored again.
    pub async fn send(
        &self,
        subject: String,
        id: &Hash,
        message: Vec<u8>,
    ) -> Result<(), ClusterError> {
        let mut headers = HeaderMap::new();
        headers.insert(header::NATS_MESSAGE_ID, id.to_string().as_str());
        let doing = "sending games";
        let send = async {
            let sent = self.jetstream.publish_with_headers(subject, headers, message.into()).await;
            let stored = sent.map_err(ClusterError::broker(doing))?.await;
            stored.map(|_| ()).map_err(ClusterError::broker(doing))
        };
        let late = |_| ClusterError::Broker {
            doing: doing.to_owned(),
            what: format!("not confirmed within {} s", CONFIRM_TIMEOUT.as_secs()),
        };
        match tokio::time::timeout(CONFIRM_TIMEOUT, send).await {
            Ok(outcome) => outcome,
            Err(elapsed) => {
                self.try_another_server().await;
                Err(late(elapsed))
            }
        }
    }

    /// Leaves a server that does not answer, if there are others.
    async fn try_another_server(&self) {
        if self.has_alternatives {
            // Fails only when the client is being closed.
            let _ = self.client.force_reconnect().await;
        }
    }

    /// Sends a request; `None` when no one is subscribed.
    pub async fn request(
        &self,
        subject: &str,
        payload: Vec<u8>,
        timeout: Duration,
    ) -> Result<Option<Vec<u8>>, ClusterError> {
        let asked = self.client.request(subject.to_owned(), payload.into());
        match tokio::time::timeout(timeout, asked).await {
            Ok(Ok(answer)) => Ok(Some(answer.payload.to_vec())),
            Ok(Err(error)) if error.kind() == RequestErrorKind::NoResponders => Ok(None),
            Ok(Err(error)) => {
                Err(ClusterError::broker(&format!("sending a request to {subject}"))(error))
            }
            Err(_) => {
                self.try_another_server().await;
                Err(ClusterError::Broker {
                    doing: format!("sending a request to {subject}"),
                    what: format!("no answer within {} s", timeout.as_secs()),
                })
            }
        }
    }

    /// Publishes bytes under their hash, unless the store already has them.
    pub async fn publish(&self, hash: &Hash, mut bytes: &[u8]) -> Result<(), ClusterError> {
        let doing = format!("publishing {}", hash.short());
        let store = self.store().await?;
        let name = hash.to_string();
        // The size is compared as well, because a worker can make the broker overwrite the metadata.
        if let Ok(info) = store.info(&name).await
            && !info.deleted
            && info.size == bytes.len()
        {
            return Ok(());
        }
        let put = store.put(name.as_str(), &mut bytes).await;
        put.map(|_| ()).map_err(ClusterError::broker(&doing))
    }

    /// Fetches the bytes of a hash and verifies them. `what` is "job" or "network", for errors.
    pub async fn fetch(
        &self,
        what: &'static str,
        hash: &Hash,
        most: usize,
    ) -> Result<Vec<u8>, ClusterError> {
        let doing = format!("fetching {what} {}", hash.short());
        let store = self.store().await?;
        let info = store.info(hash.to_string()).await.map_err(ClusterError::broker(&doing))?;
        let size = info.size;
        if size > most {
            let what = format!("{size} bytes: expected at most {most}");
            return Err(ClusterError::Broker { doing, what });
        }
        // Each chunk is requested by itself. The library would create a consumer, which is faster on a
        // slow line, but a worker that may create consumers can have them deliver to any subject.
        let stream = self.jetstream.get_stream_no_info(format!("OBJ_{BUCKET}")).await;
        let stream = stream.map_err(ClusterError::broker(&doing))?;
        let subject = format!("$O.{BUCKET}.C.{}", info.nuid);
        let (mut bytes, mut next) = (Vec::with_capacity(size), 1);
        while bytes.len() < size {
            let chunk = stream.direct_get_next_for_subject(subject.as_str(), Some(next));
            let Ok(chunk) = tokio::time::timeout(CHUNK_TIMEOUT, chunk).await else {
                let what = format!("no data for {} s", CHUNK_TIMEOUT.as_secs());
                return Err(ClusterError::Broker { doing, what });
            };
            let chunk = chunk.map_err(ClusterError::broker(&doing))?;
            next = chunk.sequence + 1;
            bytes.extend_from_slice(&chunk.payload);
        }
        if Hash::of(&bytes) != *hash {
            return Err(ClusterError::Forged { what, hash: hash.to_string() });
        }
        Ok(bytes)
    }

    /// Removes all other objects.
    pub async fn keep_only(&self, hashes: &[Hash]) -> Result<(), ClusterError> {
        let doing = "cleaning the object store";
        let kept: Vec<String> = hashes.iter().map(Hash::to_string).collect();
        let store = self.store().await?;
        let mut objects = store.list().await.map_err(ClusterError::broker(doing))?;
        let mut old = Vec::new();
        while let Some(object) = objects.next().await {
            let object = object.map_err(ClusterError::broker(doing))?;
            if !kept.contains(&object.name) {
                old.push(object.name);
            }
        }
        for name in old {
            store.delete(&name).await.map_err(ClusterError::broker(doing))?;
        }
        Ok(())
    }

    async fn store(&self) -> Result<ObjectStore, ClusterError> {
        let store = self.jetstream.get_object_store(BUCKET).await;
        store.map_err(ClusterError::broker(&format!("opening the object store {BUCKET}")))
    }
}
