//! Moves by one-ply look-ahead, and games made of them.

use selfmate_chess::{Color, Game, MoveList, Outcome, Reason, Rng};
use selfmate_encode::Planes;
use selfmate_nn::valuenet::{BatchNetwork, BatchScratch};
use selfmate_search::flip_value;

use super::replay::StoredPosition;
use crate::opponent::GameOpponent;
use crate::random_plies::random_plies;

#[derive(Default)]
pub struct OnePly {
    scratch: BatchScratch,
    planes: Vec<f32>,
}

impl OnePly {
    /// The value of each legal move for its mover: the value of the position after it, for the
    /// other side, negated. A move that ends the game has the game's result. A move that repeats a
    /// position counts as a draw: without this, a one-ply player would go back and forth between
    /// two good positions.
    pub fn move_values(
        &mut self,
        network: &BatchNetwork,
        game: &mut Game,
        legal: &MoveList,
    ) -> Vec<f32> {
        let (mover, size) = (game.turn(), Planes::Planes13.size());
        self.planes.clear();
        let mut values = Vec::with_capacity(legal.len());
        for &m in legal {
            game.play_unchecked(m);
            values.push(match game.outcome() {
                Some(outcome) => Some(f32::from(outcome.reward(mover))),
                None => (game.repetitions() > 1).then_some(0.0),
            });
            if values.last() == Some(&None) {
                let first = self.planes.len();
                self.planes.resize(first + size, 0.0);
                Planes::Planes13.encode(game, &mut self.planes[first..]);
            }
            game.undo();
        }
        let mut evaluated = network.values(&self.planes, &mut self.scratch).into_iter();
        // After a move it is the opponent's turn, so the network's value is the opponent's.
        let value = |known: Option<f32>| {
            known.unwrap_or_else(|| {
                flip_value(evaluated.next().expect("one value per unfinished game"))
            })
        };
        values.into_iter().map(value).collect()
    }
}

/// The index of the best value; a random one of them if there are several.
pub fn best(values: &[f32], rng: &mut Rng) -> usize {
    let most = values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let indices: Vec<usize> = (0..values.len()).filter(|&index| values[index] == most).collect();
    rng.choose(&indices).copied().unwrap_or(0)
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlayConfig {
    /// The probability of a random move.
    pub epsilon: f64,
    /// The most random plies before the game.
    pub opening_plies: u32,
    /// The share of games that start after up to `late_plies` random plies instead.
    pub late_share: f64,
    pub late_plies: u32,
    /// A game is truncated after this many plies.
    pub max_plies: u32,
    /// Each ply multiplies a return by this.
    pub discount: f32,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Episode {
    /// The positions before and after each of the network's moves, with their returns. A truncated
    /// game gave no reward, so its returns are 0.
    pub positions: Vec<StoredPosition>,
    pub outcome: Outcome,
    /// The network's side; White when it played both.
    pub side: Color,
    /// Plies after the random opening.
    pub plies: u32,
}

/// Plays a game in which the network has `side`.
pub fn play(
    network: &BatchNetwork,
    opponent: GameOpponent<'_, BatchNetwork>,
    side: Color,
    play_config: &PlayConfig,
    rng: &mut Rng,
) -> Episode {
    let mut one_ply = OnePly::default();
    let is_late = rng.chance(play_config.late_share);
    let mut game =
        random_plies(if is_late { play_config.late_plies } else { play_config.opening_plies }, rng);
    let first = game.ply();
    // The plies before and after each move of the network.
    let mut learned: Vec<usize> = Vec::new();
    let outcome = loop {
        let legal = game.legal_moves();
        if let Some(outcome) = game.outcome_given(&legal) {
            break outcome;
        }
        if game.ply() - first >= play_config.max_plies as usize {
            break Outcome { winner: None, reason: Reason::Truncated };
        }
        let (mover, learns) = opponent.mover(network, game.turn() == side);
        let choice = match mover {
            Some(network) if !rng.chance(play_config.epsilon) => {
                best(&one_ply.move_values(network, &mut game, &legal), rng)
            }
            _ => rng.below(legal.len()),
        };
        if learns {
            learned.extend([game.ply(), game.ply() + 1]);
        }
        game.play_unchecked(legal[choice]);
    };
    let plies = (game.ply() - first) as u32;
    let mut positions = Vec::new();
    learned.dedup();
    let last = game.ply();
    for ply in learned.into_iter().rev().filter(|ply| *ply < last) {
        game.rewind(ply);
        let reward = f32::from(outcome.reward(game.turn()));
        // The reward follows the last move.
        let discount = play_config.discount.powi((last - 1 - ply) as i32);
        positions.push(StoredPosition::new(game.position(), reward * discount));
    }
    positions.reverse();
    Episode { positions, outcome, side, plies }
}

#[cfg(test)]
mod tests {
    use selfmate_chess::fen::parse_game;
    use selfmate_chess::{Seed, notation};
    use selfmate_nn::valuenet::{Network, ValueNetConfig};

    use super::*;

    fn network() -> BatchNetwork {
        let config = ValueNetConfig {
            channels: 2,
            blocks: 1,
            head: 1,
            hidden: 4,
            ..ValueNetConfig::default()
        };
        BatchNetwork::new(&Network::random(config, Seed::new(1)).unwrap())
    }

    #[test]
    fn a_move_has_the_negated_value_of_the_position_after_it() {
        let network = network();
        let mut game = Game::new();
        let legal = game.legal_moves();
        let values = OnePly::default().move_values(&network, &mut game, &legal);
        assert_eq!(game.ply(), 0);
        let mut scratch = BatchScratch::default();
        for (m, value) in legal.iter().zip(values) {
            game.play_unchecked(*m);
            let planes = Planes::Planes13.encoded(&game);
            assert_eq!(value, flip_value(network.values(&planes, &mut scratch)[0]));
            game.undo();
        }
    }

    #[test]
    fn a_mate_has_value_one_and_a_stalemate_zero() {
        let mut game = parse_game("7k/8/5KQ1/8/8/8/8/8 w - - 0 1").unwrap();
        let legal = game.legal_moves();
        let values = OnePly::default().move_values(&network(), &mut game, &legal);
        let value = |san: &str| {
            let m = notation::parse_san(game.position(), san).unwrap();
            values[legal.iter().position(|&other| other == m).unwrap()]
        };
        assert_eq!((value("Qg7#"), value("Kf7")), (1.0, 0.0));
        let choice = best(&values, &mut Seed::new(1).rng());
        assert!(notation::san(game.position(), legal[choice]).ends_with('#'));
        let mut stale = parse_game("k7/8/1K6/8/8/8/8/2Q5 w - - 0 1").unwrap();
        let legal = stale.legal_moves();
        let values = OnePly::default().move_values(&network(), &mut stale, &legal);
        let m = notation::parse_san(stale.position(), "Qc7").unwrap();
        assert_eq!(values[legal.iter().position(|&other| other == m).unwrap()], 0.0);
    }

    #[test]
    fn a_move_that_repeats_a_position_has_value_zero() {
        let mut game = Game::new();
        for uci in ["g1f3", "g8f6"] {
            game.play(notation::parse_uci(game.position(), uci).unwrap()).unwrap();
        }
        game.play(notation::parse_uci(game.position(), "f3g1").unwrap()).unwrap();
        let legal = game.legal_moves();
        let values = OnePly::default().move_values(&network(), &mut game, &legal);
        let back = notation::parse_uci(game.position(), "f6g8").unwrap();
        for (&m, value) in legal.iter().zip(values) {
            assert_eq!(value == 0.0, m == back, "{}", notation::uci(game.position(), m));
        }
    }

    const PLAY: PlayConfig = PlayConfig {
        epsilon: 0.2,
        opening_plies: 4,
        late_share: 0.0,
        late_plies: 0,
        max_plies: 300,
        discount: 1.0,
    };

    #[test]
    fn returns_are_discounted_by_the_plies_to_the_reward() {
        let play_config = PlayConfig { discount: 0.5, max_plies: 400, ..PLAY };
        let network = network();
        let mut decided = 0;
        for seed in 0..20 {
            let mut rng = Seed::new(seed).rng();
            let game = play(&network, GameOpponent::Random, Color::White, &play_config, &mut rng);
            if game.outcome.winner.is_none() {
                continue;
            }
            decided += 1;
            let returns: Vec<f32> = game.positions.iter().map(|p| p.result().abs()).collect();
            // Before the last move; or after it, when the opponent's reply ended the game.
            assert_eq!(*returns.last().unwrap(), 1.0);
            assert!(returns.windows(2).rev().take(20).all(|pair| pair[1] == 2.0 * pair[0]));
        }
        assert!(decided > 0);
    }

    #[test]
    fn results_are_for_the_side_to_move() {
        let network = network();
        let mut decided = 0;
        for seed in 0..20 {
            let mut rng = Seed::new(seed).rng();
            let game = play(&network, GameOpponent::Random, Color::White, &PLAY, &mut rng);
            let results: Vec<f32> = game.positions.iter().map(StoredPosition::result).collect();
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
