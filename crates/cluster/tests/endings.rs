//! The games of an ending on workers, over a real nats-server.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod server;
mod tiny;

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::thread;

use selfmate_cluster::WorkerName;
use selfmate_cluster::broker::{Broker, Role};
use selfmate_cluster::envelope::Envelope;
use selfmate_cluster::hash::Hash;
use selfmate_cluster::job::{Job, MAX_JOB, Task};
use selfmate_cluster::subject::GAMES;
use selfmate_nn::Model;
use selfmate_run::GameRecord;
use selfmate_selfplay::{LocalThreads, SelfPlayer, evaluators};
use server::Server;
use tiny::{Notes, access, ask, beside_workers, cluster, message, train_as};

/// Ten generations.
const ALL: u64 = 40;

fn expected(ending: &str) -> BTreeMap<String, Hash> {
    let folder = tempfile::tempdir().unwrap();
    train_as(ending, ALL, folder.path(), &mut LocalThreads(2), &mut ())
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
        assert_eq!(files.len(), 10 + 2, "ten generations, network and trainer");
        assert!(notes.0.is_empty(), "{:?}", notes.0);
        let sent: u64 = sent.into_iter().map(|sent| sent.unwrap()).sum();
        assert!(sent >= ALL, "{sent}");
    }
}

/// Plays games, the first few as they are and then forged ones, until the worker is banned; why.
async fn cheat(server: &Server, name: &str, honest: u64, forge: fn(&mut GameRecord)) -> String {
    let name = WorkerName::new(name).unwrap();
    let broker = Broker::connect(&access(server), Role::Worker(&name)).await.unwrap();
    let mut sent = 0;
    loop {
        let (job, grant) = match ask(&broker, &name).await {
            Ok(asked) => asked,
            Err(reason) => return reason,
        };
        let bytes = broker.fetch("job", &job, MAX_JOB).await.unwrap();
        let Task::Generation(asked) = Job::parse(&bytes).unwrap().task else { panic!("a match") };
        let network = broker.fetch("network", &asked.network, 1 << 24).await.unwrap();
        let (model, _) = Model::decode(&network).unwrap();
        let generation = asked.generation();
        let mut player = SelfPlayer::new(&generation.config, evaluators(&model)());
        let (mut next, mut played) = (Some(grant.number), None);
        let stop = AtomicBool::new(false);
        player.play(&generation, || next.take(), |game| played = Some(game), &stop);
        let mut record = played.unwrap().record.rounded();
        if sent >= honest {
            forge(&mut record);
        }
        let bytes = record.encode().unwrap();
        let envelope = Envelope::of_bytes(job, grant.token, grant.number, 0, &bytes);
        broker.send(name.subject(GAMES), &grant.token, message(&envelope)).await.unwrap();
        sent += 1;
    }
}

/// Another value of a position, which no rule forbids.
fn other_value(record: &mut GameRecord) {
    let position = &mut record.positions[0];
    position.value = if position.value > 0.0 { -0.3 } else { 0.3 };
}

#[test]
fn a_worker_that_forges_games_of_an_ending_is_banned_and_changes_nothing() {
    let (brokers, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let server = Server::alone(brokers.path());
    let mut cluster = cluster(&server, folder.path(), 0.0);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut notes = Notes::default();
    let files = thread::scope(|scope| {
        let learner = scope.spawn(|| train_as("krk", ALL, folder.path(), &mut cluster, &mut notes));
        type Attack = (&'static str, fn(&mut GameRecord), &'static str);
        let attacks: [Attack; 4] = [
            ("number", |record| record.number += 1, "in the envelope of game"),
            ("network", |record| record.network += 1, "played by the network of step"),
            ("short", |record| _ = record.positions.pop(), "positions are not those"),
            // The first game of every worker is recomputed.
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
fn games_that_a_banned_worker_had_sent_in_earlier_generations_are_removed() {
    let (brokers, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let server = Server::alone(brokers.path());
    let mut cluster = cluster(&server, folder.path(), 1.0);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut notes = Notes::default();
    thread::scope(|scope| {
        let learner = scope.spawn(|| train_as("krk", ALL, folder.path(), &mut cluster, &mut notes));
        // Two generations of four games, and a forgery in the third.
        let reason = runtime.block_on(cheat(&server, "late", 8, other_value));
        assert!(reason.contains("played again, it is another game"), "{reason}");
        beside_workers(&server, &["honest"], || learner.join().unwrap());
    });
    let said = |text: &str| notes.0.iter().any(|note| note.contains(text));
    assert!(said("8 of earlier generations are removed"), "{:?}", notes.0);
}
