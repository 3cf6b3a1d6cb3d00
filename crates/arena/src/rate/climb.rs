//! Keeps the results against each rung and chooses what to play next.

use std::collections::BTreeMap;

use super::rung::{OWN_RUNGS, Rung};
use super::{RateConfig, RateReport, RungResult};
use crate::rating::{Meeting, fit};
use crate::record::MatchGame;
use crate::stats::{Tally, Z95, score_of_elo};

/// The first guess, before any game.
const FIRST_GUESS: f64 = 1350.0;
/// The least number of games before a rating can count as exact.
const MIN_GAMES: u64 = 20;

pub(super) struct Climb<'a> {
    config: &'a RateConfig,
    player: &'a str,
    rungs: &'a [Rung],
    scale: Option<String>,
    results: Vec<(Rung, Tally)>,
    /// The started pairs, by number.
    pairs: BTreeMap<usize, Pair>,
}

/// A pair of games from one opening against one rung.
struct Pair {
    rung: Rung,
    /// Which of the two games are finished.
    played: [bool; 2],
}

/// Games to be played at the same time, against one rung.
pub(super) struct Batch {
    pub(super) rung: Rung,
    pub(super) games: Vec<usize>,
}

impl<'a> Climb<'a> {
    pub(super) fn new(
        config: &'a RateConfig,
        player: &'a str,
        rungs: &'a [Rung],
        scale: Option<String>,
    ) -> Climb<'a> {
        Climb { config, player, rungs, scale, results: Vec::new(), pairs: BTreeMap::new() }
    }

    /// Counts a game, unless it was counted before.
    pub(super) fn add(&mut self, rung: &Rung, record: &MatchGame) {
        let (pair, place) = (record.game as usize / 2, record.game as usize % 2);
        let new = || Pair { rung: rung.clone(), played: [false; 2] };
        let pair = self.pairs.entry(pair).or_insert_with(new);
        if !std::mem::replace(&mut pair.played[place], true) {
            self.count(rung, record.a_points());
        }
    }

    fn count(&mut self, rung: &Rung, points: f64) {
        let place = self.results.iter().position(|(other, _)| other.player == rung.player);
        let place = place.unwrap_or_else(|| {
            self.results.push((rung.clone(), Tally::default()));
            self.results.len() - 1
        });
        self.results[place].1.add(points);
    }

    /// What to play next: first the missing games of started pairs, then new pairs against the most
    /// informative rung. `None` when the rating is finished.
    pub(super) fn next(&self, pairs: usize, at_once: usize) -> Option<Batch> {
        let begun = self.pairs.iter().take_while(|(number, _)| **number < pairs);
        let missing = begun.filter_map(|(number, pair)| {
            let place = pair.played.iter().position(|played| !played)?;
            Some((&pair.rung, 2 * number + place))
        });
        let missing: Vec<(&Rung, usize)> = missing.collect();
        if let Some(&(rung, _)) = missing.first() {
            let same = missing.iter().filter(|(other, _)| *other == rung);
            let games = same.map(|(_, game)| *game).collect();
            return Some(Batch { rung: rung.clone(), games });
        }
        if self.is_over() {
            return None;
        }
        let open = (0..pairs).filter(|number| !self.pairs.contains_key(number));
        let games: Vec<usize> =
            open.take(at_once).flat_map(|number| [2 * number, 2 * number + 1]).collect();
        (!games.is_empty()).then(|| Batch { rung: self.next_rung(), games })
    }

    fn games(&self) -> u64 {
        self.results.iter().map(|(_, tally)| tally.games()).sum()
    }

    fn games_against(&self, rung: &Rung) -> u64 {
        let found = self.results.iter().find(|(other, _)| other.player == rung.player);
        found.map_or(0, |(_, tally)| tally.games())
    }

    /// The most likely rating with the rungs as anchors, and half its 95 % interval; `None` without
    /// games.
    fn estimate(&self) -> Option<(f64, f64)> {
        if self.results.is_empty() {
            return None;
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
        Some((fit.elo[0], Z95 * fit.spread[0]))
    }

    fn is_exact(&self) -> bool {
        let error = self.estimate().map(|(_, error)| error);
        self.games() >= MIN_GAMES && error.is_some_and(|error| error <= self.config.max_error)
    }

    fn is_over(&self) -> bool {
        self.games() >= self.config.max_games || self.is_exact()
    }

    /// The most informative rung: close in strength and not yet played too often, so that the error
    /// of a single rung's rating does not dominate.
    fn next_rung(&self) -> Rung {
        let elo = self.estimate().map_or(FIRST_GUESS, |(elo, _)| elo);
        let worth = |rung: &Rung| {
            let p = score_of_elo(elo - rung.elo);
            p * (1.0 - p) / (self.games_against(rung) as f64 + 16.0)
        };
        let best = self.rungs.iter().max_by(|a, b| worth(a).total_cmp(&worth(b)));
        best.cloned().unwrap_or(Rung::from(OWN_RUNGS[0]))
    }

    pub(super) fn report(&self) -> RateReport {
        let estimate = self.estimate();
        // With wins only there is no upper bound, with losses only no lower bound.
        let all = self.results.iter().fold(Tally::default(), |sum, (_, tally)| sum + *tally);
        let (has_low, has_high) = (all.wins + all.draws > 0, all.losses + all.draws > 0);
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
            player: self.player.to_owned(),
            elo: estimate.map(|(elo, _)| elo),
            elo_low: estimate.map(|(elo, error)| elo - error).filter(|_| has_low),
            elo_high: estimate.map(|(elo, error)| elo + error).filter(|_| has_high),
            elo_error: estimate.map(|(_, error)| error).filter(|_| has_low && has_high),
            games: self.games(),
            rungs,
            scale: self.scale.clone(),
            limit: self.config.settings.limit.to_string(),
            is_finished: self.is_exact(),
        }
    }
}

#[cfg(test)]
mod tests {
    use selfmate_chess::Seed;

    use super::*;
    use crate::players::EloRange;
    use crate::rate::standard_rungs;

    fn rungs() -> Vec<Rung> {
        standard_rungs(&EloRange { engine: "Stockfish 15.1".to_owned(), min: 1350, max: 2850 })
    }

    #[test]
    fn the_interval_contains_the_rating_of_a_simulated_player() {
        let rungs = rungs();
        let mut inside = 0;
        let mut games = 0;
        for trial in 0..200 {
            let mut rng = Seed::new(5).index(trial).rng();
            let true_elo = 2800.0 * rng.unit();
            let config = RateConfig { max_error: 60.0, ..RateConfig::new("x") };
            let mut climb = Climb::new(&config, "x", &rungs, None);
            while !climb.is_over() {
                let rung = climb.next_rung();
                let p = score_of_elo(true_elo - rung.elo);
                for _ in 0..2 {
                    let draw = p * (1.0 - p);
                    let x = rng.unit();
                    let points = if x < draw {
                        0.5
                    } else if x < p + 0.5 * draw {
                        1.0
                    } else {
                        0.0
                    };
                    climb.count(&rung, points);
                }
            }
            let report = climb.report();
            assert!(report.is_finished, "{true_elo}: {report:?}");
            let (low, high) = (report.elo_low.unwrap(), report.elo_high.unwrap());
            inside += u32::from((low..=high).contains(&true_elo));
            games += report.games;
        }
        assert!(inside >= 182, "{inside} of 200");
        // The theoretical minimum is about 108: 60 = 1.96 · 347 · √(1 - ¼) / √n.
        assert!(games / 200 < 170, "{} games on average", games / 200);
    }

    #[test]
    fn a_rating_without_games_is_unknown() {
        let (config, rungs) = (RateConfig::new("x"), rungs());
        let report = Climb::new(&config, "x", &rungs, None).report();
        let json = serde_json::to_value(&report).unwrap();
        for key in ["elo", "elo_low", "elo_high", "elo_error"] {
            assert!(json.get(key).is_some_and(serde_json::Value::is_null), "{key}");
        }
        assert!(!report.is_finished);
    }

    #[test]
    fn a_rating_from_wins_only_has_no_upper_bound() {
        let (config, rungs) = (RateConfig::new("x"), rungs());
        for (points, low, high) in [(1.0, true, false), (0.0, false, true), (0.5, true, true)] {
            let mut climb = Climb::new(&config, "x", &rungs, None);
            (0..30).for_each(|game| climb.count(&rungs[game % 5], points));
            let report = climb.report();
            assert_eq!((report.elo_low.is_some(), report.elo_high.is_some()), (low, high));
            assert_eq!(report.elo_error.is_some(), low && high);
            assert!(report.elo.is_some_and(f64::is_finite), "{report:?}");
        }
    }
}
