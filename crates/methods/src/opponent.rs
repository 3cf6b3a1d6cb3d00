//! The opponents of a network in training, for `value` and `reinforce`.

use selfmate_chess::{Color, Rng};
use selfmate_train::ConfigError;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Opponent {
    /// Plays random moves.
    Random,
    Itself,
    /// A random one of its earlier versions.
    Pool,
}

pub(crate) fn check_opponents(opponents: &[Opponent], pool: usize) -> Result<(), ConfigError> {
    let wrong = |field, got: &str, expected| {
        Err(ConfigError::Value { field, got: got.to_owned(), expected })
    };
    if opponents.is_empty() {
        return wrong("opponents", "empty", "random, itself or pool");
    }
    if pool == 0 && opponents.contains(&Opponent::Pool) {
        return wrong("pool", "0", "at least 1 when the opponents include pool");
    }
    Ok(())
}

/// The opponent of one game.
#[derive(Debug)]
pub enum GameOpponent<'a, N> {
    /// Plays random moves.
    Random,
    /// The network plays both sides and learns from both.
    Itself,
    /// A network that does not learn from the game.
    Other(&'a N),
}

// Derived implementations would require the same of `N`.
impl<N> Clone for GameOpponent<'_, N> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<N> Copy for GameOpponent<'_, N> {}

impl<'a, N> GameOpponent<'a, N> {
    /// The opponent of a game and the network's colour. Opponents take turns; the colour changes
    /// after each has had its turn.
    pub fn of_game(
        number: u64,
        opponents: &[Opponent],
        pool: &'a [N],
        rng: &mut Rng,
    ) -> (GameOpponent<'a, N>, Color) {
        let count = opponents.len() as u64;
        let opponent = match opponents[(number % count) as usize] {
            Opponent::Random => GameOpponent::Random,
            Opponent::Itself => GameOpponent::Itself,
            Opponent::Pool => match rng.choose(pool) {
                Some(other) => GameOpponent::Other(other),
                None => GameOpponent::Itself,
            },
        };
        (opponent, Color::from_white((number / count).is_multiple_of(2)))
    }

    /// The network that moves, if any, and whether it learns from the move.
    pub fn mover(self, network: &'a N, is_networks_turn: bool) -> (Option<&'a N>, bool) {
        match self {
            GameOpponent::Itself => (Some(network), true),
            _ if is_networks_turn => (Some(network), true),
            GameOpponent::Other(other) => (Some(other), false),
            GameOpponent::Random => (None, false),
        }
    }
}

/// Adds a network to the pool; drops the oldest when there are more than `most`.
pub fn add_to_pool<N>(pool: &mut Vec<N>, network: N, most: usize) {
    pool.push(network);
    if pool.len() > most {
        pool.remove(0);
    }
}

#[cfg(test)]
mod tests {
    use selfmate_chess::Seed;

    use super::*;

    #[test]
    fn opponents_come_in_turn_with_both_colours() {
        let opponents = [Opponent::Random, Opponent::Pool];
        let mut rng = Seed::new(1).rng();
        let games: Vec<(bool, Color)> = (0..4)
            .map(|number| {
                let (opponent, color) = GameOpponent::of_game(number, &opponents, &[7], &mut rng);
                (matches!(opponent, GameOpponent::Other(7)), color)
            })
            .collect();
        let (white, black) = (Color::White, Color::Black);
        assert_eq!(games, [(false, white), (true, white), (false, black), (true, black)]);
        let (opponent, _) = GameOpponent::<u8>::of_game(1, &opponents, &[], &mut rng);
        assert!(matches!(opponent, GameOpponent::Itself), "empty pool");
    }

    #[test]
    fn only_the_network_in_training_learns() {
        assert_eq!(GameOpponent::Random.mover(&1, true), (Some(&1), true));
        assert_eq!(GameOpponent::Random.mover(&1, false), (None, false));
        assert_eq!(GameOpponent::Itself.mover(&1, false), (Some(&1), true));
        assert_eq!(GameOpponent::Other(&2).mover(&1, false), (Some(&2), false));
    }

    #[test]
    fn the_oldest_leaves_the_pool() {
        let mut pool = vec![1, 2];
        add_to_pool(&mut pool, 3, 2);
        assert_eq!(pool, [2, 3]);
    }
}
