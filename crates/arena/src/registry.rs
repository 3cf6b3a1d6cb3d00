//! The kinds of players. Other crates add theirs with [`Registry::register`].

use std::fmt;
use std::sync::Arc;

use selfmate_chess::Seed;
use selfmate_search::Player;

use crate::players::{self, booked};
use crate::resolved_player::{Loaded, ResolvedPlayer};
use crate::spec::{PlayerSpec, SpecError, SpecOptions};
use crate::tablebase_cache::TablebaseCache;

/// Builds players from their specs.
///
/// ```
/// use selfmate_arena::Registry;
/// let error = Registry::standard().parse("stokfish").unwrap_err();
/// assert_eq!(error.to_string(), "unknown player 'stokfish': did you mean 'stockfish'?");
/// ```
#[derive(Clone, Debug, Default)]
pub struct Registry {
    kinds: Vec<PlayerKind>,
    tablebases: TablebaseCache,
}

/// Builds a player from its options.
pub type Build = dyn Fn(&SpecOptions<'_>) -> Result<Box<dyn Player>, SpecError> + Send + Sync;
/// Loads what a player is built from, such as a network.
pub type Load = dyn Fn(&SpecOptions<'_>) -> Result<Loaded, SpecError> + Send + Sync;
/// Starts an engine to read its name and version.
pub type Version = dyn Fn(&SpecOptions<'_>) -> Result<String, SpecError> + Send + Sync;

#[derive(Clone)]
pub struct PlayerKind {
    name: String,
    description: String,
    argument: Option<String>,
    options: Vec<(String, String)>,
    source: Source,
    version: Option<Arc<Version>>,
}

/// Where the players of a kind come from.
#[derive(Clone)]
enum Source {
    Build(Arc<Build>),
    /// From data that may change while games are played.
    Load(Arc<Load>),
}

impl Registry {
    pub fn empty() -> Registry {
        Registry::default()
    }

    /// All players that do not need a training run.
    pub fn standard() -> Registry {
        let mut registry = Registry::empty();
        for kind in players::kinds() {
            registry.register(kind);
        }
        registry
    }

    /// Adds a kind of player; replaces one with the same name.
    pub fn register(&mut self, kind: PlayerKind) {
        self.kinds.retain(|other| other.name != kind.name);
        self.kinds.push(kind);
    }

    pub fn tablebases(&self) -> &TablebaseCache {
        &self.tablebases
    }

    /// Sets the tablebase folders of every player that can use tablebases and does not name its
    /// own.
    pub fn set_default_tables(&mut self, folders: &str) {
        self.tablebases.set_default(folders);
    }

    /// The spec with an option added; unchanged if its kind has no such option or the option is
    /// already set.
    pub fn with_option(&self, text: &str, name: &str, value: &str) -> Result<String, SpecError> {
        let mut spec = self.parse(text)?;
        let kind = self.kind(&spec)?;
        if kind.options.iter().any(|(option, _)| option == name) && spec.option(name).is_none() {
            spec.options.push((name.to_owned(), value.to_owned()));
            // A value with a comma would be read as two options.
            if spec.to_string().parse::<PlayerSpec>().ok().as_ref() != Some(&spec) {
                return Err(SpecError::Value {
                    kind: spec.kind,
                    option: name.to_owned(),
                    value: value.to_owned(),
                    expected: "text without commas".to_owned(),
                });
            }
        }
        Ok(spec.to_string())
    }

    /// In the order of registration.
    pub fn kinds(&self) -> &[PlayerKind] {
        &self.kinds
    }

    /// Reads a spec and checks that its kind and its options exist.
    pub fn parse(&self, text: &str) -> Result<PlayerSpec, SpecError> {
        let spec: PlayerSpec = text.parse()?;
        self.kind(&spec)?;
        Ok(spec)
    }

    /// Builds a player. The same spec and seed give the same player.
    pub fn build(&self, spec: &PlayerSpec, seed: Seed) -> Result<Box<dyn Player>, SpecError> {
        let kind = self.kind(spec)?;
        let options = SpecOptions { spec, seed, tablebases: &self.tablebases };
        let (player, own_book) = match &kind.source {
            Source::Build(build) => (build(&options)?, None),
            Source::Load(load) => {
                let loaded = load(&options)?;
                ((loaded.build)(&options)?, loaded.book)
            }
        };
        Ok(match booked::choose(&options, own_book)? {
            Some(book) => book.wrap(player, seed),
            None => player,
        })
    }

    /// Resolves a player: later changes of files and runs do not affect it.
    pub fn resolve(&self, text: &str) -> Result<ResolvedPlayer, SpecError> {
        let spec = self.parse(text)?;
        let kind = self.kind(&spec)?;
        let tablebases = self.tablebases.clone();
        let options = SpecOptions { spec: &spec, seed: Seed::new(0), tablebases: &self.tablebases };
        match &kind.source {
            Source::Load(load) => {
                let mut loaded = load(&options)?;
                loaded.book = booked::choose(&options, loaded.book)?;
                Ok(ResolvedPlayer::loaded(text, loaded, tablebases))
            }
            Source::Build(build) => {
                let book = booked::choose(&options, None)?;
                let (build, version) = (Arc::clone(build), kind.version.clone());
                let resolved = ResolvedPlayer::new(text, spec, build, version, tablebases);
                Ok(resolved.with_book(book))
            }
        }
    }

    /// The kind of a spec; also checks the spec's options.
    fn kind(&self, spec: &PlayerSpec) -> Result<&PlayerKind, SpecError> {
        let Some(kind) = self.kinds.iter().find(|kind| kind.name == spec.kind) else {
            let names: Vec<&str> = self.kinds.iter().map(|kind| kind.name.as_str()).collect();
            return Err(SpecError::Unknown {
                kind: spec.kind.clone(),
                hint: hint(&spec.kind, &names, "players"),
            });
        };
        if let (Some(argument), None) = (&spec.argument, &kind.argument) {
            return Err(SpecError::NoArgument {
                kind: kind.name.clone(),
                argument: argument.clone(),
            });
        }
        let names: Vec<&str> = kind.options().map(|(name, _)| name).collect();
        for (option, _) in &spec.options {
            if !names.contains(&option.as_str()) {
                return Err(SpecError::Option {
                    kind: kind.name.clone(),
                    option: option.clone(),
                    hint: hint(option, &names, "options"),
                });
            }
        }
        Ok(kind)
    }
}

impl PlayerKind {
    pub fn new<F>(name: &str, description: &str, build: F) -> PlayerKind
    where
        F: Fn(&SpecOptions<'_>) -> Result<Box<dyn Player>, SpecError> + Send + Sync + 'static,
    {
        PlayerKind {
            name: name.to_owned(),
            description: description.to_owned(),
            argument: None,
            options: Vec::new(),
            source: Source::Build(Arc::new(build)),
            version: None,
        }
    }

    /// A kind that is built from data that may change while games are played, such as a file.
    pub fn loading<F>(name: &str, description: &str, load: F) -> PlayerKind
    where
        F: Fn(&SpecOptions<'_>) -> Result<Loaded, SpecError> + Send + Sync + 'static,
    {
        PlayerKind {
            name: name.to_owned(),
            description: description.to_owned(),
            argument: None,
            options: Vec::new(),
            source: Source::Load(Arc::new(load)),
            version: None,
        }
    }

    /// Adds a function that starts the engine to read its version.
    #[must_use]
    pub fn version<F>(mut self, version: F) -> PlayerKind
    where
        F: Fn(&SpecOptions<'_>) -> Result<String, SpecError> + Send + Sync + 'static,
    {
        self.version = Some(Arc::new(version));
        self
    }

    /// Adds a leading argument that is not an option, such as `NAME[@STEP]`.
    #[must_use]
    pub fn argument(mut self, what: &str) -> PlayerKind {
        self.argument = Some(what.to_owned());
        self
    }

    /// Adds an option with a short help text.
    #[must_use]
    pub fn option(mut self, name: &str, help: &str) -> PlayerKind {
        self.options.push((name.to_owned(), help.to_owned()));
        self
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn description(&self) -> &str {
        &self.description
    }

    /// The options with their help texts; options of every player come last.
    pub fn options(&self) -> impl Iterator<Item = (&str, &str)> {
        let own = self.options.iter().map(|(name, help)| (name.as_str(), help.as_str()));
        own.chain([booked::OPTION])
    }

    /// The usage text, such as `rollout[:sims=…,root=…]`.
    pub fn usage(&self) -> String {
        let options: Vec<String> =
            self.options.iter().map(|(name, _)| format!("{name}=…")).collect();
        match (&self.argument, options.is_empty()) {
            (Some(argument), true) => format!("{}:{argument}", self.name),
            (Some(argument), false) => format!("{}:{argument}[,{}]", self.name, options.join(",")),
            (None, true) => self.name.clone(),
            (None, false) => format!("{}[:{}]", self.name, options.join(",")),
        }
    }
}

impl fmt::Debug for PlayerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PlayerKind").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A suggestion if a known name is close, otherwise all known names.
fn hint(given: &str, known: &[&str], what: &str) -> String {
    let close = known.iter().map(|name| (distance(given, name), name)).min();
    match close {
        // Allows two typing errors in a word of six letters.
        Some((distance, name))
            if distance <= 1 + given.chars().count() / 6 && distance < name.chars().count() =>
        {
            format!("did you mean '{name}'?")
        }
        _ if known.is_empty() => format!("there are no {what}"),
        _ => format!("the {what} are {}", known.join(", ")),
    }
}

/// Damerau-Levenshtein distance: insertions, deletions, replacements and swaps of neighbours.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![(0..=b.len()).collect::<Vec<usize>>()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = replaced.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> String {
        let registry = Registry::standard();
        let spec = registry.parse(text);
        let built = spec.and_then(|spec| registry.build(&spec, Seed::new(1)));
        built.err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn errors_suggest_a_name_or_list_all_names() {
        insta::assert_snapshot!(
            [
                "stokfish",
                "radnom",
                "x",
                "rollout:simss=3",
                "rollout:sims=many",
                "rollout:x=3",
                "rollout:sims=0",
                "rollout:root=best",
                "random:sims=3",
                "greedy:fast",
                "uci:",
                "uci:no-such-engine",
                "alphabeta:deph=3",
                "stockfish:elo=1500,skill=3",
            ]
            .map(message)
            .join("\n")
        );
    }

    #[test]
    fn the_error_for_a_number_that_is_too_large_names_the_maximum() {
        assert_eq!(
            message("rollout:sims=99999999999999999999"),
            "player 'rollout', option sims: expected a whole number from 1 to \
             18446744073709551615, got '99999999999999999999'"
        );
    }

    #[test]
    fn every_standard_kind_has_a_description_in_one_line() {
        for kind in Registry::standard().kinds() {
            let one_line = !kind.description().is_empty() && !kind.description().contains('\n');
            assert!(one_line && kind.usage().starts_with(kind.name()), "{kind:?}");
        }
    }

    #[test]
    fn other_crates_can_add_kinds() {
        let mut registry = Registry::standard();
        let kind = PlayerKind::new("run", "a training run's player", |options| {
            assert_eq!(options.argument("NAME")?, "tonight");
            assert_eq!(options.number("sims", 1..=u64::MAX)?, Some(8));
            Ok(Box::new(players::RandomPlayer::new(&options.label(), options.seed)))
        });
        registry.register(kind.argument("NAME[@STEP]").option("sims", "simulations for each move"));
        let spec = registry.parse("run:tonight,sims=8").unwrap();
        let player = registry.build(&spec, Seed::new(1)).unwrap();
        assert_eq!(player.name(), "run:tonight,sims=8");
        assert_eq!(registry.kinds().last().unwrap().usage(), "run:NAME[@STEP][,sims=…]");
    }
}
