//! The document that tells workers what to play: one generation of self-play, or one match.
//!
//! It contains everything that determines a game except the game's number, and is identified by its
//! hash. It is JSON, and floats survive it bit for bit. It does not contain the networks, only their
//! hashes.

mod match_job;

use selfmate_selfplay::{Generation, SelfPlayConfig};
use serde::{Deserialize, Serialize};

pub use match_job::{MatchJob, MatchPlayer, OpeningLine, ReadyMatch};

use crate::hash::Hash;

/// The version of all messages between coordinator and workers. Any change that makes the same job
/// play other games raises it too, because audits would ban workers of the older version.
pub const PROTOCOL: u32 = 3;
/// In bytes.
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

/// Self-play games of one generation, from the initial position or from an ending.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GenerationJob {
    pub run: String,
    pub seed: u64,
    pub generation: u64,
    /// Training steps of the network.
    pub step: u64,
    /// Simulations per move.
    pub simulations: u64,
    /// Hash of the network's file.
    pub network: Hash,
    pub selfplay: SelfPlayConfig,
}

/// Why a worker does not accept a job.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    #[error("the job is not valid: {0}")]
    Invalid(String),
    #[error(
        "the job has protocol {got}: expected {PROTOCOL}; use the same version of selfmate for coordinator and workers"
    )]
    Protocol { got: u32 },
    #[error("the job has {field} = {got}: expected at most {most}")]
    Excess { field: &'static str, got: u64, most: u64 },
}

impl Job {
    pub fn new(task: Task) -> Job {
        Job { protocol: PROTOCOL, task }
    }

    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a job is plain data")
    }

    /// Identifies the job.
    pub fn hash(&self) -> Hash {
        Hash::of(self.to_json().as_bytes())
    }

    /// Reads a job from an untrusted source.
    pub fn parse(bytes: &[u8]) -> Result<Job, JobError> {
        let invalid = |what: String| JobError::Invalid(what);
        if bytes.len() > MAX_JOB {
            return Err(invalid(format!("{} bytes: expected at most {MAX_JOB}", bytes.len())));
        }
        let value: serde_json::Value =
            serde_json::from_slice(bytes).map_err(|error| invalid(error.to_string()))?;
        // Checked first, because another version may have other fields.
        let protocol = value["protocol"].as_u64().unwrap_or(0);
        if protocol != u64::from(PROTOCOL) {
            return Err(JobError::Protocol { got: protocol.try_into().unwrap_or(0) });
        }
        let job: Job = serde_json::from_value(value).map_err(|error| invalid(error.to_string()))?;
        if let Task::Generation(generation) = &job.task {
            generation.check()?;
        }
        Ok(job)
    }
}

impl GenerationJob {
    /// Rejects settings that would take unlimited memory or time of a worker.
    fn check(&self) -> Result<(), JobError> {
        let (play, million) = (&self.selfplay, 1_000_000);
        let memory = play.memory_mb as u64 * play.games_at_once as u64;
        let limits = [
            ("simulations", self.simulations, million),
            ("selfplay.memory_mb", play.memory_mb as u64, 4096),
            ("selfplay.games_at_once", play.games_at_once as u64, 4096),
            ("selfplay.memory_mb times selfplay.games_at_once", memory, 1 << 14),
            ("selfplay.max_plies", play.max_plies.into(), 10_000),
            ("selfplay.opening_plies", play.opening_plies.into(), 10_000),
            ("selfplay.long_opening_plies", play.long_opening_plies.into(), 10_000),
            ("selfplay.fast_simulations", play.fast_simulations.into(), million),
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
    fn a_job_survives_a_round_trip_and_its_hash_covers_every_field() {
        let job = job();
        assert_eq!(Job::parse(job.to_json().as_bytes()).unwrap(), job);
        let mut changed = generation_job();
        changed.selfplay.c_puct += 1e-6;
        let changed = Job::new(Task::Generation(changed));
        assert_ne!(changed.hash(), job.hash());
        assert_eq!(Job::parse(changed.to_json().as_bytes()).unwrap(), changed);
    }

    #[test]
    fn invalid_jobs_are_rejected() {
        let error = |text: &str| Job::parse(text.as_bytes()).unwrap_err().to_string();
        let good = job().to_json();
        assert!(error("nonsense").contains("not valid"));
        assert!(error("{}").contains("protocol 0"));
        assert!(error(&good.replace("\"protocol\":3", "\"protocol\":2")).contains("protocol 2"));
        assert!(error(&good.replace("\"run\"", "\"extra\":1,\"run\"")).contains("extra"));
        let huge = error(&good.replace("\"memory_mb\":1", "\"memory_mb\":1000000"));
        assert_eq!(huge, "the job has selfplay.memory_mb = 1000000: expected at most 4096");
        let several = good.replace("\"games_at_once\":", "\"games_at_once\":409");
        let several = several.replace("\"memory_mb\":1", "\"memory_mb\":4096");
        assert!(error(&several).contains("times selfplay.games_at_once"), "{several}");
        assert!(error(&good.replace("\"c_puct\":1.5", "\"c_puct\":null")).contains("null"));
        assert!(error(&" ".repeat(MAX_JOB + 1)).contains("bytes"));
    }

    /// A worker of another version would be banned if its games differed from ours. A change that
    /// makes this test fail must raise [`PROTOCOL`] and then update the hash here.
    #[test]
    fn a_change_of_play_raises_the_protocol_version() {
        let generation = generation_job().generation();
        let games = (0..4).map(|number| crate::audit::tests::play(&generation, number));
        let bytes: Vec<u8> = games.flat_map(|game| game.record.encode().unwrap()).collect();
        assert_eq!((PROTOCOL, Hash::of(&bytes).short().as_str()), (3, "bbe01a743ffb"));
    }
}
