//! Validation of run names.

/// Characters with a meaning in paths or player specs.
const RESERVED: [char; 6] = ['/', '\\', '@', ',', ':', '='];

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?}: expected a plain name: no leading or trailing spaces, no control characters, none of \
     / \\ @ , : = and no '.' or '-' at the start"
)]
pub struct NameError(String);

/// Validates the name of a new run.
pub fn check_name(name: &str) -> Result<(), NameError> {
    let is_plain = !name.is_empty()
        && name.trim() == name
        && !name.contains(RESERVED)
        && !name.contains(char::is_control)
        // Hidden folders, and names that look like command-line flags.
        && !name.starts_with(['.', '-']);
    if is_plain { Ok(()) } else { Err(NameError(name.to_owned())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_names_are_accepted() {
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
