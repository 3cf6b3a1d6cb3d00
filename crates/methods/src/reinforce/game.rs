//! A game with moves drawn from the policy, and its training samples.

use selfmate_chess::{Color, Outcome, Position, Reason, Rng, material};
use selfmate_nn::mlp::{Forward, Network, Sample, Target};
use selfmate_search::{side_value, white_value};

use super::input::PolicyInput;
use crate::opponent::GameOpponent;
use crate::random_plies::random_plies;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlayConfig {
    /// The most random plies before the game.
    pub opening_plies: u32,
    /// A game is truncated after this many plies.
    pub max_plies: u32,
    /// The discount per own move.
    pub discount: f32,
    /// λ of TD(λ): 1 uses the game's result alone, 0 the network's value one own move later.
    pub trace: f32,
    /// The value of being a queen ahead in a truncated game; 0 uses the network's value of the last
    /// position instead.
    pub material: f32,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Episode {
    /// One sample per move of the policy in training.
    pub samples: Vec<Sample>,
    pub outcome: Outcome,
    /// The policy's side; White when it played both.
    pub side: Color,
    /// The opponent played random moves.
    pub is_random: bool,
    /// Plies after the random opening.
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
    play_config: &PlayConfig,
    rng: &mut Rng,
) -> Episode {
    let mut game = random_plies(play_config.opening_plies, rng);
    let first = game.ply();
    let (mut input, mut forward) = (PolicyInput::default(), Forward::default());
    let mut steps: Vec<Step> = Vec::new();
    let outcome = loop {
        let legal = game.legal_moves();
        if let Some(outcome) = game.outcome_given(&legal) {
            break outcome;
        }
        if game.ply() - first >= play_config.max_plies as usize {
            break Outcome { winner: None, reason: Reason::Truncated };
        }
        let mover = game.turn();
        let (policy, learns) = opponent.mover(network, mover == side);
        let Some(policy) = policy else {
            game.play_unchecked(legal[rng.below(legal.len())]);
            continue;
        };
        input.encode(game.position(), &legal);
        policy.forward(&input.features, &input.moves, &mut forward);
        let choice = sample(&forward.logits, 1.0, rng);
        if learns {
            steps.push(Step {
                features: input.features.as_slice().into(),
                moves: input.moves.as_slice().into(),
                played: choice as u16,
                value: forward.value,
                mover,
            });
        }
        game.play_unchecked(input.legal[choice]);
    };
    // The result for White; an estimate of it if the game was truncated.
    let white = match (outcome.winner, outcome.reason) {
        (Some(winner), _) => white_value(1.0, winner),
        (None, Reason::Truncated) if play_config.material > 0.0 => {
            let queens = material::balance(game.position().board()) as f32 / 900.0;
            play_config.material * libm::tanhf(queens)
        }
        (None, Reason::Truncated) => {
            input.encode(game.position(), &game.legal_moves());
            network.forward(&input.features, &input.moves, &mut forward);
            white_value(forward.value, game.turn())
        }
        (None, _) => 0.0,
    };
    let plies = (game.ply() - first) as u32;
    let is_random = matches!(opponent, GameOpponent::Random);
    Episode { samples: samples(steps, white, play_config), outcome, side, is_random, plies }
}

/// The samples of a game. The return of each move is the side's result, discounted per own move and
/// mixed with the network's values along the way (TD(λ)); the advantage is the return minus the
/// value (Schulman et al. 2015).
fn samples(steps: Vec<Step>, white: f32, play_config: &PlayConfig) -> Vec<Sample> {
    // For each side, the value and the return of its next move.
    let mut later: [Option<(f32, f32)>; 2] = [None; 2];
    let mut samples: Vec<Sample> = steps
        .into_iter()
        .rev()
        .map(|step| {
            let later = &mut later[usize::from(step.mover == Color::Black)];
            let result = match *later {
                None => side_value(white, step.mover),
                Some((value, result)) => {
                    play_config.discount * (value + play_config.trace * (result - value))
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

/// Draws a move from the softmax of the logits; at temperature 0 the most likely one.
pub fn sample(logits: &[f32], temperature: f32, rng: &mut Rng) -> usize {
    let most = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    if temperature <= 0.0 {
        return logits.iter().position(|logit| *logit == most).unwrap_or(0);
    }
    let weight = |logit: &f32| libm::exp(f64::from((logit - most) / temperature));
    let mut left = rng.unit() * logits.iter().map(weight).sum::<f64>();
    for (index, logit) in logits.iter().enumerate() {
        left -= weight(logit);
        if left < 0.0 {
            return index;
        }
    }
    logits.len().saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use selfmate_chess::Seed;
    use selfmate_nn::mlp::MlpConfig;

    use super::*;

    const PLAY_CONFIG: PlayConfig =
        PlayConfig { opening_plies: 4, max_plies: 60, discount: 0.9, trace: 1.0, material: 0.0 };

    fn network() -> Network {
        Network::random(MlpConfig { first: 16, second: 16 }, Seed::new(1)).unwrap()
    }

    #[test]
    fn returns_are_discounted_and_for_the_side_that_moved() {
        let step = |mover| Step {
            features: Box::new([]),
            moves: Box::new([1]),
            played: 0,
            value: 0.25,
            mover,
        };
        let (w, b) = (Color::White, Color::Black);
        let learned = |trace| {
            let play_config = PlayConfig { discount: 0.5, trace, ..PLAY_CONFIG };
            samples(vec![step(w), step(b), step(w), step(b)], 1.0, &play_config)
        };
        let results = |trace| learned(trace).iter().map(|sample| sample.result).collect::<Vec<_>>();
        assert_eq!(results(1.0), [0.5, -0.5, 1.0, -1.0]);
        assert_eq!(learned(1.0)[3].advantage, -1.25);
        // With trace 0, the return of the last move is the result, and the return before it is the
        // discounted value of the last move.
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
            let game =
                play(&network, opponent, Color::Black, &PLAY_CONFIG, &mut Seed::new(3).rng());
            let own = if both { game.plies } else { game.plies / 2 };
            assert!((game.samples.len() as u32).abs_diff(own) <= 1, "{opponent:?}");
            let is_legal = |sample: &Sample| match sample.target {
                Target::Played(played) => usize::from(played) < sample.moves.len(),
                Target::Policy(_) => false,
            };
            assert!(game.samples.iter().all(is_legal));
        }
    }

    #[test]
    fn a_truncated_game_counts_by_material_if_configured() {
        let play_config = PlayConfig { max_plies: 30, material: 0.5, ..PLAY_CONFIG };
        let network = network();
        let games = (0..40).map(|n| {
            play(
                &network,
                GameOpponent::Random,
                Color::White,
                &play_config,
                &mut Seed::new(n).rng(),
            )
        });
        let cut: Vec<Episode> = games.filter(|game| game.outcome.is_truncated()).collect();
        assert!(cut.len() > 20);
        let last = |game: &Episode| game.samples.last().map_or(0.0, |sample| sample.result);
        assert!(cut.iter().all(|game| last(game).abs() <= 0.5));
        assert!(cut.iter().any(|game| last(game) != 0.0));
    }

    #[test]
    fn likely_moves_are_drawn_more_often() {
        let mut rng = Seed::new(1).rng();
        let logits = [0.0, 3f32.ln(), f32::NEG_INFINITY];
        let drawn: Vec<usize> = (0..4000).map(|_| sample(&logits, 1.0, &mut rng)).collect();
        let second = drawn.iter().filter(|index| **index == 1).count();
        assert!((2850..3150).contains(&second), "{second}");
        assert!(!drawn.contains(&2));
        assert_eq!(sample(&logits, 0.0, &mut rng), 1);
    }
}
