//! What the newest checkpoint of a run has learned, in words.

use selfmate_run::{Checkpoint, PassedOver, RunError, RunReader};

use crate::table::LEARNERS;

pub struct RunDescription {
    /// Empty when the learner has nothing that fits into lines.
    pub lines: Vec<String>,
    /// Newer checkpoints that are damaged.
    pub passed_over: Option<PassedOver>,
}

pub fn describe(run: &RunReader) -> Result<RunDescription, RunError> {
    let latest = run.latest_checkpoint(&[])?;
    let lines = latest.checkpoint.as_ref().map_or(Vec::new(), lines);
    Ok(RunDescription { lines, passed_over: latest.passed_over() })
}

/// Files are told apart by their names, which learners share where they share the format.
fn lines(checkpoint: &Checkpoint) -> Vec<String> {
    let mut lines = Vec::new();
    let mut described = Vec::new();
    for description in LEARNERS.iter().flat_map(|info| info.descriptions) {
        let file = description.file;
        if described.contains(&file) {
            continue;
        }
        let Some(bytes) = checkpoint.files.get(file) else { continue };
        described.push(file);
        match (description.lines)(bytes) {
            Ok(more) => lines.extend(more),
            Err(error) => lines.push(format!("{file} cannot be read: {error}")),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::qlearn::TABLE;
    use crate::tune::HISTORY;

    #[test]
    fn files_that_cannot_be_read_are_named() {
        let files =
            [(HISTORY.to_owned(), b"[]".to_vec()), (TABLE.to_owned(), b"no table".to_vec())];
        let lines = lines(&Checkpoint { step: 1, files: files.into() });
        assert!(lines[0].starts_with("table.q cannot be read: "), "{}", lines[0]);
        assert_eq!(lines[1], "0 trials, 0 promotions; the last:");
    }
}
