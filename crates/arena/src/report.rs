//! What a match has shown so far, as tables and programs want it.

use std::collections::{BTreeMap, HashSet};

use serde::{Deserialize, Serialize};

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
    /// A's Elo less B's; 0 without games.
    pub elo: f64,
    /// Half the 95 % interval of `elo`.
    pub elo_error: f64,
    /// The lower end of the interval.
    pub elo_low: f64,
    /// The upper end.
    pub elo_high: f64,
    /// A perfect score: `elo` assumes half a point less, and is a bound rather than an estimate.
    pub elo_is_bound: bool,
    /// Normalised Elo.
    pub nelo: f64,
    /// Half its 95 % interval.
    pub nelo_error: f64,
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

/// Counts finished games; the number of a game is its place.
pub(crate) fn report(
    (a, b): (&str, &str),
    games: &[Option<GameRecord>],
    sprt: Option<&Sprt>,
) -> MatchReport {
    let (counted, status) = match sprt {
        Some(sprt) => counted_by_test(games, sprt),
        None => (games.len(), None),
    };
    let mut count = Count::default();
    for pair in games[..counted].chunks(2) {
        count.add_pair(pair);
    }
    let strength = count.strength();
    let decided = status.is_some_and(|status| status.decision != Decision::Continue);
    MatchReport {
        a: a.to_owned(),
        b: b.to_owned(),
        games: count.tally.games(),
        wins: count.tally.wins,
        draws: count.tally.draws,
        losses: count.tally.losses,
        score: strength.score,
        elo: strength.elo,
        elo_error: strength.elo_error,
        elo_low: strength.elo_low,
        elo_high: strength.elo_high,
        elo_is_bound: strength.is_bound,
        nelo: strength.nelo,
        nelo_error: strength.nelo_error,
        los: strength.los,
        draw_ratio: count.tally.draw_ratio(),
        pentanomial: count.pairs.counts,
        double_draws: count.pairs.double_draws,
        pairs_ratio: count.pairs.pairs_ratio(),
        sprt: status,
        terminations: count.terminations,
        a_faults: count.a_faults,
        b_faults: count.b_faults,
        duplicates: 0,
        seconds: 0.0,
        is_finished: decided || games.iter().all(Option::is_some),
    }
}

/// How many games count in a sequential test: those up to the pair that decides it, in their
/// order and not in that of their ends, so that the result is the same on any number of threads.
fn counted_by_test(games: &[Option<GameRecord>], sprt: &Sprt) -> (usize, Option<SprtStatus>) {
    let mut count = Count::default();
    let mut status = sprt.status(count.pairs, count.tally);
    let mut counted = 0;
    for pair in games.chunks(2) {
        if pair.len() < 2 || pair.iter().any(Option::is_none) {
            break;
        }
        count.add_pair(pair);
        counted += 2;
        status = sprt.status(count.pairs, count.tally);
        if status.decision != Decision::Continue {
            return (counted, Some(status));
        }
    }
    // Undecided: whatever is finished counts for the table.
    (games.len(), Some(status))
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
    fn add_pair(&mut self, pair: &[Option<GameRecord>]) {
        for record in pair.iter().flatten() {
            self.tally.add(record.a_points());
            *self.terminations.entry(record.played.termination.describe()).or_default() += 1;
            self.a_faults += u64::from(record.a_failed());
            self.b_faults += u64::from(record.b_failed());
        }
        if let [Some(first), Some(second)] = pair {
            self.pairs.add(first.a_points(), second.a_points());
        }
    }

    fn strength(&self) -> Strength {
        // Pairs that all ended alike show no spread; their single games do.
        let by_pairs = self.pairs.strength().filter(|strength| strength.elo_error > 0.0);
        let strength = by_pairs.or_else(|| self.tally.strength());
        let nothing = Strength {
            score: 0.5,
            elo: 0.0,
            elo_error: 0.0,
            elo_low: 0.0,
            elo_high: 0.0,
            nelo: 0.0,
            nelo_error: 0.0,
            los: 0.5,
            is_bound: false,
        };
        let points = self.tally.points() / self.tally.games().max(1) as f64;
        match strength {
            // The score is that of all games, with or without their partner.
            Some(strength) => Strength { score: points, ..strength },
            None => nothing,
        }
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
