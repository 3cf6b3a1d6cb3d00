//! Writes files for the user: atomically, and never two outputs to the same file.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use selfmate_run::atomic_file;

use crate::output::wrong_usage;

/// Writes a file. If that fails, the old content stays.
pub fn write(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    atomic_file::write_with(path, |out| out.write_all(bytes))
        .with_context(|| format!("cannot write {}", path.display()))
}

/// Exits like clap for a wrong flag if two of these flags name the same file.
pub fn check_distinct(flags: &[(&str, Option<&Path>)]) {
    let given: Vec<(&str, &Path)> =
        flags.iter().filter_map(|(flag, path)| Some((*flag, (*path)?))).collect();
    for (index, (flag, path)) in given.iter().enumerate() {
        if let Some((other, _)) = given[..index].iter().find(|(_, other)| is_same(other, path)) {
            let path = path.display();
            wrong_usage(&format!("{other} and {flag} both name {path}: expected two files"));
        }
    }
}

/// True when both paths name the same file, which need not exist yet.
pub fn is_same(one: &Path, other: &Path) -> bool {
    one == other || resolved(one) == resolved(other)
}

fn resolved(path: &Path) -> PathBuf {
    let in_its_folder = || {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new(".")).canonicalize().ok()?;
        Some(folder.join(path.file_name()?))
    };
    path.canonicalize().ok().or_else(in_its_folder).unwrap_or_else(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_paths_of_the_same_file_are_recognised() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::create_dir(path("inner")).unwrap();
        let spellings = [path("a"), path("./a"), path("inner/../a")];
        for is_there in [false, true] {
            if is_there {
                std::fs::write(path("a"), "").unwrap();
            }
            assert!(spellings.iter().all(|spelling| is_same(spelling, &path("a"))));
            assert!(!is_same(&path("a"), &path("b")) && !is_same(&path("a"), &path("inner/a")));
        }
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(path("a"), path("link")).unwrap();
            assert!(is_same(&path("link"), &path("a")));
        }
        assert!(is_same(Path::new("x"), Path::new("./x")));
    }
}
