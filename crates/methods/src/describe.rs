//! A text description of the newest checkpoint of a run.

use selfmate_run::{Checkpoint, RunError, RunReader, SkippedCheckpoints};

use crate::table::LEARNERS;

pub struct RunDescription {
    /// Empty when the learner has no description.
    pub lines: Vec<String>,
    /// Newer checkpoints that were skipped because they are damaged.
    pub skipped_checkpoints: Option<SkippedCheckpoints>,
}

pub fn describe(run: &RunReader) -> Result<RunDescription, RunError> {
    let latest = run.latest_checkpoint(&[])?;
    let lines = latest.checkpoint.as_ref().map_or(Vec::new(), lines);
    Ok(RunDescription { lines, skipped_checkpoints: latest.skipped_checkpoints() })
}

/// Descriptions go by file name; learners with the same format share the name.
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
    fn unreadable_files_are_reported_by_name() {
        let files =
            [(HISTORY.to_owned(), b"[]".to_vec()), (TABLE.to_owned(), b"not a table".to_vec())];
        let lines = lines(&Checkpoint { step: 1, files: files.into() });
        assert!(lines[0].starts_with("table.q cannot be read: "), "{}", lines[0]);
        assert_eq!(lines[1], "0 trials, 0 promotions; the last:");
    }
}
