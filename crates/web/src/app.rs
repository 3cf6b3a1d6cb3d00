//! The state that all requests share.

use std::fmt::Display;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use selfmate_arena::PlayerSpec;
use tokio::sync::Semaphore;

use crate::access::Access;
use crate::arena::Arena;
use crate::cluster::ClusterWatcher;
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

/// The maximum number of waiting searches; further requests are rejected.
pub const MAX_WAITING: usize = 32;

pub struct App {
    pub runs_path: PathBuf,
    pub access: Access,
    pub runs: Runs,
    pub players: Players,
    pub trees: Trees,
    pub trainings: Trainings,
    pub arena: Arena,
    pub episodes: Episodes,
    pub endgames: Endgames,
    pub counters: Counters,
    pub response_cache: ResponseCache,
    pub cluster: Option<ClusterWatcher>,
    /// One permit per open stream.
    pub streams: Arc<Semaphore>,
    /// One permit per running search; there are as many as cores.
    pub searches: Arc<Semaphore>,
    /// One permit per waiting or running search.
    pub queue: Arc<Semaphore>,
    pub cores: usize,
    /// A WebSocket is closed after this time without a message.
    pub socket_idle: Duration,
}

impl App {
    pub fn new(mut config: Config) -> App {
        // An absolute path can be recognised in messages and removed from them.
        config.runs = std::path::absolute(&config.runs).unwrap_or(config.runs);
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let players = Players::new(&config.runs, cores);
        App {
            access: Access::new(config.token.as_deref(), &config.hosts),
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
            response_cache: ResponseCache::default(),
            cluster: config.cluster,
            searches: Arc::new(Semaphore::new(cores)),
            queue: Arc::new(Semaphore::new(cores + MAX_WAITING)),
            cores,
            socket_idle: config.limits.socket_idle,
        }
    }

    /// A warning when the newest checkpoint of a player's run is damaged. There is none for players
    /// that name their step.
    pub fn skipped_checkpoints(&self, player: &PlayerSpec) -> Option<String> {
        let run = player.argument.as_deref().filter(|name| !name.contains('@'))?;
        if player.kind != "run" {
            return None;
        }
        // If the run cannot be read, building the player has already failed.
        self.runs.skipped_checkpoints(run).ok().flatten()
    }

    /// An internal error, without the path of the runs folder.
    pub fn fault(&self, error: &dyn Display) -> ApiError {
        ApiError::Internal(without_paths(error, &self.runs_path))
    }

    pub fn absent(&self, error: &dyn Display) -> ApiError {
        ApiError::NotFound(without_paths(error, &self.runs_path))
    }
}
