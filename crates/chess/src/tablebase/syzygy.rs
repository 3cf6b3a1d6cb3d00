//! Syzygy tables from files: win, draw or loss (`.rtbw`) and the distance to the next capture or
//! pawn move (`.rtbz`). shakmaty-syzygy reads and decodes them. This module opens folders, reports
//! which file is damaged and interprets probes.
//!
//! The tables have no castling rights. WDL tables assume that the halfmove clock was just reset;
//! with another clock the distance decides whether a win comes in time. Distances may be rounded,
//! one ply too short. If that ply decides, the result is unknown.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use shakmaty::{Chess, Position};
use shakmaty_syzygy::{AmbiguousWdl, MaybeRounded, Metric, ProbeError, Wdl};
use shakmaty_syzygy::{SyzygyError as Failure, Tablebase as Files};

use super::{TableResult, Tablebase};

/// File extensions and the first bytes of such files.
const KINDS: [(&str, [u8; 4]); 2] =
    [("rtbw", [0x71, 0xe8, 0x23, 0x5d]), ("rtbz", [0xd7, 0x66, 0x0c, 0xa5])];

/// Syzygy tables in one or more folders. Files are opened when first probed.
pub struct Syzygy {
    files: Files<Chess>,
    folders: Vec<PathBuf>,
    count: usize,
    /// The first error found by a probe.
    damage: OnceLock<String>,
}

/// Distance to zeroing: to the next capture, pawn move or mate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dtz {
    /// Negative if the side to move loses.
    pub plies: i32,
    /// The true distance may be one ply longer.
    pub is_rounded: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum SyzygyError {
    #[error(
        "no folder of Syzygy tables given: expected one, or several separated by '{}'",
        separator()
    )]
    NoFolder,
    #[error("{}: {error}", path.display())]
    Folder { path: PathBuf, error: io::Error },
    #[error("{}: no Syzygy tables there: expected files such as KRvK.rtbw", path.display())]
    Empty { path: PathBuf },
    #[error("{}: not a valid Syzygy table: {reason}", path.display())]
    Damaged { path: PathBuf, reason: String },
}

impl Syzygy {
    /// Finds the tables in a list of folders, separated as in PATH. Reports files that are truncated
    /// or not tables. Damage further inside a file is found when it is probed.
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
                    // The file name is not an ending.
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

    /// The number of table files.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The result with the position's halfmove clock; `None` if there is no table, or if a rounded
    /// distance leaves open whether a win comes in time.
    pub fn probe_result(&self, position: &Chess) -> Result<Option<TableResult>, SyzygyError> {
        if position.halfmoves() == 0 {
            return self.probe_after_zeroing(position);
        }
        let found = self.found(self.files.probe_wdl(position))?;
        Ok(found.and_then(|wdl| match wdl {
            AmbiguousWdl::Loss => Some(TableResult::Loss),
            AmbiguousWdl::BlessedLoss => Some(TableResult::BlessedLoss),
            AmbiguousWdl::Draw => Some(TableResult::Draw),
            AmbiguousWdl::CursedWin => Some(TableResult::CursedWin),
            AmbiguousWdl::Win => Some(TableResult::Win),
            AmbiguousWdl::MaybeWin | AmbiguousWdl::MaybeLoss => None,
        }))
    }

    /// The result if the last move was a capture or a pawn move. Needs WDL tables only.
    pub fn probe_after_zeroing(
        &self,
        position: &Chess,
    ) -> Result<Option<TableResult>, SyzygyError> {
        let found = self.found(self.files.probe_wdl_after_zeroing(position))?;
        Ok(found.map(|wdl| match wdl {
            Wdl::Loss => TableResult::Loss,
            Wdl::BlessedLoss => TableResult::BlessedLoss,
            Wdl::Draw => TableResult::Draw,
            Wdl::CursedWin => TableResult::CursedWin,
            Wdl::Win => TableResult::Win,
        }))
    }

    /// `None` if there is no table.
    pub fn probe_dtz(&self, position: &Chess) -> Result<Option<Dtz>, SyzygyError> {
        let found = self.found(self.files.probe_dtz(position))?;
        Ok(found.map(|dtz| Dtz {
            plies: dtz.ignore_rounding().0,
            is_rounded: matches!(dtz, MaybeRounded::Rounded(_)),
        }))
    }

    /// Separates missing tables (`None`) from damaged ones (an error).
    fn found<T>(&self, probed: Result<T, Failure>) -> Result<Option<T>, SyzygyError> {
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
                    ProbeError::Magic { .. } => {
                        "it does not start with the signature of a table".to_owned()
                    }
                    ProbeError::CorruptedTable { .. } => "its contents are inconsistent".to_owned(),
                };
                Err(SyzygyError::Damaged { path, reason })
            }
        }
    }

    /// Records the first damage, for callers that play on without tables.
    fn or_record_damage<T>(&self, probed: Result<Option<T>, SyzygyError>) -> Option<T> {
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
        self.or_record_damage(self.probe_after_zeroing(position))
    }

    fn result(&self, position: &Chess) -> Option<TableResult> {
        self.or_record_damage(self.probe_result(position))
    }

    fn dtz(&self, position: &Chess) -> Option<i32> {
        self.or_record_damage(self.probe_dtz(position)).map(|dtz| dtz.plies)
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

/// The table files of a folder, sorted by name, with the expected first bytes.
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

/// Checks a file's size and first bytes.
fn check(path: &Path, magic: [u8; 4]) -> Result<(), SyzygyError> {
    let damaged = |reason: String| SyzygyError::Damaged { path: path.to_owned(), reason };
    let mut file = File::open(path).map_err(|error| damaged(error.to_string()))?;
    let size = file.metadata().map_err(|error| damaged(error.to_string()))?.len();
    // Blocks of 64 bytes and a checksum of 16.
    if size % 64 != 16 {
        return Err(damaged(format!("{size} bytes long: it may be truncated; copy it again")));
    }
    let mut first = [0; 4];
    file.read_exact(&mut first).map_err(|error| damaged(error.to_string()))?;
    if first != magic {
        return Err(damaged("it does not start with the signature of a table".to_owned()));
    }
    Ok(())
}

fn separator() -> char {
    if cfg!(windows) { ';' } else { ':' }
}
