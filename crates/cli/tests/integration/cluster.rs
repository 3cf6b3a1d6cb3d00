//! A run on many machines, as processes that are killed again and again. Slow, so all of it is
//! ignored by default: `cargo xtask test-cluster` runs it.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

#[path = "../../../cluster/tests/server/mod.rs"]
mod server;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use server::Server;

/// Enough generations that every part can be killed ten times.
const GAMES: &str = "1600";
const KILLS: usize = 10;

/// A process that is killed when it goes out of scope.
struct Process(Child);

impl Process {
    fn start(arguments: &[&str], log: &Path) -> Process {
        let log = fs::File::options().create(true).append(true).open(log).unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_selfmate"))
            .args(arguments)
            .stdout(Stdio::null())
            .stderr(log)
            .spawn();
        Process(child.unwrap())
    }

    fn kill(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        self.0.wait().unwrap();
    }

    fn has_ended(&mut self) -> bool {
        self.0.try_wait().unwrap().is_some()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

struct Place {
    folder: tempfile::TempDir,
    url: String,
}

impl Place {
    fn new(url: String) -> Place {
        Place { folder: tempfile::tempdir().unwrap(), url }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn train(&self, more: &[&str]) -> Process {
        let runs = self.path("runs");
        let mut arguments = vec!["train", "zero", "--plain", "--run", "test", "--preset", "tiny"];
        arguments.extend(["--games", GAMES, "--threads", "1", "--runs", runs.to_str().unwrap()]);
        // So small a run finds nothing to learn before it is over.
        arguments.extend(["--set", "guards.patience=1000000"]);
        arguments.extend(more);
        Process::start(&arguments, &self.path("train.log"))
    }

    fn learner(&self, more: &[&str]) -> Process {
        let mut arguments = vec!["--nats", &self.url];
        arguments.extend(more);
        self.train(&arguments)
    }

    fn worker(&self, name: &str) -> Process {
        let arguments = ["worker", "--nats", &self.url, "--threads", "1", "--name", name];
        Process::start(&arguments, &self.path(name).with_extension("log"))
    }

    /// The games of the run, by file.
    fn games(&self) -> BTreeMap<String, Vec<u8>> {
        let folder = self.path("runs/test/games");
        let entries = fs::read_dir(folder).into_iter().flatten();
        let entries = entries.map(|entry| entry.unwrap().path());
        let sealed = entries.filter(|path| path.extension().is_some_and(|end| end == "games"));
        sealed
            .map(|path| {
                let name = path.file_name().unwrap().to_string_lossy().into_owned();
                (name, fs::read(path).unwrap())
            })
            .collect()
    }
}

/// The games of the same run in one process.
fn expected() -> BTreeMap<String, Vec<u8>> {
    let place = Place::new(String::new());
    let mut training = place.train(&[]);
    while !training.has_ended() {
        sleep(Duration::from_millis(50));
    }
    let games = place.games();
    assert_eq!(games.len(), 100, "{}", fs::read_to_string(place.path("train.log")).unwrap());
    games
}

/// Waits until some more games are sealed; panics when nothing happens for a minute.
fn wait_for_more(place: &Place, files: usize) {
    let began = Instant::now();
    while place.games().len() < files {
        assert!(began.elapsed() < Duration::from_secs(60), "nothing happens any more");
        sleep(Duration::from_millis(20));
    }
}

#[test]
#[ignore = "slow: cargo xtask test-cluster"]
fn nothing_is_lost_or_counted_twice_whoever_is_killed() {
    let expected = expected();
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::single(folder.path());
    let place = Place::new(server.url());
    let mut learner = place.learner(&[]);
    let mut workers: Vec<Process> =
        ["a", "b", "c", "d"].iter().map(|name| place.worker(name)).collect();
    for round in 0..3 * KILLS {
        // Somewhere within the next generations.
        wait_for_more(&place, 3 * (round + 1));
        match round % 3 {
            0 => {
                let name = ["a", "b", "c", "d"][round % 4];
                workers[round % 4].kill();
                workers[round % 4] = place.worker(name);
            }
            1 => {
                learner.kill();
                learner = place.learner(&[]);
            }
            _ => {
                server.kill();
                server.start();
            }
        }
    }
    while !learner.has_ended() {
        sleep(Duration::from_millis(50));
    }
    // The same games as in one process, to the byte: none lost, none twice.
    assert!(place.games() == expected, "{}", fs::read_to_string(place.path("train.log")).unwrap());
}

/// Who leads the stream of games.
fn lead(servers: &[Server; 3]) -> usize {
    loop {
        match server::leader(&servers[0], "SELFMATE_GAMES") {
            Some(index) => return index,
            None => sleep(Duration::from_millis(50)),
        }
    }
}

#[test]
#[ignore = "slow: cargo xtask test-cluster"]
fn three_servers_lose_their_leader_and_are_cut_in_two() {
    let expected = expected();
    let folder = tempfile::tempdir().unwrap();
    let mut servers = server::three(folder.path());
    let urls: Vec<String> = servers.iter().map(Server::url).collect();
    let place = Place::new(urls.join(","));
    let mut learner = place.learner(&["--replicas", "3"]);
    let _workers = ["a", "b"].map(|name| place.worker(name));
    for round in 0..3 {
        wait_for_more(&place, 5 * (round + 1));
        let leader = lead(&servers);
        servers[leader].kill();
        let began = Instant::now();
        wait_for_more(&place, place.games().len() + 1);
        println!("the leader is killed: a generation later {:.1} s", began.elapsed().as_secs_f64());
        servers[leader].start();
        // Until it has all that the others have, one more must not go.
        while !servers[leader].query_monitor("/healthz").contains("\"ok\"") {
            sleep(Duration::from_millis(50));
        }
    }
    let (files, leader) = (place.games().len(), lead(&servers));
    servers[leader].signal("STOP");
    let began = Instant::now();
    wait_for_more(&place, files + 1);
    println!("the leader is cut off: a generation later {:.1} s", began.elapsed().as_secs_f64());
    sleep(Duration::from_secs(30).saturating_sub(began.elapsed()));
    servers[leader].signal("CONT");
    while !learner.has_ended() {
        sleep(Duration::from_millis(50));
    }
    assert!(place.games() == expected);
}
