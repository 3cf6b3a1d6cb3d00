//! Games in progress, for viewers: a small file that is rewritten often and removed when training
//! ends. Learning and resuming never use it.

use std::fs;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::atomic_file;
use crate::error::RunError;
use crate::reader::RunReader;
use crate::writer::Run;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LiveGame {
    /// Unique in the run.
    pub number: u64,
    pub fen: String,
    /// The move that led to `fen`, in UCI notation; `None` at the start.
    pub last: Option<String>,
    /// Moves so far, random opening moves included.
    pub plies: usize,
    /// White's expected result according to the last search, from -1 to 1.
    pub value: Option<f32>,
}

impl Run {
    /// Publishes the games in progress. Does not sync to disk.
    pub fn show_live(&self, games: &[LiveGame]) -> Result<(), RunError> {
        let path = self.live_path();
        let partial = atomic_file::with_suffix(&path, atomic_file::PARTIAL);
        let bytes = serde_json::to_vec(games).expect("strings and numbers are valid JSON");
        fs::write(&partial, bytes).map_err(RunError::io(&partial))?;
        fs::rename(&partial, &path).map_err(RunError::io(&path))
    }

    /// Removes the published games when training has ended.
    pub fn hide_live(&self) -> Result<(), RunError> {
        atomic_file::remove(&self.live_path())
    }
}

impl RunReader {
    /// The published games and their age. After a kill they are out of date.
    pub fn live_games(&self) -> Result<(Duration, Vec<LiveGame>), RunError> {
        let path = self.live_path();
        let Some(bytes) = atomic_file::read(&path)? else {
            return Ok((Duration::ZERO, Vec::new()));
        };
        let games = serde_json::from_slice(&bytes);
        let games = games.map_err(|error| RunError::damaged(&path, error))?;
        let written = fs::metadata(&path).and_then(|file| file.modified()).ok();
        let age = written.and_then(|written| written.elapsed().ok()).unwrap_or_default();
        Ok((age, games))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_games_are_visible_until_they_are_hidden() {
        let folder = tempfile::tempdir().unwrap();
        let run = Run::open(folder.path()).unwrap();
        let reader = RunReader::new(folder.path());
        assert_eq!(reader.live_games().unwrap().1, []);
        let game = LiveGame {
            number: 7,
            fen: "8/8/8/8/8/8/8/K1k5 w - - 0 1".to_owned(),
            last: Some("b1c1".to_owned()),
            plies: 80,
            value: Some(0.5),
        };
        for games in [vec![game.clone()], vec![game.clone(), game]] {
            run.show_live(&games).unwrap();
            assert_eq!(reader.live_games().unwrap().1, games);
        }
        run.hide_live().unwrap();
        run.hide_live().unwrap();
        assert_eq!(reader.live_games().unwrap().1, []);
        fs::write(folder.path().join("live.json"), "[1").unwrap();
        assert!(reader.live_games().unwrap_err().to_string().contains("live.json"));
    }
}
