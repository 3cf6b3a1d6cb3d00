//! Any legal move.

use selfmate_chess::{Game, MoveList, Seed};
use selfmate_search::player::{Limit, Thought};
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
        _: &mut dyn FnMut(&Thought),
    ) -> Result<Choice, PlayerError> {
        match seed_of(self.seed, game).rng().choose(&candidates(game, limit)) {
            Some(&m) => Ok(Choice::bare(m)),
            None => Err(no_move(&self.name)),
        }
    }
}

/// The moves to choose from.
pub(super) fn candidates(game: &Game, limit: &Limit) -> MoveList {
    let mut moves = game.legal_moves();
    if !limit.only.is_empty() {
        moves.retain(|m| limit.only.contains(m));
    }
    moves
}

/// A child of the seed for this moment of this game.
pub(super) fn seed_of(seed: Seed, game: &Game) -> Seed {
    seed.index(game.key_at(0).unwrap_or(0)).index(game.ply() as u64).index(game.key())
}

/// The error of a player that is asked to move when the game is over.
pub(super) fn no_move(player: &str) -> PlayerError {
    PlayerError { player: player.to_owned(), reason: "there is no legal move".to_owned() }
}
