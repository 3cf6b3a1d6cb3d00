//! Matches whose games are played by workers, over a real nats-server.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod server;
mod tiny;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use selfmate_arena::adjudicate::Adjudication;
use selfmate_arena::{
    GameSettings, MatchConfig, MatchEvent, MatchGame, MatchLimit, MatchRun, Pairing, Registry,
    run_match,
};
use selfmate_chess::Seed;
use selfmate_cluster::broker::{Broker, Role};
use selfmate_cluster::envelope::Envelope;
use selfmate_cluster::job::{Job, MAX_JOB, Task};
use selfmate_cluster::lease::Terms;
use selfmate_cluster::remote_match::Options;
use selfmate_cluster::subject::GAMES;
use selfmate_cluster::{RemoteMatch, Storage, WorkerName};
use selfmate_nn::sparse::{self, SparseConfig, Weights, WeightsInfo};
use server::Server;
use tiny::{access, ask, beside_workers, message};

fn remote_match(server: &Server) -> Arc<RemoteMatch> {
    let terms = Terms { lease: Duration::from_secs(3), relend_after: Duration::from_secs(1) };
    let remote_match = RemoteMatch::open(Options {
        access: access(server),
        storage: Storage::default(),
        name: "test".to_owned(),
        threads: 1,
        audit_share: 0.2,
        terms,
        note: |_| {},
    });
    Arc::new(remote_match.unwrap())
}

/// A network against alpha-beta.
fn config(folder: &Path) -> MatchConfig {
    let shape = SparseConfig { hidden: 64, ..SparseConfig::default() };
    let weights = Weights::random(shape, Seed::new(1)).unwrap();
    let path = folder.join("random.safetensors");
    std::fs::write(&path, sparse::encode(&weights, WeightsInfo::default()).unwrap()).unwrap();
    let adjudication = Adjudication { max_plies: Some(40), ..Adjudication::default() };
    let settings = GameSettings { adjudication, ..GameSettings::default() };
    let a = format!("net:{},sims=8", path.display());
    MatchConfig { settings, ..MatchConfig::new(&a, "alphabeta:depth=1", 24) }
}

/// Plays the match. Returns its games without the times of the moves.
fn play(config: &MatchConfig, run: &MatchRun) -> BTreeMap<u64, MatchGame> {
    let mut games = BTreeMap::new();
    let report = run_match(config, run, &Registry::standard(), &mut |event| {
        if let MatchEvent::Finished { record, .. } = event {
            let mut record = record.clone();
            record.played.evals.iter_mut().for_each(|eval| eval.ms = 0);
            games.insert(record.game, record);
        }
    });
    assert!(report.unwrap().is_finished);
    games
}

#[test]
fn a_match_on_workers_gives_the_same_games_as_on_threads() {
    let (brokers, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let server = Server::single(brokers.path());
    let config = config(folder.path());
    let run = MatchRun { remote: Some(remote_match(&server)), ..MatchRun::default() };
    let (games, sent) = beside_workers(&server, &["a", "b"], || play(&config, &run));
    assert_eq!(games, play(&config, &MatchRun::default()));
    let sent: u64 = sent.into_iter().map(|sent| sent.unwrap()).sum();
    assert!(sent >= config.games, "{sent}");
}

#[test]
fn players_and_limits_that_depend_on_the_machine_are_rejected() {
    let (brokers, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let server = Server::single(brokers.path());
    let run = MatchRun { remote: Some(remote_match(&server)), ..MatchRun::default() };
    let good = config(folder.path());
    let error = |config: &MatchConfig| {
        let played = run_match(config, &run, &Registry::standard(), &mut |_| {});
        played.unwrap_err().to_string()
    };
    let threads = MatchConfig { b: "alphabeta:depth=1,threads=2".to_owned(), ..good.clone() };
    assert!(error(&threads).contains("threads=1"));
    let program = MatchConfig { b: "uci:true".to_owned(), ..good.clone() };
    assert!(error(&program).contains("selfmate's own players"));
    let limit = MatchLimit::movetime(10);
    let clock = MatchConfig { settings: GameSettings { limit, ..good.settings.clone() }, ..good };
    assert!(error(&clock).contains("depend on the machine"));
}

/// Plays games and sends forged ones, until the worker is banned. Returns the reason.
async fn cheat(server: &Server, name: &str, forge: fn(&mut MatchGame)) -> String {
    let name = WorkerName::new(name).unwrap();
    let broker = Broker::connect(&access(server), Role::Worker(&name)).await.unwrap();
    loop {
        let (job, grant) = match ask(&broker, &name).await {
            Ok(asked) => asked,
            Err(reason) => return reason,
        };
        let bytes = broker.fetch("job", &job, MAX_JOB).await.unwrap();
        let Task::Match(match_job) = Job::parse(&bytes).unwrap().task else {
            panic!("expected a match")
        };
        let network = match_job.a.network.unwrap();
        let network = broker.fetch("network", &network, 1 << 24).await.unwrap();
        let ready = match_job.prepare([Some(network.into()), None]).unwrap();
        let [a, b] = &ready.players;
        let mut pairing = Pairing::new([a, b], ready.seed).unwrap();
        let opening = &ready.openings[&(grant.number / 2)];
        let stop = Arc::new(AtomicBool::new(false));
        let played = pairing.play(grant.number, opening, &ready.settings, None, &stop);
        let mut record = played.unwrap();
        forge(&mut record);
        let envelope = Envelope::of_match(job, grant.token, &record);
        broker.send(name.subject(GAMES), &grant.token, message(&envelope)).await.unwrap();
    }
}

#[test]
fn a_worker_that_forges_games_of_a_match_is_banned_and_changes_nothing() {
    let (brokers, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let server = Server::single(brokers.path());
    let config = config(folder.path());
    let run = MatchRun { remote: Some(remote_match(&server)), ..MatchRun::default() };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (games, reasons) = thread::scope(|scope| {
        let player = scope.spawn(|| play(&config, &run));
        // Checked below: a panic here would leave the match waiting for a worker.
        let winner = runtime.block_on(cheat(&server, "winner", |record| {
            let winner = record.played.winner;
            record.played.winner = if winner.is_none() { Some(record.a_plays) } else { None };
        }));
        let nodes = runtime.block_on(cheat(&server, "nodes", |record| {
            // Passes validation: only an audit can find it.
            record.played.evals[0].nodes = Some(1);
        }));
        let games = beside_workers(&server, &["honest"], || player.join().unwrap()).0;
        (games, [(winner, "not a game of this match"), (nodes, "failed the audit")])
    });
    for (reason, expected) in reasons {
        assert!(reason.contains(expected), "{reason}");
    }
    assert_eq!(games, play(&config, &MatchRun::default()));
}
