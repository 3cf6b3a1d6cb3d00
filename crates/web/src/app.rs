//! What all requests share.

use std::fmt::Display;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use selfmate_arena::PlayerSpec;
use tokio::sync::Semaphore;

use crate::access::Access;
use crate::arena::Arena;
use crate::cluster::Watched;
use crate::counter::Counters;
use crate::endgame::Endgames;
use crate::error::{ApiError, without_paths};
use crate::openenv::Episodes;
use crate::player::Players;
use crate::response_cache::ResponseCache;
use crate::run::Runs;
use crate::server::Config;
use crate::training_process::Trainings;
use crate::tree::Trees;

/// Searches that wait for their turn; more are refused.
pub const MAX_WAITING: usize = 32;

/// The state behind the API.
pub struct App {
    pub runs_path: PathBuf,
    pub guard: Access,
    pub runs: Runs,
    pub players: Players,
    pub trees: Trees,
    pub trainings: Trainings,
    pub arena: Arena,
    pub episodes: Episodes,
    pub endgames: Endgames,
    pub counters: Counters,
    pub recent: ResponseCache,
    pub cluster: Option<Watched>,
    /// A place for each stream.
    pub streams: Arc<Semaphore>,
    /// A place for each search: as many as there are cores.
    pub searches: Arc<Semaphore>,
    /// A place for each search that waits or runs.
    pub queue: Arc<Semaphore>,
    pub cores: usize,
    /// A WebSocket that has not been heard of for so long is closed.
    pub socket_idle: Duration,
}

impl App {
    pub fn new(mut config: Config) -> App {
        // A whole path can be told from other words of a message, and be left out of it.
        config.runs = std::path::absolute(&config.runs).unwrap_or(config.runs);
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let players = Players::new(&config.runs, cores);
        App {
            guard: Access::new(config.token.as_deref(), &config.hosts),
            runs: Runs::new(&config.runs),
            trainings: Trainings::new(config.program, config.runs.clone()),
            arena: Arena::new(&config.runs, players.registry().clone(), cores),
            streams: Arc::new(Semaphore::new(config.limits.streams)),
            runs_path: config.runs,
            players,
            trees: Trees::default(),
            episodes: Episodes::default(),
            endgames: Endgames::default(),
            counters: Counters::default(),
            recent: ResponseCache::default(),
            cluster: config.cluster,
            searches: Arc::new(Semaphore::new(cores)),
            queue: Arc::new(Semaphore::new(cores + MAX_WAITING)),
            cores,
            socket_idle: config.limits.socket_idle,
        }
    }

    /// What has to be said of a player when the newest checkpoint of its run is damaged. One that
    /// names its step is what was asked for.
    pub fn passed_over(&self, player: &PlayerSpec) -> Option<String> {
        let run = player.argument.as_deref().filter(|name| !name.contains('@'))?;
        if player.kind != "run" {
            return None;
        }
        // A run that cannot be read has no player either, and that was said.
        self.runs.passed_over(run).ok().flatten()
    }

    /// A fault on our side as the client may read it: where the runs are is nobody's business.
    pub fn fault(&self, error: &dyn Display) -> ApiError {
        ApiError::Internal(without_paths(error, &self.runs_path))
    }

    /// As [`App::fault`], for what does not exist.
    pub fn absent(&self, error: &dyn Display) -> ApiError {
        ApiError::NotFound(without_paths(error, &self.runs_path))
    }
}
