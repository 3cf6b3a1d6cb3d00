//! The only place of this crate that depends on learners and their configs.

use std::path::Path;
use std::sync::Arc;

use selfmate_arena::{PlayerSpec, Registry};
pub use selfmate_methods::charts::Chart;
pub use selfmate_methods::table::SearchKind;
use selfmate_methods::tune::{MISTAKES, Mistakes};
use selfmate_methods::{LEARNERS, Settings};
use selfmate_run::Checkpoint;
use serde::Serialize;
use utoipa::ToSchema;

use crate::view::{MistakeView, MistakesView};

/// A learner that can be trained.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Learner {
    pub name: &'static str,
    /// What it is, in one line.
    pub summary: &'static str,
    /// Presets; the default comes first.
    pub presets: Vec<&'static str>,
}

/// All learners, the main one first.
pub fn learners() -> Vec<Learner> {
    LEARNERS
        .iter()
        .map(|info| Learner {
            name: info.name,
            summary: info.summary,
            presets: info.presets.to_vec(),
        })
        .collect()
}

/// Checks single settings on top of a learner's preset.
pub fn check_settings(
    learner: Option<&str>,
    preset: Option<&str>,
    settings: &[String],
) -> Result<(), String> {
    let (learner, preset) = (learner.unwrap_or(LEARNERS[0].name), preset.unwrap_or("default"));
    let base = Settings::preset(learner, preset)
        .ok_or_else(|| format!("learner '{learner}' has no preset '{preset}'"))?;
    let settings = base.set(settings).map_err(|error| error.to_string())?;
    settings.check().map_err(|error| error.to_string())
}

/// The charts of a learner's curves.
pub fn charts(learner: &str) -> &'static [Chart] {
    selfmate_methods::learner(learner).map_or(&[], |info| info.charts)
}

/// How the players of a learner choose their moves.
pub fn search_kind(learner: &str) -> SearchKind {
    selfmate_methods::learner(learner).map_or(SearchKind::NoTree, |info| info.search)
}

/// How a player chooses its moves.
pub fn search_kind_of(registry: &Registry, spec: &PlayerSpec, runs: &Path) -> SearchKind {
    selfmate_methods::players::search_kind(registry, spec, runs)
}

/// The moves that lost games, if the learner counts them.
pub fn mistakes(checkpoint: &Checkpoint) -> Option<MistakesView> {
    let Mistakes { games, rows } = Mistakes::parse(checkpoint.files.get(MISTAKES)?).ok()?;
    let rows = rows.iter().map(|row| MistakeView {
        kind: row.kind.name(),
        opening: row.opening,
        middlegame: row.middlegame,
        endgame: row.endgame,
    });
    Some(MistakesView { games, rows: rows.collect() })
}

/// Adds trained players to a registry, including those of runs in this folder. Skipped checkpoints
/// are reported with the run, see [`crate::run::Runs::warnings`].
pub fn register(registry: &mut Registry, runs: &Path) {
    selfmate_methods::players::register(registry, runs, Arc::new(|_| {}));
}
