//! The secret key of a run. It makes the tokens that workers send with their games, and selects the
//! games that are audited.
//!
//! A token is a keyed hash of one worker, one job and one game. A game without its token was not
//! lent to the worker that sent it. Tokens are recomputed, not stored, so games that were in transit
//! when the learner was killed are still valid.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use selfmate_run::atomic_file;

use crate::error::ClusterError;
use crate::hash::Hash;
use crate::subject::WorkerName;

#[derive(Clone)]
pub struct Key([u8; 32]);

/// Part of the hashed bytes, so that a token never equals the hash that selects audits.
const GRANT: &str = "grant";
const AUDIT: &str = "audit";

impl Key {
    pub const fn new(bytes: [u8; 32]) -> Key {
        Key(bytes)
    }

    /// Reads the key from its file, or creates the file with a random key.
    pub fn open(path: &Path) -> Result<Key, ClusterError> {
        match fs::read(path) {
            Ok(bytes) => {
                let length = bytes.len();
                let bytes = bytes.try_into().map_err(|_| ClusterError::File {
                    path: path.to_owned(),
                    what: format!("the key has {length} bytes: expected 32; restore the file, or remove it to create a new key"),
                })?;
                Ok(Key(bytes))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Key::create(path),
            Err(error) => Err(ClusterError::io(path)(error)),
        }
    }

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
        // Written to another file and renamed: a torn key would be an error at every later start.
        let partial = path.with_extension("partial");
        let _ = fs::remove_file(&partial);
        let mut file = options.open(&partial).map_err(ClusterError::io(&partial))?;
        file.write_all(&bytes)
            .and_then(|()| file.sync_all())
            .map_err(ClusterError::io(&partial))?;
        atomic_file::rename(&partial, path)?;
        Ok(Key(bytes))
    }

    /// Proves that this game was lent to this worker.
    pub fn token(&self, worker: &WorkerName, job: &Hash, number: u64) -> Hash {
        self.hash(GRANT, worker, job, number)
    }

    /// Whether this game of this worker belongs to the audited share, from 0 to 1. Workers cannot
    /// predict it, because they do not have the key.
    pub fn is_audited(&self, worker: &WorkerName, job: &Hash, number: u64, share: f64) -> bool {
        let hash = self.hash(AUDIT, worker, job, number);
        let [a, b, c, d, ..] = *hash.as_bytes();
        f64::from(u32::from_le_bytes([a, b, c, d])) < share * 2f64.powi(32)
    }

    fn hash(&self, purpose: &str, worker: &WorkerName, job: &Hash, number: u64) -> Hash {
        // Only the name varies in length, so it comes last: no two inputs give the same bytes.
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
    fn a_token_is_valid_for_one_worker_one_job_and_one_game() {
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
    fn the_audited_share_of_games_is_as_configured() {
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
    fn a_key_is_created_once_and_a_damaged_file_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let made = Key::open(&path).unwrap();
        assert_eq!(Key::open(&path).unwrap().0, made.0);
        assert_ne!(made.0, [0; 32]);
        fs::write(&path, "short").unwrap();
        let error = Key::open(&path).err().unwrap().to_string();
        assert!(error.contains("5 bytes: expected 32"), "{error}");
    }
}
