//! Running games: by session name over HTTP, one per WebSocket.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::episode::{Episode, Reset};
use crate::app::App;
use crate::blocking::{run_blocking, run_on_core};
use crate::error::ApiError;
use crate::run::lock;

/// A game shared by requests. They wait for each other without occupying a thread.
pub type Shared = Arc<tokio::sync::Mutex<Episode>>;

/// The maximum number of HTTP sessions; a new one replaces the one that was idle longest.
const MAX_SESSIONS: usize = 1024;
/// A session is removed after this time without requests.
const IDLE: Duration = Duration::from_secs(30 * 60);
/// The maximum number of open WebSockets.
pub const MAX_SOCKETS: usize = 256;
/// The maximum number of games with an opponent, each of which has its own search.
const MAX_OPPONENTS: usize = 64;
/// The maximum search time of an opponent.
pub const LONGEST_ANSWER: Duration = Duration::from_secs(5);

/// The games over HTTP, and the number of WebSockets.
pub struct Episodes {
    sessions: Mutex<Sessions>,
    sockets: AtomicUsize,
    /// One permit per opponent.
    opponents: Arc<Semaphore>,
}

#[derive(Default)]
struct Sessions {
    by_name: HashMap<String, Session>,
    /// The session of requests that do not name one.
    unnamed: Option<String>,
}

struct Session {
    episode: Shared,
    used: Instant,
    has_opponent: bool,
}

impl Sessions {
    /// Removes the matching session that was idle longest; false if there is none.
    fn drop_oldest(&mut self, is_among: impl Fn(&Session) -> bool) -> bool {
        let among = self.by_name.iter().filter(|(_, session)| is_among(session));
        let oldest = among.min_by_key(|(_, session)| session.used).map(|(name, _)| name.clone());
        oldest.is_some_and(|name| self.by_name.remove(&name).is_some())
    }
}

/// Starts a game. With an opponent it waits for a core, because the opponent may move first.
pub async fn begin(app: &Arc<App>, reset: Reset) -> Result<Episode, ApiError> {
    if reset.opponent().is_none() {
        return run_blocking(app, move |app| {
            Episode::new(&reset, &app.players, None, &Arc::default())
        })
        .await;
    }
    let permit = app.episodes.opponent_permit()?;
    let new = move |app: &App, stop: &Arc<AtomicBool>| {
        Episode::new(&reset, &app.players, Some(permit), stop)
    };
    run_on_core(app, LONGEST_ANSWER, new).await
}

/// Acts in a game. With an opponent it waits for a core, because the opponent may reply. Concurrent
/// requests wait.
pub async fn act<T: Send + 'static>(
    app: &Arc<App>,
    episode: Shared,
    at_most: Duration,
    task: impl FnOnce(&mut Episode, &Arc<AtomicBool>) -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    let mut episode = episode.lock_owned().await;
    if episode.is_slow() {
        run_on_core(app, at_most.min(LONGEST_ANSWER), move |_, stop| task(&mut episode, stop)).await
    } else {
        task(&mut episode, &Arc::default())
    }
}

impl Default for Episodes {
    fn default() -> Episodes {
        let opponents = Arc::new(Semaphore::new(MAX_OPPONENTS));
        Episodes { sessions: Mutex::default(), sockets: AtomicUsize::new(0), opponents }
    }
}

impl Episodes {
    /// A permit for an opponent. If there is none, the HTTP game that was idle longest is removed.
    fn opponent_permit(&self) -> Result<OwnedSemaphorePermit, ApiError> {
        let take = || Arc::clone(&self.opponents).try_acquire_owned().ok();
        let free = || {
            // A game that is in use keeps its opponent.
            let is_idle = |session: &Session| {
                session.has_opponent && Arc::strong_count(&session.episode) == 1
            };
            lock(&self.sessions).drop_oldest(is_idle).then(take).flatten()
        };
        take().or_else(free).ok_or_else(|| {
            ApiError::Busy(format!("{MAX_OPPONENTS} games have an opponent: try again later"))
        })
    }

    /// Games in use, over HTTP and WebSockets.
    pub fn len(&self) -> usize {
        lock(&self.sessions).by_name.len() + self.sockets.load(Relaxed)
    }

    /// Starts a session under the given name or a new one. Returns the name.
    pub fn begin(&self, name: Option<String>, episode: Episode) -> Result<String, ApiError> {
        let is_unnamed = name.is_none();
        let name = match name {
            Some(name) => name,
            None => crate::secret_name()?,
        };
        let mut sessions = lock(&self.sessions);
        let now = Instant::now();
        sessions.by_name.retain(|_, session| now.duration_since(session.used) < IDLE);
        if sessions.by_name.len() >= MAX_SESSIONS && !sessions.by_name.contains_key(&name) {
            sessions.drop_oldest(|_| true);
        }
        let has_opponent = episode.is_slow();
        let episode = Arc::new(tokio::sync::Mutex::new(episode));
        sessions.by_name.insert(name.clone(), Session { episode, used: now, has_opponent });
        if is_unnamed {
            sessions.unnamed = Some(name.clone());
        }
        Ok(name)
    }

    /// The game of a session.
    pub fn find(&self, name: Option<&str>) -> Result<Shared, ApiError> {
        let mut sessions = lock(&self.sessions);
        let name = match name {
            Some(name) => Some(name.to_owned()),
            None => sessions.unnamed.clone(),
        };
        let session = name.and_then(|name| sessions.by_name.get_mut(&name));
        let session = session
            .ok_or_else(|| ApiError::Conflict("there is no game: send a reset first".into()))?;
        session.used = Instant::now();
        Ok(Arc::clone(&session.episode))
    }

    /// Ends a session; false if there is none.
    pub fn end(&self, name: &str) -> bool {
        lock(&self.sessions).by_name.remove(name).is_some()
    }

    /// Takes a place for a WebSocket; false when all are taken.
    pub fn enter(&self) -> bool {
        let enter = |open: usize| (open < MAX_SOCKETS).then_some(open + 1);
        self.sockets.fetch_update(Relaxed, Relaxed, enter).is_ok()
    }

    /// Returns the place of a WebSocket.
    pub fn leave(&self) {
        self.sockets.fetch_sub(1, Relaxed);
    }

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
    fn sessions_are_independent() {
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
    fn a_new_opponent_replaces_the_longest_idle_one() {
        let episodes = Episodes::default();
        let reset = Reset { opponent: Some("random".into()), ..Reset::default() };
        let begin = || {
            let permit = episodes.opponent_permit()?;
            let episode = Episode::new(&reset, &players(), Some(permit), &Arc::default())?;
            episodes.begin(None, episode)
        };
        let first = begin().unwrap();
        for _ in 0..MAX_OPPONENTS {
            begin().unwrap();
        }
        assert_eq!(episodes.len(), MAX_OPPONENTS);
        assert!(episodes.find(Some(&first)).is_err(), "it was idle longest");
        // Games over WebSockets and games in use keep their opponents.
        lock(&episodes.sessions).by_name.clear();
        let permits: Vec<_> =
            (0..MAX_OPPONENTS).map(|_| episodes.opponent_permit().unwrap()).collect();
        assert!(matches!(begin(), Err(ApiError::Busy(_))));
        drop(permits);
        assert!(begin().is_ok());
    }
}
