//! The secret of a run: it proves what the learner has asked for, and chooses what is audited.
//!
//! A token belongs to one worker, one job and one game. A game that comes without its token was
//! not asked for from whoever sends it. Nothing has to be remembered for that, so games that were
//! on their way when the learner was killed are as good as before.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use selfmate_run::atomic;

use crate::error::ClusterError;
use crate::hash::Hash;
use crate::subject::WorkerName;

/// The secret of a run.
#[derive(Clone)]
pub struct Key([u8; 32]);

/// What the secret is used for; never the same bytes for two purposes.
const GRANT: &str = "grant";
const AUDIT: &str = "audit";

impl Key {
    /// A key of these bytes.
    pub const fn new(bytes: [u8; 32]) -> Key {
        Key(bytes)
    }

    /// Reads a key from its file, or makes one.
    pub fn open(path: &Path) -> Result<Key, ClusterError> {
        match fs::read(path) {
            Ok(bytes) => {
                let length = bytes.len();
                let bytes = bytes.try_into().map_err(|_| ClusterError::File {
                    path: path.to_owned(),
                    what: format!("{length} bytes: expected a key of 32"),
                })?;
                Ok(Key(bytes))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Key::create(path),
            Err(error) => Err(ClusterError::io(path)(error)),
        }
    }

    /// A key that nobody else has.
    pub fn random() -> Result<Key, ClusterError> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(|error| ClusterError::Random(error.to_string()))?;
        Ok(Key(bytes))
    }

    fn create(path: &Path) -> Result<Key, ClusterError> {
        let Key(bytes) = Key::random()?;
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        // Whole or not at all: half a key would be an error at every start from now on.
        let beside = path.with_extension("partial");
        let _ = fs::remove_file(&beside);
        let mut file = options.open(&beside).map_err(ClusterError::io(&beside))?;
        file.write_all(&bytes).and_then(|()| file.sync_all()).map_err(ClusterError::io(&beside))?;
        atomic::rename(&beside, path)?;
        Ok(Key(bytes))
    }

    /// What a worker shows with a game that it was asked for.
    pub fn token(&self, worker: &WorkerName, job: &Hash, number: u64) -> Hash {
        self.hash(GRANT, worker, job, number)
    }

    /// True when this game of this worker is among the share that is played again. Whoever does
    /// not know the key cannot tell before.
    pub fn is_audited(&self, worker: &WorkerName, job: &Hash, number: u64, share: f64) -> bool {
        let hash = self.hash(AUDIT, worker, job, number);
        let [a, b, c, d, ..] = *hash.as_bytes();
        f64::from(u32::from_le_bytes([a, b, c, d])) < share * 2f64.powi(32)
    }

    fn hash(&self, purpose: &str, worker: &WorkerName, job: &Hash, number: u64) -> Hash {
        // The name comes last: everything before it has a fixed length.
        let mut bytes = Vec::with_capacity(128);
        bytes.extend(purpose.as_bytes());
        bytes.extend(job.as_bytes());
        bytes.extend(number.to_le_bytes());
        bytes.extend(worker.as_str().as_bytes());
        Hash::keyed(&self.0, &bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_for_one_worker_one_order_and_one_game() {
        let [a, b] = ["a", "b"].map(|name| WorkerName::new(name).unwrap());
        let [x, y] = [Hash::of(b"x"), Hash::of(b"y")];
        let key = Key::new([7; 32]);
        let token = key.token(&a, &x, 5);
        assert_eq!(token, key.token(&a, &x, 5));
        for other in [key.token(&b, &x, 5), key.token(&a, &y, 5), key.token(&a, &x, 6)] {
            assert_ne!(token, other);
        }
        assert_ne!(token, Key::new([8; 32]).token(&a, &x, 5));
    }

    #[test]
    fn the_audited_share_is_what_was_asked_for() {
        let worker = WorkerName::new("a").unwrap();
        let (key, job) = (Key::new([7; 32]), Hash::of(b"x"));
        let count = |share| {
            (0..20_000).filter(|&number| key.is_audited(&worker, &job, number, share)).count()
        };
        assert_eq!((count(0.0), count(1.0)), (0, 20_000));
        // Four standard deviations of 20 each.
        assert!((320..480).contains(&count(0.02)), "{}", count(0.02));
    }

    #[test]
    fn a_key_is_made_once_and_a_broken_one_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let made = Key::open(&path).unwrap();
        assert_eq!(Key::open(&path).unwrap().0, made.0);
        assert_ne!(made.0, [0; 32]);
        fs::write(&path, "short").unwrap();
        let error = Key::open(&path).err().unwrap().to_string();
        assert!(error.contains("5 bytes: expected a key of 32"), "{error}");
    }
}
