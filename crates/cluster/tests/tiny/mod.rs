//! A tiny run and its workers, for tests of clusters.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use selfmate_cluster::broker::Broker;
use selfmate_cluster::envelope::{Envelope, append_envelope};
use selfmate_cluster::hash::Hash;
use selfmate_cluster::job::PROTOCOL;
use selfmate_cluster::lease::Terms;
use selfmate_cluster::message::{Answer, Ask, Grant, decode, encode};
use selfmate_cluster::source::Options;
use selfmate_cluster::subject::ASK;
use selfmate_cluster::worker::{self, work};
use selfmate_cluster::{Access, Cluster, ClusterError, Storage, WorkerName};
use selfmate_methods::Settings;
use selfmate_nn::Device;
use selfmate_run::{Budget, Run};
use selfmate_selfplay::{GameSource, LocalThreads, Watch};
use selfmate_train::{End, Hardware, TrainOptions};

use crate::server::Server;

/// A game must be lent within this time.
const DEADLINE: Duration = Duration::from_secs(120);
/// Games of the run.
pub const GAMES: u64 = 48;

/// Trains the run. Returns the hashes of its games and networks, by file.
pub fn train(
    folder: &Path,
    source: &mut dyn GameSource,
    watch: &mut dyn Watch,
) -> BTreeMap<String, Hash> {
    train_as("zero", GAMES, folder, source, watch)
}

/// The same for any learner.
pub fn train_as(
    learner: &str,
    games: u64,
    folder: &Path,
    source: &mut dyn GameSource,
    watch: &mut dyn Watch,
) -> BTreeMap<String, Hash> {
    let settings = Settings::preset(learner, "tiny").unwrap();
    let budget = Budget { games: Some(games), ..Budget::default() };
    let stop = Arc::new(AtomicBool::new(false));
    let hardware = Hardware { threads: 1, device: Device::Cpu };
    let options = TrainOptions { seed: 1, budget, hardware, stop: &stop };
    let mut run = Run::open(folder).unwrap();
    let end = settings.train(&mut run, &options, source, watch).unwrap();
    assert_eq!(end, End::Finished);
    let step = run.steps().unwrap().pop().unwrap();
    let mut files = BTreeMap::new();
    for part in ["games".to_owned(), format!("checkpoints/{step}")] {
        // Learners that do not use self-play have no folder of games.
        for entry in fs::read_dir(folder.join(part)).into_iter().flatten() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            // Other files contain times.
            if [".games", ".safetensors", ".bin"].iter().any(|end| name.ends_with(end)) {
                files.insert(name, Hash::of(&fs::read(path).unwrap()));
            }
        }
    }
    files
}

/// A message with one envelope.
pub fn message(envelope: &Envelope) -> Vec<u8> {
    let mut message = Vec::new();
    assert!(append_envelope(&mut message, &envelope.encode()));
    message
}

/// The files of the same run on threads of one process.
pub fn expected() -> BTreeMap<String, Hash> {
    let folder = tempfile::tempdir().unwrap();
    train(folder.path(), &mut LocalThreads(2), &mut ())
}

pub fn access(server: &Server) -> Access {
    Access { url: server.url(), ..Access::default() }
}

/// The coordinator of the run.
pub fn cluster(server: &Server, folder: &Path, audit_share: f64) -> Cluster {
    let terms = Terms { lease: Duration::from_secs(3), relend_after: Duration::from_secs(1) };
    Cluster::open(Options {
        access: access(server),
        storage: Storage::default(),
        run: "test".to_owned(),
        folder: folder.to_owned(),
        threads: 1,
        audit_share,
        terms,
    })
    .unwrap()
}

/// Runs `act` while workers play. Also returns how many games each worker has sent.
pub fn beside_workers<T>(
    server: &Server,
    names: &[&str],
    act: impl FnOnce() -> T,
) -> (T, Vec<Result<u64, ClusterError>>) {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let workers: Vec<_> = names
            .iter()
            .map(|name| {
                let name = WorkerName::new(name).unwrap();
                let options = worker::Options { access: access(server), name, threads: 1 };
                let stop = &stop;
                scope.spawn(move || work(&options, stop, &|_| {}))
            })
            .collect();
        let result = act();
        stop.store(true, Relaxed);
        (result, workers.into_iter().map(|worker| worker.join().unwrap()).collect())
    })
}

/// Keeps the notes of a run.
#[derive(Default)]
pub struct Notes(pub Vec<String>);

impl Watch for Notes {
    fn note(&mut self, text: &str) {
        self.0.push(text.to_owned());
    }
}

/// Asks until a game is lent. The error is the reason why this worker gets none.
pub async fn ask(broker: &Broker, name: &WorkerName) -> Result<(Hash, Grant), String> {
    let (version, job, has) = ("0".to_owned(), None, Vec::new());
    let ask = Ask { protocol: PROTOCOL, version, threads: 1, want: 1, job, has };
    let deadline = Instant::now() + DEADLINE;
    loop {
        if Instant::now() > deadline {
            // An error, not a panic: the caller may have to let the learner finish first.
            return Err(format!("no game was lent within {DEADLINE:?}"));
        }
        let answer = broker.request(&name.subject(ASK), encode(&ask), Duration::from_secs(5)).await;
        let Ok(Some(answer)) = answer else { continue };
        match decode(&answer).unwrap() {
            Answer::Work { job, games } => return Ok((job, games[0])),
            Answer::Wait { .. } => tokio::time::sleep(Duration::from_millis(20)).await,
            Answer::Refused { reason } => return Err(reason),
        }
    }
}
