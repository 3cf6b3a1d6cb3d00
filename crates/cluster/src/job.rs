//! What workers are asked to play, as one document.
//!
//! Its hash names everything that decides a game except the game's number: the players, the settings
//! and the network. It is JSON; its numbers come back with the same bits.

mod match_job;

use selfmate_selfplay::{Generation, SelfPlayConfig};
use serde::{Deserialize, Serialize};

pub use match_job::{MatchJob, MatchPlayer, OpeningLine, ReadyMatch};

use crate::hash::Hash;

/// The version of everything that coordinator and workers exchange. A change of play that a
/// recomputation would notice raises it too.
pub const PROTOCOL: u32 = 3;
/// No job is longer.
pub const MAX_JOB: usize = 1 << 18;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// See [`PROTOCOL`].
    pub protocol: u32,
    pub task: Task,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Task {
    Generation(GenerationJob),
    Match(MatchJob),
}

/// Games of a generation, of whole games and endings alike.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GenerationJob {
    /// The name of the run.
    pub run: String,
    pub seed: u64,
    /// The number of the generation.
    pub generation: u64,
    /// The step of the network.
    pub step: u64,
    /// Simulations per move.
    pub simulations: u64,
    /// The file of the network.
    pub network: Hash,
    pub selfplay: SelfPlayConfig,
}

/// A document that a worker does not accept.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    #[error("a job that cannot be read: {0}")]
    Unreadable(String),
    #[error(
        "a job of protocol {got}: expected {PROTOCOL}; coordinator and worker need the same version of selfmate"
    )]
    Protocol { got: u32 },
    #[error("a job with {field} = {got}: expected at most {most}")]
    Excess { field: &'static str, got: u64, most: u64 },
}

impl Job {
    pub fn new(task: Task) -> Job {
        Job { protocol: PROTOCOL, task }
    }

    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a job is plain data")
    }

    /// The name of the document.
    pub fn hash(&self) -> Hash {
        Hash::of(self.to_json().as_bytes())
    }

    /// Reads a document from an untrusted place.
    pub fn parse(bytes: &[u8]) -> Result<Job, JobError> {
        let unreadable = |what: String| JobError::Unreadable(what);
        if bytes.len() > MAX_JOB {
            return Err(unreadable(format!("{} bytes: expected at most {MAX_JOB}", bytes.len())));
        }
        let value: serde_json::Value =
            serde_json::from_slice(bytes).map_err(|error| unreadable(error.to_string()))?;
        // First of all: another version may have other fields.
        let protocol = value["protocol"].as_u64().unwrap_or(0);
        if protocol != u64::from(PROTOCOL) {
            return Err(JobError::Protocol { got: protocol.try_into().unwrap_or(0) });
        }
        let job: Job =
            serde_json::from_value(value).map_err(|error| unreadable(error.to_string()))?;
        if let Task::Generation(generation) = &job.task {
            generation.check()?;
        }
        Ok(job)
    }
}

impl GenerationJob {
    /// Refuses settings that would take a worker's memory or time without limit.
    fn check(&self) -> Result<(), JobError> {
        let (play, mega) = (&self.selfplay, 1_000_000);
        let memory = play.memory_mb as u64 * play.games_at_once as u64;
        let limits = [
            ("simulations", self.simulations, mega),
            ("selfplay.memory_mb", play.memory_mb as u64, 4096),
            ("selfplay.games_at_once", play.games_at_once as u64, 4096),
            ("selfplay.memory_mb times selfplay.games_at_once", memory, 1 << 14),
            ("selfplay.max_plies", play.max_plies.into(), 10_000),
            ("selfplay.opening_plies", play.opening_plies.into(), 10_000),
            ("selfplay.long_opening_plies", play.long_opening_plies.into(), 10_000),
            ("selfplay.fast_simulations", play.fast_simulations.into(), mega),
            ("selfplay.candidates", play.candidates as u64, 1000),
            ("selfplay.endgame_pieces", play.endgame_pieces as u64, 32),
            ("selfplay.transpositions", play.transpositions as u64, 1 << 22),
        ];
        match limits.into_iter().find(|(_, got, most)| got > most) {
            Some((field, got, most)) => Err(JobError::Excess { field, got, most }),
            None => Ok(()),
        }
    }

    pub fn generation(&self) -> Generation {
        Generation {
            config: self.selfplay.clone(),
            seed: Generation::games_seed(self.seed),
            simulations: self.simulations,
            network: self.step,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn generation_job() -> GenerationJob {
        GenerationJob {
            run: "first".to_owned(),
            seed: 1,
            generation: 3,
            step: 40,
            simulations: 4,
            network: Hash::of(b"a network"),
            selfplay: SelfPlayConfig::tiny(),
        }
    }

    pub(crate) fn job() -> Job {
        Job::new(Task::Generation(generation_job()))
    }

    #[test]
    fn a_job_comes_back_as_it_was_and_its_hash_names_all_of_it() {
        let job = job();
        assert_eq!(Job::parse(job.to_json().as_bytes()).unwrap(), job);
        let mut changed = generation_job();
        changed.selfplay.c_puct += 1e-6;
        let changed = Job::new(Task::Generation(changed));
        assert_ne!(changed.hash(), job.hash());
        assert_eq!(Job::parse(changed.to_json().as_bytes()).unwrap(), changed);
    }

    #[test]
    fn jobs_that_make_no_sense_are_refused() {
        let refused = |text: &str| Job::parse(text.as_bytes()).unwrap_err().to_string();
        let good = job().to_json();
        assert!(refused("nonsense").contains("cannot be read"));
        assert!(refused("{}").contains("protocol 0"));
        assert!(refused(&good.replace("\"protocol\":3", "\"protocol\":2")).contains("protocol 2"));
        assert!(refused(&good.replace("\"run\"", "\"extra\":1,\"run\"")).contains("extra"));
        let huge = refused(&good.replace("\"memory_mb\":1", "\"memory_mb\":1000000"));
        assert_eq!(huge, "a job with selfplay.memory_mb = 1000000: expected at most 4096");
        let several = good.replace("\"games_at_once\":", "\"games_at_once\":409");
        let several = several.replace("\"memory_mb\":1", "\"memory_mb\":4096");
        assert!(refused(&several).contains("times selfplay.games_at_once"), "{several}");
        assert!(refused(&good.replace("\"c_puct\":1.5", "\"c_puct\":null")).contains("null"));
        assert!(refused(&" ".repeat(MAX_JOB + 1)).contains("bytes"));
    }

    /// A worker of another version would be banned for games that differ from ours. So whoever
    /// changes how games are played raises [`PROTOCOL`], and then writes the new hash here.
    #[test]
    fn games_of_this_protocol_are_these() {
        let generation = generation_job().generation();
        let games = (0..4).map(|number| crate::audit::tests::play(&generation, number));
        let bytes: Vec<u8> = games.flat_map(|game| game.record.encode().unwrap()).collect();
        assert_eq!((PROTOCOL, Hash::of(&bytes).short().as_str()), (3, "bbe01a743ffb"));
    }
}
