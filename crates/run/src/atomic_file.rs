//! Atomic file writes: after a crash or a power cut a file is complete or unchanged.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::error::RunError;

/// The suffix of unfinished files. The next writer removes them.
pub const PARTIAL: &str = "partial";

/// Writes a file beside its target, syncs it to disk, then renames it. If that fails, the old file
/// stays and the new one is removed. A link to a file stays a link. Pipes and devices are written
/// directly, and so are links to open files such as `/dev/stdout`: the process that opened such a
/// file would not see a replacement.
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
            // The first error is more useful than a second one.
            Err(_) => _ = fs::remove_file(&place),
        }
    }
    written
}

/// True if the path is, or leads to, a link to an open file in `/dev` or `/proc`.
fn names_open_file(path: &Path) -> bool {
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
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

/// The most links to follow. Linux has the same limit.
const MAX_LINKS: usize = 40;

/// Like [`write_with`], for bytes.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), RunError> {
    write_with(path, |out| out.write_all(bytes)).map_err(RunError::io(path))
}

/// Writes a file directly and syncs it to disk.
pub fn write_synced(path: &Path, bytes: &[u8]) -> Result<(), RunError> {
    let mut file = File::create(path).map_err(RunError::io(path))?;
    file.write_all(bytes).and_then(|()| file.sync_all()).map_err(RunError::io(path))
}

/// Renames a file or folder within its folder and syncs the folder.
pub fn rename(from: &Path, to: &Path) -> Result<(), RunError> {
    fs::rename(from, to).map_err(RunError::io(from))?;
    sync_folder(folder_of(to))
}

/// Syncs the names in a folder to disk.
pub fn sync_folder(folder: &Path) -> Result<(), RunError> {
    sync_names(folder).map_err(RunError::io(folder))
}

fn sync_names(folder: &Path) -> io::Result<()> {
    // Other systems cannot open a folder as a file; there, renames cannot be made safer.
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Appends `.suffix` to the whole name: `a.b` becomes `a.b.suffix`.
pub fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(suffix);
    name.into()
}

/// The preferred new name of a damaged file or folder: `STEM.damaged`.
pub fn aside(path: &Path) -> PathBuf {
    with_suffix(&path.with_extension(""), "damaged")
}

/// Renames a damaged file or folder to `STEM.damaged` and returns the new path.
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

/// Removes a file or folder. Succeeds if it does not exist.
pub fn remove(path: &Path) -> Result<(), RunError> {
    let removed = match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    ignore_not_found(removed).map_err(RunError::io(path))
}

/// The names in a folder; empty if the folder does not exist.
pub fn names(folder: &Path) -> Result<Vec<String>, RunError> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(RunError::io(folder))?,
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(RunError::io(folder))?;
        // We write only UTF-8 names.
        names.extend(entry.file_name().into_string());
    }
    names.sort_unstable();
    Ok(names)
}

/// The bytes of a file; `None` if it does not exist.
pub fn read(path: &Path) -> Result<Option<Vec<u8>>, RunError> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(RunError::Io { path: path.to_owned(), error }),
    }
}

fn ignore_not_found(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writing_replaces_the_file_and_leaves_no_partial_file() {
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
    fn the_old_file_stays_until_the_new_one_is_complete() {
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
    fn devices_and_links_are_not_replaced() {
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
    fn links_to_open_files_are_written_directly() {
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
    fn setting_aside_does_not_overwrite_earlier_damage() {
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
