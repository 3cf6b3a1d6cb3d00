//! Self-play of an ending on workers, over a real nats-server.
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
const GAMES_OF_RUN: u64 = 40;

fn expected(ending: &str) -> BTreeMap<String, Hash> {
    let folder = tempfile::tempdir().unwrap();
    train_as(ending, GAMES_OF_RUN, folder.path(), &mut LocalThreads(2), &mut ())
}

#[test]
fn workers_give_the_same_run_of_an_ending_as_one_process() {
    let brokers = tempfile::tempdir().unwrap();
    let server = Server::single(brokers.path());
    for ending in ["krk", "kpk"] {
        let folder = tempfile::tempdir().unwrap();
        let mut notes = Notes::default();
        let mut cluster = cluster(&server, folder.path(), 0.2);
        let (files, sent) = beside_workers(&server, &["a", "b", "c"], || {
            train_as(ending, GAMES_OF_RUN, folder.path(), &mut cluster, &mut notes)
        });
        assert_eq!(files, expected(ending));
        assert_eq!(files.len(), 10 + 2, "ten generations, network and trainer");
        assert!(notes.0.is_empty(), "{:?}", notes.0);
        let sent: u64 = sent.into_iter().map(|sent| sent.unwrap()).sum();
        assert!(sent >= GAMES_OF_RUN, "{sent}");
    }
}

/// Sends some honest games and then forged ones, until the worker is banned. Returns the reason.
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
        let Task::Generation(asked) = Job::parse(&bytes).unwrap().task else {
            panic!("expected a generation")
        };
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

/// Another value of a position: it passes validation, so only an audit can find it.
fn other_value(record: &mut GameRecord) {
    let position = &mut record.positions[0];
    position.value = if position.value > 0.0 { -0.3 } else { 0.3 };
}

#[test]
fn a_worker_that_forges_games_of_an_ending_is_banned_and_changes_nothing() {
    let (brokers, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let server = Server::single(brokers.path());
    let mut cluster = cluster(&server, folder.path(), 0.0);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut notes = Notes::default();
    let (files, reasons) = thread::scope(|scope| {
        let learner =
            scope.spawn(|| train_as("krk", GAMES_OF_RUN, folder.path(), &mut cluster, &mut notes));
        type Attack = (&'static str, fn(&mut GameRecord), &'static str);
        let attacks: [Attack; 4] = [
            ("number", |record| record.number += 1, "in the envelope of game"),
            ("network", |record| record.network += 1, "played by the network of step"),
            ("short", |record| _ = record.positions.pop(), "positions are not those"),
            // The first game of every worker is audited, even with a share of 0.
            ("value", other_value, "failed the audit"),
        ];
        // Checked below: a panic here would leave the learner waiting for a worker.
        let reasons = attacks.map(|(name, forge, expected)| {
            (name, expected, runtime.block_on(cheat(&server, name, 0, forge)))
        });
        (beside_workers(&server, &["honest"], || learner.join().unwrap()).0, reasons)
    });
    for (name, expected, reason) in reasons {
        assert!(reason.contains(expected), "{name}: {reason}");
    }
    assert_eq!(files, expected("krk"));
    assert_eq!(notes.0.iter().filter(|note| note.contains("is banned")).count(), 4);
}

#[test]
fn a_ban_removes_the_games_of_the_worker_from_earlier_generations() {
    let (brokers, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let server = Server::single(brokers.path());
    let mut cluster = cluster(&server, folder.path(), 1.0);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut notes = Notes::default();
    let reason = thread::scope(|scope| {
        let learner =
            scope.spawn(|| train_as("krk", GAMES_OF_RUN, folder.path(), &mut cluster, &mut notes));
        // Two generations of four games, and a forgery in the third.
        let reason = runtime.block_on(cheat(&server, "late", 8, other_value));
        beside_workers(&server, &["honest"], || learner.join().unwrap());
        reason
    });
    assert!(reason.contains("failed the audit"), "{reason}");
    let is_noted = |text: &str| notes.0.iter().any(|note| note.contains(text));
    assert!(is_noted("8 of earlier generations are removed"), "{:?}", notes.0);
}
