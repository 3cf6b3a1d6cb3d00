//! The results of a match so far, for tables and programs.

use std::collections::{BTreeMap, HashSet};

use serde::{Deserialize, Serialize};

use crate::game::Termination;
use crate::record::MatchGame;
use crate::sprt::{Decision, Sprt, SprtStatus};
use crate::stats::{Pentanomial, Strength, Tally};

/// The result of a match. Wins, losses and Elo are from A's side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MatchReport {
    pub a: String,
    pub b: String,
    /// Games that count for the result.
    pub games: u64,
    pub wins: u64,
    pub draws: u64,
    pub losses: u64,
    /// A's share of the points, from 0 to 1; ½ without games.
    pub score: f64,
    /// A's Elo minus B's; `null` without games.
    pub elo: Option<f64>,
    /// Half the 95 % interval of `elo`; `null` when all games have the same result and show no
    /// variance.
    pub elo_error: Option<f64>,
    /// The lower end of the interval; `null` when all games were lost.
    pub elo_low: Option<f64>,
    /// The upper end of the interval; `null` when all games were won.
    pub elo_high: Option<f64>,
    /// True for a perfect score: `elo` is computed with half a point less, and only one end of the
    /// interval is known.
    pub elo_is_bound: bool,
    /// Normalised Elo; `null` when `elo_error` is `null`.
    pub nelo: Option<f64>,
    /// Half the 95 % interval of `nelo`.
    pub nelo_error: Option<f64>,
    /// The likelihood of superiority of A, from 0 to 1.
    pub los: f64,
    pub draw_ratio: f64,
    /// Pairs with 0, ½, 1, 1½ and 2 points for A.
    pub pentanomial: [u64; 5],
    /// Pairs with 1 point that were two draws.
    pub double_draws: u64,
    /// Pairs won divided by pairs lost; `null` when none was lost.
    pub pairs_ratio: Option<f64>,
    /// The state of the SPRT, if there is one.
    pub sprt: Option<SprtStatus>,
    /// The number of games per reason of their end.
    pub terminations: BTreeMap<String, u64>,
    /// Games that A lost by a fault of its engine or on time.
    pub a_faults: u64,
    /// Games that B lost by a fault of its engine or on time.
    pub b_faults: u64,
    /// Games that repeat another game move for move; counted at the end of a match.
    pub duplicates: u64,
    /// Wall-clock seconds since the match was started or resumed.
    pub seconds: f64,
    /// True when all games are played or the SPRT is decided.
    pub is_finished: bool,
}

/// Counts the games of a match as they finish, in any order, each once.
pub(crate) struct Scoreboard {
    a: String,
    b: String,
    /// By the number of the pair; the last pair of an odd number of games stays incomplete.
    pairs: Vec<[Option<Ended>; 2]>,
    open: usize,
    all: Count,
    test: Option<Test>,
}

/// The parts of a finished game that count.
#[derive(Clone, Copy)]
struct Ended {
    points: f64,
    termination: Termination,
    a_failed: bool,
    b_failed: bool,
}

/// The state of an SPRT. It counts complete pairs in the order of their numbers, up to the pair
/// that decides it, so the result is the same on any number of threads.
struct Test {
    sprt: Sprt,
    status: SprtStatus,
    count: Count,
    pairs: usize,
}

impl Scoreboard {
    pub(crate) fn new((a, b): (&str, &str), games: usize, sprt: Option<Sprt>) -> Scoreboard {
        let test = |sprt: Sprt| Test {
            sprt,
            status: sprt.status(Pentanomial::default(), Tally::default()),
            count: Count::default(),
            pairs: 0,
        };
        Scoreboard {
            a: a.to_owned(),
            b: b.to_owned(),
            pairs: vec![[None; 2]; games.div_ceil(2)],
            open: games,
            all: Count::default(),
            test: sprt.map(test),
        }
    }

    pub(crate) fn add(&mut self, record: &MatchGame) {
        let ended = Ended {
            points: record.a_points(),
            termination: record.played.termination,
            a_failed: record.a_failed(),
            b_failed: record.b_failed(),
        };
        let pair = &mut self.pairs[record.game as usize / 2];
        pair[record.game as usize % 2] = Some(ended);
        self.open -= 1;
        self.all.add(&ended);
        if let [Some(first), Some(second)] = pair {
            self.all.pairs.add(first.points, second.points);
        }
        if let Some(test) = &mut self.test {
            test.advance(&self.pairs);
        }
    }

    pub(crate) fn report(&self) -> MatchReport {
        let decided = self.test.as_ref().filter(|test| test.is_decided());
        // While the test is undecided, all finished games count.
        let count = decided.map_or(&self.all, |test| &test.count);
        let strength = count.strength();
        let of = |value: fn(&Strength) -> Option<f64>| strength.as_ref().and_then(value);
        MatchReport {
            a: self.a.clone(),
            b: self.b.clone(),
            games: count.tally.games(),
            wins: count.tally.wins,
            draws: count.tally.draws,
            losses: count.tally.losses,
            score: strength.map_or(0.5, |strength| strength.score),
            elo: of(|strength| Some(strength.elo)),
            elo_error: of(|strength| strength.elo_error),
            elo_low: of(|strength| strength.elo_low),
            elo_high: of(|strength| strength.elo_high),
            elo_is_bound: strength.is_some_and(|strength| strength.is_bound),
            nelo: of(|strength| strength.nelo),
            nelo_error: of(|strength| strength.nelo_error),
            los: strength.map_or(0.5, |strength| strength.los),
            draw_ratio: count.tally.draw_ratio(),
            pentanomial: count.pairs.counts,
            double_draws: count.pairs.double_draws,
            pairs_ratio: count.pairs.pairs_ratio(),
            sprt: self.test.as_ref().map(|test| test.status),
            terminations: count.terminations.clone(),
            a_faults: count.a_faults,
            b_faults: count.b_faults,
            duplicates: 0,
            seconds: 0.0,
            is_finished: decided.is_some() || self.open == 0,
        }
    }
}

impl Test {
    fn is_decided(&self) -> bool {
        self.status.decision != Decision::Continue
    }

    /// Counts further complete pairs, in order.
    fn advance(&mut self, pairs: &[[Option<Ended>; 2]]) {
        while !self.is_decided()
            && let Some([Some(first), Some(second)]) = pairs.get(self.pairs)
        {
            self.count.add(first);
            self.count.add(second);
            self.count.pairs.add(first.points, second.points);
            self.status = self.sprt.status(self.count.pairs, self.count.tally);
            self.pairs += 1;
        }
    }
}

#[derive(Default)]
struct Count {
    tally: Tally,
    pairs: Pentanomial,
    terminations: BTreeMap<String, u64>,
    a_faults: u64,
    b_faults: u64,
}

impl Count {
    fn add(&mut self, ended: &Ended) {
        self.tally.add(ended.points);
        *self.terminations.entry(ended.termination.describe()).or_default() += 1;
        self.a_faults += u64::from(ended.a_failed);
        self.b_faults += u64::from(ended.b_failed);
    }

    /// `None` without games.
    fn strength(&self) -> Option<Strength> {
        // Pairs with equal results show no variance; their single games may.
        let by_pairs = self.pairs.strength().filter(|strength| strength.elo_error.is_some());
        let strength = by_pairs.or_else(|| self.tally.strength())?;
        // The score counts all games, also those of incomplete pairs.
        let score = self.tally.points() / self.tally.games() as f64;
        Some(Strength { score, ..strength })
    }
}

/// The number of games that repeat an earlier one move for move.
pub fn duplicates<'a>(games: impl IntoIterator<Item = &'a MatchGame>) -> u64 {
    let mut seen = HashSet::new();
    let mut repeated = 0;
    for game in games {
        repeated += u64::from(!seen.insert((&game.played.fen, &game.played.moves)));
    }
    repeated
}

#[cfg(test)]
mod tests {
    use selfmate_chess::{Reason, Seed};

    use super::*;
    use crate::game::{PlayedGame, Side};

    fn record(game: usize, points: f64) -> MatchGame {
        let a_plays = if game.is_multiple_of(2) { Side::White } else { Side::Black };
        let b_plays = if game.is_multiple_of(2) { Side::Black } else { Side::White };
        let decided = points != 0.5;
        let winner = decided.then_some(if points > 0.5 { a_plays } else { b_plays });
        let reason = if decided { Reason::Checkmate } else { Reason::Stalemate };
        let played = PlayedGame {
            fen: None,
            opening: None,
            opening_plies: 0,
            moves: vec![game.to_string()],
            evals: Vec::new(),
            winner,
            termination: Termination::Rules(reason),
            detail: None,
        };
        MatchGame { game: game as u64, a_plays, played }
    }

    fn board(points: &[f64], sprt: Option<Sprt>) -> MatchReport {
        let mut board = Scoreboard::new(("a", "b"), points.len(), sprt);
        points.iter().enumerate().for_each(|(game, points)| board.add(&record(game, *points)));
        board.report()
    }

    /// The decision of a test, recounted from all games after each pair.
    fn recounted(points: &[f64], sprt: Sprt) -> (Tally, Pentanomial, SprtStatus) {
        let (mut tally, mut pairs) = (Tally::default(), Pentanomial::default());
        let mut status = sprt.status(pairs, tally);
        for pair in points.chunks_exact(2) {
            if status.decision == Decision::Continue {
                pair.iter().for_each(|points| tally.add(*points));
                pairs.add(pair[0], pair[1]);
                status = sprt.status(pairs, tally);
            }
        }
        (tally, pairs, status)
    }

    #[test]
    fn counting_games_in_any_order_gives_the_same_report() {
        let sprt = Sprt::new(0.0, 60.0);
        for trial in 0..40 {
            let mut rng = Seed::new(3).index(trial).rng();
            let edge = rng.unit();
            let games = 2 * (1 + rng.below(150));
            let mut result = || match rng.unit() {
                x if x < 0.3 => 0.5,
                x if x < 0.3 + 0.7 * edge => 1.0,
                _ => 0.0,
            };
            let points: Vec<f64> = (0..games).map(|_| result()).collect();
            let mut order: Vec<usize> = (0..games).collect();
            rng.shuffle(&mut order);
            let mut plain = Scoreboard::new(("a", "b"), games, None);
            let mut tested = Scoreboard::new(("a", "b"), games, Some(sprt));
            for &game in &order {
                plain.add(&record(game, points[game]));
                tested.add(&record(game, points[game]));
            }
            let report = plain.report();
            let won = points.iter().filter(|points| **points == 1.0).count() as u64;
            assert_eq!((report.games, report.wins), (games as u64, won));
            assert_eq!(report.terminations.values().sum::<u64>(), games as u64);
            assert!(report.is_finished && report.sprt.is_none());
            assert_eq!(report, board(&points, None));
            let (tally, pairs, status) = recounted(&points, sprt);
            let report = tested.report();
            assert_eq!(report.sprt, Some(status));
            assert_eq!((report.wins, report.draws), (tally.wins, tally.draws), "{trial}");
            assert_eq!(report.pentanomial, pairs.counts);
        }
    }

    #[test]
    fn unknown_numbers_are_null() {
        let json = |points: &[f64]| {
            let mut board = Scoreboard::new(("a", "b"), 10, None);
            points.iter().enumerate().for_each(|(game, points)| board.add(&record(game, *points)));
            serde_json::to_value(board.report()).unwrap()
        };
        let keys = ["elo", "elo_error", "elo_low", "elo_high", "nelo", "nelo_error"];
        let unknown = |report: &serde_json::Value| {
            let null = keys.into_iter().filter(|key| report.get(key).unwrap().is_null());
            null.collect::<Vec<_>>()
        };
        assert_eq!(unknown(&json(&[])), keys);
        let drawn = json(&[0.5; 4]);
        assert_eq!(unknown(&drawn), ["elo_error", "nelo", "nelo_error"]);
        assert_eq!(
            (drawn["elo"].as_f64(), drawn["elo_is_bound"].as_bool()),
            (Some(0.0), Some(false))
        );
        let won = json(&[1.0; 4]);
        assert_eq!(unknown(&won), ["elo_error", "elo_high", "nelo", "nelo_error"]);
        assert_eq!(unknown(&json(&[0.0; 4])), ["elo_error", "elo_low", "nelo", "nelo_error"]);
        assert_eq!(unknown(&json(&[1.0, 0.0, 0.5])), Vec::<&str>::new());
        // All pairs have the same result, but their games do not.
        assert_eq!(unknown(&json(&[1.0, 0.0, 1.0, 0.0])), Vec::<&str>::new());
    }
}
