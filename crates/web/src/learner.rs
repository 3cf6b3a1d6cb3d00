//! The only place of this crate that depends on learners and their configs.

use std::path::Path;
use std::sync::Arc;

use selfmate_arena::Registry;
pub use selfmate_methods::table::SearchKind;
use selfmate_methods::{LEARNERS, Settings};
use serde::Serialize;
use utoipa::ToSchema;

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

/// How the players of a learner choose their moves.
pub fn search_kind(learner: &str) -> SearchKind {
    selfmate_methods::learner(learner).map_or(SearchKind::NoTree, |info| info.search)
}

/// Adds trained players to a registry, including those of runs in this folder. Skipped checkpoints
/// are reported with the run, see [`crate::run::Runs::warnings`].
pub fn register(registry: &mut Registry, runs: &Path) {
    selfmate_methods::players::register(registry, runs, Arc::new(|_| {}));
}
