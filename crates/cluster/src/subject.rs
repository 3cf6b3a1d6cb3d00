//! The NATS subjects, streams and buckets. The permissions in `deploy/nats/accounts.conf` refer to
//! these names.
//!
//! A worker publishes only on subjects that end with its own name, so the broker can restrict each
//! worker to its own subjects. A broker account serves one run or match at a time.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Workers ask for games: `selfmate.ask.WORKER`.
pub const ASK: &str = "selfmate.ask";
/// Workers report that they are alive: `selfmate.heartbeat.WORKER`.
pub const HEARTBEAT: &str = "selfmate.heartbeat";
/// Workers send games: `selfmate.games.WORKER`. The stream [`STREAM`] stores them.
pub const GAMES: &str = "selfmate.games";
/// The coordinator announces that the job has changed.
pub const NEWS: &str = "selfmate.news";
/// Coordinators look for each other: an account has only one.
pub const HERE: &str = "selfmate.here";
/// Watchers request a status report.
pub const STATUS: &str = "selfmate.status";

/// Stores games until the coordinator has them on its own disk.
pub const STREAM: &str = "SELFMATE_GAMES";
/// The coordinator's durable consumer of that stream.
pub const CONSUMER: &str = "learner";
/// The object store of jobs and networks.
pub const BUCKET: &str = "selfmate";

/// A worker's name: up to 64 letters, digits, `_` and `-`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct WorkerName(String);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a valid worker name: expected 1 to 64 letters, digits, '_' or '-'")]
pub struct NameError(String);

impl WorkerName {
    pub fn new(text: &str) -> Result<WorkerName, NameError> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if (1..=64).contains(&text.len()) && text.chars().all(is_plain) {
            Ok(WorkerName(text.to_owned()))
        } else {
            Err(NameError(text.chars().take(80).collect()))
        }
    }

    /// Replaces every character that is not allowed by `-` and cuts the text to 64.
    pub fn from_any(text: &str) -> WorkerName {
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
        let name: String = text.chars().map(plain).take(64).collect();
        WorkerName(if name.is_empty() { "worker".to_owned() } else { name })
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// `BASE.WORKER`, for one of the constants above.
    pub fn subject(&self, base: &str) -> String {
        format!("{base}.{self}")
    }

    /// The worker whose subject this is; `None` if the subject is not `BASE.WORKER`.
    pub fn of_subject(base: &str, subject: &str) -> Option<WorkerName> {
        WorkerName::new(subject.strip_prefix(base)?.strip_prefix('.')?).ok()
    }

    /// The prefix of its reply subjects. The example permissions let no one else subscribe to it.
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
    fn a_worker_name_is_a_single_token_of_a_subject() {
        for bad in ["", "a.b", "a*", ">", "a b", "é", &"x".repeat(65)] {
            assert!(WorkerName::new(bad).is_err(), "{bad}");
        }
        let worker = WorkerName::new("north-2").unwrap();
        assert_eq!(worker.subject(GAMES), "selfmate.games.north-2");
        assert_eq!(WorkerName::of_subject(GAMES, "selfmate.games.north-2"), Some(worker));
        assert_eq!(WorkerName::of_subject(GAMES, "selfmate.games.a.b"), None);
        assert_eq!(WorkerName::of_subject(GAMES, "selfmate.gamesa"), None);
        assert_eq!(WorkerName::from_any("my host.local").as_str(), "my-host-local");
    }
}
