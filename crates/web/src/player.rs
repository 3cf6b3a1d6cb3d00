//! Players for requests: only kinds that are safe to offer, within limits. They are kept for the
//! next move of the same game.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use selfmate_arena::{PlayerKind, PlayerSpec, Registry};
use selfmate_chess::Seed;
use selfmate_run::{RunError, RunReader};
use selfmate_search::player::Limit;
use selfmate_search::{Player, PlayerError};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::error::{ApiError, without_paths};
use crate::learner::{self, SearchKind};
use crate::run::lock;

/// Kinds that run a program or read a file of this machine.
const HIDDEN: [&str; 2] = ["uci", "net"];
/// Allowed options. Other options may name files, so a new option must be added here explicitly.
const OFFERED: [&str; 21] = [
    "sims",
    "nodes",
    "depth",
    "movetime",
    "memory",
    "hash",
    "threads",
    "root",
    "c_puct",
    "c",
    "playout",
    "plies",
    "policy_temperature",
    "temperature",
    "search",
    "scale",
    "blunder",
    "elo",
    "skill",
    "syzygy_pieces",
    "syzygy_50",
];
/// Players kept between moves.
const KEPT: usize = 8;
/// Options that set a search limit; a request with its own limit replaces them.
const LIMITS: [&str; 4] = ["sims", "nodes", "depth", "movetime"];
/// Maximum values of options that cost time or memory. The maximum of `threads` is the number of
/// cores.
const CEILINGS: [(&str, u64); 7] = [
    ("sims", 1_000_000),
    ("nodes", 100_000_000),
    ("depth", 40),
    ("movetime", 60_000),
    ("memory", 1024),
    ("hash", 1024),
    ("plies", 500),
];
/// Default tree size in megabytes; several trees may be open at the same time.
const TREE_MEMORY: u64 = 64;
/// Options of environments' opponents, whatever their specs set: there may be many of them.
const OPPONENT: [(&str, &str); 3] = [("memory", "16"), ("hash", "16"), ("threads", "1")];

/// The players that requests can use.
pub struct Players {
    registry: Registry,
    runs: PathBuf,
    cores: usize,
    kept: Mutex<Vec<(Key, Box<dyn Player>)>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Key {
    spec: String,
    seed: u64,
}

/// A kind of player with its options.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct KindView {
    /// Name of the kind.
    pub name: String,
    /// Description in one line.
    pub description: String,
    /// Options with help texts.
    pub options: Vec<(String, String)>,
    /// True when `/api/inside` can show its search.
    pub searches_tree: bool,
}

/// Search limit of a request. Without any field the player's own limit applies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LimitRequest {
    /// Simulations (tree search) or nodes (alpha-beta, other engines).
    #[schema(minimum = 1, maximum = 1_000_000)]
    pub sims: Option<u64>,
    /// Plies, for alpha-beta and other engines.
    #[schema(minimum = 1, maximum = 40)]
    pub depth: Option<u32>,
    /// Milliseconds.
    #[schema(minimum = 1, maximum = 60_000)]
    pub movetime_ms: Option<u64>,
}

impl LimitRequest {
    /// The limit of one move. Fails if a number is 0 or too large.
    pub fn limit(self) -> Result<Limit, ApiError> {
        let asked = [
            ("sims", self.sims),
            ("depth", self.depth.map(u64::from)),
            ("movetime", self.movetime_ms),
        ];
        for (name, value) in asked {
            if let Some(value) = value {
                check_ceiling(name, value).map_err(ApiError::Malformed)?;
            }
        }
        Ok(Limit {
            nodes: self.sims,
            depth: self.depth,
            movetime: self.movetime_ms.map(std::time::Duration::from_millis),
            ..Limit::default()
        })
    }
}

impl Players {
    pub fn new(runs: &Path, cores: usize) -> Players {
        let mut all = Registry::standard();
        learner::register(&mut all, runs);
        let mut registry = Registry::empty();
        for kind in all.kinds().iter().filter(|kind| !HIDDEN.contains(&kind.name())) {
            registry.register(kind.clone());
        }
        Players { registry, runs: runs.to_owned(), cores, kept: Mutex::default() }
    }

    /// The registry of allowed kinds.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// The allowed kinds with their options.
    pub fn kinds(&self) -> Vec<KindView> {
        let view = |kind: &PlayerKind| KindView {
            name: kind.name().to_owned(),
            description: kind.description().to_owned(),
            options: shown(kind).map(|(name, help)| (name.to_owned(), help.to_owned())).collect(),
            searches_tree: kind.options().any(|(name, _)| name == "root"),
        };
        self.registry.kinds().iter().map(view).collect()
    }

    /// Parses a spec and checks it against the limits.
    pub fn parse(&self, text: &str) -> Result<PlayerSpec, ApiError> {
        if text.chars().count() > 300 {
            return Err(ApiError::Malformed("player: expected at most 300 characters".into()));
        }
        let kind = text.split(':').next().unwrap_or_default().trim();
        if HIDDEN.contains(&kind) {
            return Err(ApiError::Bad(format!(
                "'{kind}' players run programs or read files of this machine: use the command line for them"
            )));
        }
        let mut spec = self.registry.parse(text).map_err(|error| self.bad(&error))?;
        if spec.kind == "run" {
            // Report an unknown run now, not when the search starts.
            self.run(&spec).map_err(|error| self.bad(&error))?;
        }
        for (name, value) in &spec.options {
            if !OFFERED.contains(&name.as_str()) {
                return Err(ApiError::Bad(format!(
                    "the option '{name}' is not offered here: use the command line for it"
                )));
            }
            // Text that is not a number is rejected when the player is built.
            if let Ok(value) = value.parse::<u64>() {
                check_ceiling(name, value).map_err(ApiError::Bad)?;
                if name == "threads" && value > self.cores as u64 {
                    let cores = self.cores;
                    let text = format!("threads is {value}: expected at most the {cores} cores");
                    return Err(ApiError::Bad(text));
                }
            }
        }
        if self.has(&spec, "memory") && spec.option("memory").is_none() {
            spec.options.push(("memory".to_owned(), TREE_MEMORY.to_string()));
        }
        Ok(spec)
    }

    /// The spec of an environment's opponent, with one thread and little memory.
    pub fn parse_opponent(&self, text: &str) -> Result<PlayerSpec, ApiError> {
        let mut spec = self.parse(text)?;
        for (name, value) in OPPONENT {
            if self.has(&spec, name) {
                spec.options.retain(|(option, _)| option != name);
                spec.options.push((name.to_owned(), value.to_owned()));
            }
        }
        Ok(spec)
    }

    fn has(&self, spec: &PlayerSpec, name: &str) -> bool {
        let kind = self.registry.kinds().iter().find(|kind| kind.name() == spec.kind);
        kind.is_some_and(|kind| kind.options().any(|(option, _)| option == name))
    }

    /// The run of a `run:` player.
    fn run(&self, spec: &PlayerSpec) -> Result<RunReader, RunError> {
        let name = spec.argument.as_deref().unwrap_or_default();
        let name = name.split_once('@').map_or(name, |(name, _)| name);
        RunReader::find(&self.runs, name)
    }

    /// How a player chooses its moves.
    pub fn search_kind(&self, spec: &PlayerSpec) -> SearchKind {
        learner::search_kind_of(&self.registry, spec, &self.runs)
    }

    /// Parses a spec and the limit of a request. If the request has a limit, the limits of the spec
    /// are removed.
    pub fn parse_for(
        &self,
        text: &str,
        asked: LimitRequest,
    ) -> Result<(PlayerSpec, Limit), ApiError> {
        let mut spec = self.parse(text)?;
        let limit = asked.limit()?;
        if asked == LimitRequest::default() {
            return Ok((spec, limit));
        }
        // `sims` also means that a network plays by tree search.
        let in_tree = spec.option("sims").is_some() || asked.sims.is_some();
        spec.options.retain(|(name, _)| !LIMITS.contains(&name.as_str()));
        if in_tree
            && self.search_kind(&spec) == SearchKind::Either
            && spec.option("search").is_none()
        {
            spec.options.push(("search".to_owned(), "mcts".to_owned()));
        }
        Ok((spec, limit))
    }

    pub fn build(&self, spec: &PlayerSpec, seed: u64) -> Result<Box<dyn Player>, ApiError> {
        self.registry.build(spec, Seed::new(seed)).map_err(|error| self.bad(&error))
    }

    /// Runs a task with a player: the one kept from the last move or a new one. A player that fails
    /// is not kept.
    pub fn with<T>(
        &self,
        spec: &PlayerSpec,
        seed: u64,
        task: impl FnOnce(&mut dyn Player) -> Result<T, PlayerError>,
    ) -> Result<T, ApiError> {
        let key = Key { spec: spec.to_string(), seed };
        let found = {
            let mut kept = lock(&self.kept);
            let place = kept.iter().position(|(known, _)| *known == key);
            place.map(|place| kept.remove(place).1)
        };
        let mut player = match found {
            Some(player) => player,
            None => self.build(spec, seed)?,
        };
        let result = task(player.as_mut())
            .map_err(|error| ApiError::Internal(without_paths(&error, &self.runs)))?;
        // The newest network of a run may be another one next time.
        if spec.kind != "run" || spec.argument.as_ref().is_some_and(|name| name.contains('@')) {
            let mut kept = lock(&self.kept);
            if kept.len() >= KEPT {
                kept.remove(0);
            }
            kept.push((key, player));
        }
        Ok(result)
    }

    fn bad(&self, error: &dyn Display) -> ApiError {
        ApiError::Bad(without_paths(error, &self.runs))
    }
}

/// The number of threads of a player.
pub fn threads(spec: &PlayerSpec) -> usize {
    spec.option("threads").and_then(|value| value.parse().ok()).unwrap_or(1)
}

/// The allowed options of a kind.
fn shown(kind: &PlayerKind) -> impl Iterator<Item = (&str, &str)> {
    kind.options().filter(|(name, _)| OFFERED.contains(name))
}

fn check_ceiling(name: &str, value: u64) -> Result<(), String> {
    match CEILINGS.iter().find(|(known, _)| *known == name) {
        Some((_, most)) if value > *most => {
            Err(format!("{name} is {value}: expected at most {most} here"))
        }
        Some(_) if value == 0 => Err(format!("{name} is 0: expected at least 1")),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use selfmate_chess::Game;

    use super::*;

    fn players() -> Players {
        Players::new(Path::new("nowhere"), 2)
    }

    #[test]
    fn players_that_run_programs_or_read_files_are_not_allowed() {
        let players = players();
        for spec in ["uci:sh -c true", "net:/etc/passwd", " net:x", "uci"] {
            let error = players.parse(spec).unwrap_err().to_string();
            assert!(error.contains("use the command line"), "{spec}: {error}");
        }
        for spec in ["material:syzygy=/", "alphabeta:weights=x", "random:book=x", "default:book=x"]
        {
            let error = players.parse(spec).unwrap_err().to_string();
            assert!(error.contains("use the command line"), "{spec}: {error}");
        }
        for kind in players.kinds() {
            assert!(!HIDDEN.contains(&kind.name.as_str()), "{}", kind.name);
            let hidden = ["syzygy", "book", "weights"];
            assert!(kind.options.iter().all(|(name, _)| !hidden.contains(&name.as_str())));
        }
    }

    #[test]
    fn options_that_cost_time_or_memory_have_maximums() {
        let players = players();
        for spec in ["material:memory=99999", "material:threads=1000", "rollout:sims=0"] {
            assert!(players.parse(spec).is_err(), "{spec}");
        }
        assert!(players.parse("material:threads=3").unwrap_err().to_string().contains("2 cores"));
        assert_eq!(threads(&players.parse("material:threads=2").unwrap()), 2);
        assert_eq!(players.parse("material").unwrap().to_string(), "material:memory=64");
        for (asked, given) in [
            ("material:threads=2,memory=999,sims=5", "material:sims=5,memory=16,threads=1"),
            ("alphabeta:depth=3", "alphabeta:depth=3,hash=16,threads=1"),
            ("greedy", "greedy"),
        ] {
            assert_eq!(players.parse_opponent(asked).unwrap().to_string(), given);
        }
        assert!(
            LimitRequest { movetime_ms: Some(10_000_000), ..LimitRequest::default() }
                .limit()
                .is_err()
        );
        assert!(LimitRequest { depth: Some(0), ..LimitRequest::default() }.limit().is_err());
    }

    #[test]
    fn the_limit_of_a_request_replaces_that_of_the_spec() {
        let players = players();
        let limit = LimitRequest { sims: Some(32), ..LimitRequest::default() };
        let (spec, _) = players.parse_for("default:sims=800", limit).unwrap();
        assert_eq!(spec.to_string(), "default:memory=64,search=mcts");
        let (spec, _) = players.parse_for("material:sims=9", LimitRequest::default()).unwrap();
        assert_eq!(spec.to_string(), "material:sims=9,memory=64");
        let mut nodes = 0;
        let (spec, limit) = players.parse_for("material", limit).unwrap();
        for _ in 0..2 {
            let choice = players.with(&spec, 1, |player| player.choose(&Game::new(), &limit));
            nodes = choice.unwrap().nodes.unwrap();
        }
        assert_eq!(nodes, 32);
    }
}
