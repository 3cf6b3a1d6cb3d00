//! The games of an ending on workers, over a real nats-server.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod server;
mod tiny;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;

use selfmate_cluster::WorkerName;
use selfmate_cluster::broker::{Broker, Role};
use selfmate_cluster::ending::EndingOrder;
use selfmate_cluster::envelope::Envelope;
use selfmate_cluster::hash::Hash;
use selfmate_cluster::order::MAX_JOB;
use selfmate_cluster::subject::GAMES;
use selfmate_learn::endgame::{Lab, Log, SelfPlayer, games_seed};
use selfmate_nn::mlp;
use selfmate_selfplay::Threads;
use server::Server;
use tiny::{Notes, access, ask, beside_workers, cluster, message, train_as};

/// Ten rounds.
const ALL: u64 = 40;

fn expected(ending: &str) -> BTreeMap<String, Hash> {
    let folder = tempfile::tempdir().unwrap();
    train_as(ending, ALL, folder.path(), &mut Threads(2), &mut ())
}

#[test]
fn an_ending_learned_on_many_machines_is_the_one_learned_on_one() {
    let brokers = tempfile::tempdir().unwrap();
    let server = Server::alone(brokers.path());
    for ending in ["krk", "kpk"] {
        let folder = tempfile::tempdir().unwrap();
        let mut notes = Notes::default();
        let mut cluster = cluster(&server, folder.path(), 0.2);
        let (files, sent) = beside_workers(&server, &["a", "b", "c"], || {
            train_as(ending, ALL, folder.path(), &mut cluster, &mut notes)
        });
        assert_eq!(files, expected(ending));
        assert_eq!(files.len(), 3, "network, trainer and replay");
        assert!(notes.0.is_empty(), "{:?}", notes.0);
        let sent: u64 = sent.into_iter().map(|sent| sent.unwrap()).sum();
        assert!(sent >= ALL, "{sent}");
    }
}

/// Plays games, the first few as they are and then something else, until it is refused; why.
async fn cheat(server: &Server, name: &str, honest: u64, forge: fn(&mut Log)) -> String {
    let name = WorkerName::new(name).unwrap();
    let broker = Broker::connect(&access(server), Role::Worker(&name)).await.unwrap();
    let mut sent = 0;
    loop {
        let (order, grant) = match ask(&broker, &name).await {
            Ok(asked) => asked,
            Err(reason) => return reason,
        };
        let bytes = broker.fetch("order", &order, MAX_JOB).await.unwrap();
        let asked = EndingOrder::parse(&bytes).unwrap();
        let network = broker.fetch("network", &asked.network, 1 << 24).await.unwrap();
        let (network, _) = mlp::Network::decode(&network).unwrap();
        let lab = Lab::new(asked.endgame.ending).unwrap();
        let mut player = SelfPlayer::new(&asked.endgame, &lab, &Arc::new(network));
        let mut log = player.play(games_seed(asked.seed), grant.number);
        if sent >= honest {
            forge(&mut log);
        }
        // The number on the envelope is the one that was asked for, whatever is in it.
        let bytes = log.encode();
        let envelope = Envelope::of_bytes(order, grant.token, grant.number, 0, &bytes);
        broker.send(name.subject(GAMES), &grant.token, message(&envelope)).await.unwrap();
        sent += 1;
    }
}

/// Another opinion of a position, which nothing forbids.
fn other_value(log: &mut Log) {
    let ply = log.plies.iter_mut().find(|ply| !ply.is_proven).unwrap();
    ply.value = if ply.value > 0.0 { -0.3 } else { 0.3 };
}

#[test]
fn who_fakes_games_of_an_ending_is_refused_and_changes_nothing() {
    let (brokers, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let server = Server::alone(brokers.path());
    let mut cluster = cluster(&server, folder.path(), 0.0);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut notes = Notes::default();
    let files = thread::scope(|scope| {
        let learner = scope.spawn(|| train_as("krk", ALL, folder.path(), &mut cluster, &mut notes));
        type Attack = (&'static str, fn(&mut Log), &'static str);
        let attacks: [Attack; 4] = [
            ("number", |log| log.number += 1, "in the envelope of game"),
            ("policy", |log| log.plies[0].policy[0] += 0.5, "not a game of this ending"),
            ("short", |log| _ = log.plies.pop(), "where it is not over"),
            // Nothing that a rule forbids: the first game of everybody is played again.
            ("value", other_value, "played again, it is another game"),
        ];
        for (name, forge, expected) in attacks {
            let reason = runtime.block_on(cheat(&server, name, 0, forge));
            assert!(reason.contains(expected), "{name}: {reason}");
        }
        beside_workers(&server, &["honest"], || learner.join().unwrap()).0
    });
    assert_eq!(files, expected("krk"));
    assert_eq!(notes.0.iter().filter(|note| note.contains("is refused")).count(), 4);
}

#[test]
fn what_a_refused_worker_had_sent_in_earlier_rounds_is_forgotten() {
    let (brokers, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let server = Server::alone(brokers.path());
    let mut cluster = cluster(&server, folder.path(), 1.0);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut notes = Notes::default();
    thread::scope(|scope| {
        let learner = scope.spawn(|| train_as("krk", ALL, folder.path(), &mut cluster, &mut notes));
        // Two rounds of four games, and a lie in the third.
        let reason = runtime.block_on(cheat(&server, "late", 8, |log| log.walks.count += 1));
        assert!(reason.contains("another count of its searches"), "{reason}");
        beside_workers(&server, &["honest"], || learner.join().unwrap());
    });
    let said = |text: &str| notes.0.iter().any(|note| note.contains(text));
    assert!(said("8 of earlier rounds are not learned from again"), "{:?}", notes.0);
    assert!(said("positions of refused games are not learned from again"), "{:?}", notes.0);
}
