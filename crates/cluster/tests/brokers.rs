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

/// Publishing has to go on within this.
const AGAIN: Duration = Duration::from_secs(10);
/// How long a server is cut off.
const CUT: Duration = Duration::from_secs(30);

/// Sends one numbered message after another until told to stop, each until it is confirmed.
fn publish(broker: &Broker, confirmed: &Mutex<Vec<Instant>>, stop: &AtomicBool) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        for number in 0u64.. {
            let bytes = number.to_le_bytes();
            // Many workers: one alone may have only so many games in the stream.
            let (subject, id) = (format!("{GAMES}.{}", number % 100), Hash::of(&bytes));
            while broker.send(subject.clone(), &id, bytes.to_vec()).await.is_err() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            confirmed.lock().unwrap().push(Instant::now());
            if stop.load(Relaxed) {
                return;
            }
        }
    });
}

/// Waits until a message was confirmed that was not yet; how long it took.
fn wait(confirmed: &Mutex<Vec<Instant>>) -> Duration {
    let (began, before) = (Instant::now(), confirmed.lock().unwrap().len());
    // The one that was under way may have been confirmed before.
    while confirmed.lock().unwrap().len() < before + 2 {
        thread::sleep(Duration::from_millis(5));
    }
    began.elapsed()
}

/// Who leads the stream of games, once all three say the same: one that was just started may still
/// tell of a leader that is none any more.
fn lead(servers: &[Server; 3]) -> usize {
    loop {
        match servers.each_ref().map(|server| leader(server, STREAM)) {
            [Some(one), Some(two), Some(three)] if one == two && two == three => return one,
            _ => thread::sleep(Duration::from_millis(50)),
        }
    }
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
        while broker.set_up(storage).await.is_err() {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        broker
    });
    let (confirmed, stop) = (Mutex::new(Vec::new()), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| publish(&broker, &confirmed, &stop));
        for _ in 0..3 {
            wait(&confirmed);
            let index = lead(&servers);
            servers[index].kill();
            let pause = wait(&confirmed);
            println!("the leader is killed: publishing goes on after {:.1} s", pause.as_secs_f64());
            assert!(pause < AGAIN, "{pause:?}");
            servers[index].start();
            // Until it has all that the others have, one more must not go.
            while !servers[index].tell("/healthz").contains("\"ok\"") {
                thread::sleep(Duration::from_millis(50));
            }
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
        stop.store(true, Relaxed);
    });
    let confirmed = confirmed.into_inner().unwrap().len() as u64;
    println!("{confirmed} messages confirmed");
    let mut kept: BTreeMap<u64, u64> = BTreeMap::new();
    runtime.block_on(async {
        // They may still be agreeing on who leads what.
        let consumer = loop {
            match broker.games().await {
                Ok(consumer) => break consumer,
                Err(_) => tokio::time::sleep(Duration::from_millis(200)).await,
            }
        };
        let mut messages = consumer.messages().await.unwrap();
        let end = Duration::from_secs(5);
        while let Ok(Some(message)) = tokio::time::timeout(end, messages.next()).await {
            let message = message.unwrap();
            let number = u64::from_le_bytes(message.payload[..].try_into().unwrap());
            *kept.entry(number).or_default() += 1;
            message.ack().await.unwrap();
        }
    });
    assert!(kept.keys().copied().eq(0..confirmed), "all of them");
    assert!(kept.values().all(|&times| times == 1), "each once");
}
