//! Games of an ending on many machines: what a round's games are played with, as one document, and
//! how the learner gets them.
//!
//! A round is small and learned from at once, so its games are kept by nobody: after a kill the
//! learner goes back to its last checkpoint, and the rounds since come out as they did. Who played
//! which game is on disk before the game is acknowledged, so that those of a refused worker can be
//! forgotten.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use selfmate_chess::Seed;
use selfmate_learn::LearnError;
use selfmate_learn::endgame::{EndgameConfig, Lab, Log, Referee, SelfPlayer, Work, games_seed};
use selfmate_learn::rounds::Halt;
use selfmate_nn::mlp::Network;
use selfmate_nn::sparse::WeightsInfo;
use serde::{Deserialize, Serialize};

use crate::audit::Agreement;
use crate::auditor::{Auditor, Replay};
use crate::centre::{Call, Waiting};
use crate::error::ClusterError;
use crate::hash::Hash;
use crate::order::{OrderError, PROTOCOL, check_excess, table, to_toml};
use crate::parcel::Parcel;
use crate::provenance::Provenance;
use crate::refusal::Refusal;
use crate::round::{Purpose, Round};
use crate::source::Cluster;
use crate::subject::WorkerName;

/// What a round's games are played with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndingOrder {
    /// See [`PROTOCOL`].
    pub protocol: u32,
    /// The name of the run.
    pub run: String,
    /// The seed of the run.
    pub seed: u64,
    /// The number of the round.
    pub round: u64,
    /// Batches that the network has learned.
    pub step: u64,
    /// The file of the network.
    pub network: Hash,
    /// How to play.
    pub endgame: EndgameConfig,
}

impl EndingOrder {
    /// The document.
    pub fn to_toml(&self) -> String {
        to_toml(self)
    }

    /// Reads a document from an untrusted place.
    pub fn parse(bytes: &[u8]) -> Result<EndingOrder, OrderError> {
        EndingOrder::from_table(table(bytes)?)
    }

    /// Reads a document that has been looked at by [`table`].
    pub(crate) fn from_table(table: toml::Table) -> Result<EndingOrder, OrderError> {
        let order: EndingOrder =
            table.try_into().map_err(|error| OrderError::Unreadable(error.message().to_owned()))?;
        let play = &order.endgame;
        // Nobody's memory or patience is at the mercy of whoever publishes orders.
        check_excess(&[
            ("endgame.max_plies", play.max_plies.into(), 10_000),
            ("endgame.search.simulations", play.search.simulations, 1_000_000),
            ("endgame.search.candidates", play.search.candidates as u64, 1000),
            ("endgame.search.transpositions", play.search.transpositions as u64, 1 << 22),
        ])?;
        play.check().map_err(|error| OrderError::Unreadable(error.to_string()))?;
        Ok(order)
    }
}

/// Has workers play the games of a round; `None` when there was no time for all of them.
pub(crate) fn play(
    cluster: &mut Cluster,
    work: &Work<'_>,
    note: &mut dyn FnMut(&str),
) -> Result<Option<Vec<Log>>, LearnError> {
    let Cluster { options, centre, provenance, purge, .. } = cluster;
    let bytes: Arc<[u8]> = work.network.encode(WeightsInfo { step: work.step })?.into();
    let order = EndingOrder {
        protocol: PROTOCOL,
        run: options.run.clone(),
        seed: work.seed,
        round: work.round,
        step: work.step,
        network: Hash::of(&bytes),
        endgame: work.config.clone(),
    };
    let text = order.to_toml();
    let hash = Hash::of(text.as_bytes());
    let call = Call {
        order: hash,
        generation: work.round,
        network: Some(order.network),
        // As workers get it: what they play is what is played again here.
        objects: vec![(order.network, bytes), (hash, text.into_bytes().into())],
        numbers: work.numbers.clone().collect(),
    };
    let mut patience = Patience { halt: work.halt, note };
    provenance.open(work.round)?;
    if !centre.begin(call, &mut patience) {
        return Ok(None);
    }
    let seed = games_seed(work.seed);
    let referee = Referee::new(work.config, work.lab, work.network);
    let mut purpose = Learning { referee, seed, numbers: work.numbers.clone(), provenance, purge };
    let auditor = auditor(options.threads, work, seed);
    let round = Round::new(centre, hash, &mut purpose, auditor, options.audit_share);
    let outcome = round.run(&mut patience);
    centre.end();
    let games = outcome?;
    Ok(games.map(|games| games.into_values().map(|(_, log)| log).collect()))
}

/// Waits as long as a round may.
struct Patience<'a> {
    halt: Halt<'a>,
    note: &'a mut dyn FnMut(&str),
}

impl Waiting for Patience<'_> {
    fn goes_on(&mut self) -> bool {
        !self.halt.is_over()
    }

    fn note(&mut self, text: &str) {
        (self.note)(text);
    }
}

/// Games that are learned from.
struct Learning<'a> {
    referee: Referee,
    seed: Seed,
    /// Those of this round.
    numbers: Range<u64>,
    provenance: &'a mut Provenance,
    purge: &'a mut BTreeSet<u64>,
}

impl Purpose for Learning<'_> {
    type Game = Log;

    fn judge(&mut self, parcel: &Parcel) -> Result<Log, Refusal> {
        let bytes = parcel.record().map_err(Refusal::Packing)?;
        let log = Log::decode(&bytes)?;
        if log.number != parcel.number {
            return Err(Refusal::Number { expected: parcel.number, got: log.number });
        }
        self.referee.finish(&log, self.seed)?;
        Ok(log)
    }

    fn is_same(&self, one: &Log, other: &Log) -> bool {
        // By their bytes: two zeros may be different numbers.
        one.encode() == other.encode()
    }

    fn keep(&mut self, number: u64, worker: &WorkerName) {
        self.provenance.add(number, worker);
    }

    fn settle(&mut self) -> Result<(), ClusterError> {
        self.provenance.sync()
    }

    fn refuse(&mut self, worker: &WorkerName, _: &Refusal) -> Result<String, ClusterError> {
        self.provenance.sync()?;
        let games = self.provenance.games_of(&BTreeSet::from([worker.clone()]))?;
        let before = self.purge.len();
        self.purge.extend(games.into_iter().filter(|game| !self.numbers.contains(game)));
        let count = self.purge.len() - before;
        Ok(format!(", {count} of earlier rounds are not learned from again"))
    }
}

/// Plays games of a round again.
fn auditor(threads: usize, work: &Work<'_>, seed: Seed) -> Auditor<Log> {
    let (config, lab): (EndgameConfig, Lab) = (work.config.clone(), work.lab.clone());
    let network: Arc<Network> = Arc::clone(work.network);
    Auditor::new(threads, move || {
        let mut player = SelfPlayer::new(&config, &lab, &network);
        let replay: Replay<Log> =
            Box::new(move |sent, _| Some(compare(sent, &player.play(seed, sent.number))));
        replay
    })
}

/// Compares a game with what came out when it was played again.
fn compare(sent: &Log, own: &Log) -> Agreement {
    if sent.encode() == own.encode() {
        return Agreement::Same;
    }
    let plies = sent.plies.iter().zip(&own.plies);
    match plies.take_while(|(sent, own)| sent == own).count() {
        ply if ply < own.plies.len().max(sent.plies.len()) => {
            Agreement::Different(format!("another search at ply {ply}"))
        }
        _ => Agreement::Different("another count of its searches".to_owned()),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use selfmate_learn::endgame::EndingName;

    use super::*;

    pub(crate) fn order() -> EndingOrder {
        EndingOrder {
            protocol: PROTOCOL,
            run: "first".to_owned(),
            seed: 1,
            round: 3,
            step: 40,
            network: Hash::of(b"a network"),
            endgame: EndgameConfig::tiny(),
        }
    }

    #[test]
    fn an_order_comes_back_and_one_that_makes_no_sense_is_refused() {
        let order = order();
        let good = order.to_toml();
        assert_eq!(EndingOrder::parse(good.as_bytes()).unwrap(), order);
        let refused = |text: &str| EndingOrder::parse(text.as_bytes()).unwrap_err().to_string();
        assert!(refused(&good.replace("protocol = 2", "protocol = 1")).contains("protocol 1"));
        assert!(
            refused(&good.replace("simulations = 8", "simulations = 9000000")).contains("most")
        );
        assert!(refused(&good.replace("c_puct = 1.5", "c_puct = -1.5")).contains("c_puct"));
        assert!(refused(&good.replace("first = 16", "first = 100000")).contains("units"));
    }

    /// A worker of another version is refused for what it was not told; so whoever changes how
    /// games of endings are played raises [`PROTOCOL`] too, and then writes the new hash here.
    #[test]
    fn games_of_this_protocol_are_these_and_the_smallest_forgery_shows() {
        let config = EndgameConfig { ending: EndingName::Kpk, ..EndgameConfig::tiny() };
        let lab = Lab::new(config.ending).unwrap();
        let network = Arc::new(Network::random(config.network, Seed::new(1)).unwrap());
        let mut player = SelfPlayer::new(&config, &lab, &network);
        let logs: Vec<Log> = (0..4).map(|number| player.play(games_seed(1), number)).collect();
        // Not the values: their last bits are the system's affair.
        let bytes: Vec<u8> =
            logs.iter().flat_map(|log| log.plies.iter().map(|ply| ply.place)).collect();
        assert_eq!((PROTOCOL, Hash::of(&bytes).short().as_str()), (2, "024fd1f6e4c3"));
        assert_eq!(compare(&logs[0], &logs[0]), Agreement::Same);
        let mut forged = logs[0].clone();
        forged.plies[2].value += 1e-6;
        let found = Agreement::Different("another search at ply 2".to_owned());
        assert_eq!(compare(&forged, &logs[0]), found);
        let mut forged = logs[0].clone();
        forged.walks.count += 1;
        assert!(matches!(compare(&forged, &logs[0]), Agreement::Different(_)));
    }
}
