//! What a file of games begins with: all that changes results, and the words that were used.
//!
//! A contest goes on only under the same header. Players stand in it under the exact name they
//! were found to have, with their identity, so that neither a newer network nor another version
//! of a program slips in; and those who were asked for as before are looked up as before.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::match_runner::{MatchConfig, MatchError};
use crate::openings::Openings;
use crate::registry::Registry;
use crate::resolved_player::ResolvedPlayer;
use crate::spec::SpecError;
use crate::store::{ASKED, RecordStore};

/// One player, as a header knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entrant {
    /// The spec that means this player and nothing newer.
    pub(crate) name: String,
    /// The spec as it was asked for.
    pub(crate) asked: String,
    /// What the name does not tell.
    pub(crate) identity: Option<String>,
}

impl Entrant {
    /// Asks a player who it is.
    pub(crate) fn of(player: &ResolvedPlayer) -> Result<Entrant, SpecError> {
        Ok(Entrant {
            name: player.name().to_owned(),
            asked: player.asked().to_owned(),
            identity: player.identity()?,
        })
    }

    /// The player that has this role in a stored header.
    pub(crate) fn stored(header: &Value, role: &str) -> Entrant {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        Entrant {
            name: text(&header[role]).unwrap_or_default(),
            asked: text(&header[ASKED][role]).unwrap_or_default(),
            identity: text(&header["identity"][role]),
        }
    }
}

/// A player that a stored contest has under the same words.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    /// The file.
    pub(crate) path: PathBuf,
    /// Who it was.
    pub(crate) name: String,
}

impl Known {
    /// Looks for the words in a header.
    pub(crate) fn find(path: &Path, header: &Value, role: &str, asked: &str) -> Option<Known> {
        let stored = Entrant::stored(header, role);
        let is_same = stored.asked == asked && !stored.name.is_empty();
        is_same.then(|| Known { path: path.to_owned(), name: stored.name })
    }
}

/// Looks a player up: as it was known before, or else anew.
pub(crate) fn resolve(
    registry: &Registry,
    asked: &str,
    known: Option<Known>,
) -> Result<ResolvedPlayer, MatchError> {
    match known {
        None => Ok(registry.resolve(asked)?),
        Some(Known { path, name }) => {
            let resolved = registry.resolve(&name);
            let gone = |error| MatchError::Gone { path, player: name, error: Box::new(error) };
            Ok(resolved.map_err(gone)?.asked_as(asked))
        }
    }
}

/// The players of a match, as its file knows them if there is one.
pub(crate) fn resolve_pair(
    registry: &Registry,
    config: &MatchConfig,
    store: Option<&Path>,
) -> Result<[ResolvedPlayer; 2], MatchError> {
    let header = store.map(RecordStore::header).transpose()?.flatten();
    let known = |role: &str, asked: &str| Known::find(store?, header.as_ref()?, role, asked);
    Ok([
        resolve(registry, &config.a, known("a", &config.a))?,
        resolve(registry, &config.b, known("b", &config.b))?,
    ])
}

/// What must be the same for a match to go on. The number of games and the test may change.
pub(crate) fn of_match(config: &MatchConfig, [a, b]: [&Entrant; 2], openings: &Openings) -> Value {
    json!({
        "format": "selfmate match 2",
        "a": a.name,
        "b": b.name,
        ASKED: { "a": a.asked, "b": b.asked },
        "identity": { "a": a.identity, "b": b.identity },
        "settings": config.settings,
        "openings": config.openings,
        "openings_hash": openings.fingerprint(),
        "seed": config.seed,
    })
}
