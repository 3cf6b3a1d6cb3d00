//! Players that are resolved once. A spec can mean something else a minute later: the newest
//! network of a run, a file that was rewritten, an engine that was updated. A resolved player is
//! always built from the same data. Its name is exact, and its identity shows whether the data is
//! still the same later.

use std::fmt;
use std::sync::{Arc, OnceLock};

use selfmate_chess::Seed;
use selfmate_nn::Model;
use selfmate_search::Player;

use crate::players::booked::LoadedBook;
use crate::players::net;
use crate::registry::{Build, Registry, Version};
use crate::spec::{PlayerSpec, SpecError, SpecOptions};
use crate::tablebase_cache::TablebaseCache;

#[derive(Clone)]
pub struct ResolvedPlayer {
    spec: PlayerSpec,
    name: String,
    asked: String,
    identity: Arc<OnceLock<String>>,
    version: Option<Arc<Version>>,
    build: Arc<Build>,
    book: Option<LoadedBook>,
    tablebases: TablebaseCache,
    network: Option<Arc<[u8]>>,
}

/// The data of a player, loaded once.
pub struct Loaded {
    /// A spec that always means this data, never something newer.
    pub spec: PlayerSpec,
    /// Identifies the data; see [`content_hash`].
    pub identity: String,
    /// Builds players from the data.
    pub build: Arc<Build>,
    /// The bytes of the weight file, if the player has a network.
    pub network: Option<Arc<[u8]>>,
    /// The book that it opens with unless the spec names another.
    pub book: Option<LoadedBook>,
}

/// Builds a player that another machine has sent. Nothing in its spec is looked up on this machine.
#[derive(Clone, Debug)]
pub struct RemotePlayerSpec {
    /// A spec that does not depend on the machine.
    pub spec: String,
    /// The bytes of the weight file, if the player has a network.
    pub network: Option<Arc<[u8]>>,
}

/// Kinds that play the same on every machine, besides networks.
const REMOTE_KINDS: [&str; 5] = ["random", "greedy", "oneply", "rollout", "alphabeta"];
/// The kind of networks, with a placeholder for the file, which the other machine does not have.
const NETWORK: (&str, &str) = ("net", "network");
/// Options that mean the same on every machine: they do not name files or times.
const OPTIONS: [&str; 25] = [
    "sims",
    "nodes",
    "depth",
    "root",
    "search",
    "threads",
    "memory",
    "hash",
    "c_puct",
    "c",
    "playout",
    "plies",
    "scale",
    "policy_temperature",
    "temperature",
    "blunder",
    "weights",
    "material",
    "centre",
    "king_safety",
    "development",
    "game_nodes",
    "depth_opening",
    "depth_middlegame",
    "depth_endgame",
];
/// Weights of alpha-beta that do not need a file.
const WEIGHTS: [&str; 2] = ["plain", "default"];
/// The maximum memory of a remote player, in MB.
const MAX_MEMORY: u64 = 4096;

impl ResolvedPlayer {
    /// A player that is described by its spec and the version of its engine.
    pub(crate) fn new(
        asked: &str,
        spec: PlayerSpec,
        build: Arc<Build>,
        version: Option<Arc<Version>>,
        tablebases: TablebaseCache,
    ) -> ResolvedPlayer {
        let (name, asked) = (spec.to_string(), asked.to_owned());
        let (identity, book, network) = (Arc::default(), None, None);
        ResolvedPlayer { spec, name, asked, identity, version, build, book, tablebases, network }
    }

    pub(crate) fn loaded(
        asked: &str,
        loaded: Loaded,
        tablebases: TablebaseCache,
    ) -> ResolvedPlayer {
        let Loaded { spec, identity, build, network, book } = loaded;
        let resolved = ResolvedPlayer::new(asked, spec, build, None, tablebases);
        ResolvedPlayer { identity: Arc::new(identity.into()), network, book, ..resolved }
    }

    #[must_use]
    pub(crate) fn with_book(self, book: Option<LoadedBook>) -> ResolvedPlayer {
        ResolvedPlayer { book, ..self }
    }

    /// The same player under another spec of the user.
    #[must_use]
    pub(crate) fn asked_as(self, asked: &str) -> ResolvedPlayer {
        ResolvedPlayer { asked: asked.to_owned(), ..self }
    }

    /// The spec that always means this player, never a newer one.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The spec as the user wrote it.
    pub fn asked(&self) -> &str {
        &self.asked
    }

    /// What the name does not show: the hash of a file, the version of an engine. An engine is
    /// started once to read its version.
    pub fn identity(&self) -> Result<Option<String>, SpecError> {
        if let (None, Some(version)) = (self.identity.get(), &self.version) {
            let version = version(&self.options(Seed::new(0)))?;
            // Another thread can only have set the same value.
            let _ = self.identity.set(version);
        }
        let book = self.book.as_ref().map(|book| format!("book {}", book.identity()));
        let parts: Vec<String> = self.identity.get().cloned().into_iter().chain(book).collect();
        Ok((!parts.is_empty()).then(|| parts.join(", ")))
    }

    /// Builds the player. The same seed gives the same player.
    pub fn build(&self, seed: Seed) -> Result<Box<dyn Player>, SpecError> {
        let player = (self.build)(&self.options(seed))?;
        Ok(match &self.book {
            Some(book) => book.wrap(player, seed),
            None => player,
        })
    }

    /// The player for another machine; an error when it would not play the same games there.
    pub fn remote_spec(&self) -> Result<RemotePlayerSpec, SpecError> {
        let mut spec = self.spec.clone();
        if self.tablebases.has_default() {
            let reason = "it uses tablebases, which other machines do not have".to_owned();
            return Err(SpecError::Other { spec: spec.to_string(), reason });
        }
        if self.network.is_some() {
            spec.kind = NETWORK.0.to_owned();
            spec.argument = Some(NETWORK.1.to_owned());
        }
        check_remote(&spec, self.network.is_some())?;
        Ok(RemotePlayerSpec { spec: spec.to_string(), network: self.network.clone() })
    }

    /// Builds a player that another machine has sent. Nothing in its spec is looked up on this
    /// machine.
    pub fn from_remote_spec(remote_spec: &RemotePlayerSpec) -> Result<ResolvedPlayer, SpecError> {
        let registry = Registry::standard();
        let spec = registry.parse(&remote_spec.spec)?;
        check_remote(&spec, remote_spec.network.is_some())?;
        let Some(bytes) = &remote_spec.network else { return registry.resolve(&remote_spec.spec) };
        let (model, _) = Model::decode(bytes).map_err(|error| SpecError::Other {
            spec: remote_spec.spec.clone(),
            reason: error.to_string(),
        })?;
        let loaded = net::loaded(spec, bytes, model);
        Ok(ResolvedPlayer::loaded(&remote_spec.spec, loaded, TablebaseCache::default()))
    }

    fn options(&self, seed: Seed) -> SpecOptions<'_> {
        SpecOptions { spec: &self.spec, seed, tablebases: &self.tablebases }
    }
}

/// Rejects specs that do not play the same on every machine.
fn check_remote(spec: &PlayerSpec, has_network: bool) -> Result<(), SpecError> {
    let other =
        |reason: &str| Err(SpecError::Other { spec: spec.to_string(), reason: reason.to_owned() });
    let number = |name: &str| spec.option(name).map(|text| text.parse::<u64>().unwrap_or(u64::MAX));
    if has_network != (spec.kind == NETWORK.0)
        || !(has_network || REMOTE_KINDS.contains(&&*spec.kind))
    {
        return other("only selfmate's own players can play on other machines");
    }
    if number("threads").is_some_and(|threads| threads != 1) {
        return other(
            "on other machines a player must use threads=1, so that its games can be reproduced",
        );
    }
    let names = spec.options.iter().map(|(name, _)| name.as_str());
    if let Some(name) = names.into_iter().find(|name| !OPTIONS.contains(name)) {
        return other(&format!("players on other machines cannot use the option '{name}'"));
    }
    if spec.option("weights").is_some_and(|weights| !WEIGHTS.contains(&weights)) {
        return other("its weights are in a file, which other machines do not have");
    }
    if ["memory", "hash"].iter().any(|name| number(name).is_some_and(|memory| memory > MAX_MEMORY))
    {
        return other("on other machines a player can use at most 4096 MB");
    }
    Ok(())
}

impl fmt::Debug for ResolvedPlayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResolvedPlayer").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The first 16 hexadecimal digits of the BLAKE3 hash, which is enough to identify the bytes.
pub fn content_hash(bytes: &[u8]) -> String {
    format!("blake3 {}", &blake3::hash(bytes).to_hex()[..16])
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    use super::*;
    use crate::players::RandomPlayer;
    use crate::registry::PlayerKind;

    /// A kind with a newer step each time it is loaded.
    fn moving() -> (Registry, Arc<AtomicU64>) {
        let loads = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&loads);
        let kind = PlayerKind::loading("moving", "a run in training", move |options| {
            let newest = counter.fetch_add(1, Relaxed) + 1;
            let argument = options.argument("NAME")?;
            let resolved = if argument.contains('@') {
                argument.to_owned()
            } else {
                format!("{argument}@{newest}")
            };
            let spec = PlayerSpec { argument: Some(resolved), ..options.spec.clone() };
            Ok(Loaded {
                spec,
                identity: content_hash(&newest.to_le_bytes()),
                network: None,
                book: None,
                build: Arc::new(|options| {
                    Ok(Box::new(RandomPlayer::new(&options.label(), options.seed)))
                }),
            })
        });
        let mut registry = Registry::standard();
        registry.register(kind.argument("NAME or NAME@STEP").option("sims", "none"));
        (registry, loads)
    }

    #[test]
    fn a_resolved_player_is_loaded_once_and_has_an_exact_name() {
        let (registry, loads) = moving();
        let resolved = registry.resolve("moving:x,sims=3").unwrap();
        for _ in 0..3 {
            let player = resolved.build(Seed::new(1)).unwrap();
            assert_eq!(player.name(), "moving:x@1,sims=3");
        }
        assert_eq!((resolved.name(), resolved.asked()), ("moving:x@1,sims=3", "moving:x,sims=3"));
        assert_eq!(loads.load(Relaxed), 1);
        assert_ne!(registry.resolve("moving:x").unwrap().identity(), resolved.identity());
        assert_eq!(registry.resolve("random").unwrap().identity(), Ok(None));
    }

    #[test]
    fn players_that_depend_on_the_machine_have_no_remote_spec() {
        let remote_spec = |text: &str| {
            let resolved = Registry::standard().resolve(text).unwrap();
            resolved.remote_spec().map(|player| player.spec).map_err(|error| error.to_string())
        };
        for good in ["alphabeta:depth=2,hash=4,blunder=5", "rollout:sims=9,c=2,plies=30"] {
            assert_eq!(remote_spec(good), Ok(good.to_owned()));
        }
        for (text, reason) in [
            ("alphabeta:movetime=10", "cannot use the option 'movetime'"),
            ("alphabeta:threads=2", "threads=1"),
            ("alphabeta:hash=8192", "4096 MB"),
            ("alphabeta:weights=mine.toml", "are in a file"),
            ("stockfish:nodes=10", "only selfmate's own players"),
        ] {
            let refused = remote_spec(text).unwrap_err();
            assert!(refused.contains(reason), "{text}: {refused}");
        }
        let mut registry = Registry::standard();
        registry.set_default_tables("tables");
        let refused = registry.resolve("greedy").unwrap().remote_spec().unwrap_err();
        assert!(refused.to_string().contains("tablebases"), "{refused}");
        // A remote `net` player must come with its network.
        let refused = ResolvedPlayer::from_remote_spec(&RemotePlayerSpec {
            spec: "net:x".to_owned(),
            network: None,
        });
        assert!(refused.is_err());
    }

    #[test]
    fn an_engine_is_started_for_its_version_once_and_only_on_demand() {
        let asked = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&asked);
        let kind = PlayerKind::new("program", "a program", |options| {
            Ok(Box::new(RandomPlayer::new(&options.label(), options.seed)))
        })
        .version(move |_| Ok(format!("Program {}", counter.fetch_add(1, Relaxed))));
        let mut registry = Registry::empty();
        registry.register(kind);
        let resolved = registry.resolve("program").unwrap();
        resolved.build(Seed::new(1)).unwrap();
        assert_eq!(asked.load(Relaxed), 0);
        for _ in 0..2 {
            assert_eq!(resolved.clone().identity(), Ok(Some("Program 0".to_owned())));
        }
    }
}
