//! Syzygy tables from files: who wins (`.rtbw`) and how far the next capture or pawn move is
//! (`.rtbz`). Reading and decoding is shakmaty-syzygy's; this opens folders, names what is wrong
//! with a file, and says what a probe means.
//!
//! The tables do not know castling. WDL tables assume that the halfmove clock has just been reset;
//! with another clock the distance decides whether a win comes in time. Distances may be rounded,
//! one ply too short; where that ply decides, a result counts as not known.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use shakmaty::{Chess, Position};
use shakmaty_syzygy::{AmbiguousWdl, MaybeRounded, Metric, ProbeError, Wdl};
use shakmaty_syzygy::{SyzygyError as Failure, Tablebase as Files};

use super::{TableResult, Tablebase};

/// The ends of the files' names, with the bytes that such files begin with.
const KINDS: [(&str, [u8; 4]); 2] =
    [("rtbw", [0x71, 0xe8, 0x23, 0x5d]), ("rtbz", [0xd7, 0x66, 0x0c, 0xa5])];

/// Syzygy tables in one or more folders. Files are opened when they are first needed.
pub struct Syzygy {
    files: Files<Chess>,
    folders: Vec<PathBuf>,
    count: usize,
    /// The first file that could not be read when it was needed.
    damage: OnceLock<String>,
}

/// A distance to the next capture, pawn move or mate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dtz {
    /// Plies, negative for the side that loses.
    pub plies: i32,
    /// The true distance may be one ply longer.
    pub is_rounded: bool,
}

/// Why tables cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SyzygyError {
    /// Nothing was named.
    #[error("no folder of tables: expected one, or several separated by '{}'", separator())]
    NoFolder,
    /// A folder cannot be read.
    #[error("{}: {error}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// A folder without tables.
    #[error("{}: no Syzygy tables there: expected files such as KRvK.rtbw", path.display())]
    Empty {
        /// The folder.
        path: PathBuf,
    },
    /// A file that is no whole table.
    #[error("{}: not a whole Syzygy table: {reason}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}

impl Syzygy {
    /// Finds the tables in a list of folders, separated as in PATH. Files that are cut short or
    /// something else are named; damage further inside shows when they are probed.
    pub fn open(folders: &str) -> Result<Syzygy, SyzygyError> {
        let folders: Vec<PathBuf> =
            std::env::split_paths(folders).filter(|path| !path.as_os_str().is_empty()).collect();
        if folders.is_empty() {
            return Err(SyzygyError::NoFolder);
        }
        let mut files = Files::new();
        let mut count = 0;
        for folder in &folders {
            let before = count;
            for (path, magic) in table_files(folder)? {
                check(&path, magic)?;
                match files.add_file(&path) {
                    Ok(()) => count += 1,
                    // Its name names no pieces.
                    Err(error) if error.kind() == io::ErrorKind::InvalidInput => {}
                    Err(error) => {
                        return Err(SyzygyError::Damaged { path, reason: error.to_string() });
                    }
                }
            }
            if count == before {
                return Err(SyzygyError::Empty { path: folder.clone() });
            }
        }
        Ok(Syzygy { files, folders, count, damage: OnceLock::new() })
    }

    /// How many files there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The result with the halfmove clock as it stands; `None` for positions that the tables do
    /// not have, and where a rounded distance leaves open whether a win comes in time.
    pub fn probe_result(&self, position: &Chess) -> Result<Option<TableResult>, SyzygyError> {
        if position.halfmoves() == 0 {
            return self.probe_after_zeroing(position);
        }
        let known = self.known(self.files.probe_wdl(position))?;
        Ok(known.and_then(|wdl| match wdl {
            AmbiguousWdl::Loss => Some(TableResult::Loss),
            AmbiguousWdl::BlessedLoss => Some(TableResult::BlessedLoss),
            AmbiguousWdl::Draw => Some(TableResult::Draw),
            AmbiguousWdl::CursedWin => Some(TableResult::CursedWin),
            AmbiguousWdl::Win => Some(TableResult::Win),
            AmbiguousWdl::MaybeWin | AmbiguousWdl::MaybeLoss => None,
        }))
    }

    /// The result as if the last move had been a capture or a pawn move. Needs WDL tables only.
    pub fn probe_after_zeroing(
        &self,
        position: &Chess,
    ) -> Result<Option<TableResult>, SyzygyError> {
        let known = self.known(self.files.probe_wdl_after_zeroing(position))?;
        Ok(known.map(|wdl| match wdl {
            Wdl::Loss => TableResult::Loss,
            Wdl::BlessedLoss => TableResult::BlessedLoss,
            Wdl::Draw => TableResult::Draw,
            Wdl::CursedWin => TableResult::CursedWin,
            Wdl::Win => TableResult::Win,
        }))
    }

    /// The distance to the next capture, pawn move or mate; `None` for positions that the tables
    /// do not have.
    pub fn probe_dtz(&self, position: &Chess) -> Result<Option<Dtz>, SyzygyError> {
        let known = self.known(self.files.probe_dtz(position))?;
        Ok(known.map(|dtz| Dtz {
            plies: dtz.ignore_rounding().0,
            is_rounded: matches!(dtz, MaybeRounded::Rounded(_)),
        }))
    }

    /// Tells what is not there from what is broken.
    fn known<T>(&self, probed: Result<T, Failure>) -> Result<Option<T>, SyzygyError> {
        match probed {
            Ok(value) => Ok(Some(value)),
            Err(Failure::Castling | Failure::TooManyPieces | Failure::MissingTable { .. }) => {
                Ok(None)
            }
            Err(Failure::ProbeFailed { metric, material, error }) => {
                let [(wdl, _), (dtz, _)] = KINDS;
                let extension = if matches!(metric, Metric::Wdl) { wdl } else { dtz };
                let name = format!("{material}.{extension}");
                let mut paths = self.folders.iter().map(|folder| folder.join(&name));
                let path = paths.find(|path| path.exists()).unwrap_or_else(|| name.into());
                let reason = match *error {
                    ProbeError::Read { error } => error.to_string(),
                    ProbeError::Magic { .. } => "its first bytes are those of no table".to_owned(),
                    ProbeError::CorruptedTable { .. } => "what it says makes no sense".to_owned(),
                };
                Err(SyzygyError::Damaged { path, reason })
            }
        }
    }

    /// For those who cannot do anything about damage but play on without tables.
    fn or_note<T>(&self, probed: Result<Option<T>, SyzygyError>) -> Option<T> {
        probed.unwrap_or_else(|error| {
            self.damage.get_or_init(|| error.to_string());
            None
        })
    }
}

impl Tablebase for Syzygy {
    fn max_pieces(&self) -> usize {
        self.files.max_pieces()
    }

    fn after_zeroing(&self, position: &Chess) -> Option<TableResult> {
        self.or_note(self.probe_after_zeroing(position))
    }

    fn result(&self, position: &Chess) -> Option<TableResult> {
        self.or_note(self.probe_result(position))
    }

    fn dtz(&self, position: &Chess) -> Option<i32> {
        self.or_note(self.probe_dtz(position)).map(|dtz| dtz.plies)
    }

    fn damage(&self) -> Option<String> {
        self.damage.get().cloned()
    }
}

impl fmt::Debug for Syzygy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Syzygy")
            .field("folders", &self.folders)
            .field("count", &self.count)
            .finish_non_exhaustive()
    }
}

/// The files of a folder that end as tables do, in the order of their names.
fn table_files(folder: &Path) -> Result<Vec<(PathBuf, [u8; 4])>, SyzygyError> {
    let error = |error| SyzygyError::Folder { path: folder.to_owned(), error };
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(error)? {
        let path = entry.map_err(error)?.path();
        let kind = KINDS.into_iter().find(|(name, _)| path.extension().is_some_and(|e| e == *name));
        found.extend(kind.map(|(_, magic)| (path, magic)));
    }
    found.sort();
    Ok(found)
}

/// Looks at a file's size and first bytes.
fn check(path: &Path, magic: [u8; 4]) -> Result<(), SyzygyError> {
    let damaged = |reason: String| SyzygyError::Damaged { path: path.to_owned(), reason };
    let mut file = File::open(path).map_err(|error| damaged(error.to_string()))?;
    let size = file.metadata().map_err(|error| damaged(error.to_string()))?.len();
    // Whole blocks of 64 bytes and a checksum of 16.
    if size % 64 != 16 {
        return Err(damaged(format!("{size} bytes long: perhaps cut short")));
    }
    let mut first = [0; 4];
    file.read_exact(&mut first).map_err(|error| damaged(error.to_string()))?;
    if first != magic {
        return Err(damaged("its first bytes are those of no table".to_owned()));
    }
    Ok(())
}

fn separator() -> char {
    if cfg!(windows) { ';' } else { ':' }
}
