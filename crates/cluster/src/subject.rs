//! Where messages go. The rights of a worker are written in these names: see `deploy/`.
//!
//! A worker speaks only on subjects that end with its own name, so a broker that knows its workers
//! can hold each of them to its own. One account of a broker has one run at a time.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Workers ask for games: `selfmate.ask.WORKER`.
pub const ASK: &str = "selfmate.ask";
/// Workers say that they are alive: `selfmate.heartbeat.WORKER`.
pub const HEARTBEAT: &str = "selfmate.heartbeat";
/// Workers send games: `selfmate.games.WORKER`; kept by the stream.
pub const GAMES: &str = "selfmate.games";
/// The learner tells that there is something new to ask for.
pub const NEWS: &str = "selfmate.news";
/// Learners ask whether another is there: one account has one.
pub const HERE: &str = "selfmate.here";
/// Anybody with the right to asks how it goes.
pub const STATUS: &str = "selfmate.status";

/// The stream that keeps games until the learner has them on its own disk.
pub const STREAM: &str = "SELFMATE_GAMES";
/// The learner's place in that stream.
pub const CONSUMER: &str = "learner";
/// The object store of orders and networks.
pub const BUCKET: &str = "selfmate";

/// A worker's name: up to 64 letters, digits, `_` and `-`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct WorkerName(String);

/// A text that is no worker's name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no name for a worker: expected 1 to 64 letters, digits, '_' and '-'")]
pub struct NameError(String);

impl WorkerName {
    /// Checks a name.
    pub fn new(text: &str) -> Result<WorkerName, NameError> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if (1..=64).contains(&text.len()) && text.chars().all(is_plain) {
            Ok(WorkerName(text.to_owned()))
        } else {
            Err(NameError(text.chars().take(80).collect()))
        }
    }

    /// A name from any text: what is not allowed becomes `-`.
    pub fn from_any(text: &str) -> WorkerName {
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
        let name: String = text.chars().map(plain).take(64).collect();
        WorkerName(if name.is_empty() { "worker".to_owned() } else { name })
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The worker's own subject below one of the constants.
    pub fn subject(&self, base: &str) -> String {
        format!("{base}.{self}")
    }

    /// The worker that a subject belongs to.
    pub fn of_subject(base: &str, subject: &str) -> Option<WorkerName> {
        WorkerName::new(subject.strip_prefix(base)?.strip_prefix('.')?).ok()
    }

    /// Where answers to this worker go. Only it may listen there.
    pub fn inbox(&self) -> String {
        format!("_INBOX_{self}")
    }
}

impl fmt::Display for WorkerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for WorkerName {
    type Error = NameError;

    fn try_from(text: String) -> Result<WorkerName, NameError> {
        WorkerName::new(&text)
    }
}

impl From<WorkerName> for String {
    fn from(name: WorkerName) -> String {
        name.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_inside_one_token() {
        for bad in ["", "a.b", "a*", ">", "a b", "é", &"x".repeat(65)] {
            assert!(WorkerName::new(bad).is_err(), "{bad}");
        }
        let worker = WorkerName::new("north-2").unwrap();
        assert_eq!(worker.subject(GAMES), "selfmate.games.north-2");
        assert_eq!(WorkerName::of_subject(GAMES, "selfmate.games.north-2"), Some(worker));
        assert_eq!(WorkerName::of_subject(GAMES, "selfmate.games.a.b"), None);
        assert_eq!(WorkerName::of_subject(GAMES, "selfmate.gamesa"), None);
        assert_eq!(WorkerName::from_any("my responder.local").as_str(), "my-responder-local");
    }
}
