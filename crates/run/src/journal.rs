//! The games of the current generation, in the order in which they ended.
//!
//! Records are only appended. A kill can leave at most the last record truncated. It is removed on
//! the next start, and its game is played again.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::atomic_file;
use crate::chunk;
use crate::error::RunError;
use crate::frame::{self, Frames};
use crate::game::GameRecord;
use crate::reader::RunReader;
use crate::writer::Run;

#[derive(Debug)]
pub struct Journal {
    file: File,
    path: PathBuf,
    generation: u64,
    /// The length of the valid records.
    length: u64,
}

/// The games of the current generation on disk. Each is decoded only when requested.
#[derive(Clone, Debug)]
pub struct OpenGames {
    pub generation: u64,
    path: PathBuf,
    bytes: Vec<u8>,
}

impl OpenGames {
    /// The number of games.
    pub fn count(&self) -> usize {
        self.records().count()
    }

    /// All games, in the order in which they ended.
    pub fn all(&self) -> Result<Vec<GameRecord>, RunError> {
        self.records().map(|record| self.decode(record)).collect()
    }

    /// The game that ended last.
    pub fn last(&self) -> Result<Option<GameRecord>, RunError> {
        self.records().last().map(|record| self.decode(record)).transpose()
    }

    /// Skips a record that is still being written.
    fn records(&self) -> impl Iterator<Item = &[u8]> {
        Frames::new(&self.bytes).map_while(Result::ok)
    }

    fn decode(&self, record: &[u8]) -> Result<GameRecord, RunError> {
        GameRecord::decode(record).map_err(|error| RunError::damaged(&self.path, error))
    }
}

impl RunReader {
    /// The games of the current generation; `None` between generations.
    pub fn open_games(&self) -> Result<Option<OpenGames>, RunError> {
        let names = atomic_file::names(&self.games_path())?;
        let generation = |name: &String| name.strip_suffix(".open")?.parse::<u64>().ok();
        let Some(generation) = names.iter().filter_map(generation).max() else { return Ok(None) };
        let path = self.journal_path(generation);
        let bytes = atomic_file::read(&path)?;
        Ok(bytes.map(|bytes| OpenGames { generation, path, bytes }))
    }
}

impl Run {
    /// Opens the journal of a generation or creates it. Returns the games it contains, by number. If a
    /// number occurs more than once, the last game counts.
    pub fn journal(&mut self, generation: u64) -> Result<(Journal, Vec<GameRecord>), RunError> {
        let path = self.journal_path(generation);
        let bytes = atomic_file::read(&path)?.unwrap_or_default();
        let mut frames = Frames::new(&bytes);
        let mut games = BTreeMap::new();
        // The first truncated or damaged record ends the journal. Anything after it is lost.
        for record in frames.by_ref().map_while(Result::ok) {
            let game = GameRecord::decode(record);
            let game = game.map_err(|error| RunError::damaged(&path, error))?;
            games.insert(game.number, game);
        }
        let length = frames.place() as u64;
        let file = OpenOptions::new().append(true).create(true).open(&path);
        let file = file.map_err(RunError::io(&path))?;
        file.set_len(length).map_err(RunError::io(&path))?;
        // Without this, a power cut could lose the new file and with it the synced games.
        atomic_file::sync_folder(path.parent().unwrap_or(Path::new(".")))?;
        let journal = Journal { file, path, generation, length };
        Ok((journal, games.into_values().collect()))
    }
}

impl Journal {
    /// Appends a game. A kill after this returns does not lose it.
    pub fn append(&mut self, game: &GameRecord) -> Result<(), RunError> {
        let record = game.encode();
        let record = record.map_err(|error| RunError::Game { path: self.path.clone(), error })?;
        let mut bytes = Vec::with_capacity(record.len() + 8);
        frame::push(&mut bytes, &record);
        if let Err(error) = self.file.write_all(&bytes) {
            // The disk may be full. Remove the partial record, because nothing after it could be read.
            let _ = self.file.set_len(self.length);
            return Err(RunError::Io { path: self.path.clone(), error });
        }
        self.length += bytes.len() as u64;
        Ok(())
    }

    /// Syncs all games to disk. After this returns not even a power cut loses them.
    pub fn sync(&self) -> Result<(), RunError> {
        self.file.sync_data().map_err(RunError::io(&self.path))
    }

    /// Replaces the contents with these games.
    pub fn replace(&mut self, games: &[GameRecord]) -> Result<(), RunError> {
        let mut bytes = Vec::new();
        for game in games {
            let record = game.encode();
            let record =
                record.map_err(|error| RunError::Game { path: self.path.clone(), error })?;
            frame::push(&mut bytes, &record);
        }
        atomic_file::write(&self.path, &bytes)?;
        let file = OpenOptions::new().append(true).open(&self.path);
        self.file = file.map_err(RunError::io(&self.path))?;
        self.length = bytes.len() as u64;
        Ok(())
    }

    /// Removes all games, for a generation that is played again.
    pub fn clear(&mut self) -> Result<(), RunError> {
        self.file.set_len(0).map_err(RunError::io(&self.path))?;
        self.length = 0;
        Ok(())
    }

    /// Seals these games as the generation's chunk and removes the journal.
    pub fn seal(self, run: &Run, games: &[GameRecord]) -> Result<(), RunError> {
        let path = run.chunk_path(self.generation);
        let bytes = chunk::encode(&path, self.generation, games)?;
        atomic_file::write(&path, &bytes)?;
        drop(self.file);
        atomic_file::remove(&self.path)
    }
}
