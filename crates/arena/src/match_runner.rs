//! Plays matches: pairs of games between two players, on several threads. A match can be stopped at
//! any moment and resumed from its file.

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
use crate::record::{Event, MatchGame, write_pgn_file};
use crate::registry::Registry;
use crate::remote::{Next, RemoteGames};
use crate::report::{MatchReport, Scoreboard, duplicates};
use crate::resolved_player::ResolvedPlayer;
use crate::spec::SpecError;
use crate::sprt::{Sprt, SprtError};
use crate::stats::Tally;
use crate::store::{RecordStore, StoreError};

/// A match between two players, given by their specs.
///
/// ```
/// use selfmate_arena::{MatchConfig, MatchRun, Registry, run_match};
///
/// let config = MatchConfig::new("random", "greedy", 4);
/// let report = run_match(&config, &MatchRun::default(), &Registry::standard(), &mut |_| {})?;
/// assert_eq!(report.wins + report.draws + report.losses, 4);
/// assert!(report.is_finished);
/// # Ok::<(), selfmate_arena::MatchError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MatchConfig {
    pub a: String,
    pub b: String,
    /// The maximum number of games; an SPRT may end the match earlier.
    pub games: u64,
    pub settings: GameSettings,
    pub openings: OpeningSource,
    pub seed: u64,
    /// Ends the match as soon as the test is decided.
    pub sprt: Option<Sprt>,
}

impl MatchConfig {
    /// A match with default settings.
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

/// How a match is run. Nothing here changes a game that does not depend on time.
#[derive(Clone)]
pub struct MatchRun {
    /// Games played at the same time.
    pub concurrency: usize,
    /// The file of finished games; if it exists, the match resumes.
    pub store: Option<PathBuf>,
    /// Where to write the games as PGN at the end.
    pub pgn: Option<PathBuf>,
    /// Ends the match when set; unfinished games are discarded.
    pub stop: Arc<AtomicBool>,
    /// Set once all files are read and games begin; a match stopped before that loses nothing.
    pub begun: Arc<AtomicBool>,
    /// Ends games in positions with a known result.
    pub adjudicator: Option<Arc<PositionAdjudicator>>,
    /// Plays the games on other machines instead of threads of this process.
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

#[derive(Clone, Debug)]
pub enum MatchEvent {
    /// Finished games were found in the store.
    Resumed {
        /// Includes these games.
        report: MatchReport,
    },
    Finished {
        record: MatchGame,
        /// Includes this game.
        report: MatchReport,
    },
}

#[derive(Debug, thiserror::Error)]
pub enum MatchError {
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// A player of a stored match no longer exists.
    #[error("{}: was started with '{player}', which no longer exists: {error}", path.display())]
    Gone { path: PathBuf, player: String, error: Box<SpecError> },
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
    #[error(transparent)]
    Opening(#[from] OpeningError),
    /// The settings of the SPRT are invalid.
    #[error(transparent)]
    Sprt(#[from] SprtError),
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The games cannot be played on other machines.
    #[error(transparent)]
    RemoteGames(Box<dyn std::error::Error + Send + Sync>),
    #[error("cannot write {}: {error}", path.display())]
    Pgn { path: PathBuf, error: std::io::Error },
}

/// Plays a match, or the rest of it, and calls `observer` after every game. Players are resolved
/// once, at the start; a resumed match keeps the players it was started with.
pub fn run_match(
    config: &MatchConfig,
    run: &MatchRun,
    registry: &Registry,
    observer: &mut dyn FnMut(&MatchEvent),
) -> Result<MatchReport, MatchError> {
    let players = header::resolve_pair(registry, config, run.store.as_deref())?;
    play_match(config, &players, run, observer)
}

/// Plays a match between players that are already resolved.
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
    let mut games: Vec<Option<MatchGame>> = vec![None; total];
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
        let pool = GamePool {
            settings,
            run,
            players,
            seed: config.seed,
            openings: &openings,
            games_per_opening: 2,
        };
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
        let event = Event {
            name: "selfmate match",
            a: names.0,
            b: names.1,
            limit: &limit,
            has_times: true,
        };
        write_pgn_file(path, &event, games.iter().flatten())
            .map_err(|error| MatchError::Pgn { path: path.clone(), error })?;
    }
    Ok(MatchReport { duplicates: duplicates(games.iter().flatten()), ..current(&board) })
}

/// The players and A's results of a stored match. Its settings must equal those of `like`; its
/// players may be any. Returns `None` for a file without a complete header. `identities` maps names
/// to identities: the same name with two identities is an error.
pub(crate) fn stored_result(
    path: &Path,
    like: &MatchConfig,
    identities: &mut BTreeMap<String, Option<String>>,
) -> Result<Option<(String, String, Tally)>, MatchError> {
    let seed = Seed::new(like.seed).derive("openings");
    let openings = Openings::load(&like.openings, seed)?;
    let Some((stored, records)) = RecordStore::read::<MatchGame>(path)? else { return Ok(None) };
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

/// A match as stored in its file, during play or later: the report and the games by number.
/// `config` gives the number of games and the SPRT; a missing or just created file has no games.
/// Players have the exact names stored in the file: the same spec may mean another player today.
pub fn stored_match(
    path: &Path,
    config: &MatchConfig,
) -> Result<(MatchReport, Vec<Option<MatchGame>>), StoreError> {
    let mut games = vec![None; usize::try_from(config.games).unwrap_or(usize::MAX)];
    let mut names = [config.a.clone(), config.b.clone()];
    if path.exists()
        && let Some((header, stored)) = RecordStore::read::<MatchGame>(path)?
    {
        names = ["a", "b"].map(|role| Entrant::stored(&header, role).name);
        place(&mut games, stored);
    }
    let mut board = Scoreboard::new((&names[0], &names[1]), games.len(), config.sprt);
    games.iter().flatten().for_each(|record| board.add(record));
    Ok((MatchReport { duplicates: duplicates(games.iter().flatten()), ..board.report() }, games))
}

/// Puts stored games in their places; if a number occurs twice, the first counts.
fn place(games: &mut [Option<MatchGame>], stored: Vec<MatchGame>) {
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
    fn a_stored_match_names_the_players_it_was_started_with() {
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
        RecordStore::open::<MatchGame>(&path, &header).unwrap();
        assert_eq!(
            (report(&config).a, report(&config).b),
            ("run:first@640".into(), "random".into())
        );
    }
}
