//! Games by a teacher, with what it thought of every position.
//!
//! A teacher is any player: Stockfish with so many nodes, our own alpha-beta, a run. It plays both
//! sides from random starts, at times a move that is not its best, so that it also shows what to do
//! in positions that only others would reach.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use selfmate_arena::{MatchError, PlayerSpec, Registry};
use selfmate_chess::{MoveList, Outcome, Reason, Rng, Seed};
use selfmate_run::{GameRecord, PositionRecord};
use selfmate_search::player::{Limit, Score, SearchInfo};
use selfmate_search::{Choice, Player, Wdl};
use selfmate_selfplay::start_fen;
use selfmate_train::RoundContext;
use selfmate_train::TrainingError;
use serde::{Deserialize, Serialize};

use crate::random_plies::random_plies;

/// Who teaches, and how.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TeacherConfig {
    /// The players, one for each game in turn: several levels make several kinds of games.
    pub players: Vec<String>,
    /// Best lines that it is asked for; more than one make soft targets.
    pub lines: usize,
    /// How many centipawns make a line e times less likely.
    pub temperature: f64,
    /// Random plies before each game, at most.
    pub opening_plies: u32,
    /// The share of moves that are drawn from the lines by their likelihood instead of the best.
    pub loose_share: f64,
    /// A game is cut off after so many plies.
    pub max_plies: u32,
}

/// Plays the games with these numbers on all threads; `None` when there was no time for all.
pub fn play(
    config: &TeacherConfig,
    numbers: std::ops::Range<u64>,
    context: &RoundContext<'_>,
) -> Result<Option<Vec<GameRecord>>, TrainingError> {
    let registry = Registry::standard();
    let specs: Result<Vec<PlayerSpec>, _> =
        config.players.iter().map(|text| registry.parse(text)).collect();
    let specs = specs.map_err(MatchError::from)?;
    let seed = context.seed.derive("teacher");
    let cancel = context.cancel;
    let is_over = || cancel.is_cancelled();
    let next = AtomicU64::new(numbers.start);
    let (games, failure) = (Mutex::new(Vec::new()), Mutex::new(None));
    std::thread::scope(|scope| {
        for _ in 0..context.threads {
            scope.spawn(|| {
                // Engines are processes: each thread starts those it needs once.
                let mut players: Vec<Option<Box<dyn Player>>> =
                    specs.iter().map(|_| None).collect();
                while !is_over() {
                    let number = next.fetch_add(1, Relaxed);
                    if number >= numbers.end {
                        return;
                    }
                    let kind = number as usize % specs.len();
                    let player = match &mut players[kind] {
                        Some(player) => player,
                        empty => match registry.build(&specs[kind], seed) {
                            Ok(player) => empty.insert(player),
                            Err(error) => {
                                let error = TrainingError::from(MatchError::from(error));
                                lock(&failure).get_or_insert(error);
                                return;
                            }
                        },
                    };
                    match game(config, number, seed.index(number), &mut **player, &is_over) {
                        Ok(Some(record)) => lock(&games).push(record),
                        Ok(None) => return,
                        Err(error) => {
                            lock(&failure).get_or_insert(error);
                            return;
                        }
                    }
                }
            });
        }
    });
    if let Some(error) = failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(error);
    }
    let mut games = games.into_inner().unwrap_or_else(PoisonError::into_inner);
    games.sort_by_key(|game: &GameRecord| game.number);
    let is_whole = games.len() as u64 == numbers.end - numbers.start;
    Ok(is_whole.then_some(games))
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One game; `None` when there was no time for all of it.
fn game(
    config: &TeacherConfig,
    number: u64,
    seed: Seed,
    player: &mut dyn Player,
    is_over: &dyn Fn() -> bool,
) -> Result<Option<GameRecord>, TrainingError> {
    let mut rng = seed.rng();
    let mut game = random_plies(config.opening_plies, &mut rng);
    let first = game.ply();
    player.new_game();
    let mut positions = Vec::new();
    let outcome = loop {
        let legal = game.legal_moves();
        if let Some(outcome) = game.outcome_given(&legal) {
            break outcome;
        }
        if game.ply() - first >= config.max_plies as usize {
            break Outcome { winner: None, reason: Reason::Truncated };
        }
        if is_over() {
            return Ok(None);
        }
        let mut thoughts: Vec<SearchInfo> = Vec::new();
        let limit = Limit { lines: config.lines, ..Limit::default() };
        let choice = player.choose_observed(&game, &limit, &mut |thought| {
            thoughts.retain(|other| other.rank != thought.rank);
            thoughts.push(thought.clone());
        });
        let choice = choice.map_err(|error| TrainingError::Teacher(error.to_string()))?;
        let policy = policy(config, &legal, &choice, &thoughts);
        let wdl = wdl(&choice);
        positions.push(PositionRecord {
            ply: game.ply() as u16,
            value: wdl.value(),
            draw: wdl.draw,
            policy: policy.clone(),
        });
        let is_loose = rng.chance(config.loose_share);
        let played = if is_loose { draw(&legal, &policy, &mut rng) } else { choice.played };
        game.play(played).map_err(|error| TrainingError::Teacher(error.to_string()))?;
    };
    Ok(Some(GameRecord {
        number,
        network: 0,
        start: start_fen(&game),
        moves: game.moves().collect(),
        outcome,
        positions,
    }))
}

/// The likelihood of each legal move: all on the choice, or shared among the lines by their scores.
fn policy(
    config: &TeacherConfig,
    legal: &MoveList,
    choice: &Choice,
    thoughts: &[SearchInfo],
) -> Vec<f32> {
    let mut policy = vec![0.0; legal.len()];
    let place = |m| legal.iter().position(|&other| other == m);
    let lines: Vec<(usize, f64)> = thoughts
        .iter()
        .filter_map(|thought| Some((place(*thought.line.first()?)?, centipawns(thought.score))))
        .collect();
    let best = lines.iter().map(|(_, score)| *score).fold(f64::NEG_INFINITY, f64::max);
    if config.lines < 2 || lines.len() < 2 {
        if let Some(place) = place(choice.played) {
            policy[place] = 1.0;
        }
        return policy;
    }
    let weight = |score: f64| ((score - best) / config.temperature.max(1e-9)).exp();
    let total: f64 = lines.iter().map(|(_, score)| weight(*score)).sum();
    for (place, score) in lines {
        policy[place] += (weight(score) / total) as f32;
    }
    policy
}

fn draw(legal: &MoveList, policy: &[f32], rng: &mut Rng) -> selfmate_chess::Move {
    let mut left = rng.unit() as f32;
    for (m, share) in legal.iter().zip(policy) {
        left -= share;
        if left < 0.0 {
            return *m;
        }
    }
    // Rounding, or shares that do not quite add up.
    let best = policy.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1));
    legal[best.map_or(0, |(place, _)| place)]
}

/// Mates are beyond all centipawns, quick ones most.
fn centipawns(score: Score) -> f64 {
    match score {
        Score::Centipawns(value) => f64::from(value.clamp(-5000, 5000)),
        Score::Mate(moves) if moves > 0 => 6000.0 - f64::from(moves.min(500)),
        Score::Mate(moves) => -6000.0 - f64::from(moves.max(-500)),
    }
}

/// What the teacher thinks of its chances.
fn wdl(choice: &Choice) -> Wdl {
    match (choice.wdl, choice.score) {
        (Some(wdl), _) => wdl,
        (None, Some(score)) => {
            let expected = 1.0 / (1.0 + 10f64.powf(-centipawns(score) / 400.0));
            let value = (2.0 * expected - 1.0) as f32;
            Wdl::new(value, 0.5 * (1.0 - value.abs()))
        }
        (None, None) => Wdl::EVEN,
    }
}

#[cfg(test)]
mod tests {
    use selfmate_chess::{Game, notation};

    use super::*;

    fn config(lines: usize) -> TeacherConfig {
        TeacherConfig {
            players: vec!["alphabeta:depth=2".to_owned()],
            lines,
            temperature: 50.0,
            opening_plies: 4,
            loose_share: 0.2,
            max_plies: 30,
        }
    }

    fn play_one(lines: usize, number: u64) -> GameRecord {
        let registry = Registry::standard();
        let spec = registry.parse("alphabeta:depth=2").unwrap();
        let mut player = registry.build(&spec, Seed::new(1)).unwrap();
        let played = game(&config(lines), number, Seed::new(number), &mut *player, &|| false);
        played.unwrap().unwrap()
    }

    #[test]
    fn a_taught_game_can_be_stored_and_is_the_same_again() {
        for number in 0..4 {
            let record = play_one(3, number);
            assert_eq!(record, play_one(3, number));
            let stored = GameRecord::decode(&record.encode().unwrap()).unwrap();
            assert_eq!(stored, record.clone().rounded());
            for judged in &record.positions {
                let sum: f32 = judged.policy.iter().sum();
                assert!((sum - 1.0).abs() < 1e-4, "{sum}");
            }
        }
        let soft = play_one(3, 0).positions;
        assert!(soft.iter().any(|judged| judged.policy.iter().all(|p| *p < 0.95)));
        let hard = play_one(1, 0).positions;
        assert!(hard.iter().all(|judged| judged.policy.iter().filter(|p| **p > 0.0).count() == 1));
    }

    #[test]
    fn a_better_line_is_more_likely() {
        let game = Game::new();
        let legal = game.legal_moves();
        let m = |san: &str| notation::parse_san(game.position(), san).unwrap();
        let thought = |rank, san: &str, centipawns| SearchInfo {
            rank,
            line: vec![m(san)],
            score: Score::Centipawns(centipawns),
            wdl: None,
            depth: 1,
            deepest: 1,
            nodes: 1,
            elapsed: std::time::Duration::ZERO,
            permille_full: 0,
            tablebase_hits: 0,
            visits: None,
            prior: None,
        };
        let thoughts = [thought(1, "e4", 40), thought(2, "d4", 40), thought(3, "a4", -10)];
        let policy = policy(&config(3), &legal, &Choice::bare(m("e4")), &thoughts);
        let share = |san: &str| policy[legal.iter().position(|&other| other == m(san)).unwrap()];
        assert!((share("e4") - share("d4")).abs() < 1e-6);
        // Fifty centipawns worse: e times less likely.
        assert!((share("e4") / share("a4") - std::f32::consts::E).abs() < 1e-3);
        assert!(centipawns(Score::Mate(1)) > centipawns(Score::Mate(3)));
        assert!(centipawns(Score::Mate(-3)) > centipawns(Score::Mate(-1)));
    }
}
