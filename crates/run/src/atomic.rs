//! Files that are there whole or not at all, whenever the power goes.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::error::RunError;

/// The end of the name of what is not finished; the next writer removes it.
pub const PARTIAL: &str = "partial";

/// Writes a file: first beside its place, then into it.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), RunError> {
    let partial = with_suffix(path, PARTIAL);
    write_synced(&partial, bytes)?;
    rename(&partial, path)
}

/// Writes a file in its place and waits until the disk has it.
pub fn write_synced(path: &Path, bytes: &[u8]) -> Result<(), RunError> {
    let mut file = File::create(path).map_err(RunError::io(path))?;
    file.write_all(bytes).and_then(|()| file.sync_all()).map_err(RunError::io(path))
}

/// Gives a file or folder another name in the same folder, and waits until the disk has it.
pub fn rename(from: &Path, to: &Path) -> Result<(), RunError> {
    fs::rename(from, to).map_err(RunError::io(from))?;
    sync_folder(to.parent().unwrap_or(Path::new(".")))
}

/// Waits until the disk has the names in a folder.
pub fn sync_folder(folder: &Path) -> Result<(), RunError> {
    // Elsewhere a folder cannot be opened as a file, and renames are as safe as they get.
    if cfg!(unix) {
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(RunError::io(folder))?;
    }
    Ok(())
}

/// `path` with `.suffix` added to its whole name.
pub fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(suffix);
    name.into()
}

/// Puts a damaged file or folder out of the way, as `STEM.damaged`; says where it is now.
pub fn set_aside(path: &Path) -> Result<PathBuf, RunError> {
    let stem = path.with_extension("");
    let mut aside = with_suffix(&stem, "damaged");
    let mut number = 2;
    while aside.exists() {
        aside = with_suffix(&stem, &format!("damaged-{number}"));
        number += 1;
    }
    rename(path, &aside)?;
    Ok(aside)
}

/// Removes a file or a folder; fine when it is not there.
pub fn remove(path: &Path) -> Result<(), RunError> {
    let removed = match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    absent_is_fine(removed).map_err(RunError::io(path))
}

/// Names in a folder; none when it is not there.
pub fn names(folder: &Path) -> Result<Vec<String>, RunError> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(RunError::io(folder))?,
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(RunError::io(folder))?;
        // What is not text was not written by us.
        names.extend(entry.file_name().into_string());
    }
    names.sort_unstable();
    Ok(names)
}

/// The bytes of a file; `None` when it is not there.
pub fn read(path: &Path) -> Result<Option<Vec<u8>>, RunError> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(RunError::Io { path: path.to_owned(), error }),
    }
}

fn absent_is_fine(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writing_replaces_and_leaves_nothing_beside() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.toml");
        assert_eq!(read(&path).unwrap(), None);
        for text in ["one", "two"] {
            write(&path, text.as_bytes()).unwrap();
            assert_eq!(read(&path).unwrap().unwrap(), text.as_bytes());
        }
        assert_eq!(names(folder.path()).unwrap(), ["run.toml"]);
        remove(&path).unwrap();
        remove(&path).unwrap();
        assert!(names(&folder.path().join("nowhere")).unwrap().is_empty());
    }

    #[test]
    fn what_is_set_aside_keeps_what_was_there_before() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("00000001.games");
        for _ in 0..3 {
            fs::write(&path, "x").unwrap();
            set_aside(&path).unwrap();
        }
        let expected = ["00000001.damaged", "00000001.damaged-2", "00000001.damaged-3"];
        assert_eq!(names(folder.path()).unwrap(), expected);
    }
}
