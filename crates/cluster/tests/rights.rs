//! The rights in `deploy/nats/accounts.conf`, held by a real nats-server: enough to work with, and
//! not more.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod server;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

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

/// The users of the config, in its order.
const USERS: [&str; 4] = ["learner", "watcher", "north-1", "north-2"];

/// A server with the example's accounts and keys of our own.
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

/// The learner of a run, with its rights.
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
fn the_rights_are_enough_to_train() {
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
        let go_on = Arc::new(AtomicBool::new(false));
        let options = TrainOptions {
            seed: 1,
            budget,
            hardware: Hardware { threads: 1, device: Device::Cpu },
            stop: &go_on,
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
    // Nobody gets in without a key.
    let stranger = status(&Access { url: server.url(), ..Access::default() });
    assert!(matches!(stranger, Err(ClusterError::Broker { .. })), "{stranger:?}");
}

async fn client(server: &Server, folder: &Path, user: &str) -> Client {
    let seed = fs::read_to_string(folder.join(user)).unwrap();
    let options = ConnectOptions::new().nkey(seed);
    let options = options.custom_inbox_prefix(format!("_INBOX_{user}"));
    options.connect(server.url()).await.unwrap()
}

/// Returns when the server has done all that it was asked for before: it answers in turn.
async fn settle(client: &Client) {
    client.request("$JS.API.STREAM.INFO.OBJ_selfmate", "".into()).await.unwrap();
}

#[test]
fn the_rights_are_not_enough_for_anything_else() {
    let folder = tempfile::tempdir().unwrap();
    let server = guarded(folder.path());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let learner = client(&server, folder.path(), "learner").await;
        let north = client(&server, folder.path(), "north-1").await;
        // What it says remote than on its own subjects reaches nobody. Messages of one connection
        // keep their order: once the allowed one is there, the others would have been.
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
            // What servers tell each other.
            first = heard.next().await.unwrap();
        }
        assert_eq!(first.subject.as_str(), "selfmate.heartbeat.north-1");
        // And it hears nothing that is not meant for it.
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

/// A game that nobody asked for, on a worker's own subject; the broker's answer goes to `reply`.
async fn send_with_answer_to(client: &Client, user: &str, reply: &str) {
    let subject = format!("selfmate.games.{user}");
    client.publish_with_reply(subject, reply.to_owned(), "rubbish".into()).await.unwrap();
}

/// Nobody may make a consumer: it would deliver wherever its maker likes.
#[test]
fn a_worker_cannot_have_networks_delivered_elsewhere() {
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

/// A worker chooses where answers to it go, so the broker can be made to speak where the worker may
/// not. It is never in the worker's words, and nothing that comes of it is believed.
#[test]
fn a_worker_that_has_its_answers_sent_elsewhere_stops_nobody() {
    let (brokers, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let server = guarded(brokers.path());
    let mut cluster = learner(&server, brokers.path(), folder.path());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (stop, go_on) = (AtomicBool::new(false), Arc::new(AtomicBool::new(false)));
    thread::scope(|scope| {
        let learner = scope.spawn(|| {
            let settings = Settings::preset("zero", "tiny").unwrap();
            let budget = Budget { games: Some(32), ..Budget::default() };
            let hardware = Hardware { threads: 1, device: Device::Cpu };
            let options = TrainOptions { seed: 1, budget, hardware, stop: &go_on };
            let mut run = Run::open(folder.path()).unwrap();
            settings.train(&mut run, &options, &mut cluster, &mut ()).unwrap()
        });
        runtime.block_on(async {
            // When the first network is there, what is said of it becomes an answer of the broker.
            let watcher = client(&server, brokers.path(), "learner").await;
            let stream = async_nats::jetstream::new(watcher).get_stream("OBJ_selfmate").await;
            let stream = stream.unwrap();
            let published = loop {
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
                send_with_answer_to(&north, "north-1", reply).await;
            }
            // Until it has happened, which the broker does in its own time.
            for _ in 0..200 {
                let last = stream.direct_get_last_for_subject(published.subject.as_str()).await;
                if last.is_ok_and(|last| last.sequence != published.sequence) {
                    break;
                }
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
