//! Matches for the page: queued, played one after another on all cores, kept in files that a match
//! goes on from. Every pair of players who were asked for meets.

mod hall;

use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, PoisonError};
use std::thread;

use selfmate_arena::adjudicate::Adjudication;
use selfmate_arena::rating::{Meeting, Rated, place_anchors, rating_list};
use selfmate_arena::stats::Tally;
use selfmate_arena::{GameRecord, GameSettings, MatchConfig, MatchReport, MoveLimit, Registry};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::error::ApiError;
use crate::player::{Effort, Players};
use crate::run::lock;
use hall::Hall;

/// Matches that may wait.
const MAX_WAITING: usize = 200;
/// The most games of one match.
const MAX_GAMES: u64 = 10_000;
/// The anchor of every list that it is on.
const ANCHOR: &str = "random";

/// The matches of this server.
pub struct Arena {
    hall: Arc<Hall>,
}

/// What to play.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MatchOrder {
    /// At least two; each meets each.
    pub players: Vec<String>,
    /// Games of each pair.
    pub games: u64,
    /// How long to think about a move; as the players say when it is left out.
    #[serde(default)]
    pub sims: Option<u64>,
    /// Milliseconds for each move.
    #[serde(default)]
    pub movetime_ms: Option<u64>,
    /// The seed of openings and players.
    #[serde(default)]
    pub seed: Option<u64>,
}

/// A match in short.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct MatchView {
    /// Its name.
    pub id: String,
    /// Where it stands.
    pub state: MatchState,
    /// What went wrong.
    pub error: Option<String>,
    /// Games it is to have.
    pub total: u64,
    /// How long players may think.
    pub limit: String,
    /// The score so far, as `selfmate match --json` gives it.
    #[schema(value_type = Object)]
    pub report: MatchReport,
}

/// Where a match stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum MatchState {
    Waiting,
    Playing,
    Stopped,
    Finished,
}

/// A rating list of players who met under the same conditions.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Ladder {
    /// How long players could think.
    pub limit: String,
    /// The matches behind it.
    pub matches: u64,
    /// Best first.
    #[schema(value_type = Vec<Object>)]
    pub players: Vec<Rated>,
}

impl Arena {
    pub fn new(runs: &Path, registry: Registry, cores: usize) -> Arena {
        Arena { hall: Arc::new(Hall::new(runs, registry, cores)) }
    }

    /// Queues a match for each pair; returns their names.
    pub fn start(&self, players: &Players, order: &MatchOrder) -> Result<Vec<String>, ApiError> {
        let configs = configs(players, order)?;
        // A player that cannot be built is told now, not by a match that never begins.
        for text in &order.players {
            players.build(&players.parse(text)?, 1)?;
        }
        let ids: Vec<String> =
            configs.iter().map(|config| self.hall.create(config)).collect::<Result<_, _>>()?;
        self.enqueue(&ids)?;
        Ok(ids)
    }

    /// Lets a match go on that was stopped.
    pub fn resume(&self, id: &str) -> Result<(), ApiError> {
        self.hall.config(id)?;
        self.enqueue(&[id.to_owned()])
    }

    fn enqueue(&self, ids: &[String]) -> Result<(), ApiError> {
        let mut queue = lock(&self.hall.queue);
        if queue.waiting.len() + ids.len() > MAX_WAITING {
            return Err(ApiError::Busy(format!("{MAX_WAITING} matches wait already")));
        }
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
            let hall = Arc::clone(&self.hall);
            thread::spawn(move || hall.serve());
        }
        self.hall.changed.notify_all();
        Ok(())
    }

    /// Stops a match; its finished games stay.
    pub fn stop(&self, id: &str) -> Result<(), ApiError> {
        self.hall.config(id)?;
        let mut queue = lock(&self.hall.queue);
        queue.waiting.retain(|waiting| waiting != id);
        if let Some(playing) = queue.playing.as_ref().filter(|playing| playing.id == id) {
            playing.stop.store(true, Relaxed);
        }
        Ok(())
    }

    /// Ends everything, for the end of the server.
    pub fn stop_all(&self) {
        let mut queue = lock(&self.hall.queue);
        queue.waiting.clear();
        if let Some(playing) = &queue.playing {
            playing.stop.store(true, Relaxed);
        }
        while queue.playing.is_some() {
            queue = self.hall.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// All matches, the newest first.
    pub fn list(&self) -> Vec<MatchView> {
        let mut ids = self.hall.ids();
        ids.reverse();
        ids.iter().filter_map(|id| self.hall.read(id).ok()).map(|(view, ..)| view).collect()
    }

    /// One match with its games by number.
    pub fn show(
        &self,
        id: &str,
    ) -> Result<(MatchView, MatchConfig, Vec<Option<GameRecord>>), ApiError> {
        self.hall.read(id)
    }

    /// A rating list for each way to play.
    pub fn ladders(&self) -> Vec<Ladder> {
        let mut groups: Vec<(GameSettings, Vec<MatchReport>)> = Vec::new();
        for id in self.hall.ids() {
            let Ok((view, config, _)) = self.hall.read(&id) else { continue };
            if view.report.games == 0 {
                continue;
            }
            match groups.iter_mut().find(|(settings, _)| *settings == config.settings) {
                Some((_, reports)) => reports.push(view.report),
                None => groups.push((config.settings, vec![view.report])),
            }
        }
        groups.iter().map(|(settings, reports)| ladder(settings, reports)).collect()
    }
}

/// A match for each pair of players.
fn configs(players: &Players, order: &MatchOrder) -> Result<Vec<MatchConfig>, ApiError> {
    let bad = |text: &str| Err(ApiError::Bad(text.to_owned()));
    let names: Vec<String> = order.players.iter().map(|text| text.trim().to_owned()).collect();
    if !(2..=16).contains(&names.len()) {
        return bad("players: expected 2 to 16");
    }
    if !(1..=MAX_GAMES).contains(&order.games) {
        return bad("games: expected 1 to 10000");
    }
    Effort { sims: order.sims, depth: None, movetime_ms: order.movetime_ms }.limit()?;
    let limit =
        MoveLimit { nodes: order.sims, movetime_ms: order.movetime_ms, ..MoveLimit::default() };
    // Players who cannot mate shuffle for ever; a game as long as any real one is a draw.
    let adjudication = Adjudication { max_plies: Some(400), ..Adjudication::default() };
    let mut configs = Vec::new();
    for (index, a) in names.iter().enumerate() {
        players.parse(a)?;
        for b in &names[index + 1..] {
            if a == b {
                return bad("players: the same one twice");
            }
            configs.push(MatchConfig {
                settings: GameSettings { limit, adjudication, ..GameSettings::default() },
                seed: order.seed.unwrap_or(1),
                ..MatchConfig::new(a, b, order.games)
            });
        }
    }
    Ok(configs)
}

/// Fits one scale to all results.
fn ladder(settings: &GameSettings, reports: &[MatchReport]) -> Ladder {
    let mut names: Vec<String> =
        reports.iter().flat_map(|report| [report.a.clone(), report.b.clone()]).collect();
    names.sort_unstable();
    names.dedup();
    let place = |name: &String| names.iter().position(|known| known == name).unwrap_or_default();
    let meeting = |report: &MatchReport| Meeting {
        a: place(&report.a),
        b: place(&report.b),
        tally: Tally::new(report.wins, report.draws, report.losses),
    };
    let meetings: Vec<Meeting> = reports.iter().map(meeting).collect();
    let anchor = names.iter().any(|name| name == ANCHOR).then(|| (ANCHOR.to_owned(), 0.0));
    let anchor: Vec<(String, f64)> = anchor.into_iter().collect();
    let anchors = place_anchors(&names, &anchor).unwrap_or_else(|_| vec![None; names.len()]);
    Ladder {
        limit: settings.limit.to_string(),
        matches: reports.len() as u64,
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
        let mut queue = lock(&arena.hall.queue);
        while queue.is_served {
            queue = arena.hall.changed.wait(queue).unwrap();
        }
    }

    #[test]
    fn everyone_meets_everyone_and_is_rated() {
        let folder = tempfile::tempdir().unwrap();
        let players = Players::new(folder.path());
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
        let (_, _, games) = arena.show("000001").unwrap();
        assert!(games.iter().all(Option::is_some));
    }

    #[test]
    fn orders_and_names_that_make_no_sense_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let players = Players::new(folder.path());
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
