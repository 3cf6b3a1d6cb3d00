//! Three servers with three copies of every game, one of which goes away.
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

/// Publishing has to go on within this.
const AGAIN: Duration = Duration::from_secs(10);
/// How long a server is cut off.
const CUT: Duration = Duration::from_secs(30);
/// What has not come by then never comes.
const PATIENCE: Duration = Duration::from_secs(120);

/// Sends one numbered message after another until told to stop, each until it is confirmed.
fn publish(broker: &Broker, confirmed: &Mutex<Vec<Instant>>, stop: &AtomicBool) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        for number in 0u64.. {
            let bytes = number.to_le_bytes();
            // Many workers: one alone may have only so many games in the stream.
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

/// Ends the publishing when it goes out of scope: also when a check fails, which would otherwise wait
/// for ever for whoever publishes.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// Looks until there is something to see.
fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(began.elapsed() < PATIENCE, "{what}: not within {PATIENCE:?}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until a message was confirmed that was not yet; how long it took.
fn wait(confirmed: &Mutex<Vec<Instant>>) -> Duration {
    let (began, before) = (Instant::now(), confirmed.lock().unwrap().len());
    // The one that was under way may have been confirmed before.
    let is_confirmed = || confirmed.lock().unwrap().len() >= before + 2;
    until("a message is confirmed", || is_confirmed().then_some(()));
    began.elapsed()
}

/// Who leads the stream of games, once all three say the same: one that was just started may still
/// tell of a leader that is none any more.
fn lead(servers: &[Server; 3]) -> usize {
    until("all agree on who leads", || {
        let told = servers.each_ref().map(|server| leader(server, STREAM));
        let [first, ..] = told;
        told.iter().all(|one| *one == first).then_some(first)?
    })
}

#[test]
#[ignore = "slow: cargo xtask test-cluster"]
fn three_brokers_lose_their_leader_and_are_cut_in_two_and_keep_what_they_confirmed() {
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
        timeout(PATIENCE, set_up).await.expect("three servers that know each other");
        broker
    });
    let (confirmed, stop) = (Mutex::new(Vec::new()), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| publish(&broker, &confirmed, &stop));
        let end = End(&stop);
        for _ in 0..3 {
            wait(&confirmed);
            let index = lead(&servers);
            servers[index].kill();
            let pause = wait(&confirmed);
            println!("the leader is killed: publishing goes on after {:.1} s", pause.as_secs_f64());
            assert!(pause < AGAIN, "{pause:?}");
            servers[index].start();
            // Until it has all that the others have, one more must not go.
            let is_well = || servers[index].tell("/healthz").contains("\"ok\"");
            until("it has caught up", || is_well().then_some(()));
        }
        let index = lead(&servers);
        servers[index].signal("STOP");
        let began = Instant::now();
        let pause = wait(&confirmed);
        println!("the leader is cut off: publishing goes on after {:.1} s", pause.as_secs_f64());
        assert!(pause < AGAIN, "{pause:?}");
        thread::sleep(CUT.saturating_sub(began.elapsed()));
        servers[index].signal("CONT");
        let pause = wait(&confirmed);
        println!("it is back: publishing goes on after {:.1} s", pause.as_secs_f64());
        drop(end);
    });
    let confirmed = confirmed.into_inner().unwrap().len() as u64;
    println!("{confirmed} messages confirmed");
    let mut kept: BTreeMap<u64, u64> = BTreeMap::new();
    runtime.block_on(async {
        // They may still be agreeing on who leads what.
        let consumer = async {
            loop {
                match broker.games().await {
                    Ok(consumer) => break consumer,
                    Err(_) => tokio::time::sleep(Duration::from_millis(200)).await,
                }
            }
        };
        let consumer = timeout(PATIENCE, consumer).await.expect("a place in the stream");
        let mut messages = consumer.messages().await.unwrap();
        let end = Duration::from_secs(5);
        while let Ok(Some(message)) = timeout(end, messages.next()).await {
            let message = message.unwrap();
            let number = u64::from_le_bytes(message.payload[..].try_into().unwrap());
            *kept.entry(number).or_default() += 1;
            message.ack().await.unwrap();
        }
    });
    // The one that was under way at the end may be there or not.
    assert!((0..confirmed).all(|number| kept.contains_key(&number)), "all of them");
    assert!(kept.keys().all(|&number| number <= confirmed), "and none that was never sent");
    assert!(kept.values().all(|&times| times == 1), "each once");
}
