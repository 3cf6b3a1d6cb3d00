//! The messages between coordinator and workers, as JSON. Games are not among them: they travel as
//! [`crate::envelope`]s.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::hash::Hash;

/// In bytes.
pub const MAX_MESSAGE: usize = 1 << 16;
/// Games that one worker may hold at a time.
pub const MAX_HELD: usize = 4096;
/// Games lent in one answer.
pub const MAX_GRANT: usize = 256;

/// A worker asks for games.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ask {
    /// See [`crate::job::PROTOCOL`].
    pub protocol: u32,
    /// Version of selfmate, for the status report.
    pub version: String,
    pub threads: u32,
    /// Number of games.
    pub want: u32,
    /// The job that the worker is playing.
    pub job: Option<Hash>,
    /// The games of that job that it holds, including those that are played but not sent.
    pub has: Vec<u64>,
}

/// The reply to an [`Ask`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Answer {
    Work {
        job: Hash,
        games: Vec<Grant>,
    },
    /// No game is free. Ask again after this time, or when a new job is announced.
    Wait {
        milliseconds: u64,
    },
    /// The worker is banned or has another protocol version; it should stop.
    Refused {
        reason: String,
    },
}

/// A game that is lent to a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    pub number: u64,
    /// Sent with the game.
    pub token: Hash,
}

/// Sent by a worker every few seconds, so that its leases are extended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heartbeat {
    /// The job that the worker is playing.
    pub job: Option<Hash>,
    /// The games of that job that it holds, including those that are played but not sent.
    pub has: Vec<u64>,
    /// Games sent since the worker started.
    pub sent: u64,
    /// The worker stops, or has just started under this name: its games go to others.
    pub leaving: bool,
}

/// The reply to a [`Heartbeat`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeartbeatReply {
    /// The current job. Games of any other job need not be finished.
    pub job: Option<Hash>,
}

pub fn encode<T: Serialize>(message: &T) -> Vec<u8> {
    serde_json::to_vec(message).expect("messages are plain data")
}

/// Reads a message from an untrusted source. The error describes what is wrong with it.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    if bytes.len() > MAX_MESSAGE {
        return Err(format!("{} bytes: expected at most {MAX_MESSAGE}", bytes.len()));
    }
    serde_json::from_slice(bytes).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_survive_a_round_trip_and_the_largest_ones_fit() {
        let grant = Grant { number: u64::MAX, token: Hash::of(b"t") };
        let answer = Answer::Work { job: Hash::of(b"o"), games: vec![grant; MAX_GRANT] };
        assert_eq!(decode::<Answer>(&encode(&answer)), Ok(answer));
        let has = vec![999_999_999_999; MAX_HELD];
        let heartbeat = Heartbeat { job: Some(Hash::of(b"o")), has, sent: 1, leaving: false };
        assert_eq!(decode::<Heartbeat>(&encode(&heartbeat)), Ok(heartbeat));
        assert!(decode::<Ask>(b"{\"protocol\":1}").is_err());
        assert!(decode::<Heartbeat>(&vec![b' '; MAX_MESSAGE + 1]).unwrap_err().contains("bytes"));
    }
}
