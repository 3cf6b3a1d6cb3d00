//! The sequential probability ratio test (SPRT): play until the results favour one of two
//! hypotheses.
//!
//! This is the generalised test (Van den Bergh, "The GSPRT"): under each hypothesis the likelihood
//! of the results is maximised over all outcome distributions with that mean (logistic Elo) or that
//! ratio of mean to standard deviation (normalised Elo), as in fishtest's LLRcalc and in fastchess.

use serde::{Deserialize, Serialize};

use crate::stats::{NELO_UNIT, Pentanomial, Tally, score_of_elo};

/// Two hypotheses about an Elo difference, with the error rates of the test.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sprt {
    /// The Elo difference of the null hypothesis H0.
    pub elo0: f64,
    /// The Elo difference of the alternative hypothesis H1.
    pub elo1: f64,
    /// The probability of accepting H1 when H0 is true.
    pub alpha: f64,
    /// The probability of accepting H0 when H1 is true.
    pub beta: f64,
    /// The scale of `elo0` and `elo1`.
    pub model: EloModel,
}

/// The scale of the hypotheses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EloModel {
    /// Units of the standard deviation of a game: the number of games hardly depends on the share
    /// of draws.
    #[default]
    Normalized,
    /// Elo computed from the expected score.
    Logistic,
    /// BayesElo, with the draw rate of the results.
    Bayesian,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SprtStatus {
    #[serde(flatten)]
    pub sprt: Sprt,
    pub llr: f64,
    /// H0 is accepted at or below this log-likelihood ratio.
    pub lower: f64,
    /// H1 is accepted at or above this log-likelihood ratio.
    pub upper: f64,
    pub decision: Decision,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    Continue,
    /// The difference is `elo0` or less.
    AcceptH0,
    /// The difference is `elo1` or more.
    AcceptH1,
}

/// Why the settings of a test are invalid.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SprtError {
    #[error("SPRT bounds {elo0},{elo1}: expected the first below the second")]
    Bounds { elo0: f64, elo1: f64 },
    /// The bounds are too large for the normalised model.
    #[error("SPRT bounds {elo0},{elo1}: expected normalised Elo within ±200")]
    Wide { elo0: f64, elo1: f64 },
    /// An error rate outside (0, ½).
    #[error("SPRT error rate {0}: expected more than 0 and less than 0.5")]
    Rate(f64),
    #[error("SPRT bounds '{0}': expected ELO0,ELO1, such as 0,5")]
    Text(String),
}

impl Sprt {
    /// A test in normalised Elo with error rates of 5 %.
    pub const fn new(elo0: f64, elo1: f64) -> Sprt {
        Sprt { elo0, elo1, alpha: 0.05, beta: 0.05, model: EloModel::Normalized }
    }

    /// Reads `E0,E1`.
    pub fn parse(text: &str) -> Result<Sprt, SprtError> {
        let bounds = text.split_once(',').and_then(|(elo0, elo1)| {
            Some(Sprt::new(elo0.trim().parse().ok()?, elo1.trim().parse().ok()?))
        });
        bounds.ok_or_else(|| SprtError::Text(text.to_owned()))?.checked()
    }

    /// Returns the test if its settings are valid.
    pub fn checked(self) -> Result<Sprt, SprtError> {
        // The comparison also rejects NaN.
        let ordered = self.elo0 < self.elo1 && self.elo0.is_finite() && self.elo1.is_finite();
        if !ordered {
            return Err(SprtError::Bounds { elo0: self.elo0, elo1: self.elo1 });
        }
        // Beyond about 230 no distribution of pairs near the uniform one has this mean.
        if self.model == EloModel::Normalized && self.elo0.abs().max(self.elo1.abs()) > 200.0 {
            return Err(SprtError::Wide { elo0: self.elo0, elo1: self.elo1 });
        }
        match [self.alpha, self.beta].into_iter().find(|rate| !(*rate > 0.0 && *rate < 0.5)) {
            Some(rate) => Err(SprtError::Rate(rate)),
            None => Ok(self),
        }
    }

    pub fn llr_of_games(&self, tally: Tally) -> f64 {
        let counts = [tally.losses, tally.draws, tally.wins];
        if self.model != EloModel::Bayesian {
            return self.llr(&counts, 1.0);
        }
        let [losses, draws, wins] = counts.map(nonzero);
        let total = losses + draws + wins;
        let draw_elo = draw_elo(wins / total, losses / total);
        let (p0, p1) = (bayes(self.elo0, draw_elo), bayes(self.elo1, draw_elo));
        wins * libm::log(p1.0 / p0.0)
            + draws * libm::log(p1.1 / p0.1)
            + losses * libm::log(p1.2 / p0.2)
    }

    /// The log-likelihood ratio of pairs. BayesElo also needs the single games, for the draw rate.
    pub fn llr_of_pairs(&self, pairs: Pentanomial, tally: Tally) -> f64 {
        if self.model != EloModel::Bayesian {
            return self.llr(&pairs.counts, 2.0);
        }
        let [losses, draws, wins] = [tally.losses, tally.draws, tally.wins].map(nonzero);
        let total = losses + draws + wins;
        let draw_elo = draw_elo(wins / total, losses / total);
        let score = |elo| {
            let (win, draw, _) = bayes(elo, draw_elo);
            win + 0.5 * draw
        };
        llr_of_means(&distribution(&pairs.counts), score(self.elo0), score(self.elo1))
    }

    /// The state of the test, from pairs if there are any, otherwise from single games.
    pub fn status(&self, pairs: Pentanomial, tally: Tally) -> SprtStatus {
        let llr = match (pairs.pairs(), tally.games()) {
            (_, 0) => 0.0,
            (0, _) => self.llr_of_games(tally),
            _ => self.llr_of_pairs(pairs, tally),
        };
        let (lower, upper) =
            (libm::log(self.beta / (1.0 - self.alpha)), libm::log((1.0 - self.beta) / self.alpha));
        let decision = if llr >= upper {
            Decision::AcceptH1
        } else if llr <= lower {
            Decision::AcceptH0
        } else {
            Decision::Continue
        };
        SprtStatus { sprt: *self, llr, lower, upper, decision }
    }

    fn llr(&self, counts: &[u64], games: f64) -> f64 {
        let seen = distribution(counts);
        match self.model {
            EloModel::Normalized => {
                let t = |nelo: f64| nelo / NELO_UNIT * games.sqrt();
                llr_between(&seen, &with_t(&seen, t(self.elo0)), &with_t(&seen, t(self.elo1)))
            }
            EloModel::Logistic | EloModel::Bayesian => {
                llr_of_means(&seen, score_of_elo(self.elo0), score_of_elo(self.elo1))
            }
        }
    }
}

/// Outcomes with scores from 0 to 1 in equal steps, and their frequencies.
struct Distribution {
    /// (score, probability)
    outcomes: Vec<(f64, f64)>,
    count: f64,
}

/// An outcome that did not occur counts as 0.001, so that every logarithm exists.
fn nonzero(count: u64) -> f64 {
    if count == 0 { 1e-3 } else { count as f64 }
}

fn distribution(counts: &[u64]) -> Distribution {
    let count: f64 = counts.iter().map(|&n| nonzero(n)).sum();
    let last = (counts.len() - 1) as f64;
    let outcome = |(i, &n): (usize, &u64)| (i as f64 / last, nonzero(n) / count);
    Distribution { outcomes: counts.iter().enumerate().map(outcome).collect(), count }
}

fn llr_of_means(seen: &Distribution, mean0: f64, mean1: f64) -> f64 {
    llr_between(seen, &with_mean(seen, mean0), &with_mean(seen, mean1))
}

fn llr_between(seen: &Distribution, h0: &[f64], h1: &[f64]) -> f64 {
    let terms = seen.outcomes.iter().zip(h0.iter().zip(h1));
    seen.count * terms.map(|((_, p), (p0, p1))| p * libm::log(p1 / p0)).sum::<f64>()
}

/// The most likely probabilities with this mean.
fn with_mean(seen: &Distribution, mean: f64) -> Vec<f64> {
    let centred: Vec<_> = seen.outcomes.iter().map(|&(a, p)| (a - mean, p)).collect();
    reweighted(&centred)
}

/// The most likely probabilities for which (mean - ½) / standard deviation is `t`.
fn with_t(seen: &Distribution, t: f64) -> Vec<f64> {
    let mut fitted = vec![1.0 / seen.outcomes.len() as f64; seen.outcomes.len()];
    for _ in 0..50 {
        let weighted = || seen.outcomes.iter().zip(&fitted).map(|(&(a, _), &p)| (a, p));
        let mean: f64 = weighted().map(|(a, p)| a * p).sum();
        let spread = weighted().map(|(a, p)| p * (a - mean).powi(2)).sum::<f64>().sqrt();
        // The condition, linearised at the last estimate.
        let centred: Vec<_> = seen
            .outcomes
            .iter()
            .map(|&(a, p)| (a - 0.5 - 0.5 * t * spread * (1.0 + ((mean - a) / spread).powi(2)), p))
            .collect();
        let next = reweighted(&centred);
        let moved = fitted.iter().zip(&next).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        fitted = next;
        if moved < 1e-10 {
            break;
        }
    }
    fitted
}

/// The probabilities p / (1 + x·a) that make the mean of `a` zero: x is the root of the decreasing
/// function Σ p·a / (1 + x·a) between its poles.
fn reweighted(centred: &[(f64, f64)]) -> Vec<f64> {
    let least = centred.iter().map(|(a, _)| *a).fold(f64::INFINITY, f64::min);
    let most = centred.iter().map(|(a, _)| *a).fold(f64::NEG_INFINITY, f64::max);
    let (mut low, mut high) = (-1.0 / most, -1.0 / least);
    // Bisection; 200 steps exhaust the precision of f64.
    for _ in 0..200 {
        let x = 0.5 * (low + high);
        let value: f64 = centred.iter().map(|(a, p)| p * a / (1.0 + x * a)).sum();
        if value > 0.0 {
            low = x;
        } else {
            high = x;
        }
    }
    let x = 0.5 * (low + high);
    centred.iter().map(|(a, p)| p / (1.0 + x * a)).collect()
}

/// The probabilities of win, draw and loss under BayesElo.
fn bayes(elo: f64, draw_elo: f64) -> (f64, f64, f64) {
    let win = 1.0 / (1.0 + libm::exp10((draw_elo - elo) / 400.0));
    let loss = 1.0 / (1.0 + libm::exp10((draw_elo + elo) / 400.0));
    (win, 1.0 - win - loss, loss)
}

fn draw_elo(win: f64, loss: f64) -> f64 {
    200.0 * libm::log10((1.0 - loss) / loss * (1.0 - win) / win)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_llr(got: f64, expected: f64) {
        // The reference values have two decimals: half a unit of the last one, or 1 %.
        assert!((got - expected).abs() <= (0.01 * expected.abs()).max(0.005), "{got} {expected}");
    }

    fn sprt(elo0: f64, elo1: f64, model: EloModel) -> Sprt {
        Sprt { model, ..Sprt::new(elo0, elo1) }
    }

    #[test]
    fn single_games_give_the_ratios_of_fastchess() {
        use EloModel::*;
        let table = [
            (sprt(0.0, 2.0, Normalized), Tally::new(36433, 68692, 36027), 0.92),
            (sprt(-1.75, 0.25, Normalized), Tally::new(10871, 20431, 10650), 2.30),
            (sprt(0.5, 2.5, Logistic), Tally::new(21404, 40708, 21184), -1.57),
            (sprt(0.0, 2.0, Bayesian), Tally::new(68965, 128_429, 68526), -1.26),
        ];
        for (sprt, tally, expected) in table {
            assert_llr(sprt.llr_of_games(tally), expected);
        }
    }

    #[test]
    fn pairs_give_the_ratios_of_fastchess() {
        use EloModel::*;
        let tally = Tally::default();
        let table = [
            (sprt(0.0, 2.0, Normalized), (365, 16618, 36029, 200, 16974, 390), 2.25),
            (sprt(-1.75, 0.25, Normalized), (127, 4883, 10311, 401, 5150, 104), 3.01),
            (sprt(0.5, 2.5, Logistic), (223, 9863, 20279, 1000, 10037, 246), -3.07),
        ];
        for (sprt, (ll, ld, wl, dd, wd, ww), expected) in table {
            let pairs = Pentanomial::new(ll, ld, wl, dd, wd, ww);
            assert_llr(sprt.llr_of_pairs(pairs, tally), expected);
        }
    }

    #[test]
    fn bayesian_pairs_agree_with_games_when_pairs_are_independent() {
        // Pairs of independent games with these chances of win, draw and loss.
        let (w, d, l) = (0.3, 0.45, 0.25);
        let pairs = 1e6;
        let n = |share: f64| (share * pairs) as u64;
        let counts = Pentanomial::new(
            n(l * l),
            n(2.0 * l * d),
            n(2.0 * w * l),
            n(d * d),
            n(2.0 * w * d),
            n(w * w),
        );
        let tally = Tally::new(n(2.0 * w), n(2.0 * d), n(2.0 * l));
        let sprt = sprt(10.0, 20.0, EloModel::Bayesian);
        let (a, b) = (sprt.llr_of_pairs(counts, tally), sprt.llr_of_games(tally));
        assert!((a - b).abs() < 0.05 * b.abs(), "{a} {b}");
    }

    #[test]
    fn the_decision_follows_the_usual_bounds() {
        let sprt = Sprt::new(0.0, 10.0);
        let even = sprt.status(Pentanomial::default(), Tally::default());
        assert!((even.upper - 2.944).abs() < 0.001 && (even.lower + 2.944).abs() < 0.001);
        assert_eq!((even.llr, even.decision), (0.0, Decision::Continue));
        let better = sprt.status(Pentanomial::default(), Tally::new(6000, 9000, 5000));
        assert_eq!(better.decision, Decision::AcceptH1);
        let worse = sprt.status(Pentanomial::default(), Tally::new(5000, 9000, 6000));
        assert_eq!(worse.decision, Decision::AcceptH0);
    }

    #[test]
    fn few_games_and_missing_outcomes_give_finite_ratios() {
        for model in [EloModel::Normalized, EloModel::Logistic, EloModel::Bayesian] {
            let sprt = sprt(0.0, 5.0, model);
            for tally in [Tally::new(1, 0, 0), Tally::new(0, 1, 0), Tally::new(0, 0, 20)] {
                assert!(sprt.llr_of_games(tally).is_finite(), "{model:?} {tally:?}");
            }
            let pairs = Pentanomial::new(0, 0, 0, 0, 0, 3);
            let llr = sprt.status(pairs, Tally::new(6, 0, 0)).llr;
            assert!(llr.is_finite() && llr > 0.0, "{model:?} {llr}");
        }
    }

    #[test]
    fn invalid_settings_are_rejected() {
        assert_eq!(Sprt::parse("0, 5"), Ok(Sprt::new(0.0, 5.0)));
        let message = |text: &str| Sprt::parse(text).unwrap_err().to_string();
        assert_eq!(message("5,0"), "SPRT bounds 5,0: expected the first below the second");
        assert_eq!(message("5"), "SPRT bounds '5': expected ELO0,ELO1, such as 0,5");
        assert!(Sprt::parse("NaN,1").is_err());
        let certain = Sprt { alpha: 0.0, ..Sprt::new(0.0, 1.0) };
        assert_eq!(certain.checked(), Err(SprtError::Rate(0.0)));
    }
}
