//! Any legal move.

use selfmate_chess::{Game, Seed};
use selfmate_search::player::{Limit, SearchInfo, seed_of};
use selfmate_search::{Choice, Player, PlayerError};

/// Plays any legal move. What it draws depends on the seed and on the game so far alone, so
/// that a match is the same whichever thread plays which game.
#[derive(Clone, Debug)]
pub struct RandomPlayer {
    name: String,
    seed: Seed,
}

impl RandomPlayer {
    /// A player that draws from this seed.
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
        match seed_of(self.seed, game).rng().choose(&limit.candidates(game)) {
            Some(&m) => Ok(Choice::bare(m)),
            None => Err(PlayerError::no_move(&self.name)),
        }
    }
}
