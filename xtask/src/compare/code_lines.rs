//! Counts lines of code: no blank lines, no comments, no tests.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// The lines of these Rust files and of all files in these folders.
pub fn count(root: &Path, paths: &[&str]) -> Result<usize> {
    paths.iter().map(|path| count_path(&root.join(path))).sum()
}

fn count_path(path: &Path) -> Result<usize> {
    let failed = || format!("cannot read {}", path.display());
    if path.is_dir() {
        let entries = fs::read_dir(path).with_context(failed)?;
        return entries.map(|entry| count_path(&entry.with_context(failed)?.path())).sum();
    }
    if path.extension().is_none_or(|extension| extension != "rs") {
        return Ok(0);
    }
    Ok(lines_of(&fs::read_to_string(path).with_context(failed)?))
}

/// The lines of a file. The module of tests is the last item of a file.
fn lines_of(text: &str) -> usize {
    let lines = text.lines().map(str::trim).collect::<Vec<_>>();
    let is_test = |pair: &[&str]| pair[0] == "#[cfg(test)]" && pair[1].starts_with("mod tests");
    let end = lines.windows(2).position(is_test).unwrap_or(lines.len());
    lines[..end].iter().filter(|line| !line.is_empty() && !line.starts_with("//")).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::method::METHODS;
    use crate::process::root;

    #[test]
    fn blank_lines_comments_and_tests_do_not_count() {
        let text = "//! A file.\n\nuse x;\n\n/// One.\nfn one() {\n    // why\n    two();\n}\n\n\
                    #[cfg(test)]\nmod tests {\n    fn three() {}\n}\n";
        assert_eq!(lines_of(text), 4);
        assert_eq!(lines_of("#[cfg(test)]\nfn helper() {}\n"), 2);
    }

    #[test]
    fn the_files_of_every_method_exist() {
        for method in METHODS {
            for file in method.files {
                assert!(count(root(), &[file]).unwrap() > 0, "{}: {file}", method.name);
            }
        }
        assert!(count(root(), &["nowhere.rs"]).is_err());
    }
}
