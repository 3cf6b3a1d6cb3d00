//! Games of a match. Only what gives the same games on every machine is allowed: players built into
//! selfmate that need no file except their network, and limits that do not depend on speed.

use std::collections::BTreeMap;
use std::sync::Arc;

use selfmate_arena::{GameSettings, Opening, RemotePlayerSpec, ResolvedPlayer};
use selfmate_chess::{Game, Seed, fen, notation};
use serde::{Deserialize, Serialize};

use crate::hash::Hash;
use crate::job::JobError;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MatchJob {
    /// Shown to people; it does not affect the games.
    pub name: String,
    pub seed: u64,
    pub settings: GameSettings,
    pub a: MatchPlayer,
    pub b: MatchPlayer,
    /// By number of the pair: games 2n and 2n+1 share opening n.
    pub openings: BTreeMap<u64, OpeningLine>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MatchPlayer {
    pub spec: String,
    /// Hash of its network's file; `None` for players without a network.
    pub network: Option<Hash>,
}

/// The start of a pair of games, as text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpeningLine {
    pub fen: String,
    /// From `fen`, in UCI notation.
    pub moves: Vec<String>,
    pub name: Option<String>,
}

/// A match whose players and openings have been checked.
pub struct ReadyMatch {
    pub players: [ResolvedPlayer; 2],
    pub seed: Seed,
    pub settings: GameSettings,
    /// By number of the pair.
    pub openings: BTreeMap<u64, Opening>,
}

impl MatchJob {
    /// Checks the match and builds its players; `networks` are the files of A and B.
    pub fn prepare(&self, networks: [Option<Arc<[u8]>>; 2]) -> Result<ReadyMatch, JobError> {
        let invalid = |what: String| JobError::Invalid(what);
        let limit = &self.settings.limit;
        if limit.clock.is_some()
            || limit.movetime_ms.is_some()
            || self.settings.adjudication.tables.is_some()
        {
            return Err(invalid("clocks, move times and tablebases are not allowed, because such games depend on the machine".to_owned()));
        }
        let mut openings = BTreeMap::new();
        for (&pair, start) in &self.openings {
            let game = start.game().map_err(|what| invalid(format!("pair {pair}: {what}")))?;
            openings.insert(pair, Opening { game, name: start.name.clone() });
        }
        let [a, b] = networks;
        let resolve = |player: &MatchPlayer, network| {
            let remote_spec = RemotePlayerSpec { spec: player.spec.clone(), network };
            ResolvedPlayer::from_remote_spec(&remote_spec)
                .map_err(|error| invalid(error.to_string()))
        };
        Ok(ReadyMatch {
            players: [resolve(&self.a, a)?, resolve(&self.b, b)?],
            seed: Seed::new(self.seed),
            settings: self.settings.clone(),
            openings,
        })
    }
}

impl OpeningLine {
    pub fn of(opening: &Opening) -> OpeningLine {
        OpeningLine {
            fen: fen::to_fen(opening.game.start()),
            moves: opening.moves(),
            name: opening.name.clone(),
        }
    }

    fn game(&self) -> Result<Game, String> {
        // The standard position must become `Game::new()`, so that records of its games are written
        // without a FEN, as they are on threads of one process.
        let mut game = match fen::parse_game(&self.fen) {
            Ok(game) if *game.start() == *Game::new().start() => Game::new(),
            Ok(game) => game,
            Err(error) => return Err(error.to_string()),
        };
        for text in &self.moves {
            let m =
                notation::parse_uci(game.position(), text).map_err(|error| error.to_string())?;
            game.play_unchecked(m);
        }
        if game.outcome().is_some() {
            return Err("the game is over after the opening".to_owned());
        }
        Ok(game)
    }
}
