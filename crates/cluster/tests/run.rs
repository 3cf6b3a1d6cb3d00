//! A learner and its workers over a real nats-server.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod server;
mod tiny;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

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

/// The broker must have handled the last acknowledgements within this time.
const DEADLINE: Duration = Duration::from_secs(30);

#[test]
fn workers_give_the_same_run_as_one_process() {
    let (brokers, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let server = Server::single(brokers.path());
    let mut cluster = cluster(&server, folder.path(), 0.2);
    let mut notes = Notes::default();
    let (files, sent) = beside_workers(&server, &["a", "b", "c", "d"], || {
        train(folder.path(), &mut cluster, &mut notes)
    });
    assert_eq!(files, expected());
    assert!(notes.0.is_empty(), "{:?}", notes.0);
    let sent: u64 = sent.into_iter().map(|sent| sent.unwrap()).sum();
    // Every game sent was accepted, a duplicate, late, or waits at the broker, once the broker has
    // received the last acknowledgements.
    let began = Instant::now();
    loop {
        let Report { games, rejected, workers, waiting, .. } = status(&access(&server)).unwrap();
        let duplicates: u64 = workers.iter().map(|member| member.duplicates).sum();
        assert_eq!((games, workers.len()), (GAMES, 4));
        assert_eq!(workers.iter().map(|member| member.sent).sum::<u64>(), sent);
        let counted = games + duplicates + rejected.values().sum::<u64>() + waiting.unwrap();
        if counted == sent {
            break;
        }
        assert!(began.elapsed() < DEADLINE, "{counted} of {sent} games are accounted for");
    }
}

#[test]
fn a_second_learner_is_an_error_until_the_first_has_ended() {
    let (brokers, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let server = Server::single(brokers.path());
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
    assert!(error.starts_with("'test' already uses the workers"), "{error}");
    drop(first);
    Cluster::open(options("second")).unwrap();
}

#[test]
fn of_learners_that_start_at_the_same_time_exactly_one_stays() {
    let (brokers, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let server = Server::single(brokers.path());
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

/// Stops a run after some games of the first generation.
struct Stopper<'a>(&'a AtomicBool);

impl Watch for Stopper<'_> {
    fn game(&mut self, game: &GameRecord) {
        if game.number >= 4 {
            self.0.store(true, Relaxed);
        }
    }
}

#[test]
fn a_detached_run_plays_games_again_whose_audits_may_be_pending() {
    let (brokers, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let server = Server::single(brokers.path());
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
    // Forge one of the games.
    let mut run = Run::open(folder.path()).unwrap();
    let (mut journal, mut games) = run.journal(0).unwrap();
    assert!(!games.is_empty());
    games[0].positions[0].value = 0.123;
    journal.replace(&games).unwrap();
    drop((journal, run));
    let mut detached = Detached::open(folder.path(), 2).unwrap().unwrap();
    let mut notes = Notes::default();
    assert_eq!(train(folder.path(), &mut detached, &mut notes), expected());
    assert!(notes.0[0].contains("are played again by this process"), "{:?}", notes.0);
    assert!(Detached::open(&folder.path().join("missing"), 2).unwrap().is_none());
}

/// Kills the server in the middle of the run and starts it again.
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
fn a_killed_and_restarted_broker_does_not_change_the_run() {
    let (brokers, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut server = Server::single(brokers.path());
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
