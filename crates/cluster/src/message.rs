//! What learner and workers say to each other, as JSON; games are [`crate::envelope`]s.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::hash::Hash;

/// No message is longer.
pub const MAX_MESSAGE: usize = 1 << 16;
/// Games that one worker may have at a time.
pub const MAX_HELD: usize = 4096;
/// The most games that are given out at once.
pub const MAX_GRANT: usize = 256;

/// A worker wants games.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ask {
    /// See [`crate::job::PROTOCOL`].
    pub protocol: u32,
    /// Of selfmate.
    pub version: String,
    /// Threads that play.
    pub threads: u32,
    /// Games wanted.
    pub want: u32,
    /// What it plays for.
    pub job: Option<Hash>,
    /// The games of that job that it has, played but not sent ones included.
    pub has: Vec<u64>,
}

/// What the learner says to an [`Ask`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Answer {
    /// Play these.
    Work {
        /// The job that they belong to.
        job: Hash,
        /// The games.
        games: Vec<Grant>,
    },
    /// There is nothing to play just now.
    Wait {
        /// Ask again then, or when there is news.
        milliseconds: u64,
    },
    /// Nothing from this worker is wanted.
    Refused {
        /// Why.
        reason: String,
    },
}

/// The right to send a game.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// The number of the game.
    pub number: u64,
    /// To be sent with it.
    pub token: Hash,
}

/// A worker is alive.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heartbeat {
    /// What it plays for.
    pub job: Option<Hash>,
    /// The games of that job that it has, played but not sent ones included.
    pub has: Vec<u64>,
    /// Games that it has sent since it started.
    pub sent: u64,
    /// It goes: its games are to be given to others.
    pub leaving: bool,
}

/// What the learner says to a [`Heartbeat`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeartbeatReply {
    /// The job that games are wanted for; games for another need not be finished.
    pub job: Option<Hash>,
}

/// Writes a message.
pub fn encode<T: Serialize>(message: &T) -> Vec<u8> {
    serde_json::to_vec(message).expect("messages are plain data")
}

/// Reads a message from an untrusted place; what is wrong, if it is none.
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
    fn messages_come_back_and_the_largest_answer_fits() {
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
