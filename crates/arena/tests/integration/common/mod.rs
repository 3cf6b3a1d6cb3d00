//! What several tests of matches share.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::path::Path;

use selfmate_arena::{MatchConfig, MatchError, MatchGame, MatchReport, MatchRun};
use selfmate_arena::{Registry, run_match};

pub fn play(config: &MatchConfig, run: &MatchRun) -> Result<MatchReport, MatchError> {
    run_match(config, run, &Registry::standard(), &mut |_| {})
}

/// The stored games, by number.
pub fn records(path: &Path) -> Vec<MatchGame> {
    let text = std::fs::read_to_string(path).unwrap();
    let mut records: Vec<MatchGame> =
        text.lines().skip(1).map(|line| serde_json::from_str(line).unwrap()).collect();
    records.sort_by_key(|record| record.game);
    records
}
