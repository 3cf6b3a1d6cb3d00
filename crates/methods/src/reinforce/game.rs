//! A game by the policy, and what it teaches.

use selfmate_chess::{Board, Color, Outcome, Position, Reason, Rng, Role};
use selfmate_nn::mlp::{Forward, Network, Sample, Target};

use super::view::View;
use crate::opponent::GameOpponent;
use crate::random_plies::random_plies;

/// How a game is played and judged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Manner {
    /// Random plies before the game, at most.
    pub opening_plies: u32,
    /// A game is cut off after so many plies.
    pub max_plies: u32,
    /// What a result is worth a move earlier.
    pub discount: f32,
    /// How far a move answers for what came later: 1 for the result alone, 0 for what the network
    /// thinks one move later.
    pub trace: f32,
    /// What a queen's worth of material is worth in a game that was cut off; 0 for what the
    /// network thinks of the last position.
    pub material: f32,
}

/// A finished game.
#[derive(Clone, Debug, PartialEq)]
pub struct Played {
    /// The moves of the policy.
    pub samples: Vec<Sample>,
    /// How it ended.
    pub outcome: Outcome,
    /// The side that the policy had; White when it had both.
    pub side: Color,
    /// The opponent played any move.
    pub is_random: bool,
    /// Plies, random ones not counted.
    pub plies: u32,
}

/// A move of the policy before its result is known.
struct Step {
    features: Box<[u16]>,
    moves: Box<[u16]>,
    played: u16,
    value: f32,
    mover: Color,
}

/// Plays a game in which the policy has `side`.
pub fn play(
    network: &Network,
    opponent: GameOpponent<'_, Network>,
    side: Color,
    manner: &Manner,
    rng: &mut Rng,
) -> Played {
    let mut game = random_plies(manner.opening_plies, rng);
    let first = game.ply();
    let (mut view, mut forward) = (View::default(), Forward::default());
    let mut steps: Vec<Step> = Vec::new();
    let outcome = loop {
        let legal = game.legal_moves();
        if let Some(outcome) = game.outcome_given(&legal) {
            break outcome;
        }
        if game.ply() - first >= manner.max_plies as usize {
            break Outcome { winner: None, reason: Reason::Truncated };
        }
        let mover = game.turn();
        let (policy, learns) = opponent.mover(network, mover == side);
        let Some(policy) = policy else {
            game.play_unchecked(legal[rng.below(legal.len())]);
            continue;
        };
        view.look(game.position(), &legal);
        policy.forward(&view.features, &view.moves, &mut forward);
        let choice = sample(&forward.logits, 1.0, rng);
        if learns {
            steps.push(Step {
                features: view.features.as_slice().into(),
                moves: view.moves.as_slice().into(),
                played: choice as u16,
                value: forward.value,
                mover,
            });
        }
        game.play_unchecked(view.legal[choice]);
    };
    // What White got, as far as anybody can tell.
    let white = match (outcome.winner, outcome.reason) {
        (Some(winner), _) => {
            if winner == Color::White {
                1.0
            } else {
                -1.0
            }
        }
        (None, Reason::Truncated) if manner.material > 0.0 => {
            manner.material * (material(game.position().board()) / 9.0).tanh()
        }
        (None, Reason::Truncated) => {
            view.look(game.position(), &game.legal_moves());
            network.forward(&view.features, &view.moves, &mut forward);
            if game.turn() == Color::White { forward.value } else { -forward.value }
        }
        (None, _) => 0.0,
    };
    let plies = (game.ply() - first) as u32;
    let is_random = matches!(opponent, GameOpponent::Random);
    Played { samples: samples(steps, white, manner), outcome, side, is_random, plies }
}

/// The moves with what they earned: the return of each side is its result, discounted for every move
/// of its own before the end, mixed with what the network thought on the way (TD(λ); Schulman and
/// others 2015 for the advantage).
fn samples(steps: Vec<Step>, white: f32, manner: &Manner) -> Vec<Sample> {
    // Of each side, what its next move was thought to be worth and what came of it.
    let mut later: [Option<(f32, f32)>; 2] = [None; 2];
    let mut samples: Vec<Sample> = steps
        .into_iter()
        .rev()
        .map(|step| {
            let later = &mut later[usize::from(step.mover == Color::Black)];
            let result = match *later {
                None if step.mover == Color::White => white,
                None => -white,
                Some((value, result)) => {
                    manner.discount * (value + manner.trace * (result - value))
                }
            };
            *later = Some((step.value, result));
            Sample {
                features: step.features,
                moves: step.moves,
                target: Target::Played(step.played),
                advantage: result - step.value,
                result,
            }
        })
        .collect();
    samples.reverse();
    samples
}

/// Draws a move by its likelihood; at temperature 0 the most likely one.
pub fn sample(logits: &[f32], temperature: f32, rng: &mut Rng) -> usize {
    let most = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    if temperature <= 0.0 {
        return logits.iter().position(|logit| *logit == most).unwrap_or(0);
    }
    let weight = |logit: &f32| f64::from((logit - most) / temperature).exp();
    let mut left = rng.unit() * logits.iter().map(weight).sum::<f64>();
    for (place, logit) in logits.iter().enumerate() {
        left -= weight(logit);
        if left < 0.0 {
            return place;
        }
    }
    logits.len().saturating_sub(1)
}

/// White's material less Black's, in pawns.
fn material(board: &Board) -> f32 {
    let worth = [
        (Role::Pawn, 1.0),
        (Role::Knight, 3.0),
        (Role::Bishop, 3.0),
        (Role::Rook, 5.0),
        (Role::Queen, 9.0),
    ];
    let count = |role, color| (board.by_role(role) & board.by_color(color)).count() as f32;
    worth
        .iter()
        .map(|&(role, value)| value * (count(role, Color::White) - count(role, Color::Black)))
        .sum()
}

#[cfg(test)]
mod tests {
    use selfmate_chess::Seed;
    use selfmate_nn::mlp::MlpConfig;

    use super::*;

    const MANNER: Manner =
        Manner { opening_plies: 4, max_plies: 60, discount: 0.9, trace: 1.0, material: 0.0 };

    fn network() -> Network {
        Network::random(MlpConfig { first: 16, second: 16 }, Seed::new(1)).unwrap()
    }

    #[test]
    fn results_are_discounted_and_negated_for_the_other_side() {
        let step = |mover| Step {
            features: Box::new([]),
            moves: Box::new([1]),
            played: 0,
            value: 0.25,
            mover,
        };
        let (w, b) = (Color::White, Color::Black);
        let learned = |trace| {
            let manner = Manner { discount: 0.5, trace, ..MANNER };
            samples(vec![step(w), step(b), step(w), step(b)], 1.0, &manner)
        };
        let results = |trace| learned(trace).iter().map(|lesson| lesson.result).collect::<Vec<_>>();
        assert_eq!(results(1.0), [0.5, -0.5, 1.0, -1.0]);
        assert_eq!(learned(1.0)[3].advantage, -1.25);
        // The last move has the result, the one before what the network thought of that.
        assert_eq!(results(0.0), [0.125, 0.125, 1.0, -1.0]);
        assert_eq!(results(0.5), [0.3125, -0.1875, 1.0, -1.0]);
    }

    #[test]
    fn only_the_policys_own_moves_are_learned_from() {
        let network = network();
        for (opponent, both) in [
            (GameOpponent::Random, false),
            (GameOpponent::Itself, true),
            (GameOpponent::Other(&network), false),
        ] {
            let game = play(&network, opponent, Color::Black, &MANNER, &mut Seed::new(3).rng());
            let own = if both { game.plies } else { game.plies / 2 };
            assert!((game.samples.len() as u32).abs_diff(own) <= 1, "{opponent:?}");
            let is_legal = |lesson: &Sample| match lesson.target {
                Target::Played(played) => usize::from(played) < lesson.moves.len(),
                Target::Policy(_) => false,
            };
            assert!(game.samples.iter().all(is_legal));
        }
    }

    #[test]
    fn a_game_that_is_cut_off_counts_by_material_if_asked() {
        let manner = Manner { max_plies: 30, material: 0.5, ..MANNER };
        let network = network();
        let games = (0..40).map(|n| {
            play(&network, GameOpponent::Random, Color::White, &manner, &mut Seed::new(n).rng())
        });
        let cut: Vec<Played> = games.filter(|game| game.outcome.is_truncated()).collect();
        assert!(cut.len() > 20);
        let last = |game: &Played| game.samples.last().map_or(0.0, |lesson| lesson.result);
        assert!(cut.iter().all(|game| last(game).abs() <= 0.5));
        assert!(cut.iter().any(|game| last(game) != 0.0));
    }

    #[test]
    fn likely_moves_are_drawn_more_often() {
        let mut rng = Seed::new(1).rng();
        let logits = [0.0, 3f32.ln(), f32::NEG_INFINITY];
        let drawn: Vec<usize> = (0..4000).map(|_| sample(&logits, 1.0, &mut rng)).collect();
        let second = drawn.iter().filter(|place| **place == 1).count();
        assert!((2850..3150).contains(&second), "{second}");
        assert!(!drawn.contains(&2));
        assert_eq!(sample(&logits, 0.0, &mut rng), 1);
    }
}
