//! Tablebases for players and referees: opened once, shared by all who name the same folders.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use selfmate_chess::Game;
use selfmate_chess::tablebase::{FiftyMoveRule, Syzygy, SyzygyError, Tablebase, Tables};
use serde::{Deserialize, Serialize};

use crate::game::PositionAdjudicator;
use crate::registry::PlayerKind;
use crate::spec::{SpecError, SpecOptions};

const FOLDERS: &str = "syzygy";
const PIECES: &str = "syzygy_pieces";
const RULE: &str = "syzygy_50";

/// The tables that are open. A clone is the same tablebases.
#[derive(Clone, Debug, Default)]
pub struct TablebaseCache {
    open: Arc<Mutex<HashMap<String, Weak<Syzygy>>>>,
    default: Option<String>,
}

impl TablebaseCache {
    /// The tables of a list of folders, opened unless somebody has them.
    pub fn open(&self, folders: &str) -> Result<Arc<Syzygy>, SyzygyError> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tables) = open.get(folders).and_then(Weak::upgrade) {
            return Ok(tables);
        }
        let tables = Arc::new(Syzygy::open(folders)?);
        open.insert(folders.to_owned(), Arc::downgrade(&tables));
        Ok(tables)
    }

    /// What is wrong with tables that are in use, once a probe has found out.
    pub fn damage(&self) -> Vec<String> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let mut found: Vec<String> =
            open.values().filter_map(Weak::upgrade).filter_map(|tables| tables.damage()).collect();
        found.sort();
        found
    }

    /// True when players that name no tables have some.
    pub(crate) fn has_default(&self) -> bool {
        self.default.is_some()
    }

    pub(crate) fn set_default(&mut self, folders: &str) {
        self.default = Some(folders.to_owned()).filter(|folders| !folders.is_empty());
    }
}

/// Adds the options of [`read`] to a kind.
#[must_use]
pub fn declare(kind: PlayerKind) -> PlayerKind {
    kind.option(FOLDERS, "folders with Syzygy tables, such as a:b (none)")
        .option(PIECES, "look up positions with at most so many pieces (7)")
        .option(RULE, "true or false: the fifty-move rule counts in tables (true)")
}

/// The tables that a player's options name; none for an empty list of folders.
pub fn read(options: &SpecOptions<'_>) -> Result<Option<Tables>, SpecError> {
    let pieces = options.number(PIECES, 0..=7)?.unwrap_or(7);
    let rule = match options.choice(RULE, &["true", "false"])? {
        Some(1) => FiftyMoveRule::Ignored,
        _ => FiftyMoveRule::Obeyed,
    };
    let folders = options.spec.option(FOLDERS).or(options.tablebases.default.as_deref());
    let Some(folders) = folders.filter(|folders| !folders.is_empty()) else { return Ok(None) };
    let tables = options.tablebases.open(folders).map_err(|error| SpecError::Tables {
        kind: options.spec.kind.clone(),
        reason: error.to_string(),
    })?;
    Ok(Some(Tables::new(tables).up_to(pieces as usize).under(rule)))
}

/// Games end where tables know the result. What is kept of the tables in a match's file: going on
/// with others would be another match, the same ones in another folder are not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TablebaseRule {
    /// The most pieces of any table.
    pub pieces: usize,
    /// How many files there are.
    pub files: usize,
}

impl TablebaseRule {
    /// The rule for these tables, and the adjudicator that goes with it.
    pub fn new(tables: Arc<Syzygy>) -> (TablebaseRule, Arc<PositionAdjudicator>) {
        let rule = TablebaseRule { pieces: tables.max_pieces(), files: tables.count() };
        let tables = Tables::new(tables);
        (rule, Arc::new(move |game: &Game| tables.outcome(game.position())))
    }
}
