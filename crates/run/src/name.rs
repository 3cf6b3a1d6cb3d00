//! Names of runs.

/// Characters that mean something else where a run is named: in paths and in player specs.
const TAKEN: [char; 6] = ['/', '\\', '@', ',', ':', '='];

/// A name that no run can have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?}: expected a plain name: no spaces at its ends, no control characters, none of \
     / \\ @ , : = and neither '.' nor '-' at its start"
)]
pub struct NameError(String);

/// Says what is wrong with the name of a new run, if anything is.
pub fn check_name(name: &str) -> Result<(), NameError> {
    let is_plain = !name.is_empty()
        && name.trim() == name
        && !name.contains(TAKEN)
        && !name.contains(char::is_control)
        // A hidden folder, and what every command would take for a flag.
        && !name.starts_with(['.', '-']);
    if is_plain { Ok(()) } else { Err(NameError(name.to_owned())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain() {
        for name in ["zero", "a b", "Ende-2.0", "größer", "1"] {
            assert_eq!(check_name(name), Ok(()));
        }
        for name in [
            "",
            " ",
            "a ",
            ".",
            "..",
            ".a",
            "-",
            "-a",
            "--run",
            "a/b",
            "a\\b",
            "a@1",
            "a,b",
            "a:b",
            "a=b",
            "a\nb",
            "a\r",
            "\ta",
            "a\0b",
            "a\u{1b}[2Jb",
            "a\u{85}b",
        ] {
            let error = check_name(name).unwrap_err().to_string();
            assert_eq!(error.lines().count(), 1, "{error}");
            assert!(!error.contains(char::is_control), "{error}");
        }
    }
}
