//! Files that are there whole or not at all.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Writes a file beside its place, then puts it there; when that fails, what was there stays. What
/// is no plain file, such as a pipe, a device or a link, is written to as it is.
pub fn write_whole<T, E: From<io::Error>>(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> Result<T, E>,
) -> Result<T, E> {
    let is_plain = fs::symlink_metadata(path).map_or(true, |known| known.is_file());
    let mut beside = path.as_os_str().to_owned();
    beside.push(".partial");
    let place = if is_plain { Path::new(&beside) } else { path };
    let mut out = BufWriter::new(File::create(place)?);
    let written = write(&mut out).and_then(|written| {
        out.flush()?;
        Ok(written)
    });
    drop(out);
    if is_plain {
        match &written {
            Ok(_) => fs::rename(place, path)?,
            // The reason for the failure says more than that of a second one.
            Err(_) => _ = fs::remove_file(place),
        }
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_there_stays_until_all_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.pgn");
        for text in ["one", "two"] {
            write_whole(&path, |out| out.write_all(text.as_bytes())).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        let failed = write_whole(&path, |out| {
            out.write_all(b"three")?;
            Err::<(), _>(io::Error::other("no"))
        });
        assert_eq!(failed.unwrap_err().to_string(), "no");
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn devices_and_links_stay_what_they_are() {
        use std::os::unix::fs::FileTypeExt;
        let null = Path::new("/dev/null");
        write_whole(null, |out| out.write_all(b"one")).unwrap();
        assert!(fs::metadata(null).unwrap().file_type().is_char_device());
        let folder = tempfile::tempdir().unwrap();
        assert!(write_whole(folder.path(), |out| out.write_all(b"one")).is_err());
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        std::os::unix::fs::symlink(&file, &link).unwrap();
        write_whole(&link, |out| out.write_all(b"one")).unwrap();
        assert!(link.is_symlink() && fs::read(file).unwrap() == b"one");
    }
}
