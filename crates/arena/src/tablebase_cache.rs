//! Tablebases for players and for adjudication. Each list of folders is opened once and shared.

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

/// The open tablebases. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct TablebaseCache {
    open: Arc<Mutex<HashMap<String, Weak<Syzygy>>>>,
    default: Option<String>,
}

impl TablebaseCache {
    /// The tables of a list of folders; opened unless they are in use.
    pub fn open(&self, folders: &str) -> Result<Arc<Syzygy>, SyzygyError> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tables) = open.get(folders).and_then(Weak::upgrade) {
            return Ok(tables);
        }
        let tables = Arc::new(Syzygy::open(folders)?);
        open.insert(folders.to_owned(), Arc::downgrade(&tables));
        Ok(tables)
    }

    /// Damage that lookups have found in the tables in use.
    pub fn damage(&self) -> Vec<String> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let mut found: Vec<String> =
            open.values().filter_map(Weak::upgrade).filter_map(|tables| tables.damage()).collect();
        found.sort();
        found
    }

    /// True when there is a default for players that do not name folders.
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
        .option(PIECES, "look up positions with at most this many pieces (7)")
        .option(RULE, "true or false: apply the fifty-move rule to table results (true)")
}

/// The tables of a player's options; `None` for an empty list of folders.
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

/// Games end in positions that the tables contain. This part is stored in a match's file: resuming
/// with other tables is an error, but the same tables may be in another folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TablebaseRule {
    /// The largest number of pieces of any table.
    pub pieces: usize,
    /// The number of table files.
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
