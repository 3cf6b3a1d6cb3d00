//! What some games of a match are played with, as one document.
//!
//! Like an [`crate::order::Order`], with players in place of a network: those of selfmate that need
//! nothing of a machine but their network, and limits that do not depend on its speed. It is JSON,
//! so the first byte tells it apart.

use std::collections::BTreeMap;
use std::sync::Arc;

use selfmate_arena::{GameSettings, Opening, RemotePlayerSpec, ResolvedPlayer};
use selfmate_chess::{Game, Seed, fen, notation};
use serde::{Deserialize, Serialize};

use crate::hash::Hash;
use crate::order::{MAX_ORDER, OrderError, PROTOCOL};

/// What some games of a match are played with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fixture {
    /// See [`PROTOCOL`].
    pub protocol: u32,
    /// What is played, for people.
    pub name: String,
    /// The seed of the match.
    pub seed: u64,
    /// How games are played.
    pub settings: GameSettings,
    /// The first player.
    pub a: Contestant,
    /// The second player.
    pub b: Contestant,
    /// Where each pair of games starts.
    pub openings: BTreeMap<u64, Start>,
}

/// A player.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Contestant {
    /// Its spec.
    pub spec: String,
    /// The file of its network, if it has one.
    pub network: Option<Hash>,
}

/// Where a pair of games starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Start {
    /// The position.
    pub fen: String,
    /// The moves from there, in UCI notation.
    pub moves: Vec<String>,
    /// What it is called.
    pub name: Option<String>,
}

/// A fixture that can be played.
pub struct Stage {
    /// A and B.
    pub players: [ResolvedPlayer; 2],
    /// The seed of the match.
    pub seed: Seed,
    /// How games are played.
    pub settings: GameSettings,
    /// One for each pair of games.
    pub openings: BTreeMap<u64, Opening>,
}

impl Fixture {
    /// The document.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a fixture is plain data")
    }

    /// Reads a document from an untrusted place.
    pub fn parse(bytes: &[u8]) -> Result<Fixture, OrderError> {
        let unreadable = |what: String| OrderError::Unreadable(what);
        if bytes.len() > MAX_ORDER {
            return Err(unreadable(format!("{} bytes: expected {MAX_ORDER}", bytes.len())));
        }
        let value: serde_json::Value =
            serde_json::from_slice(bytes).map_err(|error| unreadable(error.to_string()))?;
        // First of all: another version may have other fields.
        let protocol = value["protocol"].as_u64().unwrap_or(0);
        if protocol != u64::from(PROTOCOL) {
            return Err(OrderError::Protocol { got: protocol.try_into().unwrap_or(0) });
        }
        serde_json::from_value(value).map_err(|error| unreadable(error.to_string()))
    }

    /// The fixture with all that it needs; `networks` are the files of A and B.
    pub fn stage(&self, networks: [Option<Arc<[u8]>>; 2]) -> Result<Stage, OrderError> {
        let unreadable = |what: String| OrderError::Unreadable(what);
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
        let pin = |contestant: &Contestant, network| {
            let remote_spec = RemotePlayerSpec { spec: contestant.spec.clone(), network };
            ResolvedPlayer::from_remote_spec(&remote_spec)
                .map_err(|error| unreadable(error.to_string()))
        };
        Ok(Stage {
            players: [pin(&self.a, a)?, pin(&self.b, b)?],
            seed: Seed::new(self.seed),
            settings: self.settings.clone(),
            openings,
        })
    }
}

impl Start {
    /// As it is sent.
    pub fn of(opening: &Opening) -> Start {
        Start {
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
