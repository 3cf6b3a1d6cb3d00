//! Matches for the page: queued, played one after another on all cores, stored in files and
//! resumable. All given players play each other.

mod match_queue;

use std::collections::HashSet;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, PoisonError};
use std::thread;

use selfmate_arena::adjudicate::Adjudication;
use selfmate_arena::rating::{Meeting, Rated, place_anchors, rating_list};
use selfmate_arena::stats::Tally;
use selfmate_arena::{GameSettings, MatchConfig, MatchGame, MatchLimit, MatchReport, Registry};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::error::{ApiError, int64};
use crate::player::{LimitRequest, Players};
use crate::run::lock;
use match_queue::{MatchQueue, PendingMatches, Stored};

/// The maximum number of waiting matches.
const MAX_WAITING: usize = 200;
/// The maximum number of games of one match.
const MAX_GAMES: u64 = 10_000;
/// The anchor of every rating list that contains it.
const ANCHOR: &str = "random";

pub struct Arena {
    match_queue: Arc<MatchQueue>,
}

/// The matches to play.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MatchOrder {
    /// At least two players; every pair plays a match.
    #[schema(min_items = 2, max_items = 16)]
    pub players: Vec<String>,
    /// Games per pair.
    #[schema(minimum = 1, maximum = 10_000)]
    pub games: u64,
    /// Simulations or nodes per move; the players' own limits by default.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 1_000_000)]
    pub sims: Option<u64>,
    /// Milliseconds per move.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 60_000)]
    pub movetime_ms: Option<u64>,
    /// The seed of openings and players; the number of the match by default, so that repeating a
    /// match gives other games.
    #[serde(default, deserialize_with = "int64")]
    pub seed: Option<u64>,
}

/// Summary of a match.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct MatchView {
    /// Number of the match.
    pub id: String,
    /// State of the match.
    pub state: MatchState,
    /// Why it failed.
    pub error: Option<String>,
    /// Total number of games.
    pub total: u64,
    /// Search limit per move.
    pub limit: String,
    /// The result so far, as in `selfmate match --json`.
    #[schema(value_type = Object)]
    pub report: MatchReport,
}

/// A game of a match in a list.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct MatchGameRow {
    /// Number of the game; 2n and 2n + 1 share an opening.
    pub number: u64,
    /// True when A plays White.
    pub a_is_white: bool,
    /// A's points: 1, ½ or 0.
    pub a_points: f64,
    /// Why the game ended.
    pub reason: String,
    /// Plies of both sides.
    pub plies: usize,
    /// The name of the opening, if it has one.
    pub opening: Option<String>,
}

/// State of a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum MatchState {
    Waiting,
    Playing,
    Stopped,
    Finished,
}

/// A rating list of players that played under the same settings.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Ladder {
    /// Search limit per move.
    pub limit: String,
    /// Number of matches.
    pub matches: u64,
    /// Games that were skipped because they repeat another one move for move.
    pub repeated: u64,
    /// Best first.
    #[schema(value_type = Vec<Object>)]
    pub players: Vec<Rated>,
}

impl Arena {
    pub fn new(runs: &Path, registry: Registry, cores: usize) -> Arena {
        Arena { match_queue: Arc::new(MatchQueue::new(runs, registry, cores)) }
    }

    /// Queues a match for each pair and returns their ids.
    pub fn start(&self, players: &Players, order: &MatchOrder) -> Result<Vec<String>, ApiError> {
        let configs = configs(players, order)?;
        has_room(&lock(&self.match_queue.queue), configs.len())?;
        // Report players that cannot be built now, not when their match starts.
        for text in &order.players {
            players.build(&players.parse(text)?, 1)?;
        }
        let mut queue = lock(&self.match_queue.queue);
        // The queue may have grown meanwhile; nothing is stored that cannot wait.
        has_room(&queue, configs.len())?;
        let create = |config: &MatchConfig| self.match_queue.create(config, order.seed);
        let ids: Vec<String> = configs.iter().map(create).collect::<Result<_, _>>()?;
        self.push(&mut queue, &ids);
        Ok(ids)
    }

    /// Resumes a stopped match.
    pub fn resume(&self, id: &str) -> Result<(), ApiError> {
        self.match_queue.config(id)?;
        let mut queue = lock(&self.match_queue.queue);
        has_room(&queue, 1)?;
        self.push(&mut queue, &[id.to_owned()]);
        Ok(())
    }

    fn push(&self, queue: &mut PendingMatches, ids: &[String]) {
        for id in ids {
            let is_there = queue.waiting.contains(id)
                || queue.playing.as_ref().is_some_and(|playing| playing.id == *id);
            if !is_there {
                queue.waiting.push(id.clone());
            }
            queue.failed.retain(|(failed, _)| failed != id);
        }
        if !queue.is_served {
            queue.is_served = true;
            let match_queue = Arc::clone(&self.match_queue);
            thread::spawn(move || match_queue.serve());
        }
        self.match_queue.changed.notify_all();
    }

    /// Stops a match; finished games are kept.
    pub fn stop(&self, id: &str) -> Result<(), ApiError> {
        self.match_queue.config(id)?;
        let mut queue = lock(&self.match_queue.queue);
        queue.waiting.retain(|waiting| waiting != id);
        if let Some(playing) = queue.playing.as_ref().filter(|playing| playing.id == id) {
            playing.stop.store(true, Relaxed);
        }
        Ok(())
    }

    /// Stops all matches when the server ends.
    pub fn stop_all(&self) {
        let mut queue = lock(&self.match_queue.queue);
        queue.waiting.clear();
        if let Some(playing) = &queue.playing {
            playing.stop.store(true, Relaxed);
        }
        while queue.playing.is_some() {
            queue = self.match_queue.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// All matches, the newest first.
    pub fn list(&self) -> Vec<MatchView> {
        let mut ids = self.match_queue.ids();
        self.match_queue.forget_all_but(&ids);
        ids.reverse();
        ids.iter().filter_map(|id| self.match_queue.look(id).ok()).map(|(view, _)| view).collect()
    }

    pub fn show(&self, id: &str) -> Result<(MatchView, Vec<MatchGameRow>), ApiError> {
        self.match_queue.look(id).map(|(view, stored)| (view, stored.rows.clone()))
    }

    pub fn games(&self, id: &str) -> Result<(MatchView, Vec<Option<MatchGame>>), ApiError> {
        Ok((self.match_queue.look(id)?.0, self.match_queue.games(id)?))
    }

    /// One rating list for each set of match settings.
    pub fn ladders(&self) -> Vec<Ladder> {
        let mut groups: Vec<(GameSettings, Vec<Arc<Stored>>)> = Vec::new();
        for id in self.match_queue.ids() {
            let Ok((_, stored)) = self.match_queue.look(&id) else { continue };
            match groups.iter_mut().find(|(settings, _)| *settings == stored.settings) {
                Some((_, matches)) => matches.push(stored),
                None => groups.push((stored.settings.clone(), vec![stored])),
            }
        }
        let ladders = groups.iter().map(|(settings, matches)| ladder(settings, matches));
        ladders.filter(|ladder| !ladder.players.is_empty()).collect()
    }
}

/// Checks that `more` matches may be queued.
fn has_room(queue: &PendingMatches, more: usize) -> Result<(), ApiError> {
    if queue.waiting.len() + more > MAX_WAITING {
        return Err(ApiError::Busy(format!(
            "{MAX_WAITING} matches are already waiting: try again later"
        )));
    }
    Ok(())
}

fn configs(players: &Players, order: &MatchOrder) -> Result<Vec<MatchConfig>, ApiError> {
    let malformed = |text: &str| Err(ApiError::Malformed(text.to_owned()));
    let names: Vec<String> = order.players.iter().map(|text| text.trim().to_owned()).collect();
    if !(2..=16).contains(&names.len()) {
        return malformed("players: expected 2 to 16");
    }
    if !(1..=MAX_GAMES).contains(&order.games) {
        return malformed("games: expected 1 to 10000");
    }
    LimitRequest { sims: order.sims, depth: None, movetime_ms: order.movetime_ms }.limit()?;
    let limit =
        MatchLimit { nodes: order.sims, movetime_ms: order.movetime_ms, ..MatchLimit::default() };
    // Weak players shuffle pieces forever; a game this long is a draw.
    let adjudication = Adjudication { max_plies: Some(400), ..Adjudication::default() };
    let mut configs = Vec::new();
    for (index, a) in names.iter().enumerate() {
        players.parse(a)?;
        for b in &names[index + 1..] {
            if a == b {
                return Err(ApiError::Bad("players: the same player is listed twice".to_owned()));
            }
            configs.push(MatchConfig {
                settings: GameSettings { limit, adjudication, ..GameSettings::default() },
                ..MatchConfig::new(a, b, order.games)
            });
        }
    }
    Ok(configs)
}

/// Rates all players on one scale. A game that repeats another one move for move counts once.
fn ladder(settings: &GameSettings, matches: &[Arc<Stored>]) -> Ladder {
    let mut seen = HashSet::new();
    let mut repeated = 0;
    let mut results: Vec<(&str, &str, Tally)> = Vec::new();
    for stored in matches {
        let mut tally = Tally::default();
        for game in &stored.games {
            if seen.insert(game.fingerprint) {
                tally.add(game.a_points);
            } else {
                repeated += 1;
            }
        }
        if tally.games() > 0 {
            results.push((&stored.report.a, &stored.report.b, tally));
        }
    }
    let mut names: Vec<String> =
        results.iter().flat_map(|(a, b, _)| [(*a).to_owned(), (*b).to_owned()]).collect();
    names.sort_unstable();
    names.dedup();
    let place = |name: &str| names.iter().position(|known| known == name).unwrap_or_default();
    let meeting =
        |(a, b, tally): &(&str, &str, Tally)| Meeting { a: place(a), b: place(b), tally: *tally };
    let meetings: Vec<Meeting> = results.iter().map(meeting).collect();
    let anchor = names.iter().any(|name| name == ANCHOR).then(|| (ANCHOR.to_owned(), 0.0));
    let anchor: Vec<(String, f64)> = anchor.into_iter().collect();
    let anchors = place_anchors(&names, &anchor).unwrap_or_else(|_| vec![None; names.len()]);
    Ladder {
        limit: settings.limit.to_string(),
        matches: results.len() as u64,
        repeated,
        players: rating_list(&names, &meetings, &anchors),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(players: &[&str], games: u64) -> MatchOrder {
        MatchOrder {
            players: players.iter().map(|&player| player.to_owned()).collect(),
            games,
            sims: None,
            movetime_ms: None,
            seed: None,
        }
    }

    fn wait(arena: &Arena) {
        let mut queue = lock(&arena.match_queue.queue);
        while queue.is_served {
            queue = arena.match_queue.changed.wait(queue).unwrap();
        }
    }

    #[test]
    fn all_players_play_each_other_and_are_rated() {
        let folder = tempfile::tempdir().unwrap();
        let players = Players::new(folder.path(), 2);
        let arena = Arena::new(folder.path(), players.registry().clone(), 2);
        let ids =
            arena.start(&players, &order(&["random", "greedy", "alphabeta:depth=1"], 4)).unwrap();
        assert_eq!(ids, ["000001", "000002", "000003"]);
        wait(&arena);
        let matches = arena.list();
        assert_eq!(matches[0].id, "000003");
        assert!(matches.iter().all(|m| m.state == MatchState::Finished && m.report.games == 4));
        let ladders = arena.ladders();
        assert_eq!((ladders.len(), ladders[0].players.len(), ladders[0].matches), (1, 3, 3));
        let random = ladders[0].players.iter().find(|player| player.name == "random").unwrap();
        assert!(random.is_anchor && random.elo == 0.0);
        let (_, games) = arena.games("000001").unwrap();
        assert!(games.iter().all(Option::is_some));
        assert_eq!(arena.show("000001").unwrap().1.len(), 4);
    }

    #[test]
    fn repeated_games_count_once() {
        let folder = tempfile::tempdir().unwrap();
        let players = Players::new(folder.path(), 2);
        let arena = Arena::new(folder.path(), players.registry().clone(), 2);
        let once = MatchOrder { seed: Some(7), ..order(&["random", "greedy"], 4) };
        let ladder = |arena: &Arena| {
            let ladder = arena.ladders().remove(0);
            let greedy = ladder.players.iter().find(|player| player.name == "greedy").unwrap();
            (greedy.games, greedy.elo_error, ladder.repeated)
        };
        arena.start(&players, &once).unwrap();
        wait(&arena);
        let (games, error, repeated) = ladder(&arena);
        assert_eq!((games, repeated), (4, 0));
        arena.start(&players, &once).unwrap();
        wait(&arena);
        assert_eq!(ladder(&arena), (4, error, 4));
        // Without a seed each match has its own and plays other games.
        let again = order(&["random", "greedy"], 4);
        arena.start(&players, &again).unwrap();
        wait(&arena);
        assert_eq!(ladder(&arena).0, 8);
        assert_eq!(arena.match_queue.config("000003").unwrap().seed, 3);
    }

    #[test]
    fn a_finished_match_is_read_once() {
        let folder = tempfile::tempdir().unwrap();
        let players = Players::new(folder.path(), 2);
        let arena = Arena::new(folder.path(), players.registry().clone(), 2);
        let ids = arena.start(&players, &order(&["random", "greedy"], 2)).unwrap();
        wait(&arena);
        let look = || arena.match_queue.look(&ids[0]).unwrap().1;
        let first = look();
        assert!(Arc::ptr_eq(&first, &look()));
        arena.ladders();
        assert!(Arc::ptr_eq(&first, &look()));
        // A changed file is read again.
        let store = folder.path().join(".matches/000001.jsonl");
        let text = std::fs::read_to_string(&store).unwrap();
        std::fs::write(&store, text.lines().next().unwrap().to_owned() + "\n").unwrap();
        assert_eq!(look().rows.len(), 0);
    }

    #[test]
    fn a_match_that_cannot_be_queued_is_not_stored() {
        let folder = tempfile::tempdir().unwrap();
        let players = Players::new(folder.path(), 2);
        let arena = Arena::new(folder.path(), players.registry().clone(), 1);
        // No thread serves the queue, so all matches wait.
        lock(&arena.match_queue.queue).is_served = true;
        lock(&arena.match_queue.queue).waiting = vec!["000009".to_owned(); MAX_WAITING - 2];
        let three = order(&["random", "greedy", "material:sims=2"], 2);
        assert!(matches!(arena.start(&players, &three), Err(ApiError::Busy(_))));
        assert!(arena.match_queue.ids().is_empty());
        assert_eq!(arena.start(&players, &order(&["random", "greedy"], 2)).unwrap().len(), 1);
    }

    #[test]
    fn invalid_orders_and_ids_are_rejected() {
        let folder = tempfile::tempdir().unwrap();
        let players = Players::new(folder.path(), 2);
        let arena = Arena::new(folder.path(), players.registry().clone(), 1);
        for wrong in [
            order(&["random"], 2),
            order(&["random", "random"], 2),
            order(&["random", "uci:sh"], 2),
            order(&["random", "run:none"], 2),
            order(&["random", "greedy"], 0),
        ] {
            assert!(arena.start(&players, &wrong).is_err(), "{wrong:?}");
        }
        assert!(arena.list().is_empty());
        for id in ["", "../000001", "000001/..", "1", "00000a"] {
            assert!(arena.show(id).is_err(), "{id}");
        }
    }
}
