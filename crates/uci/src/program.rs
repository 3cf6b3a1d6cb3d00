//! How to run an engine: program, arguments, options and timeouts.
//!
//! Nothing is started here; [`crate::process`] does that.

use std::env;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::process::EngineError;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineCommand {
    /// A path, or a name to look for (see [`find_program`]).
    pub program: String,
    pub arguments: Vec<String>,
    /// The working directory; the current one if `None`.
    pub directory: Option<PathBuf>,
    /// Options to set before the first game. The value is `None` for buttons.
    pub options: Vec<(String, Option<String>)>,
    pub patience: Patience,
}

/// How long to wait for an engine before it counts as hung.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// For `uciok`.
    pub handshake: Duration,
    /// For `readyok`. Engines load networks and clear tables before it.
    pub ready: Duration,
    /// For `bestmove` after `stop`.
    pub stop: Duration,
    /// For the exit after `quit`, before it is killed.
    pub quit: Duration,
}

impl Default for Patience {
    fn default() -> Patience {
        Patience {
            handshake: Duration::from_secs(10),
            ready: Duration::from_secs(30),
            stop: Duration::from_secs(1),
            quit: Duration::from_millis(500),
        }
    }
}

impl EngineCommand {
    pub fn new(program: impl Into<String>) -> EngineCommand {
        EngineCommand {
            program: program.into(),
            arguments: Vec::new(),
            directory: None,
            options: Vec::new(),
            patience: Patience::default(),
        }
    }

    /// Parses a command line: words separated by spaces, with quotes around words that contain spaces.
    ///
    /// ```
    /// let command = selfmate_uci::EngineCommand::parse("lc0 --weights='my net.pb' \"\"");
    /// assert_eq!(command.program, "lc0");
    /// assert_eq!(command.arguments, ["--weights=my net.pb", ""]);
    /// ```
    pub fn parse(line: &str) -> EngineCommand {
        let mut words = split_words(line).into_iter();
        let mut command = EngineCommand::new(words.next().unwrap_or_default());
        command.arguments = words.collect();
        command
    }

    /// Adds arguments.
    #[must_use]
    pub fn arguments<T: Into<String>>(mut self, arguments: impl IntoIterator<Item = T>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Adds an option to set before the first game.
    #[must_use]
    pub fn option(mut self, name: &str, value: impl Into<String>) -> Self {
        self.options.push((name.to_owned(), Some(value.into())));
        self
    }
}

/// Finds a program: a path as given, a name in `PATH`, and Stockfish also where Debian and others
/// install it.
pub fn find_program(name: &str) -> Result<PathBuf, EngineError> {
    let not_found = || EngineError::NotFound { program: name.to_owned() };
    if name.is_empty() {
        return Err(not_found());
    }
    if Path::new(name).components().count() > 1 {
        let path = PathBuf::from(name);
        return if is_program(&path) { Ok(path) } else { Err(not_found()) };
    }
    let paths = env::var_os("PATH").unwrap_or_default();
    let usual = ["/usr/games", "/usr/local/bin", "/opt/homebrew/bin"];
    env::split_paths(&paths)
        .chain(usual.iter().filter(|_| is_stockfish(name)).map(PathBuf::from))
        .map(|directory| directory.join(name).with_extension(env::consts::EXE_EXTENSION))
        .find(|path| is_program(path))
        .ok_or_else(not_found)
}

pub(crate) fn is_stockfish(name: &str) -> bool {
    name.to_ascii_lowercase().contains("stockfish")
}

#[cfg(unix)]
fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(path: &Path) -> bool {
    path.is_file()
}

fn split_words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in line.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => word.get_or_insert_default().push(c),
            None if c == '\'' || c == '"' => {
                quote = Some(c);
                // Empty quotes are a word too.
                word.get_or_insert_default();
            }
            None if c.is_whitespace() => words.extend(word.take()),
            None => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_by_path_and_by_name() {
        assert_eq!(find_program("/bin/sh"), Ok(PathBuf::from("/bin/sh")));
        assert!(find_program("sh").is_ok());
        for missing in ["", "no-such-engine", "/bin", "/etc/passwd", "./no/such"] {
            assert!(
                matches!(find_program(missing), Err(EngineError::NotFound { .. })),
                "{missing}"
            );
        }
    }

    #[test]
    fn the_error_for_a_missing_stockfish_explains_how_to_install_it() {
        let message = |name: &str| EngineError::NotFound { program: name.to_owned() }.to_string();
        assert!(message("stockfish").contains("apt install stockfish"));
        assert!(!message("lc0").contains("apt install stockfish"));
    }
}
