//! Matches whose games are played by workers, in rounds.
//!
//! A round counts when all of its games have arrived and its audits are done. When a worker is
//! banned, its games of the current round go to other workers. Games of earlier rounds are already
//! counted and cannot be taken back: if some are from the banned worker, the match ends with an
//! error. Bans last as long as the match. This module does not know how results are evaluated.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use selfmate_arena::remote::{Next, OpenGames, RemoteGames};
use selfmate_arena::{MatchError, MatchGame, Pairing, RemotePlayerSpec};
use selfmate_nn::Model;

use crate::audit::{Agreement, Exactness, classify};
use crate::auditor::{Auditor, Replay};
use crate::ban::Bans;
use crate::broker::{Access, Storage};
use crate::collector::{Collector, GameKeeper};
use crate::coordinator::{Announcement, Caller, Coordinator, Setup};
use crate::envelope::Envelope;
use crate::error::ClusterError;
use crate::hash::Hash;
use crate::job::{Job, MatchJob, MatchPlayer, OpeningLine, ReadyMatch, Task};
use crate::key::Key;
use crate::lease::Terms;
use crate::rejection::Rejection;
use crate::subject::WorkerName;

pub struct Options {
    pub access: Access,
    pub storage: Storage,
    /// For people.
    pub name: String,
    /// Threads for audits.
    pub threads: usize,
    /// From 0 to 1.
    pub audit_share: f64,
    pub terms: Terms,
    /// Shows a message to the user.
    pub note: fn(&str),
}

pub struct RemoteMatch {
    state: Mutex<State>,
    threads: usize,
    audit_share: f64,
    note: fn(&str),
}

struct State {
    coordinator: Coordinator,
    /// Games counted in earlier rounds, by worker.
    counted: BTreeMap<WorkerName, u64>,
    rounds: u64,
}

/// Games of a round. Enough to keep hundreds of threads busy, few enough that a kill loses little.
const ROUND_GAMES: usize = 256;

impl RemoteMatch {
    pub fn open(options: Options) -> Result<RemoteMatch, ClusterError> {
        let Options { access, storage, name, threads, audit_share, terms, note } = options;
        let (key, bans) = (Key::random()?, Bans::default());
        let coordinator = Coordinator::open(Setup { access, storage, name, key, bans, terms })?;
        let state = State { coordinator, counted: BTreeMap::new(), rounds: 0 };
        Ok(RemoteMatch { state: Mutex::new(state), threads, audit_share, note })
    }
}

impl From<ClusterError> for MatchError {
    fn from(error: ClusterError) -> MatchError {
        MatchError::RemoteGames(Box::new(error))
    }
}

impl RemoteGames for RemoteMatch {
    fn play(
        &self,
        games: &OpenGames<'_>,
        take: &mut dyn FnMut(MatchGame) -> Result<Next, MatchError>,
    ) -> Result<(), MatchError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let players = [games.players[0].remote_spec()?, games.players[1].remote_spec()?];
        for numbers in games.open.chunks(ROUND_GAMES) {
            let match_job = match_job(games, numbers, &players);
            let networks = players.each_ref().map(|player| player.network.clone());
            let prepared = match_job.prepare(networks.clone()).map_err(ClusterError::from)?;
            let ready = Arc::new(prepared);
            let exactness = exactness(&networks)?;
            // Reports a player that cannot be built here, before the audit threads need it.
            Pairing::new([&ready.players[0], &ready.players[1]], ready.seed)?;
            let network = match_job.a.network.or(match_job.b.network);
            let text = Job::new(Task::Match(match_job)).to_json();
            let job = Hash::of(text.as_bytes());
            let networks = networks.into_iter().flatten().map(|bytes| (Hash::of(&bytes), bytes));
            let announcement = Announcement {
                job,
                generation: state.rounds,
                network,
                objects: networks.chain([(job, text.into_bytes().into())]).collect(),
                numbers: numbers.iter().map(|&number| number as u64).collect(),
            };
            let auditor = auditor(self.threads, &ready, exactness);
            let State { coordinator, counted, rounds } = &mut *state;
            let kept = BTreeMap::new();
            let mut keeper =
                MatchKeeper { ready, counted, kept, stop: games.stop, note: self.note };
            if !coordinator.begin(announcement, &mut keeper) {
                return Ok(());
            }
            *rounds += 1;
            let mut collector =
                Collector::new(coordinator, job, &mut keeper, auditor, self.audit_share);
            let is_complete = collector.run();
            let senders: Vec<WorkerName> =
                collector.senders().map(|(_, worker)| worker.clone()).collect();
            let kept = keeper.kept;
            coordinator.end();
            if !is_complete? {
                return Ok(());
            }
            for worker in senders {
                *counted.entry(worker).or_default() += 1;
            }
            for record in kept.into_values() {
                if take(record)? == Next::Stop {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

/// The job of a round.
fn match_job(
    games: &OpenGames<'_>,
    numbers: &[usize],
    players: &[RemotePlayerSpec; 2],
) -> MatchJob {
    let match_player = |player: &RemotePlayerSpec| MatchPlayer {
        spec: player.spec.clone(),
        network: player.network.as_deref().map(Hash::of),
    };
    let pairs: BTreeSet<usize> = numbers.iter().map(|number| number / 2).collect();
    let opening = |pair: usize| (pair as u64, OpeningLine::of(&games.openings[pair]));
    let [a, b] = games.players;
    MatchJob {
        name: format!("{} - {}", a.name(), b.name()),
        seed: games.seed,
        settings: games.settings.clone(),
        a: match_player(&players[0]),
        b: match_player(&players[1]),
        openings: pairs.into_iter().map(opening).collect(),
    }
}

fn exactness(networks: &[Option<Arc<[u8]>>; 2]) -> Result<Exactness, ClusterError> {
    for bytes in networks.iter().flatten() {
        let model = Model::decode(bytes);
        let (model, _) = model.map_err(|error| ClusterError::Network(error.to_string()))?;
        if Exactness::of(&model) == Exactness::Rounded {
            return Ok(Exactness::Rounded);
        }
    }
    Ok(Exactness::Exact)
}

fn auditor(threads: usize, ready: &Arc<ReadyMatch>, exactness: Exactness) -> Auditor<MatchGame> {
    let ready = Arc::clone(ready);
    Auditor::new(threads, move || {
        let ready = Arc::clone(&ready);
        let mut pairing = None;
        let replay: Replay<MatchGame> = Box::new(move |sent, stop| {
            if pairing.is_none() {
                // The players were built before. A failure ends the thread, and the match with an error.
                let [a, b] = &ready.players;
                pairing = Pairing::new([a, b], ready.seed).ok();
            }
            let opening = &ready.openings[&(sent.game / 2)];
            if exactness == Exactness::Rounded {
                let pairing = pairing.as_mut()?;
                let deviations =
                    pairing.second_guess(sent, opening, &ready.settings, TOLERANCE_CP, stop)?;
                return Some(classify(&deviations, sent.played.evals.len()));
            }
            let own = pairing.as_mut()?.play(sent.game, opening, &ready.settings, None, stop)?;
            Some(compare(sent, &own))
        });
        replay
    })
}

/// Compares a game with its replay, apart from the time that the moves took.
fn compare(sent: &MatchGame, own: &MatchGame) -> Agreement {
    let (sent, own) = (without_times(sent), without_times(own));
    let moves = (&sent.played.moves, &own.played.moves);
    let ply = moves.0.iter().zip(moves.1).take_while(|(sent, own)| sent == own).count();
    if sent == own {
        Agreement::Same
    } else if moves.0 == moves.1 {
        Agreement::Different("different evaluation of a move".to_owned())
    } else {
        Agreement::Different(format!("different move at ply {ply}"))
    }
}

/// How far two evaluations may be apart where networks compute in floats, in centipawns.
const TOLERANCE_CP: u32 = 150;

fn without_times(record: &MatchGame) -> MatchGame {
    let mut record = record.clone();
    record.played.evals.iter_mut().for_each(|eval| eval.ms = 0);
    record
}

/// Keeps the games of a round in memory: they are played again if this process is killed.
struct MatchKeeper<'a> {
    ready: Arc<ReadyMatch>,
    counted: &'a mut BTreeMap<WorkerName, u64>,
    kept: BTreeMap<u64, MatchGame>,
    stop: &'a AtomicBool,
    note: fn(&str),
}

impl Caller for MatchKeeper<'_> {
    fn should_continue(&mut self) -> bool {
        !self.stop.load(Relaxed)
    }

    fn note(&mut self, text: &str) {
        (self.note)(text);
    }
}

impl GameKeeper for MatchKeeper<'_> {
    type Game = MatchGame;

    fn validate(&mut self, envelope: &Envelope) -> Result<(MatchGame, Hash), Rejection> {
        let bytes = envelope.record().map_err(Rejection::Packing)?;
        let record: MatchGame =
            serde_json::from_slice(&bytes).map_err(|error| Rejection::Game(error.to_string()))?;
        if record.game != envelope.number {
            return Err(Rejection::Number { expected: envelope.number, got: record.game });
        }
        let opening = self.ready.openings.get(&(record.game / 2));
        let opening =
            opening.ok_or_else(|| Rejection::Game("the match has no such pair".to_owned()))?;
        selfmate_arena::pairing::check(&record, opening, &self.ready.settings)
            .map_err(Rejection::Game)?;
        let timeless = serde_json::to_vec(&without_times(&record)).expect("a record is plain data");
        Ok((record, Hash::of(&timeless)))
    }

    fn keep(&mut self, _: &WorkerName, game: MatchGame) -> Result<(), ClusterError> {
        self.kept.insert(game.game, game);
        Ok(())
    }

    fn kept(&self, number: u64) -> Option<MatchGame> {
        self.kept.get(&number).cloned()
    }

    fn sync(&mut self) -> Result<(), ClusterError> {
        Ok(())
    }

    fn remove(&mut self, numbers: &BTreeSet<u64>) -> Result<(), ClusterError> {
        self.kept.retain(|number, _| !numbers.contains(number));
        Ok(())
    }

    fn banned(
        &mut self,
        worker: &WorkerName,
        rejection: &Rejection,
        _: &BTreeSet<u64>,
    ) -> Result<String, ClusterError> {
        let Some(&games) = self.counted.get(worker) else { return Ok(String::new()) };
        let (worker, reason) = (worker.clone(), rejection.to_string());
        Err(ClusterError::Counted { worker, reason, games })
    }
}
