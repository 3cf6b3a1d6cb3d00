//! The games that are being played: over HTTP by name, over WebSockets by number.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::episode::{Episode, Reset};
use crate::app::App;
use crate::blocking::{think, work};
use crate::error::ApiError;
use crate::run::lock;

/// A game that requests take turns at. They wait for each other without a thread.
pub type Shared = Arc<tokio::sync::Mutex<Episode>>;

/// Sessions over HTTP; the one that was idle longest makes room for another.
const MAX_SESSIONS: usize = 1024;
/// A session that was idle for so long is gone.
const IDLE: Duration = Duration::from_secs(30 * 60);
/// WebSockets that may be open at the same time.
pub const MAX_SOCKETS: usize = 256;
/// Games with an opponent, each of which has a search of its own.
const MAX_OPPONENTS: usize = 64;
/// The longest that an opponent thinks about a move.
pub const LONGEST_ANSWER: Duration = Duration::from_secs(5);

/// The games that are being played over HTTP, and how many over WebSockets.
pub struct Episodes {
    table: Mutex<Table>,
    sockets: AtomicUsize,
    /// A place for each opponent.
    opponents: Arc<Semaphore>,
}

#[derive(Default)]
struct Table {
    sessions: HashMap<String, Session>,
    /// The session of those who name none.
    unnamed: Option<String>,
}

struct Session {
    episode: Shared,
    used: Instant,
    has_opponent: bool,
}

impl Table {
    /// Removes the session among these that was idle longest; false when there is none.
    fn drop_oldest(&mut self, is_among: impl Fn(&Session) -> bool) -> bool {
        let among = self.sessions.iter().filter(|(_, session)| is_among(session));
        let oldest = among.min_by_key(|(_, session)| session.used).map(|(name, _)| name.clone());
        oldest.is_some_and(|name| self.sessions.remove(&name).is_some())
    }
}

/// Begins a game: on a core of its own when there is an opponent, who may have the first move.
pub async fn begin(app: &Arc<App>, reset: Reset) -> Result<Episode, ApiError> {
    if reset.opponent().is_none() {
        return work(app, move |app| Episode::new(&reset, &app.players, None, &Arc::default()))
            .await;
    }
    let seat = app.episodes.seat()?;
    let new = move |app: &App, stop: &Arc<AtomicBool>| {
        Episode::new(&reset, &app.players, Some(seat), stop)
    };
    think(app, LONGEST_ANSWER, new).await
}

/// Does something in a game: on a core of its own when an opponent may have to answer. Whoever
/// comes at the same time waits.
pub async fn act<T: Send + 'static>(
    app: &Arc<App>,
    episode: Shared,
    at_most: Duration,
    task: impl FnOnce(&mut Episode, &Arc<AtomicBool>) -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    let mut episode = episode.lock_owned().await;
    if episode.is_slow() {
        think(app, at_most.min(LONGEST_ANSWER), move |_, stop| task(&mut episode, stop)).await
    } else {
        task(&mut episode, &Arc::default())
    }
}

impl Default for Episodes {
    fn default() -> Episodes {
        let opponents = Arc::new(Semaphore::new(MAX_OPPONENTS));
        Episodes { table: Mutex::default(), sockets: AtomicUsize::new(0), opponents }
    }
}

impl Episodes {
    /// A place for an opponent; of games over HTTP the one that was idle longest makes room.
    fn seat(&self) -> Result<OwnedSemaphorePermit, ApiError> {
        let take = || Arc::clone(&self.opponents).try_acquire_owned().ok();
        let free = || {
            // A game that somebody is just playing keeps its opponent.
            let is_idle = |session: &Session| {
                session.has_opponent && Arc::strong_count(&session.episode) == 1
            };
            lock(&self.table).drop_oldest(is_idle).then(take).flatten()
        };
        take().or_else(free).ok_or_else(|| {
            ApiError::Busy(format!("{MAX_OPPONENTS} games have an opponent: try again later"))
        })
    }

    /// Environments in use.
    pub fn len(&self) -> usize {
        lock(&self.table).sessions.len() + self.sockets.load(Relaxed)
    }

    /// Begins a session under a name, or under a new one; returns the name.
    pub fn begin(&self, name: Option<String>, episode: Episode) -> Result<String, ApiError> {
        let is_unnamed = name.is_none();
        let name = match name {
            Some(name) => name,
            None => crate::secret_name()?,
        };
        let mut table = lock(&self.table);
        let now = Instant::now();
        table.sessions.retain(|_, session| now.duration_since(session.used) < IDLE);
        if table.sessions.len() >= MAX_SESSIONS && !table.sessions.contains_key(&name) {
            table.drop_oldest(|_| true);
        }
        let has_opponent = episode.is_slow();
        let episode = Arc::new(tokio::sync::Mutex::new(episode));
        table.sessions.insert(name.clone(), Session { episode, used: now, has_opponent });
        if is_unnamed {
            table.unnamed = Some(name.clone());
        }
        Ok(name)
    }

    /// The game of a session.
    pub fn find(&self, name: Option<&str>) -> Result<Shared, ApiError> {
        let mut table = lock(&self.table);
        let name = match name {
            Some(name) => Some(name.to_owned()),
            None => table.unnamed.clone(),
        };
        let session = name.and_then(|name| table.sessions.get_mut(&name));
        let session = session
            .ok_or_else(|| ApiError::Conflict("there is no game under way: reset first".into()))?;
        session.used = Instant::now();
        Ok(Arc::clone(&session.episode))
    }

    /// Ends a session; false when there is none.
    pub fn end(&self, name: &str) -> bool {
        lock(&self.table).sessions.remove(name).is_some()
    }

    /// A place for a WebSocket; `None` when all are taken.
    pub fn enter(&self) -> bool {
        let enter = |open: usize| (open < MAX_SOCKETS).then_some(open + 1);
        self.sockets.fetch_update(Relaxed, Relaxed, enter).is_ok()
    }

    /// Gives a place back.
    pub fn leave(&self) {
        self.sockets.fetch_sub(1, Relaxed);
    }

    /// WebSockets that are open.
    pub fn sockets(&self) -> usize {
        self.sockets.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::openenv::episode::ChessAction;
    use crate::player::Players;

    fn players() -> Players {
        Players::new(Path::new("nowhere"), 2)
    }

    #[test]
    fn sessions_do_not_meet() {
        let episodes = Episodes::default();
        let begin = |name: Option<&str>| {
            let episode = Episode::alone(&players()).unwrap();
            episodes.begin(name.map(str::to_owned), episode).unwrap()
        };
        let steps = |name: Option<&str>| {
            let episode = episodes.find(name).unwrap();
            let state = episode.blocking_lock().state();
            state["step_count"].as_u64().unwrap()
        };
        let e4 = ChessAction { text: Some("e4".into()), action_id: None, metadata: None };
        assert!(episodes.find(None).is_err());
        begin(Some("a"));
        assert!(episodes.find(None).is_err());
        let unnamed = begin(None);
        episodes.find(None).unwrap().blocking_lock().step(&e4, &Arc::default()).unwrap();
        assert_eq!((steps(Some(&unnamed)), steps(Some("a"))), (1, 0));
        assert!(episodes.end("a") && !episodes.end("a"));
        for _ in 0..MAX_SESSIONS + 5 {
            begin(None);
        }
        assert_eq!(episodes.len(), MAX_SESSIONS);
    }

    #[test]
    fn opponents_have_places_and_idle_games_make_room() {
        let episodes = Episodes::default();
        let reset = Reset { opponent: Some("random".into()), ..Reset::default() };
        let begin = || {
            let seat = episodes.seat()?;
            let episode = Episode::new(&reset, &players(), Some(seat), &Arc::default())?;
            episodes.begin(None, episode)
        };
        let first = begin().unwrap();
        for _ in 0..MAX_OPPONENTS {
            begin().unwrap();
        }
        assert_eq!(episodes.len(), MAX_OPPONENTS);
        assert!(episodes.find(Some(&first)).is_err(), "it was idle longest");
        // Games over WebSockets, and those that somebody just plays, keep theirs.
        lock(&episodes.table).sessions.clear();
        let seats: Vec<_> = (0..MAX_OPPONENTS).map(|_| episodes.seat().unwrap()).collect();
        assert!(matches!(begin(), Err(ApiError::Busy(_))));
        drop(seats);
        assert!(begin().is_ok());
    }
}
