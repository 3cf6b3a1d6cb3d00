//! Moves by one-ply look-ahead, and games made of them.

use selfmate_chess::{Color, Game, MoveList, Outcome, Reason, Rng};
use selfmate_encode::Planes;
use selfmate_nn::valuenet::{BatchNetwork, BatchScratch};

use super::replay::Transition;
use crate::opponent::GameOpponent;
use crate::random_plies::random_plies;

/// Looks one ply ahead with a network.
#[derive(Default)]
pub struct OnePly {
    context: BatchScratch,
    planes: Vec<f32>,
}

impl OnePly {
    /// The value of each legal move for its mover: what the other side may expect after it, negated.
    /// Where a move ends the game the rules say what it is worth. One that brings a position back
    /// is worth a draw: who looks one ply ahead would else go to and fro between two good places.
    pub fn look(&mut self, network: &BatchNetwork, game: &mut Game, legal: &MoveList) -> Vec<f32> {
        let (mover, size) = (game.turn(), Planes::Planes13.size());
        self.planes.clear();
        let mut values = Vec::with_capacity(legal.len());
        for &m in legal {
            game.play_unchecked(m);
            values.push(match game.outcome() {
                Some(Outcome { winner: Some(winner), .. }) => {
                    Some(if winner == mover { 1.0 } else { -1.0 })
                }
                Some(_) => Some(0.0),
                None => (game.repetitions() > 1).then_some(0.0),
            });
            if values.last() == Some(&None) {
                let first = self.planes.len();
                self.planes.resize(first + size, 0.0);
                Planes::Planes13.encode(game, &mut self.planes[first..]);
            }
            game.undo();
        }
        let mut judged = network.values(&self.planes, &mut self.context).into_iter();
        // After a move it is the opponent's turn, so this is the opponent's value.
        let value = |known: Option<f32>| {
            known.unwrap_or_else(|| -judged.next().expect("one for each position that goes on"))
        };
        values.into_iter().map(value).collect()
    }
}

/// The place of the best value; any of them when several are.
pub fn best(values: &[f32], rng: &mut Rng) -> usize {
    let most = values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let places: Vec<usize> = (0..values.len()).filter(|&place| values[place] == most).collect();
    rng.choose(&places).copied().unwrap_or(0)
}

/// How games are played.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Manner {
    /// How often any move is played.
    pub epsilon: f64,
    /// Random plies before the game, at most.
    pub opening_plies: u32,
    /// The share of games that begin later instead, after up to `late_plies`.
    pub late_share: f64,
    /// Random plies before those, at most.
    pub late_plies: u32,
    /// A game is cut off after so many plies.
    pub max_plies: u32,
}

/// A finished game.
#[derive(Clone, Debug, PartialEq)]
pub struct Played {
    /// The positions before and after each of the network's moves. A game that was cut off counts
    /// as drawn: where nobody is mated in time is where most games against weak players go wrong.
    pub transitions: Vec<Transition>,
    /// How it ended.
    pub outcome: Outcome,
    /// The side that the network had; White when it had both.
    pub side: Color,
    /// Plies, random ones not counted.
    pub plies: u32,
}

/// Plays a game in which the network has `side`.
pub fn play(
    network: &BatchNetwork,
    opponent: GameOpponent<'_, BatchNetwork>,
    side: Color,
    manner: &Manner,
    rng: &mut Rng,
) -> Played {
    let mut one_ply = OnePly::default();
    let is_late = rng.chance(manner.late_share);
    let mut game =
        random_plies(if is_late { manner.late_plies } else { manner.opening_plies }, rng);
    let first = game.ply();
    // Plies before and after moves of the network.
    let mut learned: Vec<usize> = Vec::new();
    let outcome = loop {
        let legal = game.legal_moves();
        if let Some(outcome) = game.outcome_given(&legal) {
            break outcome;
        }
        if game.ply() - first >= manner.max_plies as usize {
            break Outcome { winner: None, reason: Reason::Truncated };
        }
        let (mover, learns) = opponent.mover(network, game.turn() == side);
        let choice = match mover {
            Some(network) if !rng.chance(manner.epsilon) => {
                best(&one_ply.look(network, &mut game, &legal), rng)
            }
            _ => rng.below(legal.len()),
        };
        if learns {
            learned.extend([game.ply(), game.ply() + 1]);
        }
        game.play_unchecked(legal[choice]);
    };
    let plies = (game.ply() - first) as u32;
    let mut transitions = Vec::new();
    learned.dedup();
    let last = game.ply();
    for ply in learned.into_iter().rev().filter(|ply| *ply < last) {
        game.rewind(ply);
        let result = match outcome.winner {
            None => 0,
            Some(winner) if winner == game.turn() => 1,
            Some(_) => -1,
        };
        transitions.push(Transition::new(game.position(), result));
    }
    transitions.reverse();
    Played { transitions, outcome, side, plies }
}

#[cfg(test)]
mod tests {
    use selfmate_chess::fen::parse_game;
    use selfmate_chess::{Seed, notation};
    use selfmate_nn::valuenet::{Network, ValueNetConfig};

    use super::*;

    fn network() -> BatchNetwork {
        let config = ValueNetConfig { channels: 2, blocks: 1, head: 1, hidden: 4 };
        BatchNetwork::new(&Network::random(config, Seed::new(1)).unwrap())
    }

    #[test]
    fn the_value_after_a_move_is_the_opponents_and_negated() {
        let network = network();
        let mut game = Game::new();
        let legal = game.legal_moves();
        let values = OnePly::default().look(&network, &mut game, &legal);
        assert_eq!(game.ply(), 0);
        let mut context = BatchScratch::default();
        for (m, value) in legal.iter().zip(values) {
            game.play_unchecked(*m);
            let planes = Planes::Planes13.encoded(&game);
            assert_eq!(value, -network.values(&planes, &mut context)[0]);
            game.undo();
        }
    }

    #[test]
    fn a_mate_is_worth_one_and_a_stalemate_nothing() {
        let mut game = parse_game("7k/8/5KQ1/8/8/8/8/8 w - - 0 1").unwrap();
        let legal = game.legal_moves();
        let values = OnePly::default().look(&network(), &mut game, &legal);
        let value = |san: &str| {
            let m = notation::parse_san(game.position(), san).unwrap();
            values[legal.iter().position(|&other| other == m).unwrap()]
        };
        assert_eq!((value("Qg7#"), value("Kf7")), (1.0, 0.0));
        let choice = best(&values, &mut Seed::new(1).rng());
        assert!(notation::san(game.position(), legal[choice]).ends_with('#'));
        let mut stale = parse_game("k7/8/1K6/8/8/8/8/2Q5 w - - 0 1").unwrap();
        let legal = stale.legal_moves();
        let values = OnePly::default().look(&network(), &mut stale, &legal);
        let m = notation::parse_san(stale.position(), "Qc7").unwrap();
        assert_eq!(values[legal.iter().position(|&other| other == m).unwrap()], 0.0);
    }

    #[test]
    fn going_back_is_worth_a_draw() {
        let mut game = Game::new();
        for uci in ["g1f3", "g8f6"] {
            game.play(notation::parse_uci(game.position(), uci).unwrap()).unwrap();
        }
        game.play(notation::parse_uci(game.position(), "f3g1").unwrap()).unwrap();
        let legal = game.legal_moves();
        let values = OnePly::default().look(&network(), &mut game, &legal);
        let back = notation::parse_uci(game.position(), "f6g8").unwrap();
        for (&m, value) in legal.iter().zip(values) {
            assert_eq!(value == 0.0, m == back, "{}", notation::uci(game.position(), m));
        }
    }

    #[test]
    fn results_are_those_of_the_side_to_move() {
        let manner = Manner {
            epsilon: 0.2,
            opening_plies: 4,
            late_share: 0.0,
            late_plies: 0,
            max_plies: 300,
        };
        let network = network();
        let mut decided = 0;
        for seed in 0..20 {
            let mut rng = Seed::new(seed).rng();
            let game = play(&network, GameOpponent::Random, Color::White, &manner, &mut rng);
            let results: Vec<f32> = game.transitions.iter().map(Transition::result).collect();
            if let Some(winner) = game.outcome.winner {
                decided += 1;
                // Before White's moves White is to move, after them Black.
                let own = if winner == Color::White { 1.0 } else { -1.0 };
                assert!(results.iter().step_by(2).all(|result| *result == own));
                assert!(results.iter().skip(1).step_by(2).all(|result| *result == -own));
            } else {
                assert!(results.iter().all(|result| *result == 0.0));
            }
        }
        assert!(decided > 0);
    }
}
