//! Files that are there whole or not at all, whenever the power goes.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::error::RunError;

/// The end of the name of what is not finished; the next writer removes it.
pub const PARTIAL: &str = "partial";

/// Writes a file beside its place, waits until the disk has it, then moves it there. When that
/// fails, what was there stays and nothing is left beside it. A link to a file stays a link. What
/// is no plain file, such as a pipe or a device, is written to as it is, and so is an open file that
/// the system has a name for, such as `/dev/stdout`: whoever opened it would not see another.
pub fn write_with<T, E: From<io::Error>>(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> Result<T, E>,
) -> Result<T, E> {
    let is_open = names_open_file(path);
    let target = match fs::canonicalize(path) {
        Ok(target) if !is_open => target,
        _ => path.to_owned(),
    };
    let is_plain = !is_open && fs::symlink_metadata(&target).map_or(true, |known| known.is_file());
    let place = if is_plain { with_suffix(&target, PARTIAL) } else { target.clone() };
    let mut out = BufWriter::new(File::create(&place)?);
    let written = write(&mut out).and_then(|written| {
        out.flush()?;
        if is_plain {
            out.get_ref().sync_all()?;
            fs::rename(&place, &target)?;
        }
        Ok(written)
    });
    if is_plain {
        match &written {
            Ok(_) => sync_names(folder_of(&target))?,
            // The reason for the failure says more than that of a second one.
            Err(_) => _ = fs::remove_file(&place),
        }
    }
    written
}

/// True when a path is a link of the system's to an open file, or leads to one.
fn names_open_file(path: &Path) -> bool {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        let Ok(next) = fs::read_link(&path) else { return false };
        let Ok(folder) = fs::canonicalize(folder_of(&path)) else { return false };
        let is_device = folder.starts_with("/dev") && !folder.starts_with("/dev/shm");
        if is_device || folder.starts_with("/proc") {
            return true;
        }
        path = folder.join(next);
    }
    false
}

/// Links after each other that a system follows.
const MOST_LINKS: usize = 40;

/// As [`write_with`], for bytes that are there already.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), RunError> {
    write_with(path, |out| out.write_all(bytes)).map_err(RunError::io(path))
}

/// Writes a file in its place and waits until the disk has it.
pub fn write_synced(path: &Path, bytes: &[u8]) -> Result<(), RunError> {
    let mut file = File::create(path).map_err(RunError::io(path))?;
    file.write_all(bytes).and_then(|()| file.sync_all()).map_err(RunError::io(path))
}

/// Gives a file or folder another name in the same folder, and waits until the disk has it.
pub fn rename(from: &Path, to: &Path) -> Result<(), RunError> {
    fs::rename(from, to).map_err(RunError::io(from))?;
    sync_folder(folder_of(to))
}

/// Waits until the disk has the names in a folder.
pub fn sync_folder(folder: &Path) -> Result<(), RunError> {
    sync_names(folder).map_err(RunError::io(folder))
}

fn sync_names(folder: &Path) -> io::Result<()> {
    // RemoteGames a folder cannot be opened as a file, and renames are as safe as they get.
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}

/// The folder that a file is in.
fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// `path` with `.suffix` added to its whole name.
pub fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(suffix);
    name.into()
}

/// Where a damaged file or folder is put first: `STEM.damaged`.
pub fn aside(path: &Path) -> PathBuf {
    with_suffix(&path.with_extension(""), "damaged")
}

/// Puts a damaged file or folder out of the way, as `STEM.damaged`; says where it is now.
pub fn set_aside(path: &Path) -> Result<PathBuf, RunError> {
    let first = aside(path);
    let (mut place, mut number) = (first.clone(), 2);
    while place.exists() {
        place = first.with_extension(format!("damaged-{number}"));
        number += 1;
    }
    rename(path, &place)?;
    Ok(place)
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
    fn what_was_there_stays_until_all_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.pgn");
        for text in ["one", "two"] {
            write_with(&path, |out| out.write_all(text.as_bytes())).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        let failed = write_with(&path, |out| {
            out.write_all(b"three")?;
            Err::<(), _>(io::Error::other("no"))
        });
        assert_eq!(failed.unwrap_err().to_string(), "no");
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
        assert_eq!(names(folder.path()).unwrap(), ["a.pgn"]);
    }

    #[cfg(unix)]
    #[test]
    fn devices_and_links_stay_what_they_are() {
        use std::os::unix::fs::{FileTypeExt, symlink};
        let null = Path::new("/dev/null");
        write_with(null, |out| out.write_all(b"one")).unwrap();
        assert!(fs::metadata(null).unwrap().file_type().is_char_device());
        let folder = tempfile::tempdir().unwrap();
        assert!(write_with(folder.path(), |out| out.write_all(b"one")).is_err());
        let [file, link] = ["file", "link"].map(|name| folder.path().join(name));
        symlink(&file, &link).unwrap();
        // First without a file behind the link, then with one.
        for text in ["one", "two"] {
            write_with(&link, |out| out.write_all(text.as_bytes())).unwrap();
            assert!(link.is_symlink());
            assert_eq!(fs::read_to_string(&file).unwrap(), text);
        }
        assert_eq!(names(folder.path()).unwrap(), ["file", "link"]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn an_open_file_under_a_name_of_the_system_stays_that_file() {
        use std::os::fd::AsRawFd;
        use std::os::unix::fs::{MetadataExt, symlink};
        let folder = tempfile::tempdir().unwrap();
        let [path, link] = ["file", "link"].map(|name| folder.path().join(name));
        let file = File::create(&path).unwrap();
        let open = [
            format!("/proc/self/fd/{0}", file.as_raw_fd()),
            format!("/dev/fd/{0}", file.as_raw_fd()),
        ];
        symlink(&open[0], &link).unwrap();
        for name in open.iter().map(Path::new).chain([link.as_path()]) {
            let text = name.display().to_string();
            write_with(name, |out| out.write_all(text.as_bytes())).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
            let inodes = [file.metadata(), fs::metadata(&path)].map(|known| known.unwrap().ino());
            assert_eq!(inodes[0], inodes[1], "{text}");
        }
        assert_eq!(names(folder.path()).unwrap(), ["file", "link"]);
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
