//! Matches: pairs of games between two players, on several threads, stopped and resumed at will.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use selfmate_chess::Seed;
use serde::{Deserialize, Serialize};

use crate::game::{GameSettings, PositionAdjudicator};
use crate::game_pool::GamePool;
use crate::header::{self, Entrant};
use crate::openings::{OpeningError, OpeningSource, Openings};
use crate::record::{Event, GameRecord, write_pgn_file};
use crate::registry::Registry;
use crate::remote::{Next, RemoteGames};
use crate::report::{MatchReport, Scoreboard, duplicates};
use crate::resolved_player::ResolvedPlayer;
use crate::spec::SpecError;
use crate::sprt::{Sprt, SprtError};
use crate::stats::Tally;
use crate::store::{RecordStore, StoreError};

/// What is played.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MatchConfig {
    /// The first player's spec.
    pub a: String,
    /// The second player's spec.
    pub b: String,
    /// The most games.
    pub games: u64,
    /// How each game is played.
    pub settings: GameSettings,
    /// Where games start.
    pub openings: OpeningSource,
    /// The root of all randomness.
    pub seed: u64,
    /// Ends the match as soon as this is decided.
    pub sprt: Option<Sprt>,
}

impl MatchConfig {
    /// A match with the usual settings.
    pub fn new(a: &str, b: &str, games: u64) -> MatchConfig {
        MatchConfig {
            a: a.to_owned(),
            b: b.to_owned(),
            games,
            settings: GameSettings::default(),
            openings: OpeningSource::default(),
            seed: 1,
            sprt: None,
        }
    }
}

/// How it is run; nothing here changes a game that does not depend on time.
#[derive(Clone)]
pub struct MatchRun {
    /// Games at the same time.
    pub concurrency: usize,
    /// The file that keeps finished games; a match that is there already goes on.
    pub store: Option<PathBuf>,
    /// Where to write the games as PGN.
    pub pgn: Option<PathBuf>,
    /// Ends the match when set; games in progress are lost.
    pub stop: Arc<AtomicBool>,
    /// Set when all files are read and games begin: a match that is ended before loses nothing.
    pub begun: Arc<AtomicBool>,
    /// Knows the results of some positions.
    pub adjudicator: Option<Arc<PositionAdjudicator>>,
    /// Plays the games in place of this process's threads.
    pub remote: Option<Arc<dyn RemoteGames>>,
}

impl Default for MatchRun {
    fn default() -> MatchRun {
        MatchRun {
            concurrency: 1,
            store: None,
            pgn: None,
            stop: Arc::new(AtomicBool::new(false)),
            begun: Arc::new(AtomicBool::new(false)),
            adjudicator: None,
            remote: None,
        }
    }
}

/// What happens in a match.
#[derive(Clone, Debug)]
pub enum MatchEvent {
    /// Games were found in the store.
    Resumed {
        /// With these games.
        report: MatchReport,
    },
    /// A game has ended.
    Finished {
        /// The game.
        record: GameRecord,
        /// With this game.
        report: MatchReport,
    },
}

/// Why a match cannot be played.
#[derive(Debug, thiserror::Error)]
pub enum MatchError {
    /// A player cannot be built.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// A player that a stored contest was begun with is no longer there.
    #[error("{}: was begun with '{player}', which is gone: {error}", path.display())]
    Gone {
        /// The file.
        path: PathBuf,
        /// The player.
        player: String,
        /// What is missing.
        error: Box<SpecError>,
    },
    /// The system starts no thread.
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
    /// There are no openings.
    #[error(transparent)]
    Opening(#[from] OpeningError),
    /// The test makes no sense.
    #[error(transparent)]
    Sprt(#[from] SprtError),
    /// The file of games cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The games cannot be had from where they should be played.
    #[error(transparent)]
    RemoteGames(Box<dyn std::error::Error + Send + Sync>),
    /// The PGN cannot be written.
    #[error("cannot write {}: {error}", path.display())]
    Pgn {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: std::io::Error,
    },
}

/// Plays a match, or what is left of it, and calls `observer` after every game. Who the players
/// are is looked up once, at the beginning; a match that goes on has those it began with.
pub fn run_match(
    config: &MatchConfig,
    run: &MatchRun,
    registry: &Registry,
    observer: &mut dyn FnMut(&MatchEvent),
) -> Result<MatchReport, MatchError> {
    let players = header::resolve_pair(registry, config, run.store.as_deref())?;
    play_match(config, &players, run, observer)
}

/// Plays a match between players who were looked up already.
pub(crate) fn play_match(
    config: &MatchConfig,
    players: &[ResolvedPlayer; 2],
    run: &MatchRun,
    observer: &mut dyn FnMut(&MatchEvent),
) -> Result<MatchReport, MatchError> {
    let started = Instant::now();
    config.sprt.map(Sprt::checked).transpose()?;
    let seed = Seed::new(config.seed);
    let openings = Openings::load(&config.openings, seed.derive("openings"))?;
    let names = (players[0].name(), players[1].name());
    let total = usize::try_from(config.games).unwrap_or(usize::MAX);
    let mut games: Vec<Option<GameRecord>> = vec![None; total];
    let mut board = Scoreboard::new(names, total, config.sprt);
    let mut store = match &run.store {
        Some(path) => {
            let [a, b] = [Entrant::of(&players[0])?, Entrant::of(&players[1])?];
            let header = header::of_match(config, [&a, &b], &openings);
            let (store, stored) = RecordStore::open(path, &header)?;
            place(&mut games, stored);
            Some(store)
        }
        None => None,
    };
    games.iter().flatten().for_each(|record| board.add(record));
    let current = |board: &Scoreboard| MatchReport {
        seconds: started.elapsed().as_secs_f64(),
        ..board.report()
    };
    let mut latest = current(&board);
    if latest.games > 0 {
        observer(&MatchEvent::Resumed { report: latest.clone() });
    }
    if !latest.is_finished {
        let open: Vec<usize> = (0..total).filter(|&game| games[game].is_none()).collect();
        let openings = openings.take(total.div_ceil(2));
        let settings = &config.settings;
        let players = [&players[0], &players[1]];
        let pool = GamePool { settings, run, players, seed: config.seed, openings: &openings };
        pool.play(&open, &mut |record| {
            if let Some(store) = &mut store {
                store.append(&record)?;
            }
            let place = record.game as usize;
            board.add(&record);
            games[place] = Some(record.clone());
            latest = current(&board);
            observer(&MatchEvent::Finished { record, report: latest.clone() });
            Ok(if latest.is_finished { Next::Stop } else { Next::GoOn })
        })?;
    }
    if let Some(store) = &mut store {
        store.sync()?;
    }
    if let Some(path) = &run.pgn {
        let limit = config.settings.limit.to_string();
        let event = Event { name: "selfmate match", a: names.0, b: names.1, limit: &limit };
        write_pgn_file(path, &event, games.iter().flatten())
            .map_err(|error| MatchError::Pgn { path: path.clone(), error })?;
    }
    Ok(MatchReport { duplicates: duplicates(&games), ..current(&board) })
}

/// The players and A's results in a stored match, which must have been played as `like` says,
/// whoever played; `None` for a file without a whole header. `identities` are those of players
/// by name: nobody may be there under one name with two.
pub(crate) fn stored_result(
    path: &Path,
    like: &MatchConfig,
    identities: &mut BTreeMap<String, Option<String>>,
) -> Result<Option<(String, String, Tally)>, MatchError> {
    let seed = Seed::new(like.seed).derive("openings");
    let openings = Openings::load(&like.openings, seed)?;
    let Some((stored, records)) = RecordStore::read::<GameRecord>(path)? else { return Ok(None) };
    let [a, b] = ["a", "b"].map(|role| {
        let entrant = Entrant::stored(&stored, role);
        let identity = identities.entry(entrant.name.clone()).or_insert(entrant.identity);
        Entrant { identity: identity.clone(), ..entrant }
    });
    RecordStore::compare(path, &stored, &header::of_match(like, [&a, &b], &openings))?;
    let mut seen = HashSet::new();
    let mut tally = Tally::default();
    let first = records.iter().filter(|record| seen.insert(record.game));
    first.for_each(|record| tally.add(record.a_points()));
    Ok(Some((a.name, b.name, tally)))
}

/// A match as its file tells it, while it is played or later: what it has shown, and its games by
/// number. `config` says how many games there are and by what test it ends; a file that is not
/// there, or is just being begun, has no games. Players have the exact names under which they were
/// found when it was begun: who was asked for may be another one today.
pub fn stored_match(
    path: &Path,
    config: &MatchConfig,
) -> Result<(MatchReport, Vec<Option<GameRecord>>), StoreError> {
    let mut games = vec![None; usize::try_from(config.games).unwrap_or(usize::MAX)];
    let mut names = [config.a.clone(), config.b.clone()];
    if path.exists()
        && let Some((header, stored)) = RecordStore::read::<GameRecord>(path)?
    {
        names = ["a", "b"].map(|role| Entrant::stored(&header, role).name);
        place(&mut games, stored);
    }
    let mut board = Scoreboard::new((&names[0], &names[1]), games.len(), config.sprt);
    games.iter().flatten().for_each(|record| board.add(record));
    Ok((MatchReport { duplicates: duplicates(&games), ..board.report() }, games))
}

/// Puts stored games where they belong; the first of a number counts.
fn place(games: &mut [Option<GameRecord>], stored: Vec<GameRecord>) {
    for record in stored {
        if let Some(place) = games.get_mut(record.game as usize)
            && place.is_none()
        {
            *place = Some(record);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_match_names_the_players_it_was_begun_with() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("match.jsonl");
        let config = MatchConfig::new("run:first", "random", 2);
        let report = |config| stored_match(&path, config).unwrap().0;
        assert_eq!(report(&config).a, "run:first");
        let entrant = |name: &str, asked: &str| Entrant {
            name: name.to_owned(),
            asked: asked.to_owned(),
            identity: None,
        };
        let [a, b] = [entrant("run:first@640", "run:first"), entrant("random", "random")];
        let openings = Openings::load(&config.openings, Seed::new(1).derive("openings")).unwrap();
        let header = header::of_match(&config, [&a, &b], &openings);
        RecordStore::open::<GameRecord>(&path, &header).unwrap();
        assert_eq!(
            (report(&config).a, report(&config).b),
            ("run:first@640".into(), "random".into())
        );
    }
}
