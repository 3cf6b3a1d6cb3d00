//! Games of a teacher with its policy and value for every position.
//!
//! The teacher can be any player: Stockfish with a node limit, alpha-beta, a run. It plays both
//! sides from random starts. Some moves are drawn from its policy instead of being the best, so that
//! the games also show how to play positions that good players avoid.

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

/// The teachers and how their games are played.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TeacherConfig {
    /// The players, in turn from game to game. Different strengths give more varied games.
    pub players: Vec<String>,
    /// Lines per search (MultiPV); more than one makes soft policy targets.
    pub lines: usize,
    /// A line this many centipawns worse is e times less likely.
    pub temperature: f64,
    /// The most random plies before each game.
    pub opening_plies: u32,
    /// The share of moves that are drawn from the policy instead of being the best.
    pub loose_share: f64,
    /// A game is truncated after this many plies.
    pub max_plies: u32,
}

/// Plays the games with these numbers on all threads; `None` when there was no time.
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
                // Engines are processes, so each thread starts them once.
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
    let is_complete = games.len() as u64 == numbers.end - numbers.start;
    Ok(is_complete.then_some(games))
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One game; `None` when there was no time.
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
        let mut infos: Vec<SearchInfo> = Vec::new();
        let limit = Limit { lines: config.lines, ..Limit::default() };
        let choice = player.choose_observed(&game, &limit, &mut |info| {
            infos.retain(|other| other.rank != info.rank);
            infos.push(info.clone());
        });
        let choice = choice.map_err(|error| TrainingError::Teacher(error.to_string()))?;
        let policy = policy(config, &legal, &choice, &infos);
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

/// The probability of each legal move: 1 for the choice, or a softmax of the scores of the lines.
fn policy(
    config: &TeacherConfig,
    legal: &MoveList,
    choice: &Choice,
    infos: &[SearchInfo],
) -> Vec<f32> {
    let mut policy = vec![0.0; legal.len()];
    let index = |m| legal.iter().position(|&other| other == m);
    let lines: Vec<(usize, f64)> = infos
        .iter()
        .filter_map(|info| Some((index(*info.line.first()?)?, centipawns(info.score))))
        .collect();
    let best = lines.iter().map(|(_, score)| *score).fold(f64::NEG_INFINITY, f64::max);
    if config.lines < 2 || lines.len() < 2 {
        if let Some(best) = index(choice.played) {
            policy[best] = 1.0;
        }
        return policy;
    }
    let weight = |score: f64| libm::exp((score - best) / config.temperature.max(1e-9));
    let total: f64 = lines.iter().map(|(_, score)| weight(*score)).sum();
    for (index, score) in lines {
        policy[index] += (weight(score) / total) as f32;
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
    // Reached when rounding leaves the sum slightly below 1.
    let best = policy.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1));
    legal[best.map_or(0, |(index, _)| index)]
}

/// Mate scores lie beyond all centipawn scores; faster mates count more.
fn centipawns(score: Score) -> f64 {
    match score {
        Score::Centipawns(value) => f64::from(value.clamp(-5000, 5000)),
        Score::Mate(moves) if moves > 0 => 6000.0 - f64::from(moves.min(500)),
        Score::Mate(moves) => -6000.0 - f64::from(moves.max(-500)),
    }
}

/// The teacher's value, estimated from its score if it reports no probabilities.
fn wdl(choice: &Choice) -> Wdl {
    match (choice.wdl, choice.score) {
        (Some(wdl), _) => wdl,
        (None, Some(score)) => {
            let expected = 1.0 / (1.0 + libm::exp10(-centipawns(score) / 400.0));
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
    fn a_teachers_game_is_deterministic_and_can_be_stored() {
        for number in 0..4 {
            let record = play_one(3, number);
            assert_eq!(record, play_one(3, number));
            let stored = GameRecord::decode(&record.encode().unwrap()).unwrap();
            assert_eq!(stored, record.clone().rounded());
            for position in &record.positions {
                let sum: f32 = position.policy.iter().sum();
                assert!((sum - 1.0).abs() < 1e-4, "{sum}");
            }
        }
        let soft = play_one(3, 0).positions;
        assert!(soft.iter().any(|position| position.policy.iter().all(|p| *p < 0.95)));
        let hard = play_one(1, 0).positions;
        assert!(
            hard.iter().all(|position| position.policy.iter().filter(|p| **p > 0.0).count() == 1)
        );
    }

    #[test]
    fn better_lines_have_higher_probabilities() {
        let game = Game::new();
        let legal = game.legal_moves();
        let m = |san: &str| notation::parse_san(game.position(), san).unwrap();
        let info = |rank, san: &str, centipawns| SearchInfo {
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
        let infos = [info(1, "e4", 40), info(2, "d4", 40), info(3, "a4", -10)];
        let policy = policy(&config(3), &legal, &Choice::bare(m("e4")), &infos);
        let share = |san: &str| policy[legal.iter().position(|&other| other == m(san)).unwrap()];
        assert!((share("e4") - share("d4")).abs() < 1e-6);
        // Fifty centipawns worse is e times less likely.
        assert!((share("e4") / share("a4") - std::f32::consts::E).abs() < 1e-3);
        assert!(centipawns(Score::Mate(1)) > centipawns(Score::Mate(3)));
        assert!(centipawns(Score::Mate(-3)) > centipawns(Score::Mate(-1)));
    }
}
