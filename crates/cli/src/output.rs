//! Where reports go: text for people or one JSON document, on standard output.

use std::io::{self, Write};

use serde::Serialize;

/// How to report.
pub struct Output {
    json: bool,
}

impl Output {
    pub fn new(json: bool) -> Output {
        Output { json }
    }

    /// Writes a report: as JSON when asked for, else by `text`.
    pub fn report<T: Serialize>(
        &self,
        report: &T,
        text: impl FnOnce(&T, &mut dyn Write) -> io::Result<()>,
    ) -> anyhow::Result<()> {
        let mut out = io::stdout().lock();
        if self.json {
            serde_json::to_writer_pretty(&mut out, report).map_err(io::Error::from)?;
            writeln!(out)?;
        } else {
            text(report, &mut out)?;
        }
        out.flush()?;
        Ok(())
    }
}

/// Ends the program as for any wrong flag: one line, exit code 2.
pub fn wrong_usage(message: &str) -> ! {
    clap::Error::raw(clap::error::ErrorKind::InvalidValue, format!("{message}\n")).exit()
}

/// True when the reader of our output has gone, as `selfmate … | head` does: nothing to report.
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// A count with thousands separated, for people.
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number with so many decimals; `?` when it is not known.
pub fn or_unknown(number: Option<f64>, decimals: usize) -> String {
    // Without the sum, zero may come with a minus.
    number.map_or_else(|| "?".to_owned(), |number| format!("{:.decimals$}", number + 0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unknown_is_no_number() {
        assert_eq!(or_unknown(None, 2), "?");
        assert_eq!(
            (or_unknown(Some(-0.0), 2), or_unknown(Some(-1.26), 1)),
            ("0.00".into(), "-1.3".into())
        );
    }

    #[test]
    fn thousands_are_separated() {
        let cases = [(0, "0"), (999, "999"), (1_000, "1,000"), (119_060_324, "119,060,324")];
        for (number, text) in cases {
            assert_eq!(thousands(number), text);
        }
    }
}
