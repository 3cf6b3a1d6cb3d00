//! Games of a match: players of selfmate that need nothing but their network, and limits that do not
//! depend on the speed of a machine.

use std::collections::BTreeMap;
use std::sync::Arc;

use selfmate_arena::{GameSettings, Opening, RemotePlayerSpec, ResolvedPlayer};
use selfmate_chess::{Game, Seed, fen, notation};
use serde::{Deserialize, Serialize};

use crate::hash::Hash;
use crate::job::JobError;

/// Some games of a match.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MatchJob {
    /// What is played, for people.
    pub name: String,
    /// The seed of the match.
    pub seed: u64,
    /// How games are played.
    pub settings: GameSettings,
    /// The first player.
    pub a: MatchPlayer,
    /// The second player.
    pub b: MatchPlayer,
    /// Where each pair of games starts.
    pub openings: BTreeMap<u64, OpeningLine>,
}

/// A player.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MatchPlayer {
    /// Its spec.
    pub spec: String,
    /// The file of its network, if it has one.
    pub network: Option<Hash>,
}

/// Where a pair of games starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpeningLine {
    /// The position.
    pub fen: String,
    /// The moves from there, in UCI notation.
    pub moves: Vec<String>,
    /// What it is called.
    pub name: Option<String>,
}

/// A match that can be played.
pub struct ReadyMatch {
    /// A and B.
    pub players: [ResolvedPlayer; 2],
    /// The seed of the match.
    pub seed: Seed,
    /// How games are played.
    pub settings: GameSettings,
    /// One for each pair of games.
    pub openings: BTreeMap<u64, Opening>,
}

impl MatchJob {
    /// The match with everything it needs; `networks` are the files of A and B.
    pub fn prepare(&self, networks: [Option<Arc<[u8]>>; 2]) -> Result<ReadyMatch, JobError> {
        let unreadable = |what: String| JobError::Unreadable(what);
        let limit = &self.settings.limit;
        if limit.clock.is_some()
            || limit.movetime_ms.is_some()
            || self.settings.adjudication.tables.is_some()
        {
            return Err(unreadable("games that depend on the machine".to_owned()));
        }
        let mut openings = BTreeMap::new();
        for (&pair, start) in &self.openings {
            let game = start.game().map_err(|what| unreadable(format!("pair {pair}: {what}")))?;
            openings.insert(pair, Opening { game, name: start.name.clone() });
        }
        let [a, b] = networks;
        let resolve = |player: &MatchPlayer, network| {
            let remote_spec = RemotePlayerSpec { spec: player.spec.clone(), network };
            ResolvedPlayer::from_remote_spec(&remote_spec)
                .map_err(|error| unreadable(error.to_string()))
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
    /// As it is sent.
    pub fn of(opening: &Opening) -> OpeningLine {
        OpeningLine {
            fen: fen::to_fen(opening.game.start()),
            moves: opening.moves(),
            name: opening.name.clone(),
        }
    }

    fn game(&self) -> Result<Game, String> {
        // The usual start by itself, so that its games are written as they would be here.
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
            return Err("the opening is over".to_owned());
        }
        Ok(game)
    }
}
