//! What a match has shown so far, as tables and programs want it.

use std::collections::{BTreeMap, HashSet};

use serde::{Deserialize, Serialize};

use crate::game::Termination;
use crate::record::GameRecord;
use crate::sprt::{Decision, Sprt, SprtStatus};
use crate::stats::{Pentanomial, Strength, Tally};

/// The result of a match. Wins, losses and Elo are A's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MatchReport {
    /// The first player's spec.
    pub a: String,
    /// The second player's spec.
    pub b: String,
    /// Games counted.
    pub games: u64,
    /// Games won by A.
    pub wins: u64,
    /// Games drawn.
    pub draws: u64,
    /// Games lost by A.
    pub losses: u64,
    /// A's share of the points, from 0 to 1; ½ without games.
    pub score: f64,
    /// A's Elo less B's; `null` without games.
    pub elo: Option<f64>,
    /// Half the 95 % interval of `elo`; `null` when all games ended alike and show no spread.
    pub elo_error: Option<f64>,
    /// The lower end of the interval; `null` when nothing speaks against any lower Elo.
    pub elo_low: Option<f64>,
    /// The upper end; `null` when nothing speaks against any higher Elo.
    pub elo_high: Option<f64>,
    /// A perfect score: `elo` assumes half a point less, and only one end of the interval is known.
    pub elo_is_bound: bool,
    /// Normalised Elo; `null` where `elo_error` is.
    pub nelo: Option<f64>,
    /// Half its 95 % interval.
    pub nelo_error: Option<f64>,
    /// The likelihood that A is the stronger, from 0 to 1.
    pub los: f64,
    /// The share of drawn games.
    pub draw_ratio: f64,
    /// Pairs with 0, ½, 1, 1½ and 2 points for A.
    pub pentanomial: [u64; 5],
    /// How many of the pairs with 1 point were two draws.
    pub double_draws: u64,
    /// Pairs won to pairs lost; `null` when none was lost.
    pub pairs_ratio: Option<f64>,
    /// The sequential test, if one was asked for.
    pub sprt: Option<SprtStatus>,
    /// How often games ended for which reason.
    pub terminations: BTreeMap<String, u64>,
    /// Games that A lost by a fault of its program or by time.
    pub a_faults: u64,
    /// Games that B lost in that way.
    pub b_faults: u64,
    /// Games that repeat another game move for move; counted at the end of a run.
    pub duplicates: u64,
    /// Wall-clock seconds of this run of the match.
    pub seconds: f64,
    /// The match is over: all games are played, or the test has decided.
    pub is_finished: bool,
}

/// Counts the games of a match as they end, in whatever order, each of them once.
pub(crate) struct Scoreboard {
    a: String,
    b: String,
    /// By the number of the game; an odd last game has a place for the partner it never gets.
    pairs: Vec<[Option<Ended>; 2]>,
    /// Games that are still to be played.
    open: usize,
    all: Count,
    test: Option<Test>,
}

/// What a finished game counts for.
#[derive(Clone, Copy)]
struct Ended {
    points: f64,
    termination: Termination,
    a_failed: bool,
    b_failed: bool,
}

/// A sequential test. It counts whole pairs in their order and not in that of their ends, up to
/// the one that decides it, so that the result is the same on any number of threads.
struct Test {
    sprt: Sprt,
    status: SprtStatus,
    count: Count,
    /// Pairs counted.
    pairs: usize,
}

impl Scoreboard {
    /// For a match of so many games.
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

    /// Counts a game that has not been counted yet.
    pub(crate) fn add(&mut self, record: &GameRecord) {
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
            test.go_on(&self.pairs);
        }
    }

    /// What the games say so far.
    pub(crate) fn report(&self) -> MatchReport {
        let decided = self.test.as_ref().filter(|test| test.is_decided());
        // Undecided: whatever is finished counts for the table.
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

    /// Counts the pairs that follow those counted, as far as they are whole.
    fn go_on(&mut self, pairs: &[[Option<Ended>; 2]]) {
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
        // Pairs that all ended alike show no spread; their single games may.
        let by_pairs = self.pairs.strength().filter(|strength| strength.elo_error.is_some());
        let strength = by_pairs.or_else(|| self.tally.strength())?;
        // The score is that of all games, with or without their partner.
        let score = self.tally.points() / self.tally.games() as f64;
        Some(Strength { score, ..strength })
    }
}

/// How many games repeat an earlier one move for move.
pub(crate) fn duplicates(games: &[Option<GameRecord>]) -> u64 {
    let mut seen = HashSet::new();
    let mut repeated = 0;
    for game in games.iter().flatten() {
        repeated += u64::from(!seen.insert((&game.played.fen, &game.played.moves)));
    }
    repeated
}

#[cfg(test)]
mod tests {
    use selfmate_chess::{Reason, Seed};

    use super::*;
    use crate::game::{PlayedGame, Side};

    fn record(game: usize, points: f64) -> GameRecord {
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
            thoughts: Vec::new(),
            winner,
            termination: Termination::Rules(reason),
            detail: None,
        };
        GameRecord { game: game as u64, a_plays, played }
    }

    fn board(points: &[f64], sprt: Option<Sprt>) -> MatchReport {
        let mut board = Scoreboard::new(("a", "b"), points.len(), sprt);
        points.iter().enumerate().for_each(|(game, points)| board.add(&record(game, *points)));
        board.report()
    }

    /// What a test decides, counted anew from all games after each pair.
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
    fn games_counted_one_by_one_in_any_order_give_what_counting_them_all_gives() {
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
    fn what_is_unknown_is_null_and_not_zero() {
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
        // Each pair ended alike, its games did not.
        assert_eq!(unknown(&json(&[1.0, 0.0, 1.0, 0.0])), Vec::<&str>::new());
    }
}
