//! Rates many players on one scale: the ratings that make the results most likely.
//!
//! The model is Bradley-Terry with a draw as half a point, as in Ordo. Anchors keep fixed ratings;
//! without anchors the mean is 0. A weak prior keeps perfect scores finite.

mod matrix;

use serde::{Deserialize, Serialize};

use crate::stats::{Tally, Z95, score_of_elo};
use matrix::Matrix;

/// Results between two players, from A's side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meeting {
    pub a: usize,
    pub b: usize,
    /// A's results.
    pub tally: Tally,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rated {
    pub name: String,
    pub elo: f64,
    /// Half the 95 % interval; 0 for an anchor, `null` without games.
    pub elo_error: Option<f64>,
    pub games: u64,
    pub points: f64,
    /// True when the rating is fixed, not measured.
    pub is_anchor: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RatingError {
    /// An anchor is not one of the players.
    #[error("anchor '{name}' is not one of the players: expected one of {players}")]
    Anchor { name: String, players: String },
    #[error("anchor '{0}': expected PLAYER=ELO, such as stockfish:elo=1500=1500")]
    AnchorText(String),
}

/// The standard deviation of the prior, in Elo. It weighs as much as 1/19 of an even game.
const PRIOR_SPREAD: f64 = 1500.0;
/// Log-odds per Elo.
const SLOPE: f64 = std::f64::consts::LN_10 / 400.0;

pub fn rating_list(names: &[String], meetings: &[Meeting], anchors: &[Option<f64>]) -> Vec<Rated> {
    let fit = fit(meetings, anchors);
    let mut list: Vec<Rated> = names
        .iter()
        .enumerate()
        .map(|(index, name)| {
            let (mut games, mut points) = (0, 0.0);
            for meeting in meetings {
                let tally = match index {
                    _ if meeting.a == index => meeting.tally,
                    _ if meeting.b == index => meeting.tally.flip(),
                    _ => continue,
                };
                games += tally.games();
                points += tally.points();
            }
            let is_anchor = anchors.get(index).copied().flatten().is_some();
            let is_known = is_anchor || games > 0;
            Rated {
                name: name.clone(),
                elo: fit.elo[index],
                elo_error: is_known.then_some(Z95 * fit.spread[index]),
                games,
                points,
                is_anchor,
            }
        })
        .collect();
    list.sort_by(|a, b| b.elo.total_cmp(&a.elo));
    list
}

/// Reads `PLAYER=ELO`. The player's spec may contain `=`.
pub fn parse_anchor(text: &str) -> Result<(String, f64), RatingError> {
    let parts = text.rsplit_once('=');
    let anchor = parts.and_then(|(name, elo)| {
        let elo = elo.trim().parse::<f64>().ok().filter(|elo| elo.is_finite())?;
        (!name.trim().is_empty()).then(|| (name.trim().to_owned(), elo))
    });
    anchor.ok_or_else(|| RatingError::AnchorText(text.to_owned()))
}

/// The anchor of each player, by name.
pub fn place_anchors(
    names: &[String],
    anchors: &[(String, f64)],
) -> Result<Vec<Option<f64>>, RatingError> {
    let mut placed = vec![None; names.len()];
    for (name, elo) in anchors {
        let index = names
            .iter()
            .position(|other| other == name)
            .ok_or_else(|| RatingError::Anchor { name: name.clone(), players: names.join(", ") })?;
        placed[index] = Some(*elo);
    }
    Ok(placed)
}

/// Ratings and their standard deviations.
#[derive(Clone, Debug)]
pub(crate) struct Fit {
    pub(crate) elo: Vec<f64>,
    pub(crate) spread: Vec<f64>,
}

/// Newton's method on the log-likelihood, which is concave. `anchors` has one entry per player.
pub(crate) fn fit(meetings: &[Meeting], anchors: &[Option<f64>]) -> Fit {
    let count = anchors.len();
    let given: Vec<f64> = anchors.iter().copied().flatten().collect();
    let centre = given.iter().sum::<f64>() / given.len().max(1) as f64;
    let mut elo: Vec<f64> = anchors.iter().map(|anchor| anchor.unwrap_or(centre)).collect();
    let prior = 1.0 / (PRIOR_SPREAD * PRIOR_SPREAD);
    let meetings: Vec<Meeting> =
        meetings.iter().copied().filter(|m| m.a != m.b && m.tally.games() > 0).collect();
    for _ in 0..200 {
        let mut gradient: Vec<f64> = elo.iter().map(|elo| -(elo - centre) * prior).collect();
        for meeting in &meetings {
            let expected = score_of_elo(elo[meeting.a] - elo[meeting.b]);
            let surplus = meeting.tally.points() - meeting.tally.games() as f64 * expected;
            gradient[meeting.a] += SLOPE * surplus;
            gradient[meeting.b] -= SLOPE * surplus;
        }
        let mut information = information(&meetings, &elo);
        for player in 0..count {
            information.add(player, player, prior);
        }
        for (player, _) in anchors.iter().enumerate().filter(|(_, anchor)| anchor.is_some()) {
            information.isolate(player);
            gradient[player] = 0.0;
        }
        let step = information.inverse().times(&gradient);
        let longest = step.iter().map(|step| step.abs()).fold(0.0, f64::max);
        // Far from the solution the quadratic model overshoots.
        let scale = (400.0 / longest).min(1.0);
        elo.iter_mut().zip(&step).for_each(|(elo, step)| *elo += scale * step);
        if longest < 1e-7 {
            break;
        }
    }
    let spread = spread(&meetings, &elo, anchors, prior);
    if given.is_empty() && count > 0 {
        let mean = elo.iter().sum::<f64>() / count as f64;
        elo.iter_mut().for_each(|elo| *elo -= mean);
    }
    Fit { elo, spread }
}

/// The Fisher information of the games: Σ n·p·(1 - p) in squared log-odds.
fn information(meetings: &[Meeting], elo: &[f64]) -> Matrix {
    let mut information = Matrix::zero(elo.len());
    for meeting in meetings {
        let p = score_of_elo(elo[meeting.a] - elo[meeting.b]);
        let weight = SLOPE * SLOPE * meeting.tally.games() as f64 * p * (1.0 - p);
        information.add(meeting.a, meeting.a, weight);
        information.add(meeting.b, meeting.b, weight);
        information.add(meeting.a, meeting.b, -weight);
        information.add(meeting.b, meeting.a, -weight);
    }
    information
}

/// Standard deviations. The model treats a game as won or lost, but draws reduce the variance by
/// the factor 1 - d / 4pq, where d is the share of draws. The sandwich estimator H⁻¹·V·H⁻¹ corrects
/// for that.
fn spread(meetings: &[Meeting], elo: &[f64], anchors: &[Option<f64>], prior: f64) -> Vec<f64> {
    let scatter = |m: &Meeting| {
        let p = score_of_elo(elo[m.a] - elo[m.b]);
        m.tally.games() as f64 * p * (1.0 - p)
    };
    let draws: f64 = meetings.iter().map(|m| m.tally.draws as f64).sum();
    let total: f64 = meetings.iter().map(scatter).sum();
    let share = if total > 0.0 { draws / (4.0 * total) } else { 0.0 };
    let dispersion = (1.0 - share).max(0.1);

    let data = information(meetings, elo);
    let (mut bread, mut meat) = (data.clone(), data.scaled(dispersion));
    for (player, anchor) in anchors.iter().enumerate() {
        bread.add(player, player, prior);
        meat.add(player, player, prior);
        if anchor.is_some() {
            bread.isolate(player);
            meat.isolate(player);
            meat.add(player, player, -1.0);
        }
    }
    let inverse = bread.inverse();
    let mut covariance = inverse.product(&meat).product(&inverse);
    if anchors.iter().all(Option::is_none) {
        covariance.centre();
    }
    (0..elo.len()).map(|player| covariance.at(player, player).max(0.0).sqrt()).collect()
}

#[cfg(test)]
mod tests {
    use selfmate_chess::{Rng, Seed};

    use super::*;

    fn names(count: usize) -> Vec<String> {
        (0..count).map(|index| format!("p{index}")).collect()
    }

    /// Simulates games between players of known strength; draws become rarer with the difference.
    fn simulate(rng: &mut Rng, difference: f64, games: u64) -> Tally {
        let p = score_of_elo(difference);
        let draw = 1.4 * p * (1.0 - p);
        let mut tally = Tally::default();
        for _ in 0..games {
            let x = rng.unit();
            tally.add(if x < draw {
                0.5
            } else if x < p + 0.5 * draw {
                1.0
            } else {
                0.0
            });
        }
        tally
    }

    fn round_robin(rng: &mut Rng, true_elo: &[f64], games: u64) -> Vec<Meeting> {
        let mut meetings = Vec::new();
        for a in 0..true_elo.len() {
            for b in 0..a {
                meetings.push(Meeting {
                    a,
                    b,
                    tally: simulate(rng, true_elo[a] - true_elo[b], games),
                });
            }
        }
        meetings
    }

    /// How often the true rating lies within the error bars.
    fn coverage(true_elo: &[f64], anchors: &[Option<f64>], games: u64) -> f64 {
        let mut rng = Seed::new(11).rng();
        let (mut inside, mut all) = (0, 0);
        for _ in 0..400 {
            let fit = fit(&round_robin(&mut rng, true_elo, games), anchors);
            for player in (0..true_elo.len()).filter(|&player| anchors[player].is_none()) {
                let miss = (fit.elo[player] - true_elo[player]).abs();
                inside += usize::from(miss <= Z95 * fit.spread[player]);
                all += 1;
            }
        }
        inside as f64 / all as f64
    }

    #[test]
    fn error_bars_contain_the_true_rating_95_percent_of_the_time() {
        let free = coverage(&[-310.0, -150.0, -40.0, 60.0, 140.0, 300.0], &[None; 6], 60);
        assert!((0.935..=0.965).contains(&free), "{free}");
        let mut anchors = [None; 6];
        (anchors[0], anchors[3]) = (Some(1350.0), Some(1720.0));
        let true_elo = [1350.0, 1500.0, 1610.0, 1720.0, 1800.0, 1960.0];
        let anchored = coverage(&true_elo, &anchors, 60);
        assert!((0.935..=0.965).contains(&anchored), "{anchored}");
    }

    #[test]
    fn two_players_get_the_elo_of_their_score() {
        let meetings = [Meeting { a: 0, b: 1, tally: Tally::new(136, 111, 96) }];
        let list = rating_list(&names(2), &meetings, &[None, Some(0.0)]);
        assert_eq!(list[0].name, "p0");
        assert!((list[0].elo - 40.70).abs() < 0.2, "{list:?}");
        assert!((list[0].elo_error.unwrap() - 30.43).abs() < 1.5, "{list:?}");
        assert_eq!((list[1].elo, list[1].elo_error, list[1].is_anchor), (0.0, Some(0.0), true));
        assert_eq!((list[0].games, list[1].points), (343, 96.0 + 55.5));
    }

    #[test]
    fn perfect_scores_stay_finite_and_in_order() {
        let tally = Tally::new(20, 0, 0);
        let meetings = [Meeting { a: 0, b: 1, tally }, Meeting { a: 1, b: 2, tally }];
        let fit = fit(&meetings, &[None; 3]);
        assert!(fit.elo[0] > fit.elo[1] + 300.0 && fit.elo[1] > fit.elo[2] + 300.0, "{fit:?}");
        assert!(fit.elo.iter().chain(&fit.spread).all(|value| value.is_finite()), "{fit:?}");
        assert!(fit.elo.iter().sum::<f64>().abs() < 1e-6);
    }

    #[test]
    fn players_without_games_have_no_error() {
        let fit = fit(&[], &[None, Some(100.0)]);
        assert!((fit.elo[0] - 100.0).abs() < 1e-6 && fit.spread[0] > 1000.0, "{fit:?}");
        let list = rating_list(&names(2), &[], &[None, Some(100.0)]);
        let error = |name: &str| list.iter().find(|rated| rated.name == name).unwrap().elo_error;
        assert_eq!((error("p0"), error("p1")), (None, Some(0.0)));
    }

    #[test]
    fn anchors_are_read_and_placed() {
        let anchor = parse_anchor("stockfish:elo=1500=1510.5").unwrap();
        assert_eq!(anchor, ("stockfish:elo=1500".to_owned(), 1510.5));
        assert!(parse_anchor("stockfish").is_err() && parse_anchor("=5").is_err());
        let players = ["a".to_owned(), "b".to_owned()];
        assert_eq!(place_anchors(&players, &[("b".to_owned(), 3.0)]), Ok(vec![None, Some(3.0)]));
        let error = place_anchors(&players, &[("c".to_owned(), 3.0)]).unwrap_err().to_string();
        assert_eq!(error, "anchor 'c' is not one of the players: expected one of a, b");
    }
}
