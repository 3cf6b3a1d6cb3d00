//! Games while they are played, for whoever watches: a small file that is written anew every moment
//! and gone when the training has ended. Nothing is ever learned or resumed from it.

use std::fs;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::atomic;
use crate::error::RunError;
use crate::reader::RunReader;
use crate::writer::Run;

/// A game that is being played.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LiveGame {
    /// Its number in the run.
    pub number: u64,
    /// The position, as FEN.
    pub fen: String,
    /// The move that led to it, as in UCI; `None` at the start.
    pub last: Option<String>,
    /// Moves so far, a random start among them.
    pub plies: usize,
    /// What White may expect, from -1 to 1, as the last search saw it.
    pub value: Option<f32>,
}

impl Run {
    /// Shows the games that are being played. It does not wait for the disk.
    pub fn show_live(&self, games: &[LiveGame]) -> Result<(), RunError> {
        let path = self.live_path();
        let partial = atomic::with_suffix(&path, atomic::PARTIAL);
        let bytes = serde_json::to_vec(games).expect("texts and numbers are JSON");
        fs::write(&partial, bytes).map_err(RunError::io(&partial))?;
        fs::rename(&partial, &path).map_err(RunError::io(&path))
    }

    /// The training has ended: no game is being played any more.
    pub fn hide_live(&self) -> Result<(), RunError> {
        atomic::remove(&self.live_path())
    }
}

impl RunReader {
    /// The games that are being played, and how long ago they stood so. While nobody plays, or
    /// after a kill, they are those of then.
    pub fn live_games(&self) -> Result<(Duration, Vec<LiveGame>), RunError> {
        let path = self.live_path();
        let Some(bytes) = atomic::read(&path)? else { return Ok((Duration::ZERO, Vec::new())) };
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
    fn what_is_shown_is_seen_until_it_is_hidden() {
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
