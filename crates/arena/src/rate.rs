//! One player's Elo: games against rungs of known strength, each time the most informative one.

use std::sync::atomic::Ordering::Relaxed;

use selfmate_chess::Seed;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::contest::{MatchError, MatchRun};
use crate::game::GameSettings;
use crate::hall::{Hall, Next};
use crate::openings::{OpeningSource, Openings};
use crate::players::{EloRange, stockfish_elo_range};
use crate::rating::{Meeting, fit};
use crate::record::GameRecord;
use crate::registry::Registry;
use crate::stats::{Tally, Z95, score_of_elo};
use crate::store::RecordStore;

/// Our own rungs at and below Stockfish's lowest, on the scale of Stockfish 15.1's `UCI_Elo` at
/// 100 ms a move. Sampling alone leaves ± 40 (top) to ± 70 (bottom).
///
/// Measured on two busy cores with
/// `cargo run --release -p selfmate-arena --example calibrate -- 60 100`: each met the three next
/// above it, 240 games among ourselves and 60 against Stockfish, with `stockfish:elo=1350` and
/// `stockfish:elo=1450` as anchors. From 810 up one scale fits all 11 pairings. Below, it does
/// not: 5 of the other 15 are off by more than chance allows (random and greedy by 150 Elo),
/// because no single number orders players of such different kinds. A rating below 800 is
/// rough, and the error that [`run_rate`] gives knows nothing of the rungs' own errors.
/// To be measured again when alpha-beta or the tree search plays another game.
pub const OWN_RUNGS: [(&str, f64); 9] = [
    ("random", 0.0),
    ("rollout:sims=50", 95.0),
    ("alphabeta:depth=1,blunder=50", 490.0),
    ("rollout:sims=400", 525.0),
    ("greedy", 640.0),
    ("alphabeta:depth=1,blunder=30", 810.0),
    ("alphabeta:depth=1,blunder=15", 1055.0),
    ("alphabeta:depth=1,blunder=6", 1265.0),
    ("alphabeta:depth=1", 1430.0),
];

/// The distance between Stockfish's rungs.
const STEP: i64 = 100;
/// Where to begin when nothing is known.
const FIRST_GUESS: f64 = 1350.0;
/// No estimate counts before so many games.
const MIN_GAMES: u64 = 20;

/// Whom to rate, and how exactly.
#[derive(Clone, Debug, PartialEq)]
pub struct RateConfig {
    /// The player's spec.
    pub player: String,
    /// How each game is played. Our own rungs keep to their depth or simulations.
    pub settings: GameSettings,
    /// Where games start.
    pub openings: OpeningSource,
    /// The root of all randomness.
    pub seed: u64,
    /// The most games.
    pub max_games: u64,
    /// Half the 95 % interval at which to stop.
    pub max_error: f64,
    /// Whom to play; [`standard_rungs`] when `None`.
    pub rungs: Option<Vec<Rung>>,
}

impl RateConfig {
    /// The usual settings: 100 ms a move, until ±50 or 400 games.
    pub fn new(player: &str) -> RateConfig {
        let limit = crate::limit::MoveLimit::movetime(100);
        RateConfig {
            player: player.to_owned(),
            settings: GameSettings { limit, ..GameSettings::default() },
            openings: OpeningSource::default(),
            seed: 1,
            max_games: 400,
            max_error: 50.0,
            rungs: None,
        }
    }
}

/// An opponent of known strength.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rung {
    /// Its spec.
    pub player: String,
    /// Its rating.
    pub elo: f64,
}

/// What the games so far say.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RateReport {
    /// The player's spec.
    pub player: String,
    /// Its rating.
    pub elo: f64,
    /// The lower end of the 95 % interval.
    pub elo_low: f64,
    /// The upper end.
    pub elo_high: f64,
    /// Half the interval.
    pub elo_error: f64,
    /// Games played.
    pub games: u64,
    /// The rungs it met, lowest first.
    pub rungs: Vec<RungResult>,
    /// The engine whose scale this is.
    pub scale: Option<String>,
    /// How long the players could think.
    pub limit: String,
    /// The error bound is reached.
    pub is_finished: bool,
}

/// The player's results against one rung.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RungResult {
    /// The rung.
    #[serde(flatten)]
    pub rung: Rung,
    /// Games against it.
    pub games: u64,
    /// The player's results.
    #[serde(flatten)]
    pub tally: Tally,
}

/// A stored game.
#[derive(Debug, Serialize, Deserialize)]
struct RateRecord {
    rung: Rung,
    #[serde(flatten)]
    record: GameRecord,
}

/// Our own rungs and a Stockfish's levels, lowest first.
pub fn standard_rungs(range: &EloRange) -> Vec<Rung> {
    let own = OWN_RUNGS.map(|(player, elo)| Rung { player: player.to_owned(), elo });
    let mut levels: Vec<i64> = (range.min..=range.max).step_by(STEP as usize).collect();
    if levels.last().is_some_and(|last| *last < range.max) {
        levels.push(range.max);
    }
    let level = |elo: i64| Rung { player: format!("stockfish:elo={elo}"), elo: elo as f64 };
    let mut rungs: Vec<Rung> = own.into_iter().chain(levels.into_iter().map(level)).collect();
    rungs.sort_by(|a, b| a.elo.total_cmp(&b.elo));
    rungs
}

/// Rates a player and calls `observer` after every game. `run.store` keeps the games; the same
/// call again goes on from there.
pub fn run_rate(
    config: &RateConfig,
    run: &MatchRun,
    registry: &Registry,
    observer: &mut dyn FnMut(&GameRecord, &RateReport),
) -> Result<RateReport, MatchError> {
    let player = registry.parse(&config.player)?;
    let (rungs, scale) = match &config.rungs {
        Some(rungs) => (rungs.clone(), None),
        None => {
            let range = stockfish_elo_range()?;
            (standard_rungs(&range), Some(range.engine))
        }
    };
    let mut climb = Climb { config, rungs, scale, results: Vec::new() };
    let seed = Seed::new(config.seed);
    let openings = Openings::load(&config.openings, seed.derive("openings"))?;
    let openings = openings.take((config.max_games as usize).div_ceil(2));
    let mut store = match &run.store {
        Some(path) => {
            let header = json!({
                "format": "selfmate rate 1",
                "player": config.player,
                "settings": config.settings,
                "openings": config.openings,
                "seed": config.seed,
            });
            let (store, stored) = RecordStore::open::<RateRecord>(path, &header)?;
            for stored in stored {
                climb.add(&stored.rung, &stored.record);
            }
            Some(store)
        }
        None => None,
    };
    let mut next_pair = climb.games().div_ceil(2) as usize;
    while !climb.is_over() && next_pair < openings.len() && !run.stop.load(Relaxed) {
        let rung = climb.next_rung();
        // A pair for every two tables: a longer batch would commit to a rung for too long.
        let pairs = (run.concurrency / 2).clamp(1, openings.len() - next_pair);
        let specs = [player.clone(), registry.parse(&rung.player)?];
        let hall = Hall {
            settings: &config.settings,
            run,
            registry,
            specs: &specs,
            seed,
            openings: &openings[next_pair..next_pair + pairs],
        };
        let games: Vec<usize> = (0..2 * pairs).collect();
        hall.play(&games, &mut |mut record| {
            record.game += 2 * next_pair as u64;
            climb.add(&rung, &record);
            observer(&record, &climb.report());
            if let Some(store) = &mut store {
                store.append(&RateRecord { rung: rung.clone(), record })?;
            }
            Ok(Next::GoOn)
        })?;
        next_pair += pairs;
    }
    Ok(climb.report())
}

/// The rungs and what was scored against them.
struct Climb<'a> {
    config: &'a RateConfig,
    rungs: Vec<Rung>,
    scale: Option<String>,
    results: Vec<(Rung, Tally)>,
}

impl Climb<'_> {
    fn add(&mut self, rung: &Rung, record: &GameRecord) {
        let place = self.results.iter().position(|(other, _)| other.player == rung.player);
        let place = place.unwrap_or_else(|| {
            self.results.push((rung.clone(), Tally::default()));
            self.results.len() - 1
        });
        self.results[place].1.add(record.a_points());
    }

    fn games(&self) -> u64 {
        self.results.iter().map(|(_, tally)| tally.games()).sum()
    }

    fn games_against(&self, rung: &Rung) -> u64 {
        let found = self.results.iter().find(|(other, _)| other.player == rung.player);
        found.map_or(0, |(_, tally)| tally.games())
    }

    /// The most likely rating with the rungs as anchors, and half its 95 % interval.
    fn estimate(&self) -> (f64, f64) {
        if self.results.is_empty() {
            return (FIRST_GUESS, f64::INFINITY);
        }
        let mut anchors = vec![None];
        anchors.extend(self.results.iter().map(|(rung, _)| Some(rung.elo)));
        let meetings: Vec<Meeting> = self
            .results
            .iter()
            .enumerate()
            .map(|(index, (_, tally))| Meeting { a: 0, b: index + 1, tally: *tally })
            .collect();
        let fit = fit(&meetings, &anchors);
        (fit.elo[0], Z95 * fit.spread[0])
    }

    fn is_over(&self) -> bool {
        let games = self.games();
        let (_, error) = self.estimate();
        games >= self.config.max_games || (games >= MIN_GAMES && error <= self.config.max_error)
    }

    /// The rung that tells most: close in strength, and not yet met too often, so that no single
    /// rung's own error decides.
    fn next_rung(&self) -> Rung {
        let (elo, _) = self.estimate();
        let worth = |rung: &Rung| {
            let p = score_of_elo(elo - rung.elo);
            p * (1.0 - p) / (self.games_against(rung) as f64 + 16.0)
        };
        let best = self.rungs.iter().max_by(|a, b| worth(a).total_cmp(&worth(b)));
        best.cloned().unwrap_or(Rung { player: "random".to_owned(), elo: OWN_RUNGS[0].1 })
    }

    fn report(&self) -> RateReport {
        let (elo, error) = self.estimate();
        let elo_error = if error.is_finite() { error } else { 0.0 };
        let mut rungs: Vec<RungResult> = self
            .results
            .iter()
            .map(|(rung, tally)| RungResult {
                rung: rung.clone(),
                games: tally.games(),
                tally: *tally,
            })
            .collect();
        rungs.sort_by(|a, b| a.rung.elo.total_cmp(&b.rung.elo));
        RateReport {
            player: self.config.player.clone(),
            elo,
            elo_low: elo - elo_error,
            elo_high: elo + elo_error,
            elo_error,
            games: self.games(),
            rungs,
            scale: self.scale.clone(),
            limit: self.config.settings.limit.to_string(),
            is_finished: self.games() >= MIN_GAMES && elo_error <= self.config.max_error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn climb(config: &RateConfig) -> Climb<'_> {
        let range = EloRange { engine: "Stockfish 15.1".to_owned(), min: 1350, max: 2850 };
        Climb { config, rungs: standard_rungs(&range), scale: None, results: Vec::new() }
    }

    #[test]
    fn rungs_cover_the_scale_in_order() {
        let config = RateConfig::new("random");
        let rungs = climb(&config).rungs;
        assert!(rungs.is_sorted_by(|a, b| a.elo < b.elo), "{rungs:?}");
        assert_eq!(rungs.last().unwrap().player, "stockfish:elo=2850");
        assert!(rungs.iter().any(|rung| rung.player == "stockfish:elo=1350"));
        let registry = Registry::standard();
        assert!(rungs.iter().all(|rung| registry.parse(&rung.player).is_ok()));
    }

    #[test]
    fn a_simulated_player_is_found_within_its_error_bars() {
        let mut inside = 0;
        let mut games = 0;
        for trial in 0..200 {
            let mut rng = Seed::new(5).index(trial).rng();
            let truth = 2800.0 * rng.unit();
            let config = RateConfig { max_error: 60.0, ..RateConfig::new("x") };
            let mut climb = climb(&config);
            while !climb.is_over() {
                let rung = climb.next_rung();
                let p = score_of_elo(truth - rung.elo);
                let mut tally = Tally::default();
                for _ in 0..2 {
                    let draw = p * (1.0 - p);
                    let x = rng.unit();
                    tally.add(if x < draw {
                        0.5
                    } else if x < p + 0.5 * draw {
                        1.0
                    } else {
                        0.0
                    });
                }
                match climb.results.iter_mut().find(|(other, _)| *other == rung) {
                    Some((_, total)) => *total = *total + tally,
                    None => climb.results.push((rung, tally)),
                }
            }
            let report = climb.report();
            assert!(report.is_finished, "{truth}: {report:?}");
            inside += u32::from((report.elo_low..=report.elo_high).contains(&truth));
            games += report.games;
        }
        assert!(inside >= 182, "{inside} of 200");
        // The best possible is about 108: 60 = 1.96 · 347 · √(1 - ¼) / √n.
        assert!(games / 200 < 170, "{} games on average", games / 200);
    }

    #[test]
    fn a_player_is_rated_and_the_rating_goes_on_from_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let rung = |player: &str, elo| Rung { player: player.to_owned(), elo };
        let config = RateConfig {
            rungs: Some(vec![rung("random", 200.0), rung("greedy", 500.0)]),
            settings: GameSettings::default(),
            max_games: 30,
            max_error: 10.0,
            ..RateConfig::new("greedy")
        };
        let store = Some(folder.path().join("rate.jsonl"));
        let run = MatchRun { concurrency: 2, store, ..MatchRun::default() };
        let registry = Registry::standard();
        let mut seen = 0;
        let report = run_rate(&config, &run, &registry, &mut |_, _| seen += 1).unwrap();
        assert_eq!((seen, report.games, report.is_finished), (30, 30, false));
        assert!((report.elo - 500.0).abs() < 200.0, "{report:?}");
        let more = RateConfig { max_games: 36, ..config };
        let again = run_rate(&more, &run, &registry, &mut |_, _| seen += 1).unwrap();
        assert_eq!((seen, again.games), (36, 36));
        let json = serde_json::to_value(&again).unwrap();
        for key in ["elo", "elo_low", "elo_high", "games", "rungs"] {
            assert!(json.get(key).is_some(), "{key}");
        }
        assert!(json["rungs"][0]["player"].is_string() && json["rungs"][0]["wins"].is_u64());
    }
}
