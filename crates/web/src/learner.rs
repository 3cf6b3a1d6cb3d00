//! What this crate needs to know of the learners. Nothing else here names their config.

use std::path::Path;
use std::sync::Arc;

use selfmate_arena::Registry;
use selfmate_learn::Settings;
use serde::Serialize;
use utoipa::ToSchema;

/// A learner that a training can be started with.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Learner {
    /// Its name.
    pub name: &'static str,
    /// Its settings by name, the usual ones first.
    pub presets: Vec<&'static str>,
}

/// All learners, the main one first.
pub fn learners() -> Vec<Learner> {
    let learner = |name| Learner { name, presets: Settings::presets(name).to_vec() };
    Settings::LEARNERS.into_iter().map(learner).collect()
}

/// Says what is wrong with single settings over a learner's preset, if anything is.
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

/// How a player finds its moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thinking {
    /// By alpha-beta or in a tree, as its options say.
    Either,
    /// In a tree.
    Tree,
    /// In no tree.
    NoTree,
}

/// How the runs of a learner play.
pub fn thinking(learner: &str) -> Thinking {
    match learner {
        "zero" | "alphazero" | "clone" | "clone-residual" => Thinking::Either,
        "krk" | "kqk" | "kpk" => Thinking::Tree,
        _ => Thinking::NoTree,
    }
}

/// Adds the trained players to a registry, those of runs from this folder. That a checkpoint was
/// passed over is told with the run, see [`crate::run::Runs::warnings`].
pub fn register(registry: &mut Registry, runs: &Path) {
    selfmate_learn::players::register(registry, runs, Arc::new(|_| {}));
}
