//! Measures one player's Elo in games against opponents of known strength (rungs), choosing the
//! most informative opponent each time.

mod climb;
mod rung;

use std::sync::atomic::Ordering::Relaxed;

use selfmate_chess::Seed;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::game::GameSettings;
use crate::game_pool::GamePool;
use crate::header::{self, Entrant, StoredPlayer};
use crate::match_runner::{MatchError, MatchRun};
use crate::openings::{OpeningSource, Openings};
use crate::players::stockfish_elo_range;
use crate::record::MatchGame;
use crate::registry::Registry;
use crate::remote::Next;
use crate::resolved_player::ResolvedPlayer;
use crate::stats::Tally;
use crate::store::{ASKED, RecordStore};

pub use rung::{DEPTH_RUNGS, OWN_RUNGS, Rung, standard_rungs};

use climb::{Batch, Climb};

/// Settings of one rating.
#[derive(Clone, Debug, PartialEq)]
pub struct RateConfig {
    pub player: String,
    /// How each game is played. The built-in rungs keep their own depth or simulations.
    pub settings: GameSettings,
    pub openings: OpeningSource,
    pub seed: u64,
    pub max_games: u64,
    /// Rating stops when half the 95 % interval is at most this.
    pub max_error: f64,
    /// The opponents; [`standard_rungs`] when `None`.
    pub rungs: Option<Vec<Rung>>,
    /// Pairs of games against a rung before the next is chosen. `None` means one pair per two
    /// threads. With a fixed number the games do not depend on the number of threads.
    pub pairs_at_once: Option<usize>,
}

impl RateConfig {
    /// The defaults: 100 ms per move, until ±50 Elo or 400 games.
    pub fn new(player: &str) -> RateConfig {
        let limit = crate::limit::MatchLimit::movetime(100);
        RateConfig {
            player: player.to_owned(),
            settings: GameSettings { limit, ..GameSettings::default() },
            openings: OpeningSource::default(),
            seed: 1,
            max_games: 400,
            max_error: 50.0,
            rungs: None,
            pairs_at_once: None,
        }
    }
}

/// The rating after the games so far.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RateReport {
    pub player: String,
    /// `null` without games.
    pub elo: Option<f64>,
    /// The lower end of the 95 % interval; `null` when all games were lost.
    pub elo_low: Option<f64>,
    /// The upper end of the interval; `null` when all games were won.
    pub elo_high: Option<f64>,
    /// Half the interval; `null` when one end is `null`.
    pub elo_error: Option<f64>,
    pub games: u64,
    /// The rungs it played, lowest first.
    pub rungs: Vec<RungResult>,
    /// The engine that defines the Elo scale.
    pub scale: Option<String>,
    /// The limit per move, as text.
    pub limit: String,
    /// True when `max_error` is reached.
    pub is_finished: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RungResult {
    #[serde(flatten)]
    pub rung: Rung,
    pub games: u64,
    #[serde(flatten)]
    pub tally: Tally,
}

#[derive(Debug, Serialize, Deserialize)]
struct RateRecord {
    rung: Rung,
    #[serde(flatten)]
    record: MatchGame,
}

/// Rates a player and calls `observer` after every game. `run.store` keeps the games; calling it
/// again resumes from there, with the player it was started with.
pub fn run_rate(
    config: &RateConfig,
    run: &MatchRun,
    registry: &Registry,
    observer: &mut dyn FnMut(&MatchGame, &RateReport),
) -> Result<RateReport, MatchError> {
    let path = run.store.as_deref();
    let stored = path.map(RecordStore::header).transpose()?.flatten();
    let known = path.zip(stored.as_ref());
    let known =
        known.and_then(|(path, header)| StoredPlayer::find(path, header, PLAYER, &config.player));
    let player = header::resolve(registry, &config.player, known)?;
    let (rungs, scale) = match &config.rungs {
        Some(rungs) => (rungs.clone(), None),
        None => {
            let range = stockfish_elo_range()?;
            (standard_rungs(&range), Some(range.engine))
        }
    };
    let opponents: Vec<ResolvedPlayer> =
        rungs.iter().map(|rung| registry.resolve(&rung.player)).collect::<Result<_, _>>()?;
    let seed = Seed::new(config.seed);
    let source = Openings::load(&config.openings, seed.derive("openings"))?;
    let mut store = None;
    let mut climb = Climb::new(config, player.name(), &rungs, scale.clone());
    if let Some(path) = &run.store {
        let mut header = rate_header(config, &Entrant::of(&player)?, &source, &rungs);
        header["scale"] = json!(scale);
        if scale.is_none() {
            header["identity"]["rungs"] = identities(&opponents)?;
        }
        let (opened, records) = RecordStore::open::<RateRecord>(path, &header)?;
        for RateRecord { rung, record } in &records {
            climb.add(rung, record);
        }
        store = Some(opened);
    }
    let openings = source.take((config.max_games as usize).div_ceil(2));
    let pairs_at_once = config.pairs_at_once.unwrap_or(run.concurrency / 2).max(1);
    while !run.stop.load(Relaxed) {
        let Some(Batch { rung, games }) = climb.next(openings.len(), pairs_at_once) else { break };
        let place = rungs.iter().position(|other| other.player == rung.player);
        let opponent = match place {
            Some(place) => opponents[place].clone(),
            None => registry.resolve(&rung.player)?,
        };
        let pool = GamePool {
            settings: &config.settings,
            run,
            players: [&player, &opponent],
            seed: config.seed,
            openings: &openings,
            games_per_opening: 2,
        };
        pool.play(&games, &mut |record| {
            let record = RateRecord { rung: rung.clone(), record };
            if let Some(store) = &mut store {
                store.append(&record)?;
            }
            climb.add(&rung, &record.record);
            observer(&record.record, &climb.report());
            Ok(Next::GoOn)
        })?;
    }
    if let Some(store) = &mut store {
        store.sync()?;
    }
    Ok(climb.report())
}

/// The rated player's role in a header.
const PLAYER: &str = "player";

/// The header of a rating: what must be the same for it to resume. The number of games and the
/// precision may change.
fn rate_header(
    config: &RateConfig,
    player: &Entrant,
    openings: &Openings,
    rungs: &[Rung],
) -> Value {
    let rungs: Map<String, Value> =
        rungs.iter().map(|rung| (rung.player.clone(), json!(rung.elo))).collect();
    json!({
        "format": "selfmate rate 2",
        PLAYER: player.name,
        ASKED: { PLAYER: player.asked },
        "identity": { PLAYER: player.identity },
        "settings": config.settings,
        "openings": config.openings,
        "openings_hash": openings.fingerprint(),
        "rungs": rungs,
        "seed": config.seed,
    })
}

/// The identities of players that have one, by name.
fn identities(players: &[ResolvedPlayer]) -> Result<Value, MatchError> {
    let mut identities = Map::new();
    for player in players {
        if let Some(identity) = player.identity()? {
            identities.insert(player.name().to_owned(), json!(identity));
        }
    }
    Ok(Value::Object(identities))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::path::Path;

    use super::*;

    fn config(player: &str) -> RateConfig {
        let rung = |player: &str, elo| Rung { player: player.to_owned(), elo };
        RateConfig {
            rungs: Some(vec![rung("random", 200.0), rung("greedy", 500.0)]),
            settings: GameSettings::default(),
            max_games: 30,
            max_error: 10.0,
            ..RateConfig::new(player)
        }
    }

    fn run(path: &Path, concurrency: usize) -> MatchRun {
        MatchRun { concurrency, store: Some(path.to_owned()), ..MatchRun::default() }
    }

    #[test]
    fn a_rating_resumes_from_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let run = run(&folder.path().join("rate.jsonl"), 2);
        let config = config("greedy");
        let registry = Registry::standard();
        let mut seen = 0;
        let report = run_rate(&config, &run, &registry, &mut |_, _| seen += 1).unwrap();
        assert_eq!((seen, report.games, report.is_finished), (30, 30, false));
        assert!((report.elo.unwrap() - 500.0).abs() < 200.0, "{report:?}");
        let more = RateConfig { max_games: 36, ..config };
        let again = run_rate(&more, &run, &registry, &mut |_, _| seen += 1).unwrap();
        assert_eq!((seen, again.games), (36, 36));
        let json = serde_json::to_value(&again).unwrap();
        for key in ["elo", "elo_low", "elo_high", "games", "rungs"] {
            assert!(json.get(key).is_some(), "{key}");
        }
        assert!(json["rungs"][0]["player"].is_string() && json["rungs"][0]["wins"].is_u64());
    }

    fn stored(path: &Path) -> Vec<(u64, crate::game::Side, String)> {
        let (_, records) = RecordStore::read::<RateRecord>(path).unwrap().unwrap();
        let mut games: Vec<_> = records
            .into_iter()
            .map(|RateRecord { rung, record }| (record.game, record.a_plays, rung.player))
            .collect();
        games.sort_by_key(|game| game.0);
        games
    }

    #[test]
    fn a_resumed_rating_completes_started_pairs_and_plays_no_game_twice() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rate.jsonl");
        let registry = Registry::standard();
        let config = config("greedy");
        run_rate(&config, &run(&path, 4), &registry, &mut |_, _| {}).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        // With four threads two pairs are played at once, so any of their games may be stored.
        for kept in [0b0000, 0b0001, 0b0010, 0b0110, 0b1001, 0b1011, 0b1100] {
            let mut cut: Vec<&str> = vec![lines[0]];
            for line in &lines[1..] {
                let game = serde_json::from_str::<RateRecord>(line).unwrap().record.game;
                if game < 8 || (game < 12 && kept >> (game - 8) & 1 == 1) {
                    cut.push(line);
                }
            }
            std::fs::write(&path, cut.join("\n") + "\n").unwrap();
            let before = cut.len() as u64 - 1;
            let mut played = 0;
            let report = run_rate(&config, &run(&path, 4), &registry, &mut |_, _| played += 1);
            let report = report.unwrap();
            assert_eq!((report.games, before + played), (30, 30), "{kept:b}");
            let games = stored(&path);
            let numbers: HashSet<u64> = games.iter().map(|game| game.0).collect();
            assert_eq!((numbers.len(), games.len()), (30, 30), "{kept:b}");
            for pair in games.chunks(2) {
                assert_eq!(pair[0].0 / 2, pair[1].0 / 2, "{kept:b}");
                assert_ne!(pair[0].1, pair[1].1, "{kept:b}");
                assert_eq!(pair[0].2, pair[1].2, "{kept:b}: one pair, one rung");
            }
        }
    }

    #[test]
    fn with_fixed_pairs_at_once_a_rating_is_the_same_on_any_number_of_threads() {
        let folder = tempfile::tempdir().unwrap();
        let registry = Registry::standard();
        let config = RateConfig { pairs_at_once: Some(2), ..config("greedy") };
        let mut games = Vec::new();
        for concurrency in [1, 2, 5] {
            let path = folder.path().join(concurrency.to_string());
            let report = run_rate(&config, &run(&path, concurrency), &registry, &mut |_, _| {});
            games.push((report.unwrap(), stored(&path)));
        }
        assert!(games.iter().all(|other| *other == games[0]));
    }

    #[test]
    fn a_rating_with_other_rungs_or_openings_does_not_resume() {
        let folder = tempfile::tempdir().unwrap();
        let registry = Registry::standard();
        let path = folder.path().join("rate.jsonl");
        let openings = folder.path().join("openings.epd");
        let epd = "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - \n";
        std::fs::write(&openings, epd).unwrap();
        let source = OpeningSource::File { path: openings.clone(), plies: None };
        let config = RateConfig { openings: source, max_games: 2, ..config("greedy") };
        let rate = |config: &RateConfig| {
            run_rate(config, &run(&path, 1), &registry, &mut |_, _| {})
                .map_err(|error| error.to_string())
        };
        rate(&config).unwrap();
        let mut other = config.clone();
        other.rungs.as_mut().unwrap()[0].elo = 0.0;
        let error = rate(&other).unwrap_err();
        assert!(error.contains("rungs.random 200.0, not 0.0"), "{error}");
        std::fs::write(&openings, epd.replace("4P3", "3P4").replace("PPPP1PPP", "PPP1PPPP"))
            .unwrap();
        let error = rate(&config).unwrap_err();
        assert!(error.contains("openings_hash \"blake3 "), "{error}");
        assert_eq!(error.matches("blake3 ").count(), 2, "{error}");
    }
}
