//! Plays many players against each other for one rating list. Every pairing is a match with its own
//! file, so a player that joins later plays only its own games.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use selfmate_chess::Seed;
use serde::{Deserialize, Serialize};

use crate::game::GameSettings;
use crate::header::{self, StoredPlayer};
use crate::match_runner::{
    MatchConfig, MatchError, MatchEvent, MatchRun, play_match, stored_result,
};
use crate::openings::OpeningSource;
use crate::rating::{Meeting, Rated, RatingError, place_anchors, rating_list};
use crate::registry::Registry;
use crate::resolved_player::ResolvedPlayer;
use crate::stats::Tally;
use crate::store::RecordStore;

#[derive(Clone, Debug, PartialEq)]
pub struct LadderConfig {
    pub players: Vec<String>,
    pub format: LadderFormat,
    /// Games per pairing.
    pub games: u64,
    pub settings: GameSettings,
    pub openings: OpeningSource,
    pub seed: u64,
    /// Players with a fixed rating.
    pub anchors: Vec<(String, f64)>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LadderFormat {
    /// Every player plays every other.
    #[default]
    RoundRobin,
    /// The first player plays all others.
    Gauntlet,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LadderReport {
    pub players: Vec<Rated>,
    pub pairings: Vec<PairingResult>,
    /// True when all pairings are played.
    pub is_finished: bool,
}

/// The result of one pairing, from A's side.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairingResult {
    pub a: String,
    pub b: String,
    #[serde(flatten)]
    pub tally: Tally,
}

#[derive(Clone, Debug)]
pub enum LadderEvent {
    Pairing {
        /// From 0.
        index: usize,
        total: usize,
        a: String,
        b: String,
    },
    Match(Box<MatchEvent>),
}

#[derive(Debug, thiserror::Error)]
pub enum LadderError {
    /// There are too few players, or one is listed twice.
    #[error("{0}")]
    Players(String),
    #[error(transparent)]
    Match(#[from] MatchError),
    /// An anchor is not one of the players.
    #[error(transparent)]
    Rating(#[from] RatingError),
    #[error("{}: {error}", folder.display())]
    Folder { folder: PathBuf, error: std::io::Error },
}

/// Plays the missing pairings and rates all players, including those found only in the folder.
/// `run.store` is the folder; without it nothing is stored. Every player is resolved once: to the
/// stored player if the same spec is in the folder, otherwise anew.
pub fn run_ladder(
    config: &LadderConfig,
    run: &MatchRun,
    registry: &Registry,
    observer: &mut dyn FnMut(&LadderEvent),
) -> Result<LadderReport, LadderError> {
    let roster = Roster::new(config, run, registry)?;
    let config = &roster.config;
    let pairings = pairings(config)?;
    // Report mistakes in specs and anchors before hours of games are played.
    for player in roster.players.values() {
        player.build(Seed::new(config.seed)).map_err(MatchError::from)?;
    }
    place_anchors(&roster.known(run)?, &config.anchors)?;
    let mut results = Vec::new();
    let mut is_finished = true;
    for (index, (a, b)) in pairings.iter().enumerate() {
        observer(&LadderEvent::Pairing {
            index,
            total: pairings.len(),
            a: a.clone(),
            b: b.clone(),
        });
        let config = match_config(config, a, b);
        let store = run.store.as_ref().map(|folder| folder.join(file_name(a, b)));
        let run = MatchRun { store, pgn: None, ..run.clone() };
        let players = [a, b].map(|name| roster.players[name].clone());
        let report = play_match(&config, &players, &run, &mut |event| {
            observer(&LadderEvent::Match(Box::new(event.clone())));
        })?;
        is_finished &= report.is_finished;
        results.push(PairingResult {
            a: a.clone(),
            b: b.clone(),
            tally: Tally::new(report.wins, report.draws, report.losses),
        });
        if run.stop.load(std::sync::atomic::Ordering::Relaxed) {
            is_finished &= index + 1 == pairings.len();
            break;
        }
    }
    if let Some(folder) = &run.store {
        for stored in roster.stored(folder)? {
            if !results.iter().any(|result| (&result.a, &result.b) == (&stored.a, &stored.b)) {
                results.push(stored);
            }
        }
    }
    // Sorted, so that the list does not depend on the order of play.
    results.sort_by(|a, b| (&a.a, &a.b).cmp(&(&b.a, &b.b)));
    let players = rate(config, &results)?;
    Ok(LadderReport { players, pairings: results, is_finished })
}

/// The players of this run, resolved once.
struct Roster {
    /// With the players' resolved names.
    config: LadderConfig,
    players: BTreeMap<String, ResolvedPlayer>,
}

impl Roster {
    fn new(
        config: &LadderConfig,
        run: &MatchRun,
        registry: &Registry,
    ) -> Result<Roster, LadderError> {
        let files = run.store.as_deref().map(files).transpose()?.unwrap_or_default();
        let mut headers = Vec::new();
        for path in &files {
            let header = RecordStore::header(path).map_err(MatchError::from)?;
            headers.extend(header.map(|header| (path, header)));
        }
        let mut found = config.clone();
        let mut players = BTreeMap::new();
        for (index, asked) in config.players.iter().enumerate() {
            let known = headers.iter().find_map(|(path, header)| {
                ["a", "b"].iter().find_map(|role| StoredPlayer::find(path, header, role, asked))
            });
            let resolved = header::resolve(registry, asked, known)?;
            let name = resolved.name().to_owned();
            for (anchor, (given, _)) in found.anchors.iter_mut().zip(&config.anchors) {
                if given == asked {
                    anchor.0.clone_from(&name);
                }
            }
            found.players[index].clone_from(&name);
            players.insert(name, resolved);
        }
        Ok(Roster { config: found, players })
    }

    /// All players of the rating list.
    fn known(&self, run: &MatchRun) -> Result<Vec<String>, LadderError> {
        let mut names = self.config.players.clone();
        if let Some(folder) = &run.store {
            names.extend(self.stored(folder)?.into_iter().flat_map(|result| [result.a, result.b]));
        }
        Ok(names)
    }

    fn stored(&self, folder: &Path) -> Result<Vec<PairingResult>, LadderError> {
        let mut identities = BTreeMap::new();
        for (name, player) in &self.players {
            identities.insert(name.clone(), player.identity().map_err(MatchError::from)?);
        }
        let like = match_config(&self.config, "", "");
        let mut results = Vec::new();
        for path in files(folder)? {
            let found = stored_result(&path, &like, &mut identities)?;
            results.extend(found.map(|(a, b, tally)| PairingResult { a, b, tally }));
        }
        Ok(results)
    }
}

/// Rates all players on one scale.
fn rate(config: &LadderConfig, results: &[PairingResult]) -> Result<Vec<Rated>, LadderError> {
    let played = results.iter().flat_map(|result| [&result.a, &result.b]);
    let mut names: Vec<String> = config.players.iter().chain(played).cloned().collect();
    names.sort();
    names.dedup();
    let index = |name: &String| names.iter().position(|other| other == name).unwrap_or_default();
    let meetings: Vec<Meeting> = results
        .iter()
        .map(|result| Meeting { a: index(&result.a), b: index(&result.b), tally: result.tally })
        .collect();
    let anchors = place_anchors(&names, &config.anchors)?;
    Ok(rating_list(&names, &meetings, &anchors))
}

/// All pairings. A is the name that comes first in the alphabet, so that the order of players on
/// the command line does not matter.
fn pairings(config: &LadderConfig) -> Result<Vec<(String, String)>, LadderError> {
    let players = &config.players;
    if players.len() < 2 {
        let text = format!("a ladder needs at least two players: got {}", players.len());
        return Err(LadderError::Players(text));
    }
    let mut pairings = Vec::new();
    for (first, a) in players.iter().enumerate() {
        for b in &players[first + 1..] {
            if a == b {
                return Err(LadderError::Players(format!("player '{a}' is listed twice")));
            }
            if first == 0 || config.format == LadderFormat::RoundRobin {
                let ordered = if a < b { (a, b) } else { (b, a) };
                pairings.push((ordered.0.clone(), ordered.1.clone()));
            }
        }
    }
    Ok(pairings)
}

fn match_config(config: &LadderConfig, a: &str, b: &str) -> MatchConfig {
    MatchConfig {
        settings: config.settings.clone(),
        openings: config.openings.clone(),
        seed: config.seed,
        ..MatchConfig::new(a, b, config.games)
    }
}

fn files(folder: &Path) -> Result<Vec<PathBuf>, LadderError> {
    let error = |error| LadderError::Folder { folder: folder.to_owned(), error };
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(missing) if missing.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(other) => return Err(error(other)),
    };
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry.map_err(error)?.path();
        if path.extension().is_some_and(|extension| extension == "jsonl") {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

/// A readable file name with a hash that differs for different players.
fn file_name(a: &str, b: &str) -> String {
    let readable = |name: &str| -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        name.chars().take(40).map(plain).collect()
    };
    let hash = Seed::new(0).derive(a).derive(b).rng().bits();
    format!("{}_{}_{:08x}.jsonl", readable(a), readable(b), hash >> 32)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::players::RandomPlayer;
    use crate::registry::PlayerKind;
    use crate::resolved_player::Loaded;
    use crate::spec::PlayerSpec;

    fn config(players: &[&str]) -> LadderConfig {
        LadderConfig {
            players: players.iter().map(|&player| player.to_owned()).collect(),
            format: LadderFormat::RoundRobin,
            games: 20,
            settings: GameSettings::default(),
            openings: OpeningSource::default(),
            seed: 1,
            anchors: vec![("random".to_owned(), 0.0)],
        }
    }

    fn play(config: &LadderConfig, folder: &Path) -> (LadderReport, usize) {
        let run = MatchRun { store: Some(folder.to_owned()), ..MatchRun::default() };
        let mut played = 0;
        let report = run_ladder(config, &run, &Registry::standard(), &mut |event| {
            if let LadderEvent::Match(event) = event {
                played += usize::from(matches!(**event, MatchEvent::Finished { .. }));
            }
        });
        (report.unwrap(), played)
    }

    #[test]
    fn a_new_player_plays_only_its_own_games() {
        let folder = tempfile::tempdir().unwrap();
        let (first, played) = play(&config(&["random", "greedy"]), folder.path());
        assert_eq!((first.players.len(), played), (2, 20));
        assert_eq!(first.players[1].name, "random");
        let all = config(&["alphabeta:depth=1", "greedy", "random"]);
        let (second, played) = play(&all, folder.path());
        assert_eq!((second.players.len(), played), (3, 40));
        let order: Vec<&str> = second.players.iter().map(|player| player.name.as_str()).collect();
        assert_eq!(order, ["alphabeta:depth=1", "greedy", "random"]);
        assert_eq!(second.players[2].elo, 0.0);
        assert!(second.players.iter().all(|player| player.games == 40));
        // Players that do not play in this run stay on the list.
        let (third, played) = play(&config(&["random", "greedy"]), folder.path());
        assert_eq!((third.players.len(), played), (3, 0));
        assert_eq!(third.players, second.players);
        let other = LadderConfig { seed: 2, ..config(&["random", "greedy"]) };
        let run = MatchRun { store: Some(folder.path().to_owned()), ..MatchRun::default() };
        let error = run_ladder(&other, &run, &Registry::standard(), &mut |_| {}).unwrap_err();
        assert!(error.to_string().contains("seed 1, not 2"), "{error}");
    }

    #[test]
    fn a_ladder_resumes_with_its_players_and_rejects_one_that_changed() {
        let folder = tempfile::tempdir().unwrap();
        let play = |newest: u64, content: &str, players: &[&str]| {
            let content = content.to_owned();
            let kind = PlayerKind::loading("moving", "a run in training", move |options| {
                let argument = match options.argument("NAME")? {
                    name if name.contains('@') => name.to_owned(),
                    name => format!("{name}@{newest}"),
                };
                Ok(Loaded {
                    spec: PlayerSpec { argument: Some(argument), ..options.spec.clone() },
                    identity: content.clone(),
                    book: None,
                    network: None,
                    build: Arc::new(|options| {
                        Ok(Box::new(RandomPlayer::new(&options.label(), options.seed)))
                    }),
                })
            });
            let mut registry = Registry::standard();
            registry.register(kind.argument("NAME"));
            let anchors = vec![("moving:x".to_owned(), 100.0)];
            let config = LadderConfig { games: 2, anchors, ..config(players) };
            let run = MatchRun { store: Some(folder.path().to_owned()), ..MatchRun::default() };
            run_ladder(&config, &run, &registry, &mut |_| {}).map_err(|error| error.to_string())
        };
        let first = play(1, "one", &["moving:x", "random"]).unwrap();
        let anchor = first.players.iter().find(|player| player.is_anchor).unwrap();
        assert_eq!((anchor.name.as_str(), anchor.elo), ("moving:x@1", 100.0));
        // A new step does not restart the ladder, but can be named explicitly.
        let again = play(2, "one", &["moving:x", "random"]).unwrap();
        assert_eq!(again, first);
        let both = play(2, "one", &["moving:x", "moving:x@2", "random"]).unwrap();
        assert_eq!(both.players.len(), 3);
        let error = play(2, "two", &["moving:x", "random"]).unwrap_err();
        assert!(error.contains("identity.a \"one\", not \"two\""), "{error}");
    }

    #[test]
    fn in_a_gauntlet_the_first_player_plays_all_others() {
        let config = LadderConfig { format: LadderFormat::Gauntlet, ..config(&["c", "a", "b"]) };
        let text = |(a, b): &(&str, &str)| ((*a).to_owned(), (*b).to_owned());
        let expected: Vec<_> = [("a", "c"), ("b", "c")].iter().map(text).collect();
        assert_eq!(pairings(&config).unwrap(), expected);
    }

    #[test]
    fn mistakes_are_reported_before_any_game() {
        let message = |config: &LadderConfig| {
            let run = MatchRun::default();
            run_ladder(config, &run, &Registry::standard(), &mut |_| panic!("no game yet"))
                .unwrap_err()
                .to_string()
        };
        assert_eq!(message(&config(&["random"])), "a ladder needs at least two players: got 1");
        assert_eq!(message(&config(&["random", "random"])), "player 'random' is listed twice");
        let nobody = config(&["greedy", "rollout"]);
        let expected = "anchor 'random' is not one of the players: expected one of greedy, rollout";
        assert_eq!(message(&nobody), expected);
        assert!(message(&config(&["random", "gredy"])).contains("did you mean 'greedy'?"));
    }
}
