//! Matches on many machines: workers play the games of a match, in rounds.
//!
//! A round counts when all of its games are in and those that were chosen have been played again. A
//! worker that fails is refused, and its games of the round go to others. What was counted before
//! cannot be taken back: if there are games of such a worker among it, the match ends with an error
//! that says how many.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use selfmate_arena::remote::{Next, OpenGames, RemoteGames};
use selfmate_arena::{GameRecord, MatchError, Pairing, RemotePlayerSpec};
use selfmate_nn::Model;

use crate::audit::{Agreement, Exactness, few};
use crate::auditor::{Auditor, Replay};
use crate::ban::Bans;
use crate::broker::{Access, Storage};
use crate::centre::{Call, Centre, Setup, Waiting};
use crate::error::ClusterError;
use crate::fixture::{Contestant, Fixture, Stage, Start};
use crate::hash::Hash;
use crate::key::Key;
use crate::lease::Terms;
use crate::order::PROTOCOL;
use crate::parcel::Parcel;
use crate::refusal::Refusal;
use crate::round::{Purpose, Round};
use crate::subject::WorkerName;

/// How matches use a cluster.
pub struct Options {
    /// How to reach the broker.
    pub access: Access,
    /// How games are kept there.
    pub storage: Storage,
    /// What is played, for people.
    pub name: String,
    /// Threads for playing games again.
    pub threads: usize,
    /// The share of games that are played again.
    pub audit_share: f64,
    /// How long games are lent.
    pub terms: Terms,
    /// Hears what is worth knowing.
    pub note: fn(&str),
}

/// Matches on many machines.
pub struct Tournament {
    state: Mutex<State>,
    threads: usize,
    audit_share: f64,
    note: fn(&str),
}

struct State {
    centre: Centre,
    /// Games that were counted, by worker.
    counted: BTreeMap<WorkerName, u64>,
    rounds: u64,
}

/// Games that are counted together. Enough to keep hundreds of threads busy, few enough that
/// little is lost by a kill.
const ROUND: usize = 256;

impl Tournament {
    /// Connects and starts to answer workers.
    pub fn open(options: Options) -> Result<Tournament, ClusterError> {
        let Options { access, storage, name, threads, audit_share, terms, note } = options;
        let (key, bans) = (Key::random()?, Bans::default());
        let centre = Centre::open(Setup { access, storage, name, key, bans, terms })?;
        let state = State { centre, counted: BTreeMap::new(), rounds: 0 };
        Ok(Tournament { state: Mutex::new(state), threads, audit_share, note })
    }
}

impl From<ClusterError> for MatchError {
    fn from(error: ClusterError) -> MatchError {
        MatchError::RemoteGames(Box::new(error))
    }
}

impl RemoteGames for Tournament {
    fn play(
        &self,
        fixtures: &OpenGames<'_>,
        take: &mut dyn FnMut(GameRecord) -> Result<Next, MatchError>,
    ) -> Result<(), MatchError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let players = [fixtures.players[0].remote_spec()?, fixtures.players[1].remote_spec()?];
        for numbers in fixtures.open.chunks(ROUND) {
            let fixture = fixture(fixtures, numbers, &players);
            let networks = players.each_ref().map(|player| player.network.clone());
            let stage = Arc::new(fixture.stage(networks.clone()).map_err(ClusterError::from)?);
            let exactness = exactness(&networks)?;
            // What cannot be built is an error here, not a thread's.
            Pairing::new([&stage.players[0], &stage.players[1]], stage.seed)?;
            let text = fixture.to_json();
            let order = Hash::of(text.as_bytes());
            let networks = networks.into_iter().flatten().map(|bytes| (Hash::of(&bytes), bytes));
            let call = Call {
                order,
                generation: state.rounds,
                network: fixture.a.network.or(fixture.b.network),
                objects: networks.chain([(order, text.into_bytes().into())]).collect(),
                numbers: numbers.iter().map(|&number| number as u64).collect(),
            };
            let mut patience = Patience { stop: fixtures.stop, note: self.note };
            if !state.centre.begin(call, &mut patience) {
                return Ok(());
            }
            state.rounds += 1;
            let auditor = auditor(self.threads, &stage, exactness);
            let State { centre, counted, .. } = &mut *state;
            let mut purpose = Counting { stage, counted };
            let round = Round::new(centre, order, &mut purpose, auditor, self.audit_share);
            let outcome = round.run(&mut patience);
            state.centre.end();
            let Some(games) = outcome? else { return Ok(()) };
            for (worker, record) in games.into_values() {
                *state.counted.entry(worker).or_default() += 1;
                if take(record)? == Next::Stop {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

/// The document of a round.
fn fixture(
    fixtures: &OpenGames<'_>,
    numbers: &[usize],
    players: &[RemotePlayerSpec; 2],
) -> Fixture {
    let contestant = |player: &RemotePlayerSpec| Contestant {
        spec: player.spec.clone(),
        network: player.network.as_deref().map(Hash::of),
    };
    let pairs: BTreeSet<usize> = numbers.iter().map(|number| number / 2).collect();
    let start = |pair: usize| (pair as u64, Start::of(&fixtures.openings[pair]));
    let [a, b] = fixtures.players;
    Fixture {
        protocol: PROTOCOL,
        name: format!("{} - {}", a.name(), b.name()),
        seed: fixtures.seed,
        settings: fixtures.settings.clone(),
        a: contestant(&players[0]),
        b: contestant(&players[1]),
        openings: pairs.into_iter().map(start).collect(),
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

fn auditor(threads: usize, stage: &Arc<Stage>, exactness: Exactness) -> Auditor<GameRecord> {
    let stage = Arc::clone(stage);
    Auditor::new(threads, move || {
        let stage = Arc::clone(&stage);
        let mut pairing = None;
        let replay: Replay<GameRecord> = Box::new(move |sent, halt| {
            if pairing.is_none() {
                // They were built before; what cannot be built now cannot be compared either.
                let [a, b] = &stage.players;
                pairing = Pairing::new([a, b], stage.seed).ok();
            }
            let opening = &stage.openings[&(sent.game / 2)];
            if exactness == Exactness::Rounded {
                let pairing = pairing.as_mut()?;
                let odd = pairing.second_guess(sent, opening, &stage.settings, SLACK_CP, halt)?;
                return Some(few(&odd, sent.played.thoughts.len()));
            }
            let own = pairing.as_mut()?.play(sent.game, opening, &stage.settings, None, halt)?;
            Some(compare(sent, &own))
        });
        replay
    })
}

/// Compares a game with what came out when it was played again. Time is nobody's fault.
fn compare(sent: &GameRecord, own: &GameRecord) -> Agreement {
    let timeless = |record: &GameRecord| {
        let mut record = record.clone();
        record.played.thoughts.iter_mut().for_each(|thought| thought.ms = 0);
        record
    };
    let (sent, own) = (timeless(sent), timeless(own));
    let moves = (&sent.played.moves, &own.played.moves);
    let ply = moves.0.iter().zip(moves.1).take_while(|(sent, own)| sent == own).count();
    if sent == own {
        Agreement::Same
    } else if moves.0 == moves.1 {
        Agreement::Different("another thought of a move".to_owned())
    } else {
        Agreement::Different(format!("another move at ply {ply}"))
    }
}

/// How far apart two opinions may be where floats are rounded, in centipawns.
const SLACK_CP: u32 = 150;

/// Waits as long as a match may.
struct Patience<'a> {
    stop: &'a AtomicBool,
    note: fn(&str),
}

impl Waiting for Patience<'_> {
    fn goes_on(&mut self) -> bool {
        !self.stop.load(Relaxed)
    }

    fn note(&mut self, text: &str) {
        (self.note)(text);
    }
}

/// Games that are counted.
struct Counting<'a> {
    stage: Arc<Stage>,
    /// Games of earlier rounds, by worker.
    counted: &'a BTreeMap<WorkerName, u64>,
}

impl Purpose for Counting<'_> {
    type Game = GameRecord;

    fn judge(&mut self, parcel: &Parcel) -> Result<GameRecord, Refusal> {
        let bytes = parcel.record().map_err(Refusal::Packing)?;
        let record: GameRecord =
            serde_json::from_slice(&bytes).map_err(|error| Refusal::Game(error.to_string()))?;
        if record.game != parcel.number {
            return Err(Refusal::Number { expected: parcel.number, got: record.game });
        }
        let opening = self.stage.openings.get(&(record.game / 2));
        let opening = opening.ok_or_else(|| Refusal::Game("no such pair".to_owned()))?;
        selfmate_arena::pairing::check(&record, opening, &self.stage.settings)
            .map_err(Refusal::Game)?;
        Ok(record)
    }

    fn is_same(&self, one: &GameRecord, other: &GameRecord) -> bool {
        compare(one, other) == Agreement::Same
    }

    fn refuse(&mut self, worker: &WorkerName, refusal: &Refusal) -> Result<String, ClusterError> {
        let Some(&games) = self.counted.get(worker) else { return Ok(String::new()) };
        let (worker, reason) = (worker.clone(), refusal.to_string());
        Err(ClusterError::Counted { worker, reason, games })
    }
}
