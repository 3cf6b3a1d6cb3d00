//! Varied starting positions: a few random moves from the initial position.

use selfmate_chess::{Game, Rng};

/// An unfinished game after at most `most` random plies.
pub fn random_plies(most: u32, rng: &mut Rng) -> Game {
    loop {
        let mut game = Game::new();
        for _ in 0..rng.below(most as usize + 1) {
            let legal = game.legal_moves();
            let Some(&m) = rng.choose(&legal) else { break };
            game.play_unchecked(m);
        }
        if game.outcome().is_none() {
            return game;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use selfmate_chess::Seed;

    use super::*;

    #[test]
    fn starts_differ_and_are_not_over() {
        let mut rng = Seed::new(1).rng();
        let games: Vec<Game> = (0..300).map(|_| random_plies(8, &mut rng)).collect();
        assert!(games.iter().all(|game| game.outcome().is_none() && game.ply() <= 8));
        let keys: HashSet<u64> = games.iter().map(Game::key).collect();
        assert!(keys.len() > 200, "{}", keys.len());
        assert_eq!(random_plies(0, &mut rng).ply(), 0);
    }
}
