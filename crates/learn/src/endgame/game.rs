//! A game of self-play in an ending: a pure function of its seed, the network and the config.

use std::sync::Arc;

use selfmate_chess::{Color, Outcome, Seed};
use selfmate_nn::mlp::Network;
use selfmate_search::mcts::{Decision, Proof, Walks};

use super::config::EndgameConfig;
use super::lab::Lab;
use super::replay::Sample;
use super::thinker::{Manner, NetworkEvaluator, Priors, Thinker};
use super::view::View;

/// A finished game.
pub struct Played {
    /// Its positions with their targets, in order.
    pub samples: Vec<Sample>,
    /// How it ended; `None` when it was cut off.
    pub outcome: Option<Outcome>,
    /// What its searches looked like.
    pub walks: Walks,
}

/// Plays games, one after the other.
pub struct SelfPlayer<'a> {
    config: &'a EndgameConfig,
    lab: &'a Lab,
    thinker: Thinker,
    judge: NetworkEvaluator,
    view: View,
}

/// A position while its game goes on.
struct Step {
    view: View,
    decision: Decision,
    /// What the search found, for the side to move.
    value: f32,
    /// The value is proven.
    is_proven: bool,
}

impl<'a> SelfPlayer<'a> {
    /// A player with this network.
    pub fn new(config: &'a EndgameConfig, lab: &'a Lab, network: &Arc<Network>) -> SelfPlayer<'a> {
        let network = || Arc::clone(network);
        SelfPlayer {
            config,
            lab,
            thinker: Thinker::new(&config.search, Manner::Explore, config.discount, network()),
            judge: NetworkEvaluator::new(network(), Priors::Uniform),
            view: View::default(),
        }
    }

    /// Plays a game from a random position of the ending.
    pub fn play(&mut self, seed: Seed) -> Played {
        let mut game = self.lab.draw(&mut seed.derive("start").rng());
        let (mut steps, mut walks) = (Vec::new(), Walks::default());
        self.thinker.search.clear();
        let outcome = loop {
            let legal = game.legal_moves();
            if let Some(outcome) = game.outcome_given(&legal) {
                break Some(outcome);
            }
            if game.ply() >= self.config.max_plies as usize {
                break None;
            }
            let seed = seed.index(game.ply() as u64);
            self.thinker.think(&game, self.config.search.simulations, seed);
            let search = &self.thinker.search;
            let mut decision = search.decision(&legal).expect("a game that goes on has a move");
            let known = proven(search.proof(), self.config.discount);
            if known.is_some() {
                // The search stopped when it knew: its shares are those of a search cut short.
                for (share, m) in decision.policy_target.iter_mut().zip(&legal) {
                    *share = if *m == decision.best { 1.0 } else { 0.0 };
                }
            }
            walks.add(&self.thinker.take_walks());
            self.view.look(game.position(), &legal);
            let best = decision.best;
            let value = known.unwrap_or(decision.wdl.value());
            let view = self.view.clone();
            steps.push(Step { view, value, is_proven: known.is_some(), decision });
            game.play_unchecked(best);
        };
        // For the side to move at the end.
        let last = match outcome {
            Some(outcome) => points(outcome, game.turn()),
            None => self.judge.value(&game),
        };
        let samples = samples(steps, last, outcome.is_some(), self.config);
        Played { samples, outcome, walks }
    }
}

/// The value of a proven win or loss. A proven draw may be one of this game only, by repetition.
fn proven(proof: Proof, discount: f64) -> Option<f32> {
    let worth = |plies: u8| discount.powi(i32::from(plies)) as f32;
    match proof {
        Proof::Win(plies) => Some(worth(plies)),
        Proof::Loss(plies) => Some(-worth(plies)),
        Proof::Draw | Proof::Unknown => None,
    }
}

fn points(outcome: Outcome, side: Color) -> f32 {
    match outcome.winner {
        None => 0.0,
        Some(winner) if winner == side => 1.0,
        Some(_) => -1.0,
    }
}

/// Targets from the end backwards: the value of a position is that of the next one, as the other
/// side sees it and a ply further away; how much of the next one is its search's opinion and how
/// much its own target is lambda.
fn samples(steps: Vec<Step>, last: f32, is_over: bool, config: &EndgameConfig) -> Vec<Sample> {
    let (discount, lambda) = (config.discount as f32, config.lambda as f32);
    let (mut next, mut got) = (last, is_over.then_some(last));
    let mut samples: Vec<Sample> = steps
        .into_iter()
        .rev()
        .map(|step| {
            got = got.map(|got| -discount * got);
            let target = if step.is_proven { step.value } else { -discount * next };
            next = (1.0 - lambda) * step.value + lambda * target;
            sample(&step, target, got)
        })
        .collect();
    samples.reverse();
    samples
}

fn sample(step: &Step, value: f32, outcome: Option<f32>) -> Sample {
    let numbered = step.view.moves.iter().zip(&step.decision.policy_target);
    let (moves, mut policy): (Vec<u16>, Vec<f32>) =
        numbered.filter_map(|(number, share)| Some(((*number)?, *share))).unzip();
    // Promotions without a number leave a gap; a position that has only them would leave nothing.
    let sum: f32 = policy.iter().sum();
    let even = 1.0 / moves.len().max(1) as f32;
    policy.iter_mut().for_each(|share| *share = if sum > 1e-6 { *share / sum } else { even });
    Sample {
        features: step.view.features.as_slice().into(),
        moves: moves.into(),
        policy: policy.into(),
        value: value.clamp(-1.0, 1.0),
        outcome,
    }
}

#[cfg(test)]
mod tests {
    use selfmate_chess::Move;
    use selfmate_chess::fen::parse_fen;
    use selfmate_chess::notation::parse_move;
    use selfmate_nn::mlp::MlpConfig;
    use selfmate_search::Wdl;

    use super::super::lab::EndingName;
    use super::*;

    fn some_move() -> Move {
        let position = parse_fen("8/8/8/4k3/8/8/2R5/4K3 w - - 0 1").unwrap();
        parse_move(&position, "Rc3").unwrap()
    }

    fn step(value: f32, is_proven: bool) -> Step {
        let mut view = View::default();
        view.moves.extend([Some(7), None, Some(9)]);
        let policy_target = vec![0.3, 0.4, 0.3];
        let decision = Decision { best: some_move(), wdl: Wdl::EVEN, policy_target };
        Step { view, decision, value, is_proven }
    }

    #[test]
    fn targets_worked_out_by_hand() {
        let config = EndgameConfig { discount: 0.5, lambda: 0.5, ..EndgameConfig::tiny() };
        // Mated at the end: the last to move won.
        let steps = vec![step(0.2, false), step(-0.6, false), step(0.8, false)];
        let samples = samples(steps, -1.0, true, &config);
        let values: Vec<f32> = samples.iter().map(|sample| sample.value).collect();
        // Last: -0.5 · -1 = 0.5; before: -0.5 · (0.4 + 0.25) = -0.325; first: -0.5 · (-0.3 - 0.1625).
        assert_eq!(values, [0.23125, -0.325, 0.5]);
        let got: Vec<Option<f32>> = samples.iter().map(|sample| sample.outcome).collect();
        assert_eq!(got, [Some(0.125), Some(-0.25), Some(0.5)]);
        assert_eq!(samples[0].moves[..], [7, 9]);
        assert_eq!(samples[0].policy[..], [0.5, 0.5]);
    }

    #[test]
    fn what_is_proven_is_the_target() {
        let config = EndgameConfig { discount: 0.5, lambda: 1.0, ..EndgameConfig::tiny() };
        let steps = vec![step(0.0, false), step(-0.25, true)];
        let samples = samples(steps, 0.0, false, &config);
        assert_eq!((samples[0].value, samples[1].value), (0.125, -0.25));
        assert_eq!(proven(Proof::Win(3), 0.5), Some(0.125));
        assert_eq!(proven(Proof::Loss(2), 0.5), Some(-0.25));
        assert_eq!(proven(Proof::Draw, 0.5), None);
    }

    #[test]
    fn games_end_and_depend_on_their_seed_alone() {
        for ending in EndingName::ALL {
            let config = EndgameConfig { ending, ..EndgameConfig::tiny() };
            let lab = Lab::new(ending).unwrap();
            let shape = MlpConfig { first: 8, second: 8 };
            let network = Arc::new(Network::random(shape, Seed::new(1)).unwrap());
            let mut player = SelfPlayer::new(&config, &lab, &network);
            let first: Vec<Played> = (0..6).map(|n| player.play(Seed::new(2).index(n))).collect();
            assert!(first.iter().all(|game| game.samples.len() <= config.max_plies as usize));
            let again = SelfPlayer::new(&config, &lab, &network).play(Seed::new(2).index(5));
            assert_eq!(again.samples, first[5].samples);
            assert_ne!(first[0].samples, first[1].samples);
            for sample in first.iter().flat_map(|game| &game.samples) {
                assert_eq!(sample.moves.len(), sample.policy.len());
                let sum: f32 = sample.policy.iter().sum();
                assert!((sum - 1.0).abs() < 1e-3 || sample.moves.is_empty(), "{sum}");
            }
        }
    }
}
