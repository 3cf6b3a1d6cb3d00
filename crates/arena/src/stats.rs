//! Statistics of match scores: Elo, normalised Elo, likelihood of superiority.
//!
//! The formulas are those of fishtest and fastchess. Two games from the same opening with colours
//! swapped are not independent, so complete pairs are counted by their five outcomes (pentanomial)
//! instead of single games (trinomial).

use std::f64::consts::LN_10;

use serde::{Deserialize, Serialize};

/// Half the width of a 95 % interval, in standard deviations.
pub const Z95: f64 = 1.959_963_984_540_054;
/// Normalised Elo per standard deviation of a game: 800 / ln 10.
pub(crate) const NELO_UNIT: f64 = 800.0 / LN_10;

/// The strength of one player relative to another.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Strength {
    pub score: f64,
    pub elo: f64,
    /// Half the 95 % interval of `elo`; `None` when all results are equal and show no variance.
    pub elo_error: Option<f64>,
    /// The lower end of the interval; `None` without a lower bound.
    pub elo_low: Option<f64>,
    /// The upper end of the interval; `None` without an upper bound.
    pub elo_high: Option<f64>,
    /// Normalised Elo; `None` when the results show no variance.
    pub nelo: Option<f64>,
    /// Half the 95 % interval of `nelo`.
    pub nelo_error: Option<f64>,
    /// The likelihood of superiority, from 0 to 1.
    pub los: f64,
    /// True for a perfect score, which sets no Elo: half a point less is assumed.
    pub is_bound: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    pub wins: u64,
    pub draws: u64,
    pub losses: u64,
}

impl Tally {
    pub const fn new(wins: u64, draws: u64, losses: u64) -> Tally {
        Tally { wins, draws, losses }
    }

    pub const fn games(self) -> u64 {
        self.wins + self.draws + self.losses
    }

    pub fn points(self) -> f64 {
        self.wins as f64 + 0.5 * self.draws as f64
    }

    pub fn draw_ratio(self) -> f64 {
        if self.games() == 0 { 0.0 } else { self.draws as f64 / self.games() as f64 }
    }

    /// The result from the other player's side.
    #[must_use]
    pub const fn flip(self) -> Tally {
        Tally { wins: self.losses, draws: self.draws, losses: self.wins }
    }

    /// Adds a game by its points: 1, ½ or 0.
    pub fn add(&mut self, points: f64) {
        if points > 0.75 {
            self.wins += 1;
        } else if points < 0.25 {
            self.losses += 1;
        } else {
            self.draws += 1;
        }
    }

    /// The strength computed from single games.
    pub fn strength(self) -> Option<Strength> {
        let counts = [self.losses, self.draws, self.wins].map(|count| count as f64);
        strength(&counts, 1.0)
    }
}

impl std::ops::Add for Tally {
    type Output = Tally;

    fn add(self, other: Tally) -> Tally {
        Tally {
            wins: self.wins + other.wins,
            draws: self.draws + other.draws,
            losses: self.losses + other.losses,
        }
    }
}

/// Pairs of games by their total points.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pentanomial {
    /// Pairs with 0, ½, 1, 1½ and 2 points: LL, LD, WL or DD, WD, WW.
    pub counts: [u64; 5],
    /// Pairs with 1 point that were two draws.
    pub double_draws: u64,
}

impl Pentanomial {
    /// From LL, LD, WL, DD, WD and WW.
    pub const fn new(ll: u64, ld: u64, wl: u64, dd: u64, wd: u64, ww: u64) -> Pentanomial {
        Pentanomial { counts: [ll, ld, wl + dd, wd, ww], double_draws: dd }
    }

    pub fn pairs(self) -> u64 {
        self.counts.iter().sum()
    }

    /// Adds a pair by the points of its two games.
    pub fn add(&mut self, first: f64, second: f64) {
        let halves = ((first + second) * 2.0).round().clamp(0.0, 4.0) as usize;
        self.counts[halves] += 1;
        if halves == 2 && (first - second).abs() < 0.25 {
            self.double_draws += 1;
        }
    }

    /// Pairs won divided by pairs lost; `None` when none was lost.
    pub fn pairs_ratio(self) -> Option<f64> {
        let lost = self.counts[0] + self.counts[1];
        (lost > 0).then(|| (self.counts[3] + self.counts[4]) as f64 / lost as f64)
    }

    /// The share of pairs with 1 point.
    pub fn draw_ratio(self) -> f64 {
        if self.pairs() == 0 { 0.0 } else { self.counts[2] as f64 / self.pairs() as f64 }
    }

    /// The strength computed from pairs.
    pub fn strength(self) -> Option<Strength> {
        strength(&self.counts.map(|count| count as f64), 2.0)
    }
}

/// The Elo difference at which this score is expected.
pub fn elo_of_score(score: f64) -> f64 {
    -400.0 * libm::log10(1.0 / score - 1.0)
}

/// The score that is expected at this Elo difference.
pub fn score_of_elo(elo: f64) -> f64 {
    1.0 / (1.0 + libm::exp10(-elo / 400.0))
}

/// The strength from counts of outcomes with scores from 0 to 1 in equal steps, each of `games`
/// games.
fn strength(counts: &[f64], games: f64) -> Option<Strength> {
    let total: f64 = counts.iter().sum();
    if total == 0.0 {
        return None;
    }
    let last = counts.len() - 1;
    let mut counts = counts.to_vec();
    let is_bound = counts[0] == total || counts[last] == total;
    let perfect = if counts[0] == total { 0.0 } else { 1.0 };
    if is_bound {
        let (from, to) = if counts[0] == total { (0, 1) } else { (last, last - 1) };
        counts[from] -= 1.0;
        counts[to] += 1.0;
    }
    let moments = |counts: &[f64]| {
        let worth = |index: usize| index as f64 / last as f64;
        let mean = counts.iter().enumerate().map(|(i, n)| worth(i) * n).sum::<f64>() / total;
        let squares = counts.iter().enumerate().map(|(i, n)| n * (worth(i) - mean).powi(2));
        (mean, squares.sum::<f64>() / total)
    };
    let (score, variance) = moments(&counts);
    let spread = (variance / total).sqrt();
    let los = if spread > 0.0 { normal_cdf((score - 0.5) / spread) } else { 0.5 };
    // An interval that reaches a perfect score would end at infinity, so it ends a quarter of a
    // game before.
    let edge = 0.25 / (total * games);
    let elo_at = |score: f64| elo_of_score(score.clamp(edge, 1.0 - edge));
    if is_bound || variance == 0.0 {
        let seen = if is_bound { perfect } else { score };
        let (elo_low, elo_high) = interval_of_equal_outcomes(seen, total);
        return Some(Strength {
            score: seen,
            elo: elo_at(score),
            elo_error: None,
            elo_low,
            elo_high,
            nelo: None,
            nelo_error: None,
            los,
            is_bound,
        });
    }
    let (elo_low, elo_high) = (elo_at(score - Z95 * spread), elo_at(score + Z95 * spread));
    Some(Strength {
        score,
        elo: elo_at(score),
        elo_error: Some((elo_high - elo_low) / 2.0),
        elo_low: Some(elo_low),
        elo_high: Some(elo_high),
        nelo: Some((score - 0.5) / (games * variance).sqrt() * NELO_UNIT),
        nelo_error: Some(Z95 * NELO_UNIT / (total * games).sqrt()),
        los,
        is_bound,
    })
}

/// The interval when all outcomes are equal: if any other outcome had a probability above 1 -
/// 0.05^(1/n), it would have occurred with 95 % confidence. A perfect score therefore bounds one
/// end only.
fn interval_of_equal_outcomes(score: f64, outcomes: f64) -> (Option<f64>, Option<f64>) {
    let others = 1.0 - libm::pow(0.05, 1.0 / outcomes);
    let (low, high) = (score * (1.0 - others), score + (1.0 - score) * others);
    ((score > 0.0).then(|| elo_of_score(low)), (score < 1.0).then(|| elo_of_score(high)))
}

/// The probability that a standard normal variable is below `z`.
fn normal_cdf(z: f64) -> f64 {
    0.5 * libm::erfc(-z / std::f64::consts::SQRT_2)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Within 1 %.
    fn close(got: f64, expected: f64) -> bool {
        (got - expected).abs() <= 0.01 * expected.abs()
    }

    #[test]
    fn single_games_give_the_numbers_of_fastchess() {
        let s = Tally::new(136, 111, 96).strength().unwrap();
        assert!(close(s.elo, 40.70) && close(s.elo_error.unwrap(), 30.43), "{s:?}");
        assert!(close(s.nelo.unwrap(), 49.77) && close(s.nelo_error.unwrap(), 36.77), "{s:?}");
        assert!((s.los - 0.9960).abs() < 0.0001, "{s:?}");
    }

    #[test]
    fn pairs_give_the_numbers_of_fastchess() {
        let s = Pentanomial::new(34, 54, 31, 32, 64, 75).strength().unwrap();
        assert!(close(s.elo, 55.58) && close(s.elo_error.unwrap(), 27.65), "{s:?}");
        assert!(close(s.nelo.unwrap(), 57.94) && close(s.nelo_error.unwrap(), 28.28), "{s:?}");
    }

    #[test]
    fn pairs_are_counted_by_their_points() {
        let mut pairs = Pentanomial::default();
        for (a, b) in [(0.0, 0.0), (0.5, 0.0), (1.0, 0.0), (0.5, 0.5), (0.5, 1.0), (1.0, 1.0)] {
            pairs.add(a, b);
        }
        assert_eq!(pairs, Pentanomial::new(1, 1, 1, 1, 1, 1));
        assert_eq!(pairs.pairs_ratio(), Some(1.0));
    }

    #[test]
    fn a_perfect_score_gives_a_finite_bound() {
        for tally in [Tally::new(10, 0, 0), Tally::new(0, 0, 10)] {
            let s = tally.strength().unwrap();
            assert!(s.is_bound && s.elo.is_finite() && s.elo_error.is_none(), "{s:?}");
            assert!(s.elo.abs() > 400.0 && (s.score == 0.0 || s.score == 1.0), "{s:?}");
        }
        // A player that wins 74.11 % of its games (182.8 Elo) wins ten in a row with probability 5
        // %.
        let won = Tally::new(10, 0, 0).strength().unwrap();
        assert!(close(won.elo_low.unwrap(), 182.8) && won.elo_high.is_none(), "{won:?}");
        let lost = Tally::new(0, 0, 10).strength().unwrap();
        assert!(close(lost.elo_high.unwrap(), -182.8) && lost.elo_low.is_none(), "{lost:?}");
        assert!(!Tally::new(9, 1, 0).strength().unwrap().is_bound);
        let even = Tally::new(0, 7, 0).strength().unwrap();
        assert_eq!((even.elo, even.los, even.is_bound), (0.0, 0.5, false));
        let (low, high) = (even.elo_low.unwrap(), even.elo_high.unwrap());
        assert!(low < -50.0 && (low + high).abs() < 1e-9 && even.elo_error.is_none(), "{even:?}");
        assert_eq!(Tally::default().strength(), None);
    }

    #[test]
    fn swapping_sides_negates_elo() {
        let (a, b) = (Tally::new(30, 20, 10), Tally::new(10, 20, 30));
        assert_eq!(a.flip(), b);
        let (a, b) = (a.strength().unwrap(), b.strength().unwrap());
        assert!((a.elo + b.elo).abs() < 1e-9 && (a.los + b.los - 1.0).abs() < 1e-6);
    }
}
