//! The permissions in `deploy/nats/accounts.conf`, enforced by a real nats-server, are sufficient and
//! give no more than needed.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod server;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use async_nats::{Client, ConnectOptions};
use futures_util::{FutureExt, StreamExt};
use nkeys::KeyPair;
use selfmate_cluster::lease::Terms;
use selfmate_cluster::source::Options;
use selfmate_cluster::worker::{self, work};
use selfmate_cluster::{Access, Cluster, ClusterError, Storage, WorkerName, status};
use selfmate_methods::Settings;
use selfmate_nn::Device;
use selfmate_run::{Budget, Run};
use selfmate_train::{End, Hardware, TrainOptions};
use server::Server;

/// The limit for conditions that are waited for.
const DEADLINE: Duration = Duration::from_secs(60);

/// The users of the config, in its order.
const USERS: [&str; 4] = ["learner", "watcher", "north-1", "north-2"];

/// A server with the example's accounts, but new keys.
fn guarded(folder: &Path) -> Server {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/nats/accounts.conf");
    let mut config = fs::read_to_string(path).unwrap();
    let examples: Vec<String> = config
        .split("nkey: \"")
        .skip(1)
        .map(|rest| rest.split('"').next().unwrap().to_owned())
        .collect();
    assert_eq!(examples.len(), USERS.len());
    for (user, example) in USERS.iter().zip(examples) {
        let pair = KeyPair::new_user();
        config = config.replace(&example, &pair.public_key());
        fs::write(folder.join(user), pair.seed().unwrap()).unwrap();
    }
    fs::write(folder.join("accounts.conf"), config).unwrap();
    Server::with(folder, "include \"accounts.conf\"")
}

fn access(server: &Server, folder: &Path, user: &str) -> Access {
    let nkey: Option<PathBuf> = Some(folder.join(user));
    Access { url: server.url(), nkey, ..Access::default() }
}

/// A coordinator with the learner's permissions.
fn learner(server: &Server, keys: &Path, folder: &Path) -> Cluster {
    Cluster::open(Options {
        access: access(server, keys, "learner"),
        storage: Storage::default(),
        run: "test".to_owned(),
        folder: folder.to_owned(),
        threads: 1,
        audit_share: 0.1,
        terms: Terms::default(),
    })
    .unwrap()
}

#[test]
fn the_permissions_are_sufficient_to_train() {
    let (brokers, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let server = guarded(brokers.path());
    let mut cluster = learner(&server, brokers.path(), folder.path());
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let workers = ["north-1", "north-2"].map(|user| {
            let access = access(&server, brokers.path(), user);
            let name = WorkerName::new(user).unwrap();
            let options = worker::Options { access, name, threads: 1 };
            let stop = &stop;
            scope.spawn(move || work(&options, stop, &|_| {}))
        });
        let settings = Settings::preset("zero", "tiny").unwrap();
        let budget = Budget { games: Some(32), ..Budget::default() };
        let train_stop = Arc::new(AtomicBool::new(false));
        let options = TrainOptions {
            seed: 1,
            budget,
            hardware: Hardware { threads: 1, device: Device::Cpu },
            stop: &train_stop,
        };
        let mut run = Run::open(folder.path()).unwrap();
        let end = settings.train(&mut run, &options, &mut cluster, &mut ()).unwrap();
        assert_eq!(end, End::Finished);
        let report = status(&access(&server, brokers.path(), "watcher")).unwrap();
        assert_eq!((report.games, report.workers.len()), (32, 2));
        stop.store(true, Relaxed);
        let sent: u64 = workers.into_iter().map(|worker| worker.join().unwrap().unwrap()).sum();
        assert!(sent >= 32, "{sent}");
    });
    // A connection without a key is refused.
    let stranger = status(&Access { url: server.url(), ..Access::default() });
    assert!(matches!(stranger, Err(ClusterError::Broker { .. })), "{stranger:?}");
}

async fn client(server: &Server, folder: &Path, user: &str) -> Client {
    let seed = fs::read_to_string(folder.join(user)).unwrap();
    let options = ConnectOptions::new().nkey(seed);
    let options = options.custom_inbox_prefix(format!("_INBOX_{user}"));
    options.connect(server.url()).await.unwrap()
}

/// Returns when the server has handled all earlier messages of this connection: it keeps their order.
async fn settle(client: &Client) {
    client.request("$JS.API.STREAM.INFO.OBJ_selfmate", "".into()).await.unwrap();
}

#[test]
fn a_worker_can_neither_publish_nor_subscribe_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let server = guarded(folder.path());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let learner = client(&server, folder.path(), "learner").await;
        let north = client(&server, folder.path(), "north-1").await;
        // Messages on subjects other than its own are dropped. Messages of one connection keep their
        // order, so the forbidden ones would arrive before the allowed one, which is sent last.
        let mut heard = learner.subscribe(">").await.unwrap();
        settle(&learner).await;
        for subject in [
            "selfmate.games.north-2",
            "selfmate.heartbeat.north-2",
            "selfmate.ask.north-2",
            "selfmate.news",
            "$O.selfmate.M.network",
            "$O.selfmate.C.chunk",
            "$JS.API.STREAM.PURGE.SELFMATE_GAMES",
            "$JS.API.STREAM.MSG.GET.SELFMATE_GAMES",
            "$JS.API.CONSUMER.CREATE.SELFMATE_GAMES.mine",
            "$JS.API.CONSUMER.CREATE.OBJ_selfmate.mine",
            "$JS.API.CONSUMER.DURABLE.CREATE.OBJ_selfmate.mine",
            "selfmate.here",
            "selfmate.heartbeat.north-1",
        ] {
            north.publish(subject, "forged".into()).await.unwrap();
        }
        settle(&north).await;
        let mut first = heard.next().await.unwrap();
        while first.payload != "forged" {
            // Messages between servers.
            first = heard.next().await.unwrap();
        }
        assert_eq!(first.subject.as_str(), "selfmate.heartbeat.north-1");
        // Nor does it receive messages for others.
        let mut news = north.subscribe("selfmate.news").await.unwrap();
        let mut forbidden = Vec::new();
        for subject in ["selfmate.games.*", "selfmate.ask.north-2", "_INBOX_north-2.>", ">"] {
            forbidden.push(north.subscribe(subject).await.unwrap());
        }
        settle(&north).await;
        for subject in
            ["selfmate.games.north-2", "selfmate.ask.north-2", "_INBOX_north-2.x", "selfmate.news"]
        {
            learner.publish(subject, "secret".into()).await.unwrap();
        }
        assert_eq!(news.next().await.unwrap().payload, "secret");
        for subscription in &mut forbidden {
            let message = subscription.next().now_or_never().flatten();
            assert!(message.is_none(), "{message:?}");
        }
    });
}

/// Stops the learner or the worker when an assertion fails; otherwise the scope would wait for them
/// for ever.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// Sends an invalid game on the worker's own subject; the broker's confirmation goes to `reply`.
async fn send_with_reply_to(client: &Client, user: &str, reply: &str) {
    let subject = format!("selfmate.games.{user}");
    client.publish_with_reply(subject, reply.to_owned(), "rubbish".into()).await.unwrap();
}

/// A consumer can deliver to any subject, so workers may not create one.
#[test]
fn a_worker_cannot_create_consumers() {
    let folder = tempfile::tempdir().unwrap();
    let server = guarded(folder.path());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let learner = client(&server, folder.path(), "learner").await;
        let jetstream = async_nats::jetstream::new(learner);
        let config = async_nats::jetstream::object_store::Config {
            bucket: "selfmate".to_owned(),
            ..Default::default()
        };
        let store = jetstream.create_object_store(config).await.unwrap();
        store.put("network", &mut &b"some weights"[..]).await.unwrap();
        let north = client(&server, folder.path(), "north-1").await;
        let config = r#"{"stream_name":"OBJ_selfmate","config":{"deliver_subject":"selfmate.games.north-2","ack_policy":"none"}}"#;
        for subject in [
            "$JS.API.CONSUMER.CREATE.OBJ_selfmate",
            "$JS.API.CONSUMER.CREATE.OBJ_selfmate.mine",
            "$JS.API.CONSUMER.DURABLE.CREATE.OBJ_selfmate.mine",
        ] {
            north.publish(subject, config.into()).await.unwrap();
        }
        settle(&north).await;
        let mut stream = jetstream.get_stream("OBJ_selfmate").await.unwrap();
        assert_eq!(stream.info().await.unwrap().state.consumer_count, 0);
    });
}

/// A worker chooses the reply subject of its messages, so it can make the broker publish on subjects
/// that the worker has no permission for. The worker does not control the content, and no receiver
/// trusts it.
#[test]
fn a_worker_that_redirects_the_brokers_replies_does_not_stop_the_run() {
    let (brokers, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let server = guarded(brokers.path());
    let mut cluster = learner(&server, brokers.path(), folder.path());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (stop, train_stop) = (AtomicBool::new(false), Arc::new(AtomicBool::new(false)));
    thread::scope(|scope| {
        let _guards = [StopOnDrop(&stop), StopOnDrop(&train_stop)];
        let learner = scope.spawn(|| {
            let settings = Settings::preset("zero", "tiny").unwrap();
            let budget = Budget { games: Some(32), ..Budget::default() };
            let hardware = Hardware { threads: 1, device: Device::Cpu };
            let options = TrainOptions { seed: 1, budget, hardware, stop: &train_stop };
            let mut run = Run::open(folder.path()).unwrap();
            settings.train(&mut run, &options, &mut cluster, &mut ()).unwrap()
        });
        runtime.block_on(async {
            // Once the first network is published, its metadata is overwritten by a reply of the broker.
            let watcher = client(&server, brokers.path(), "learner").await;
            let stream = async_nats::jetstream::new(watcher).get_stream("OBJ_selfmate").await;
            let stream = stream.unwrap();
            let began = Instant::now();
            let published = loop {
                assert!(began.elapsed() < DEADLINE, "no network is published");
                match stream.direct_get_next_for_subject("$O.selfmate.M.>", None).await {
                    Ok(message) => break message,
                    Err(_) => tokio::task::yield_now().await,
                }
            };
            let north = client(&server, brokers.path(), "north-1").await;
            for reply in [
                published.subject.as_str(),
                "selfmate.news",
                "selfmate.games.north-2",
                "selfmate.here",
                "$JS.ACK.SELFMATE_GAMES.learner.1.1.1.1.1",
            ] {
                send_with_reply_to(&north, "north-1", reply).await;
            }
            // The broker replies in its own time. Its reply replaces the metadata of the network.
            let began = Instant::now();
            loop {
                let last = stream.direct_get_last_for_subject(published.subject.as_str()).await;
                if last.is_ok_and(|last| last.sequence != published.sequence) {
                    break;
                }
                assert!(began.elapsed() < DEADLINE, "the metadata is not replaced");
                tokio::task::yield_now().await;
            }
        });
        let name = WorkerName::new("north-2").unwrap();
        let access = access(&server, brokers.path(), "north-2");
        let options = worker::Options { access, name, threads: 1 };
        let stop = &stop;
        let worker = scope.spawn(move || work(&options, stop, &|_| {}));
        assert_eq!(learner.join().unwrap(), End::Finished);
        stop.store(true, Relaxed);
        assert!(worker.join().unwrap().unwrap() >= 32);
    });
}
