//! Matches whose games workers play, over a real nats-server.
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
    GameRecord, GameSettings, MatchConfig, MatchEvent, MatchRun, MoveLimit, Pairing, Registry,
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
    let terms = Terms { lease: Duration::from_secs(3), patience: Duration::from_secs(1) };
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

/// A network against a classic player.
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

/// Plays the match; its games without the time that they took.
fn play(config: &MatchConfig, run: &MatchRun) -> BTreeMap<u64, GameRecord> {
    let mut games = BTreeMap::new();
    let report = run_match(config, run, &Registry::standard(), &mut |event| {
        if let MatchEvent::Finished { record, .. } = event {
            let mut record = record.clone();
            record.played.thoughts.iter_mut().for_each(|thought| thought.ms = 0);
            games.insert(record.game, record);
        }
    });
    assert!(report.unwrap().is_finished);
    games
}

#[test]
fn a_match_on_workers_is_the_match_on_threads() {
    let (brokers, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let server = Server::alone(brokers.path());
    let config = config(folder.path());
    let run = MatchRun { remote: Some(remote_match(&server)), ..MatchRun::default() };
    let (games, sent) = beside_workers(&server, &["a", "b"], || play(&config, &run));
    assert_eq!(games, play(&config, &MatchRun::default()));
    let sent: u64 = sent.into_iter().map(|sent| sent.unwrap()).sum();
    assert!(sent >= config.games, "{sent}");
}

#[test]
fn players_and_limits_of_one_machine_are_not_for_others() {
    let (brokers, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let server = Server::alone(brokers.path());
    let run = MatchRun { remote: Some(remote_match(&server)), ..MatchRun::default() };
    let good = config(folder.path());
    let refused = |config: &MatchConfig| {
        let played = run_match(config, &run, &Registry::standard(), &mut |_| {});
        played.unwrap_err().to_string()
    };
    let threads = MatchConfig { b: "alphabeta:depth=1,threads=2".to_owned(), ..good.clone() };
    assert!(refused(&threads).contains("one thread"));
    let program = MatchConfig { b: "uci:true".to_owned(), ..good.clone() };
    assert!(refused(&program).contains("players of selfmate"));
    let limit = MoveLimit::movetime(10);
    let clock = MatchConfig { settings: GameSettings { limit, ..good.settings.clone() }, ..good };
    assert!(refused(&clock).contains("depend on the machine"));
}

/// Plays a game and sends something else, until it is refused; why.
async fn cheat(server: &Server, name: &str, forge: fn(&mut GameRecord)) -> String {
    let name = WorkerName::new(name).unwrap();
    let broker = Broker::connect(&access(server), Role::Worker(&name)).await.unwrap();
    loop {
        let (job, grant) = match ask(&broker, &name).await {
            Ok(asked) => asked,
            Err(reason) => return reason,
        };
        let bytes = broker.fetch("job", &job, MAX_JOB).await.unwrap();
        let Task::Match(match_job) = Job::parse(&bytes).unwrap().task else {
            panic!("a generation")
        };
        let network = match_job.a.network.unwrap();
        let network = broker.fetch("network", &network, 1 << 24).await.unwrap();
        let ready = match_job.prepare([Some(network.into()), None]).unwrap();
        let [a, b] = &ready.players;
        let mut pairing = Pairing::new([a, b], ready.seed).unwrap();
        let opening = &ready.openings[&(grant.number / 2)];
        let halt = Arc::new(AtomicBool::new(false));
        let played = pairing.play(grant.number, opening, &ready.settings, None, &halt);
        let mut record = played.unwrap();
        forge(&mut record);
        let envelope = Envelope::of_match(job, grant.token, &record);
        broker.send(name.subject(GAMES), &grant.token, message(&envelope)).await.unwrap();
    }
}

#[test]
fn who_fakes_games_of_a_match_is_refused_and_changes_nothing() {
    let (brokers, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let server = Server::alone(brokers.path());
    let config = config(folder.path());
    let run = MatchRun { remote: Some(remote_match(&server)), ..MatchRun::default() };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let games = thread::scope(|scope| {
        let host = scope.spawn(|| play(&config, &run));
        let reason = runtime.block_on(cheat(&server, "winner", |record| {
            let winner = record.played.winner;
            record.played.winner = if winner.is_none() { Some(record.a_plays) } else { None };
        }));
        assert!(reason.contains("not a game of this match"), "{reason}");
        let reason = runtime.block_on(cheat(&server, "thinker", |record| {
            // Nothing that a rule forbids.
            record.played.thoughts[0].nodes = Some(1);
        }));
        assert!(reason.contains("played again, it is another game"), "{reason}");
        beside_workers(&server, &["honest"], || host.join().unwrap()).0
    });
    assert_eq!(games, play(&config, &MatchRun::default()));
}
