//! Games that are shown while they are played.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use selfmate_run::LiveGame;

/// The latest games that a player has published. Publishing is cheap while nobody requests games.
#[derive(Debug, Default)]
pub struct LiveFeed {
    is_requested: AtomicBool,
    games: Mutex<Vec<LiveGame>>,
}

/// Games of one player that are shown at most.
const MAX_GAMES: usize = 4;

impl LiveFeed {
    /// A feed whose games are requested from the first move on.
    pub fn requested() -> Arc<LiveFeed> {
        let feed = LiveFeed::default();
        feed.is_requested.store(true, Relaxed);
        Arc::new(feed)
    }

    /// The games as they stood when they were last requested; requests them again.
    pub fn take(&self) -> Vec<LiveGame> {
        self.is_requested.store(true, Relaxed);
        self.games.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Publishes games if they are requested.
    pub(crate) fn publish(&self, games: impl Iterator<Item = LiveGame>) {
        if self.is_requested.swap(false, Relaxed) {
            let games = games.take(MAX_GAMES).collect();
            *self.games.lock().unwrap_or_else(PoisonError::into_inner) = games;
        }
    }
}
