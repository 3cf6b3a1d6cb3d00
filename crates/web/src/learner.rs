//! The only place of this crate that depends on learners and their configs.

use std::path::Path;
use std::sync::Arc;

use selfmate_arena::Registry;
use selfmate_learn::Settings;
use serde::Serialize;
use utoipa::ToSchema;

/// A learner that can be trained.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Learner {
    /// Its name.
    pub name: &'static str,
    /// Presets; the default comes first.
    pub presets: Vec<&'static str>,
}

/// All learners, the main one first.
pub fn learners() -> Vec<Learner> {
    let learner = |name| Learner { name, presets: Settings::presets(name).to_vec() };
    Settings::LEARNERS.into_iter().map(learner).collect()
}

/// Checks single settings on top of a learner's preset.
pub fn check_settings(
    learner: Option<&str>,
    preset: Option<&str>,
    settings: &[String],
) -> Result<(), String> {
    let (learner, preset) = (learner.unwrap_or(Settings::LEARNERS[0]), preset.unwrap_or("default"));
    let base = Settings::preset(learner, preset)
        .ok_or_else(|| format!("learner '{learner}' has no preset '{preset}'"))?;
    let settings = base.set(settings).map_err(|error| error.to_string())?;
    settings.check().map_err(|error| error.to_string())
}

/// How a player chooses its moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchKind {
    /// By alpha-beta or tree search, depending on its options.
    Either,
    /// By tree search.
    Tree,
    /// Without tree search.
    NoTree,
}

/// How the players of a learner choose their moves.
pub fn search_kind(learner: &str) -> SearchKind {
    match learner {
        "zero" | "alphazero" | "clone" | "clone-residual" => SearchKind::Either,
        "krk" | "kqk" | "kpk" => SearchKind::Tree,
        _ => SearchKind::NoTree,
    }
}

/// Adds trained players to a registry, including those of runs in this folder. Skipped checkpoints
/// are reported with the run, see [`crate::run::Runs::warnings`].
pub fn register(registry: &mut Registry, runs: &Path) {
    selfmate_learn::players::register(registry, runs, Arc::new(|_| {}));
}
