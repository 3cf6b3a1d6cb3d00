//! What a learner knows so far, as lines for people.

use selfmate_arena::Tuning;
use selfmate_chess::Chess;
use selfmate_run::{Checkpoint, PassedOver, RunError, RunReader};

use crate::qlearn::{self, TABLE, Table};
use crate::tune::{HISTORY, IMPORTANCE, Row, Trial};
use crate::tuning::WEIGHTS;

/// Trials and weights shown.
const SHOWN: usize = 8;

/// What the newest checkpoint of a run knows.
pub struct Knowledge {
    /// For people; empty when it says nothing that fits into lines.
    pub lines: Vec<String>,
    /// Newer checkpoints that are damaged.
    pub passed_over: Option<PassedOver>,
}

/// What the newest checkpoint of a run knows.
pub fn describe(run: &RunReader) -> Result<Knowledge, RunError> {
    let latest = run.latest_checkpoint(&[])?;
    let lines = latest.checkpoint.as_ref().map_or(Vec::new(), lines);
    Ok(Knowledge { lines, passed_over: latest.passed_over() })
}

fn lines(checkpoint: &Checkpoint) -> Vec<String> {
    let parts: [(&str, Reader); 4] =
        [(TABLE, table), (WEIGHTS, piece_values), (HISTORY, trials), (IMPORTANCE, importance)];
    let mut lines = Vec::new();
    for (name, read) in parts {
        match checkpoint.files.get(name).map(|bytes| read(bytes)) {
            Some(Ok(more)) => lines.extend(more),
            Some(Err(error)) => lines.push(format!("{name} cannot be read: {error}")),
            None => {}
        }
    }
    lines
}

/// What a file says, or why it says nothing.
type Reader = fn(&[u8]) -> Result<Vec<String>, String>;

fn table(bytes: &[u8]) -> Result<Vec<String>, String> {
    let table = Table::decode(bytes).map_err(|error| error.to_string())?;
    Ok(qlearn::describe(&table, &Chess::default()))
}

fn piece_values(bytes: &[u8]) -> Result<Vec<String>, String> {
    let value = Tuning::parse(&String::from_utf8_lossy(bytes))?.evaluation.piece_value;
    let (mg, eg) = (value.mg, value.eg);
    Ok(vec![format!("piece values {mg:?} in the middlegame, {eg:?} in the endgame")])
}

fn trials(bytes: &[u8]) -> Result<Vec<String>, String> {
    let history: Vec<Trial> = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    let promoted = history.iter().filter(|trial| trial.is_promoted).count();
    let mut lines = vec![format!("{} trials, {promoted} promotions; the last:", history.len())];
    lines.extend(history.iter().rev().take(SHOWN).map(trial));
    Ok(lines)
}

fn importance(bytes: &[u8]) -> Result<Vec<String>, String> {
    let rows: Vec<Row> = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    let mut lines = vec!["the weights that matter most:".to_owned()];
    lines.extend(rows.iter().take(SHOWN).map(|row| {
        let Row { name, gradient, certainty, .. } = row;
        format!("  {name:28} {gradient:.5} by fit, {certainty:+.1} by matches")
    }));
    Ok(lines)
}

fn trial(trial: &Trial) -> String {
    let Trial { number, proposal, games, elo, elo_error, is_promoted, .. } = trial;
    let verdict = if *is_promoted { "promoted" } else { "rejected" };
    let name = proposal.name();
    format!("  {number:5}  {name:6} {verdict}  Elo {elo:+.0} ± {elo_error:.0} in {games} games")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_read_is_named() {
        let files =
            [(HISTORY.to_owned(), b"[]".to_vec()), (TABLE.to_owned(), b"no table".to_vec())];
        let lines = lines(&Checkpoint { step: 1, files: files.into() });
        assert!(lines[0].starts_with("table.q cannot be read: "), "{}", lines[0]);
        assert_eq!(lines[1], "0 trials, 0 promotions; the last:");
    }
}
