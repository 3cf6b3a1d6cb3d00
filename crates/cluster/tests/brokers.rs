//! A cluster of three brokers keeps every confirmed message while one of them is lost.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod server;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use selfmate_cluster::broker::{Broker, Role};
use selfmate_cluster::hash::Hash;
use selfmate_cluster::subject::{GAMES, STREAM};
use selfmate_cluster::{Access, Storage, WorkerName};
use server::{Server, leader, three};
use tokio::time::timeout;

/// Publishing must resume within this time.
const RESUME_LIMIT: Duration = Duration::from_secs(10);
/// How long a server is stopped.
const STOP_TIME: Duration = Duration::from_secs(30);
/// The limit for every condition that is waited for.
const DEADLINE: Duration = Duration::from_secs(120);

/// Sends numbered messages until stopped, and repeats each until it is confirmed.
fn publish(broker: &Broker, confirmed: &Mutex<Vec<Instant>>, stop: &AtomicBool) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        for number in 0u64.. {
            let bytes = number.to_le_bytes();
            // As many workers, because the stream limits the messages of each.
            let (subject, id) = (format!("{GAMES}.{}", number % 100), Hash::of(&bytes));
            while broker.send(subject.clone(), &id, bytes.to_vec()).await.is_err() {
                if stop.load(Relaxed) {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            confirmed.lock().unwrap().push(Instant::now());
            if stop.load(Relaxed) {
                return;
            }
        }
    });
}

/// Stops the publishing thread when it goes out of scope, also when an assertion fails: otherwise the
/// scope would wait for that thread for ever.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// Polls until there is a result.
fn wait_until<T>(what: &str, mut poll: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(result) = poll() {
            return result;
        }
        assert!(began.elapsed() < DEADLINE, "{what}: not within {DEADLINE:?}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until a further message is confirmed. Returns how long it took.
fn wait_for_confirmation(confirmed: &Mutex<Vec<Instant>>) -> Duration {
    let (began, before) = (Instant::now(), confirmed.lock().unwrap().len());
    // Two, because the first may have been under way before.
    let is_confirmed = || confirmed.lock().unwrap().len() >= before + 2;
    wait_until("a message is confirmed", || is_confirmed().then_some(()));
    began.elapsed()
}

/// The leader of the stream of games, once all three agree: a server that has just started may still
/// report an old one.
fn stream_leader(servers: &[Server; 3]) -> usize {
    wait_until("all agree on the leader", || {
        let leaders = servers.each_ref().map(|server| leader(server, STREAM));
        let [first, ..] = leaders;
        leaders.iter().all(|one| *one == first).then_some(first)?
    })
}

#[test]
#[ignore = "slow: cargo xtask test-cluster"]
fn three_brokers_keep_confirmed_messages_when_their_leader_is_killed_or_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let mut servers = three(folder.path());
    let urls: Vec<String> = servers.iter().map(Server::url).collect();
    let access = Access { url: urls.join(","), ..Access::default() };
    let name = WorkerName::new("a").unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let broker = runtime.block_on(async {
        let broker = Broker::connect(&access, Role::Worker(&name)).await.unwrap();
        let storage = Storage { replicas: 3, ..Storage::default() };
        let set_up = async {
            while broker.set_up(storage).await.is_err() {
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        };
        timeout(DEADLINE, set_up).await.expect("three servers form a cluster");
        broker
    });
    let (confirmed, stop) = (Mutex::new(Vec::new()), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| publish(&broker, &confirmed, &stop));
        let publishing = StopOnDrop(&stop);
        for _ in 0..3 {
            wait_for_confirmation(&confirmed);
            let index = stream_leader(&servers);
            servers[index].kill();
            let pause = wait_for_confirmation(&confirmed);
            println!("the leader is killed: publishing resumes after {:.1} s", pause.as_secs_f64());
            assert!(pause < RESUME_LIMIT, "{pause:?}");
            servers[index].start();
            // Before it has caught up, no other server may be lost.
            let is_healthy = || servers[index].query_monitor("/healthz").contains("\"ok\"");
            wait_until("the server has caught up", || is_healthy().then_some(()));
        }
        let index = stream_leader(&servers);
        servers[index].signal("STOP");
        let began = Instant::now();
        let pause = wait_for_confirmation(&confirmed);
        println!("the leader is stopped: publishing resumes after {:.1} s", pause.as_secs_f64());
        assert!(pause < RESUME_LIMIT, "{pause:?}");
        thread::sleep(STOP_TIME.saturating_sub(began.elapsed()));
        servers[index].signal("CONT");
        let pause = wait_for_confirmation(&confirmed);
        println!("the leader continues: publishing resumes after {:.1} s", pause.as_secs_f64());
        drop(publishing);
    });
    let confirmed = confirmed.into_inner().unwrap().len() as u64;
    println!("{confirmed} messages confirmed");
    let mut stored: BTreeMap<u64, u64> = BTreeMap::new();
    runtime.block_on(async {
        // The servers may still be electing leaders.
        let consumer = async {
            loop {
                match broker.games().await {
                    Ok(consumer) => break consumer,
                    Err(_) => tokio::time::sleep(Duration::from_millis(200)).await,
                }
            }
        };
        let consumer = timeout(DEADLINE, consumer).await.expect("a consumer of the stream");
        let mut messages = consumer.messages().await.unwrap();
        let end = Duration::from_secs(5);
        while let Ok(Some(message)) = timeout(end, messages.next()).await {
            let message = message.unwrap();
            let number = u64::from_le_bytes(message.payload[..].try_into().unwrap());
            *stored.entry(number).or_default() += 1;
            message.ack().await.unwrap();
        }
    });
    // The last message may have been stored without a confirmation.
    assert!(
        (0..confirmed).all(|number| stored.contains_key(&number)),
        "every confirmed message is stored"
    );
    assert!(stored.keys().all(|&number| number <= confirmed), "no other message is stored");
    assert!(stored.values().all(|&times| times == 1), "every message is stored once");
}
