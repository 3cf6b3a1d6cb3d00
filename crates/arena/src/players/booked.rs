//! A player with an opening book: it plays book moves as long as there are any, then its own.

use std::path::Path;
use std::sync::Arc;

use selfmate_chess::{Game, Seed};
use selfmate_search::player::{Limit, SearchInfo, seed_of};
use selfmate_search::{Choice, Player, PlayerError};

use crate::book::PolyglotBook;
use crate::resolved_player::content_hash;
use crate::spec::{SpecError, SpecOptions};

/// An option of every kind of player.
pub(crate) const OPTION: (&str, &str) =
    ("book", "a Polyglot book to open with, or off for none, not even the book of a run");
/// The value of the option for no book.
const OFF: &str = "off";

/// Plays book moves first. The drawn move depends only on the seed and on the game so far.
pub struct BookedPlayer {
    player: Box<dyn Player>,
    book: Arc<PolyglotBook>,
    seed: Seed,
}

impl BookedPlayer {
    pub fn new(player: Box<dyn Player>, book: Arc<PolyglotBook>, seed: Seed) -> BookedPlayer {
        BookedPlayer { player, book, seed: seed.derive("book") }
    }
}

/// A loaded book and its content hash.
#[derive(Clone, Debug)]
pub struct LoadedBook {
    book: Arc<PolyglotBook>,
    identity: String,
}

impl LoadedBook {
    pub fn new(book: PolyglotBook) -> LoadedBook {
        let identity = content_hash(&book.to_bytes());
        LoadedBook { book: Arc::new(book), identity }
    }

    /// The hash of the book's content.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// Wraps a player so that it opens with this book.
    pub fn wrap(&self, player: Box<dyn Player>, seed: Seed) -> Box<dyn Player> {
        Box::new(BookedPlayer::new(player, Arc::clone(&self.book), seed))
    }
}

/// The book that a player opens with: the one of its spec, otherwise its own.
pub(crate) fn choose(
    options: &SpecOptions<'_>,
    own: Option<LoadedBook>,
) -> Result<Option<LoadedBook>, SpecError> {
    match options.spec.option(OPTION.0) {
        None => Ok(own),
        Some(OFF) => Ok(None),
        Some(path) => match PolyglotBook::read(Path::new(path)) {
            Ok(book) => Ok(Some(LoadedBook::new(book))),
            Err(error) => {
                Err(SpecError::Other { spec: options.label(), reason: error.to_string() })
            }
        },
    }
}

impl Player for BookedPlayer {
    fn name(&self) -> &str {
        self.player.name()
    }

    fn new_game(&mut self) {
        self.player.new_game();
    }

    fn choose_observed(
        &mut self,
        game: &Game,
        limit: &Limit,
        observe: &mut dyn FnMut(&SearchInfo),
    ) -> Result<Choice, PlayerError> {
        // Several lines are an analysis, which a book move does not answer.
        if limit.lines > 1 {
            return self.player.choose_observed(game, limit, observe);
        }
        let mut rng = seed_of(self.seed, game).rng();
        match self.book.draw(game.position(), &mut rng) {
            Some(m) if limit.only.is_empty() || limit.only.contains(&m) => Ok(Choice::bare(m)),
            _ => self.player.choose_observed(game, limit, observe),
        }
    }
}

#[cfg(test)]
mod tests {
    use selfmate_chess::notation;

    use super::*;
    use crate::registry::Registry;

    #[test]
    fn every_kind_of_player_can_open_with_a_book() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("book.bin");
        let mut game = Game::new();
        let mut book = PolyglotBook::default();
        for san in ["a4", "h5", "b4"] {
            let m = notation::parse_san(game.position(), san).unwrap();
            book.add(game.position(), m, 1);
            game.play(m).unwrap();
        }
        book.write(&path).unwrap();
        let registry = Registry::standard();
        for kind in ["random:", "greedy:", "alphabeta:depth=1,", "rollout:sims=4,"] {
            let spec = registry.parse(&format!("{kind}book={}", path.display())).unwrap();
            let mut player = registry.build(&spec, Seed::new(1)).unwrap();
            let mut game = Game::new();
            for _ in 0..5 {
                let choice = player.choose(&game, &Limit::default()).unwrap();
                game.play(choice.played).unwrap();
            }
            let moves: Vec<String> =
                game.moves().take(3).map(|m| m.to_uci(game.castling_mode()).to_string()).collect();
            assert_eq!(moves, ["a2a4", "h7h5", "b2b4"], "{kind}");
        }
        let spec = registry.parse(&format!("alphabeta:depth=1,book={}", path.display())).unwrap();
        let mut player = registry.build(&spec, Seed::new(1)).unwrap();
        let analysis = Limit { lines: 2, ..Limit::default() };
        assert!(player.choose(&Game::new(), &analysis).unwrap().score.is_some());
        let spec = format!("random:book={}", path.display());
        let identity = registry.resolve(&spec).unwrap().identity().unwrap().unwrap();
        assert!(identity.starts_with("book blake3 "), "{identity}");
        assert_eq!(registry.resolve("random:book=off").unwrap().identity(), Ok(None));
        let spec = registry.parse("random:book=nowhere.bin").unwrap();
        let error = registry.build(&spec, Seed::new(1)).map(drop).unwrap_err().to_string();
        assert!(error.contains("nowhere.bin"), "{error}");
    }
}
