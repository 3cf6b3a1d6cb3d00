//! What this crate needs to know of the learners. Nothing else here names their config.

use std::path::Path;

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

/// Adds the trained players to a registry, those of runs from this folder.
pub fn register(registry: &mut Registry, runs: &Path) {
    selfmate_learn::players::register(registry, runs);
}
