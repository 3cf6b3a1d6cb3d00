//! Reports on standard output: text or one JSON document.

use std::io::{self, Write};

use selfmate_search::Wdl;
use selfmate_search::player::Score;
use serde::Serialize;

/// The format of reports.
pub struct Output {
    json: bool,
}

impl Output {
    pub fn new(json: bool) -> Output {
        Output { json }
    }

    /// Writes a report as JSON with `--json`, otherwise with `text`.
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

/// Exits like clap for a wrong flag: one line, exit code 2.
pub fn wrong_usage(message: &str) -> ! {
    clap::Error::raw(clap::error::ErrorKind::InvalidValue, format!("{message}\n")).exit()
}

/// True when the reader of our output is gone, as in `selfmate … | head`: not an error.
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// Formats a count with thousands separators.
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

/// Formats a number with this many decimals; `?` when it is unknown.
pub fn or_unknown(number: Option<f64>, decimals: usize) -> String {
    // Adding zero removes the sign of -0.0.
    number.map_or_else(|| "?".to_owned(), |number| format!("{:.decimals$}", number + 0.0))
}

/// A score as `+1.25` pawns or `mate in 3`.
pub fn score_text(score: Score) -> String {
    match score {
        Score::Centipawns(value) => format!("{:+.2}", f64::from(value) / 100.0),
        Score::Mate(moves) if moves > 0 => format!("mate in {moves}"),
        Score::Mate(moves) => format!("mated in {}", -moves),
    }
}

/// Probabilities as whole percent: `win 40% draw 35% loss 25%`.
pub fn wdl_text(wdl: Wdl) -> String {
    let percent = |share: f32| (share * 100.0).round();
    format!("win {}% draw {}% loss {}%", percent(wdl.win), percent(wdl.draw), percent(wdl.loss))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_numbers_are_question_marks() {
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
