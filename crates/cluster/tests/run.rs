//! A learner and workers over a real nats-server.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod server;
mod tiny;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use selfmate_cluster::lease::Terms;
use selfmate_cluster::source::Options;
use selfmate_cluster::worker::{self, work};
use selfmate_cluster::{Cluster, ClusterError, Detached, Report, Storage, WorkerName, status};
use selfmate_methods::Settings;
use selfmate_nn::Device;
use selfmate_run::{Budget, GameRecord, Run};
use selfmate_selfplay::Watch;
use selfmate_train::{End, Hardware, TrainOptions};
use server::Server;
use tiny::{GAMES, Notes, access, beside_workers, cluster, expected, train};

#[test]
fn many_machines_make_what_one_process_makes() {
    let (brokers, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let server = Server::alone(brokers.path());
    let mut cluster = cluster(&server, folder.path(), 0.2);
    let mut notes = Notes::default();
    let (files, sent) = beside_workers(&server, &["a", "b", "c", "d"], || {
        train(folder.path(), &mut cluster, &mut notes)
    });
    assert_eq!(files, expected());
    assert!(notes.0.is_empty(), "{:?}", notes.0);
    let sent: u64 = sent.into_iter().map(|sent| sent.unwrap()).sum();
    // All that was sent was taken, known already, too late, or waits at the broker, once it has
    // heard what became of the last games.
    let mut counts = (0, 1);
    for _ in 0..1000 {
        let Report { games, refused, workers, waiting, .. } = status(&access(&server)).unwrap();
        let duplicates: u64 = workers.iter().map(|member| member.duplicates).sum();
        assert_eq!((games, workers.len()), (GAMES, 4));
        assert_eq!(workers.iter().map(|member| member.sent).sum::<u64>(), sent);
        counts = (games + duplicates + refused.values().sum::<u64>() + waiting.unwrap(), sent);
        if counts.0 == counts.1 {
            break;
        }
        thread::yield_now();
    }
    assert_eq!(counts.0, counts.1);
}

#[test]
fn a_second_learner_is_turned_away() {
    let (brokers, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let server = Server::alone(brokers.path());
    let first = cluster(&server, folder.path(), 0.0);
    let options = |run: &str| Options {
        access: access(&server),
        storage: Storage::default(),
        run: run.to_owned(),
        folder: folder.path().to_owned(),
        threads: 1,
        audit_share: 0.0,
        terms: Terms::default(),
    };
    let error = Cluster::open(options("second")).err().unwrap().to_string();
    assert!(error.starts_with("'test' has the workers"), "{error}");
    drop(first);
    Cluster::open(options("second")).unwrap();
}

#[test]
fn of_learners_that_start_together_one_stays() {
    let (brokers, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let server = Server::alone(brokers.path());
    let opened: Vec<Result<Cluster, ClusterError>> = thread::scope(|scope| {
        let starts: Vec<_> = ["a", "b", "c"]
            .iter()
            .map(|run| {
                let options = Options {
                    access: access(&server),
                    storage: Storage::default(),
                    run: (*run).to_owned(),
                    folder: folder.path().join(run),
                    threads: 1,
                    audit_share: 0.0,
                    terms: Terms::default(),
                };
                scope.spawn(move || Cluster::open(options))
            })
            .collect();
        starts.into_iter().map(|start| start.join().unwrap()).collect()
    });
    assert_eq!(opened.iter().filter(|opened| opened.is_ok()).count(), 1);
    for error in opened.into_iter().filter_map(Result::err) {
        assert!(matches!(error, ClusterError::Taken { .. }), "{error}");
    }
}

/// Stops a run once some games of the first generation are there.
struct Stopper<'a>(&'a AtomicBool);

impl Watch for Stopper<'_> {
    fn game(&mut self, game: &GameRecord) {
        if game.number >= 4 {
            self.0.store(true, Relaxed);
        }
    }
}

#[test]
fn a_run_that_goes_on_without_its_workers_does_not_trust_what_was_not_looked_at() {
    let (brokers, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let server = Server::alone(brokers.path());
    let stop = Arc::new(AtomicBool::new(false));
    let settings = Settings::preset("zero", "tiny").unwrap();
    let hardware = Hardware { threads: 1, device: Device::Cpu };
    let options = TrainOptions { seed: 1, budget: Budget::default(), hardware, stop: &stop };
    let mut cluster = cluster(&server, folder.path(), 0.0);
    beside_workers(&server, &["a"], || {
        let mut run = Run::open(folder.path()).unwrap();
        let mut stopper = Stopper(&stop);
        let end = settings.train(&mut run, &options, &mut cluster, &mut stopper).unwrap();
        assert_eq!(end, End::Stopped);
    });
    drop(cluster);
    // Somebody had forged one of them.
    let mut run = Run::open(folder.path()).unwrap();
    let (mut journal, mut games) = run.journal(0).unwrap();
    assert!(!games.is_empty());
    games[0].positions[0].value = 0.123;
    journal.replace(&games).unwrap();
    drop((journal, run));
    let mut alone = Detached::open(folder.path(), 2).unwrap().unwrap();
    let mut notes = Notes::default();
    assert_eq!(train(folder.path(), &mut alone, &mut notes), expected());
    assert!(notes.0[0].contains("are played again here"), "{:?}", notes.0);
    assert!(Detached::open(&folder.path().join("remote"), 2).unwrap().is_none());
}

/// Kills the server and starts it again when the run is well under way.
struct Killer<'a> {
    server: &'a mut Server,
    kills: usize,
}

impl Watch for Killer<'_> {
    fn game(&mut self, game: &GameRecord) {
        if game.number > 20 && self.kills == 0 {
            self.server.kill();
            self.server.start();
            self.kills += 1;
        }
    }
}

#[test]
fn a_broker_that_is_killed_and_comes_back_changes_nothing() {
    let (brokers, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut server = Server::alone(brokers.path());
    let mut cluster = cluster(&server, folder.path(), 0.0);
    let name = WorkerName::new("a").unwrap();
    let options = worker::Options { access: access(&server), name, threads: 1 };
    let stop = AtomicBool::new(false);
    let mut killer = Killer { server: &mut server, kills: 0 };
    let files = thread::scope(|scope| {
        let worker = scope.spawn(|| work(&options, &stop, &|_| {}));
        let files = train(folder.path(), &mut cluster, &mut killer);
        stop.store(true, Relaxed);
        worker.join().unwrap().unwrap();
        files
    });
    assert_eq!(killer.kills, 1);
    assert_eq!(files, expected());
}
