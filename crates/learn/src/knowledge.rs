//! What a learner knows so far, as lines for people.

use selfmate_arena::Tuning;
use selfmate_chess::Chess;
use selfmate_run::{Checkpoint, RunError, RunReader};

use crate::evolve::WEIGHTS;
use crate::qlearn::{self, TABLE, Table};
use crate::tune::{HISTORY, IMPORTANCE, Row, Trial};

/// Trials and weights shown.
const SHOWN: usize = 8;

/// What the newest checkpoint of a run knows; empty when it says nothing that fits into lines.
pub fn describe(run: &RunReader) -> Result<Vec<String>, RunError> {
    let (checkpoint, _) = run.latest_checkpoint(&[])?;
    Ok(checkpoint.map_or(Vec::new(), |checkpoint| lines(&checkpoint)))
}

fn lines(checkpoint: &Checkpoint) -> Vec<String> {
    let file = |name: &str| checkpoint.files.get(name);
    let mut lines = Vec::new();
    if let Some(Ok(table)) = file(TABLE).map(|bytes| Table::decode(bytes)) {
        lines.extend(qlearn::describe(&table, &Chess::default()));
    }
    if let Some(Ok(tuning)) =
        file(WEIGHTS).map(|bytes| Tuning::parse(&String::from_utf8_lossy(bytes)))
    {
        let value = tuning.evaluation.piece_value;
        lines.push(format!(
            "piece values {:?} in the middlegame, {:?} in the endgame",
            value.mg, value.eg
        ));
    }
    if let Some(Ok(history)) =
        file(HISTORY).map(|bytes| serde_json::from_slice::<Vec<Trial>>(bytes))
    {
        let promoted = history.iter().filter(|trial| trial.is_promoted).count();
        lines.push(format!("{} trials, {promoted} promotions; the last:", history.len()));
        lines.extend(history.iter().rev().take(SHOWN).map(trial));
    }
    if let Some(Ok(rows)) = file(IMPORTANCE).map(|bytes| serde_json::from_slice::<Vec<Row>>(bytes))
    {
        lines.push("the weights that matter most:".to_owned());
        lines.extend(rows.iter().take(SHOWN).map(|row| {
            format!(
                "  {:28} {:.5} by fit, {:+.1} by matches",
                row.name, row.gradient, row.certainty
            )
        }));
    }
    lines
}

fn trial(trial: &Trial) -> String {
    let Trial { number, proposal, games, elo, elo_error, is_promoted, .. } = trial;
    let verdict = if *is_promoted { "promoted" } else { "rejected" };
    let name = proposal.name();
    format!("  {number:5}  {name:6} {verdict}  Elo {elo:+.0} ± {elo_error:.0} in {games} games")
}
