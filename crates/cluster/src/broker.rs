//! The NATS server: how to reach it, and what is kept there.
//!
//! Games wait in a stream until the learner has them on its own disk. Orders and networks are in an
//! object store under the hash of their content. Nothing that exists only here is ever needed: the
//! learner publishes again what is missing.

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
    /// Its address, or several with commas: `nats://responder:4222`, `tls://responder:4222`.
    pub url: String,
    /// A credentials file, as `nsc` makes them.
    pub credentials: Option<PathBuf>,
    /// A file with the seed of an nkey.
    pub nkey: Option<PathBuf>,
    /// The certificate of whoever signed the broker's.
    pub authority: Option<PathBuf>,
    /// A certificate and its key to show to the broker.
    pub certificate: Option<(PathBuf, PathBuf)>,
}

impl Access {
    /// The addresses, each of which some broker could have.
    pub fn servers(&self) -> Result<Vec<ServerAddr>, ClusterError> {
        self.url.split(',').map(|address| parse_address(address.trim())).collect()
    }

    /// Refuses files that cannot be read or have no end: the client would read those of TLS whole.
    fn check_files(&self) -> Result<(), ClusterError> {
        let certificate = self.certificate.iter().flat_map(|(certificate, key)| [certificate, key]);
        self.authority.iter().chain(certificate).try_for_each(|path| read_text(path).map(drop))
    }
}

/// No credentials or certificates are larger.
const MAX_FILE: u64 = 1 << 20;

fn read_text(path: &Path) -> Result<String, ClusterError> {
    let bytes = bounded_file::read(path, MAX_FILE).map_err(ClusterError::io(path))?;
    String::from_utf8(bytes)
        .map_err(|_| ClusterError::File { path: path.to_owned(), what: "not a text".to_owned() })
}

fn parse_address(text: &str) -> Result<ServerAddr, ClusterError> {
    let wrong = |reason: String| ClusterError::Address { address: text.to_owned(), reason };
    let address: ServerAddr = text.parse().map_err(|error: io::Error| wrong(error.to_string()))?;
    match (address.scheme(), address.host(), address.port()) {
        ("nats" | "tls", "", _) => Err(wrong("it names no responder".to_owned())),
        ("nats" | "tls", _, 0) => Err(wrong("there is no port 0".to_owned())),
        ("nats" | "tls", ..) => Ok(address),
        (scheme, ..) => Err(wrong(format!("'{scheme}' is not spoken here"))),
    }
}

/// True where somebody has to change a name or a certificate before a connection can be made.
fn is_unreachable(error: &ConnectError) -> bool {
    match error.kind() {
        ConnectErrorKind::ServerParse | ConnectErrorKind::Dns | ConnectErrorKind::Tls => true,
        // What TLS does not accept comes as data that is none.
        ConnectErrorKind::Io => error
            .source()
            .and_then(|source| source.downcast_ref::<io::Error>())
            .is_some_and(|source| source.kind() == io::ErrorKind::InvalidData),
        _ => false,
    }
}

/// Who connects.
#[derive(Clone, Copy, Debug)]
pub enum Role<'a> {
    /// Whoever trains, or has a match played.
    Learner,
    /// Whoever plays.
    Worker(&'a WorkerName),
    /// Whoever asks how it goes.
    Watcher,
}

impl Role<'_> {
    /// Where its answers go. Brokers that know their users let nobody else listen there.
    fn inbox(self) -> String {
        match self {
            Role::Learner => "_INBOX_learner".to_owned(),
            Role::Worker(name) => name.inbox(),
            Role::Watcher => "_INBOX_watcher".to_owned(),
        }
    }

    /// How often its connection is tried; three times without an answer, and another server is
    /// looked for. A worker's line may be busy with a network for long; but it finds out when its
    /// games are not confirmed.
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

/// A connection to a broker.
#[derive(Clone)]
pub struct Broker {
    client: Client,
    jetstream: Context,
    /// There are servers to choose from.
    has_choice: bool,
}

/// How the learner wants games to be kept.
#[derive(Clone, Copy, Debug)]
pub struct Storage {
    /// Servers that have a copy.
    pub replicas: usize,
    /// Bytes of games that wait for the learner; more are refused, and workers wait.
    pub max_bytes: i64,
}

impl Default for Storage {
    fn default() -> Storage {
        Storage { replicas: 1, max_bytes: 1 << 30 }
    }
}

/// How long a connection may take; when there are others to try, and when there are not.
const CHOICE: Duration = Duration::from_secs(2);
const CONNECT: Duration = Duration::from_secs(5);
/// How long a broker may be silent while it sends an object.
const SILENCE: Duration = Duration::from_secs(30);
/// How long a broker may take to confirm a game. It is sent again then, and kept once.
const CONFIRM: Duration = Duration::from_secs(3);
/// Games that come while the learner learns are given to it again after so long.
const ACK_WAIT: Duration = Duration::from_secs(60);
/// A message that is sent twice within this is kept once.
const DUPLICATES: Duration = Duration::from_secs(600);
/// Games on their way to the learner.
const MAX_UNACKNOWLEDGED: i64 = 4096;

impl Broker {
    /// Connects once; afterwards a lost connection is made again for ever.
    pub async fn connect(access: &Access, role: Role<'_>) -> Result<Broker, ClusterError> {
        let servers = access.servers()?;
        access.check_files()?;
        let has_choice = servers.len() > 1;
        // Not all at once, when a server comes back.
        let jitter = Backoff::new(&role.to_string()).jitter();
        let mut options = ConnectOptions::new()
            .name(format!("selfmate {role}"))
            .custom_inbox_prefix(role.inbox())
            .connection_timeout(if has_choice { CHOICE } else { CONNECT })
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
        Ok(Broker { client, jetstream, has_choice })
    }

    /// The connection.
    pub const fn client(&self) -> &Client {
        &self.client
    }

    /// Makes the stream and the object store, where they are not there.
    pub async fn set_up(&self, storage: Storage) -> Result<(), ClusterError> {
        let games = stream::Config {
            name: STREAM.to_owned(),
            subjects: vec![format!("{GAMES}.*")],
            retention: RetentionPolicy::WorkQueue,
            // When it is full, workers are told so and wait: nothing that was kept is dropped.
            discard: DiscardPolicy::New,
            max_bytes: storage.max_bytes,
            max_message_size: MAX_MESSAGE as i32 + 1024,
            // Nobody can fill it detached.
            max_messages_per_subject: 2 * MAX_HELD as i64,
            discard_new_per_subject: true,
            duplicate_window: DUPLICATES,
            num_replicas: storage.replicas,
            ..stream::Config::default()
        };
        let made = self.jetstream.create_or_update_stream(games).await;
        made.map_err(ClusterError::broker(&format!("making the stream {STREAM}")))?;
        let objects = object_store::Config {
            bucket: BUCKET.to_owned(),
            num_replicas: storage.replicas,
            ..object_store::Config::default()
        };
        // One that is there with other settings will do.
        if self.jetstream.create_object_store(objects).await.is_err() {
            self.store().await?;
        }
        Ok(())
    }

    /// The learner's place in the stream of games.
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

    /// Games that wait in the stream.
    pub async fn waiting(&self) -> Option<u64> {
        let stream = self.jetstream.get_stream(STREAM).await.ok()?;
        Some(stream.cached_info().state.messages)
    }

    /// Sends a game; returns when the broker has it. A message id that comes again is kept once.
    pub async fn send(
        &self,
        subject: String,
        id: &Hash,
        game: Vec<u8>,
    ) -> Result<(), ClusterError> {
        let mut headers = HeaderMap::new();
        headers.insert(header::NATS_MESSAGE_ID, id.to_string().as_str());
        let doing = "sending a game";
        let send = async {
            let sent = self.jetstream.publish_with_headers(subject, headers, game.into()).await;
            let kept = sent.map_err(ClusterError::broker(doing))?.await;
            kept.map(|_| ()).map_err(ClusterError::broker(doing))
        };
        let late = |_| ClusterError::Broker {
            doing: doing.to_owned(),
            what: format!("not confirmed within {} s", CONFIRM.as_secs()),
        };
        match tokio::time::timeout(CONFIRM, send).await {
            Ok(outcome) => outcome,
            Err(elapsed) => {
                self.look_elsewhere().await;
                Err(late(elapsed))
            }
        }
    }

    /// Leaves a server that does not answer, when there are others.
    async fn look_elsewhere(&self) {
        if self.has_choice {
            // It fails only when the connection is being given up anyway.
            let _ = self.client.force_reconnect().await;
        }
    }

    /// Asks somebody; `None` when nobody listens.
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
            Ok(Err(error)) => Err(ClusterError::broker(&format!("asking {subject}"))(error)),
            Err(_) => {
                self.look_elsewhere().await;
                Err(ClusterError::Broker {
                    doing: format!("asking {subject}"),
                    what: format!("no answer within {} s", timeout.as_secs()),
                })
            }
        }
    }

    /// Publishes bytes under their hash, unless they are there.
    pub async fn publish(&self, hash: &Hash, mut bytes: &[u8]) -> Result<(), ClusterError> {
        let doing = format!("publishing {}", hash.short());
        let store = self.store().await?;
        let name = hash.to_string();
        // What is said of it may also be nonsense that somebody had sent there.
        if let Ok(info) = store.info(&name).await
            && !info.deleted
            && info.size == bytes.len()
        {
            return Ok(());
        }
        let put = store.put(name.as_str(), &mut bytes).await;
        put.map(|_| ()).map_err(ClusterError::broker(&doing))
    }

    /// The bytes of a hash, checked.
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
        // One piece after the other, each asked for by itself: a consumer, as the library makes one,
        // would be quicker over a slow line, but who may make one can have it deliver anywhere.
        let stream = self.jetstream.get_stream_no_info(format!("OBJ_{BUCKET}")).await;
        let stream = stream.map_err(ClusterError::broker(&doing))?;
        let subject = format!("$O.{BUCKET}.C.{}", info.nuid);
        let (mut bytes, mut from) = (Vec::with_capacity(size), 1);
        while bytes.len() < size {
            let piece = stream.direct_get_next_for_subject(subject.as_str(), Some(from));
            let Ok(piece) = tokio::time::timeout(SILENCE, piece).await else {
                let what = format!("nothing for {} s", SILENCE.as_secs());
                return Err(ClusterError::Broker { doing, what });
            };
            let piece = piece.map_err(ClusterError::broker(&doing))?;
            from = piece.sequence + 1;
            bytes.extend_from_slice(&piece.payload);
        }
        if Hash::of(&bytes) != *hash {
            return Err(ClusterError::Forged { what, name: hash.to_string() });
        }
        Ok(bytes)
    }

    /// Removes all objects but these.
    pub async fn keep_only(&self, hashes: &[Hash]) -> Result<(), ClusterError> {
        let doing = "tidying the object store";
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
