//! A player of random legal moves.

use selfmate_chess::{Game, Seed};
use selfmate_search::player::{Limit, SearchInfo};
use selfmate_search::{Choice, Player, PlayerError};

/// Plays random legal moves. The draw depends only on the seed and on the game so far, so a match
/// is the same on any number of threads.
#[derive(Clone, Debug)]
pub struct RandomPlayer {
    name: String,
    seed: Seed,
}

impl RandomPlayer {
    pub fn new(name: &str, seed: Seed) -> RandomPlayer {
        RandomPlayer { name: name.to_owned(), seed: seed.derive("random") }
    }
}

impl Player for RandomPlayer {
    fn name(&self) -> &str {
        &self.name
    }

    fn choose_observed(
        &mut self,
        game: &Game,
        limit: &Limit,
        _: &mut dyn FnMut(&SearchInfo),
    ) -> Result<Choice, PlayerError> {
        super::draw_move(&self.name, self.seed, game, &limit.candidates(game))
    }
}
