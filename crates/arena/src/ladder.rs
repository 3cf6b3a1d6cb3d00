//! Many players, one rating list. Every pairing is a match with its own file, so that a player
//! who joins later plays only its own games.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use selfmate_chess::Seed;
use serde::{Deserialize, Serialize};

use crate::game::GameSettings;
use crate::header::{self, Known};
use crate::match_runner::{
    MatchConfig, MatchError, MatchEvent, MatchRun, play_match, stored_result,
};
use crate::openings::OpeningSource;
use crate::rating::{Meeting, Rated, RatingError, place_anchors, rating_list};
use crate::registry::Registry;
use crate::resolved_player::ResolvedPlayer;
use crate::stats::Tally;
use crate::store::RecordStore;

/// Who plays whom, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct LadderConfig {
    /// The players' specs.
    pub players: Vec<String>,
    /// Who meets whom.
    pub format: LadderFormat,
    /// Games for each pairing.
    pub games: u64,
    /// How each game is played.
    pub settings: GameSettings,
    /// Where games start.
    pub openings: OpeningSource,
    /// The root of all randomness.
    pub seed: u64,
    /// Players whose rating is given.
    pub anchors: Vec<(String, f64)>,
}

/// Who meets whom.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LadderFormat {
    /// Everyone meets everyone.
    #[default]
    RoundRobin,
    /// The first player meets all others.
    Gauntlet,
}

/// A rating list and the results behind it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LadderReport {
    /// The players, best first.
    pub players: Vec<Rated>,
    /// Who scored what against whom.
    pub pairings: Vec<PairingResult>,
    /// All pairings are played.
    pub is_finished: bool,
}

/// What one pairing brought, from A's side.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairingResult {
    /// The first player's spec.
    pub a: String,
    /// The second player's spec.
    pub b: String,
    /// A's results.
    #[serde(flatten)]
    pub tally: Tally,
}

/// What happens in a ladder.
#[derive(Clone, Debug)]
pub enum LadderEvent {
    /// A pairing begins.
    Pairing {
        /// Its number, from 0.
        index: usize,
        /// How many there are.
        total: usize,
        /// The first player's spec.
        a: String,
        /// The second player's spec.
        b: String,
    },
    /// Something happened in its match.
    Match(Box<MatchEvent>),
}

/// Why a ladder cannot be played.
#[derive(Debug, thiserror::Error)]
pub enum LadderError {
    /// Too few players, or one twice.
    #[error("{0}")]
    Players(String),
    /// A match cannot be played.
    #[error(transparent)]
    Match(#[from] MatchError),
    /// An anchor is none of the players.
    #[error(transparent)]
    Rating(#[from] RatingError),
    /// The folder cannot be read.
    #[error("{}: {error}", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// What the system says.
        error: std::io::Error,
    },
}

/// Plays the pairings that are not played yet, and rates everyone, also those whom only the
/// folder knows. `run.store` names the folder; without it nothing is kept. Who a player is is
/// looked up once: as the folder knows it from the same words, or else now.
pub fn run_ladder(
    config: &LadderConfig,
    run: &MatchRun,
    registry: &Registry,
    observer: &mut dyn FnMut(&LadderEvent),
) -> Result<LadderReport, LadderError> {
    let roster = Roster::new(config, run, registry)?;
    let config = &roster.config;
    let pairings = pairings(config)?;
    // A mistake in a spec or an anchor should not show after a night of games.
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
    // The same list to the last digit, whatever was played when.
    results.sort_by(|a, b| (&a.a, &a.b).cmp(&(&b.a, &b.b)));
    let players = rate(config, &results)?;
    Ok(LadderReport { players, pairings: results, is_finished })
}

/// Who plays today, looked up once.
struct Roster {
    /// With the names that the players were found to have.
    config: LadderConfig,
    /// By name.
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
                ["a", "b"].iter().find_map(|role| Known::find(path, header, role, asked))
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

    /// Everyone who will be on the list.
    fn known(&self, run: &MatchRun) -> Result<Vec<String>, LadderError> {
        let mut names = self.config.players.clone();
        if let Some(folder) = &run.store {
            names.extend(self.stored(folder)?.into_iter().flat_map(|result| [result.a, result.b]));
        }
        Ok(names)
    }

    /// The pairings that a folder holds.
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

/// Fits one scale to all results.
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

/// All pairings, each with the name that comes first in the alphabet as A, so that the order of
/// the players on a command line changes nothing.
fn pairings(config: &LadderConfig) -> Result<Vec<(String, String)>, LadderError> {
    let players = &config.players;
    if players.len() < 2 {
        let text = format!("a ladder of {}: expected at least two players", players.len());
        return Err(LadderError::Players(text));
    }
    let mut pairings = Vec::new();
    for (first, a) in players.iter().enumerate() {
        for b in &players[first + 1..] {
            if a == b {
                return Err(LadderError::Players(format!("player '{a}' is there twice")));
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

/// The files of pairings in a folder.
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

/// A name for the file of a pairing: readable, and different for different players.
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
        // Those who do not play today stay on the list.
        let (third, played) = play(&config(&["random", "greedy"]), folder.path());
        assert_eq!((third.players.len(), played), (3, 0));
        assert_eq!(third.players, second.players);
        let other = LadderConfig { seed: 2, ..config(&["random", "greedy"]) };
        let run = MatchRun { store: Some(folder.path().to_owned()), ..MatchRun::default() };
        let error = run_ladder(&other, &run, &Registry::standard(), &mut |_| {}).unwrap_err();
        assert!(error.to_string().contains("seed 1, not 2"), "{error}");
    }

    #[test]
    fn a_ladder_knows_its_players_again_and_refuses_one_that_changed_under_its_name() {
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
        // A new step is no reason to begin anew, but it can be asked for.
        let again = play(2, "one", &["moving:x", "random"]).unwrap();
        assert_eq!(again, first);
        let both = play(2, "one", &["moving:x", "moving:x@2", "random"]).unwrap();
        assert_eq!(both.players.len(), 3);
        let error = play(2, "two", &["moving:x", "random"]).unwrap_err();
        assert!(error.contains("identity.a \"one\", not \"two\""), "{error}");
    }

    #[test]
    fn a_gauntlet_is_the_first_against_the_rest() {
        let config = LadderConfig { format: LadderFormat::Gauntlet, ..config(&["c", "a", "b"]) };
        let text = |(a, b): &(&str, &str)| ((*a).to_owned(), (*b).to_owned());
        let expected: Vec<_> = [("a", "c"), ("b", "c")].iter().map(text).collect();
        assert_eq!(pairings(&config).unwrap(), expected);
    }

    #[test]
    fn mistakes_are_named_before_any_game() {
        let message = |config: &LadderConfig| {
            let run = MatchRun::default();
            run_ladder(config, &run, &Registry::standard(), &mut |_| panic!("no game yet"))
                .unwrap_err()
                .to_string()
        };
        assert_eq!(message(&config(&["random"])), "a ladder of 1: expected at least two players");
        assert_eq!(message(&config(&["random", "random"])), "player 'random' is there twice");
        let nobody = config(&["greedy", "rollout"]);
        let expected = "anchor 'random' is none of the players: expected one of greedy, rollout";
        assert_eq!(message(&nobody), expected);
        assert!(message(&config(&["random", "gredy"])).contains("did you mean 'greedy'?"));
    }
}
