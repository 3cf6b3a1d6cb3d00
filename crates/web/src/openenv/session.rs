//! The games that are being played: over HTTP by name, over WebSockets by number.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::episode::Episode;
use crate::error::ApiError;
use crate::run::lock;

/// Sessions over HTTP; the one that was idle longest makes room for another.
const MAX_SESSIONS: usize = 1024;
/// A session that was idle for so long is gone.
const IDLE: Duration = Duration::from_secs(30 * 60);
/// WebSockets that may be open at the same time.
pub const MAX_SOCKETS: usize = 256;

/// The games that are being played over HTTP, and how many over WebSockets.
#[derive(Default)]
pub struct Episodes {
    table: Mutex<Table>,
    sockets: AtomicUsize,
}

#[derive(Default)]
struct Table {
    sessions: HashMap<String, Session>,
    /// The session of those who name none.
    unnamed: Option<String>,
}

struct Session {
    episode: Arc<Mutex<Episode>>,
    used: Instant,
}

impl Episodes {
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
            let oldest = table.sessions.iter().min_by_key(|(_, session)| session.used);
            if let Some(oldest) = oldest.map(|(name, _)| name.clone()) {
                table.sessions.remove(&oldest);
            }
        }
        let episode = Arc::new(Mutex::new(episode));
        table.sessions.insert(name.clone(), Session { episode, used: now });
        if is_unnamed {
            table.unnamed = Some(name.clone());
        }
        Ok(name)
    }

    /// The game of a session.
    pub fn find(&self, name: Option<&str>) -> Result<Arc<Mutex<Episode>>, ApiError> {
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
    use crate::openenv::episode::{ChessAction, Reset};
    use crate::player::Players;

    #[test]
    fn sessions_do_not_meet() {
        let episodes = Episodes::default();
        let begin = |name: Option<&str>| {
            let episode =
                Episode::new(&Reset::default(), &Players::new(Path::new("nowhere"))).unwrap();
            episodes.begin(name.map(str::to_owned), episode).unwrap()
        };
        let e4 = ChessAction { text: Some("e4".into()), action_id: None, metadata: None };
        assert!(episodes.find(None).is_err());
        begin(Some("a"));
        assert!(episodes.find(None).is_err());
        let unnamed = begin(None);
        lock(&episodes.find(None).unwrap()).step(&e4).unwrap();
        assert_eq!(lock(&episodes.find(Some(&unnamed)).unwrap()).state()["step_count"], 1);
        assert_eq!(lock(&episodes.find(Some("a")).unwrap()).state()["step_count"], 0);
        assert!(episodes.end("a") && !episodes.end("a"));
        for _ in 0..MAX_SESSIONS + 5 {
            begin(None);
        }
        assert_eq!(episodes.len(), MAX_SESSIONS);
    }
}
