//! The first line of a file of games: everything that affects results, and the specs as the user
//! wrote them.
//!
//! A match or rating resumes only if the header is the same. It stores each player's exact name and
//! identity, so that a newer network or another version of an engine is not mixed in. Specs that
//! the user wrote the same way resolve to the same players as before.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::match_runner::{MatchConfig, MatchError};
use crate::openings::Openings;
use crate::registry::Registry;
use crate::resolved_player::ResolvedPlayer;
use crate::spec::SpecError;
use crate::store::{ASKED, RecordStore};

/// One player as stored in a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entrant {
    /// The spec that always means this player, never a newer one.
    pub(crate) name: String,
    /// The spec as the user wrote it.
    pub(crate) asked: String,
    /// The hash of a file or the version of an engine, if there is one.
    pub(crate) identity: Option<String>,
}

impl Entrant {
    pub(crate) fn of(player: &ResolvedPlayer) -> Result<Entrant, SpecError> {
        Ok(Entrant {
            name: player.name().to_owned(),
            asked: player.asked().to_owned(),
            identity: player.identity()?,
        })
    }

    /// The player with this role in a stored header.
    pub(crate) fn stored(header: &Value, role: &str) -> Entrant {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        Entrant {
            name: text(&header[role]).unwrap_or_default(),
            asked: text(&header[ASKED][role]).unwrap_or_default(),
            identity: text(&header["identity"][role]),
        }
    }
}

/// A player found in a stored header by the spec that the user wrote.
#[derive(Clone, Debug)]
pub(crate) struct StoredPlayer {
    pub(crate) path: PathBuf,
    pub(crate) name: String,
}

impl StoredPlayer {
    pub(crate) fn find(
        path: &Path,
        header: &Value,
        role: &str,
        asked: &str,
    ) -> Option<StoredPlayer> {
        let stored = Entrant::stored(header, role);
        let is_same = stored.asked == asked && !stored.name.is_empty();
        is_same.then(|| StoredPlayer { path: path.to_owned(), name: stored.name })
    }
}

/// Resolves a player: to the stored one if there is one, otherwise anew.
pub(crate) fn resolve(
    registry: &Registry,
    asked: &str,
    known: Option<StoredPlayer>,
) -> Result<ResolvedPlayer, MatchError> {
    match known {
        None => Ok(registry.resolve(asked)?),
        Some(StoredPlayer { path, name }) => {
            let resolved = registry.resolve(&name);
            let gone = |error| MatchError::Gone { path, player: name, error: Box::new(error) };
            Ok(resolved.map_err(gone)?.asked_as(asked))
        }
    }
}

/// Resolves both players of a match, to the stored ones if its file exists.
pub(crate) fn resolve_pair(
    registry: &Registry,
    config: &MatchConfig,
    store: Option<&Path>,
) -> Result<[ResolvedPlayer; 2], MatchError> {
    let header = store.map(RecordStore::header).transpose()?.flatten();
    let known = |role: &str, asked: &str| StoredPlayer::find(store?, header.as_ref()?, role, asked);
    Ok([
        resolve(registry, &config.a, known("a", &config.a))?,
        resolve(registry, &config.b, known("b", &config.b))?,
    ])
}

/// The header of a match: what must be the same for it to resume. The number of games and the SPRT
/// may change.
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
