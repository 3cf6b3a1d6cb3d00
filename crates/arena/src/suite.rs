//! Test suites: does a player find the moves of an EPD file, and how soon?

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, mpsc};
use std::thread::Builder;
use std::time::{Duration, Instant};

use selfmate_chess::epd::Epd;
use selfmate_chess::{Game, Move, Position, Seed, notation};
use selfmate_search::Player;
use selfmate_search::player::{Limit, Score};
use serde::{Deserialize, Serialize};

use crate::limit::MoveLimit;
use crate::openings::OpeningError;
use crate::openings::file::read_suite;
use crate::registry::Registry;
use crate::resolved_player::ResolvedPlayer;
use crate::spec::SpecError;

/// What to solve, by whom.
#[derive(Clone, Debug)]
pub struct SuiteConfig {
    /// The EPD file, plain or zipped.
    pub file: PathBuf,
    /// The player's spec.
    pub player: String,
    /// How long it may think about each position.
    pub limit: MoveLimit,
    /// The root of its randomness.
    pub seed: u64,
    /// Positions at the same time.
    pub concurrency: usize,
    /// Ends the suite early when set.
    pub stop: Arc<AtomicBool>,
    /// Set when all files are read and the player begins.
    pub begun: Arc<AtomicBool>,
}

impl SuiteConfig {
    /// With a second for each position, one at a time.
    pub fn new(file: &Path, player: &str) -> SuiteConfig {
        SuiteConfig {
            file: file.to_owned(),
            player: player.to_owned(),
            limit: MoveLimit::movetime(1000),
            seed: 1,
            concurrency: 1,
            stop: Arc::new(AtomicBool::new(false)),
            begun: Arc::new(AtomicBool::new(false)),
        }
    }
}

/// How a player did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SuiteReport {
    /// The file.
    pub suite: String,
    /// The player's spec.
    pub player: String,
    /// Positions solved.
    pub solved: u64,
    /// Positions tried.
    pub total: u64,
    /// Points scored, in a suite that gives points.
    pub points: u64,
    /// The most points there were.
    pub max_points: u64,
    /// The mean time to solution of those solved, in milliseconds.
    pub mean_solution_ms: Option<f64>,
    /// Wall-clock seconds.
    pub seconds: f64,
    /// Each position, in the order of the file.
    pub positions: Vec<PositionResult>,
}

/// How a player did in one position.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PositionResult {
    /// Its number in the file, from 1.
    pub number: usize,
    /// Its name.
    pub id: Option<String>,
    /// The position.
    pub fen: String,
    /// What was asked for, such as `Nf3 or e4`, `not Qh5`, `mate in 3`.
    pub expected: String,
    /// What the player did.
    pub played: String,
    /// It is right.
    pub is_solved: bool,
    /// The points of the move.
    pub points: u32,
    /// The points of the best move.
    pub max_points: u32,
    /// From when on the player held on to a right move.
    pub solution_ms: Option<u64>,
    /// How long it thought.
    pub ms: u64,
    /// Simulations or nodes.
    pub nodes: Option<u64>,
}

/// Why a suite cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum SuiteError {
    /// The file cannot be read.
    #[error(transparent)]
    File(#[from] OpeningError),
    /// The player cannot be built.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// A position without a question.
    #[error("{}, position {number}: expected a best move (bm), moves to avoid (am), points (c0) or moves to mate (dm)", file.display())]
    NoQuestion {
        /// The file.
        file: PathBuf,
        /// The position's number, from 1.
        number: usize,
    },
    /// The system starts no thread.
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
    /// The player failed.
    #[error("position {number}: {reason}")]
    Player {
        /// The position's number, from 1.
        number: usize,
        /// What happened.
        reason: String,
    },
}

/// Runs a suite and calls `observer` after every position.
pub fn run_suite(
    config: &SuiteConfig,
    registry: &Registry,
    observer: &mut dyn FnMut(&PositionResult),
) -> Result<SuiteReport, SuiteError> {
    let started = Instant::now();
    let tasks: Vec<Task> = read_suite(&config.file)?
        .into_iter()
        .enumerate()
        .map(|(index, epd)| {
            Task::new(index + 1, epd).ok_or_else(|| SuiteError::NoQuestion {
                file: config.file.clone(),
                number: index + 1,
            })
        })
        .collect::<Result<_, _>>()?;
    let player = registry.resolve(&config.player)?;
    config.begun.store(true, Relaxed);
    let next = AtomicUsize::new(0);
    let (sender, receiver) = mpsc::channel();
    let mut positions: Vec<PositionResult> = Vec::new();
    let mut failure = None;
    std::thread::scope(|scope| {
        for thread in 0..config.concurrency.clamp(1, tasks.len().max(1)) {
            let (sender, next, tasks, player) = (sender.clone(), &next, &tasks, &player);
            let solve = move || {
                for result in solve_all(config, player, tasks, next) {
                    let failed = result.is_err();
                    if sender.send(result).is_err() || failed {
                        return;
                    }
                }
            };
            if let Err(error) = Builder::new().spawn_scoped(scope, solve) {
                // Those that run take what there is.
                if thread == 0 {
                    failure = Some(SuiteError::Thread(error));
                }
                break;
            }
        }
        drop(sender);
        for result in receiver {
            match result {
                Ok(position) => {
                    observer(&position);
                    positions.push(position);
                }
                Err(error) => {
                    failure.get_or_insert(error);
                    next.store(tasks.len(), Relaxed);
                }
            }
        }
    });
    if let Some(error) = failure {
        return Err(error);
    }
    positions.sort_by_key(|position| position.number);
    let times: Vec<f64> =
        positions.iter().filter_map(|p| p.solution_ms).map(|ms| ms as f64).collect();
    Ok(SuiteReport {
        suite: config.file.display().to_string(),
        player: player.name().to_owned(),
        solved: positions.iter().filter(|position| position.is_solved).count() as u64,
        total: positions.len() as u64,
        points: positions.iter().map(|position| u64::from(position.points)).sum(),
        max_points: positions.iter().map(|position| u64::from(position.max_points)).sum(),
        mean_solution_ms: (!times.is_empty())
            .then(|| times.iter().sum::<f64>() / times.len() as f64),
        seconds: started.elapsed().as_secs_f64(),
        positions,
    })
}

/// Takes positions as long as there are any.
fn solve_all<'a>(
    config: &'a SuiteConfig,
    player: &ResolvedPlayer,
    tasks: &'a [Task],
    next: &'a AtomicUsize,
) -> Box<dyn Iterator<Item = Result<PositionResult, SuiteError>> + 'a> {
    let mut player = match player.build(Seed::new(config.seed)) {
        Ok(player) => player,
        Err(error) => return Box::new(std::iter::once(Err(error.into()))),
    };
    let limit = Limit {
        nodes: config.limit.nodes,
        depth: config.limit.depth,
        movetime: config.limit.movetime_ms.map(Duration::from_millis),
        stop: Some(Arc::clone(&config.stop)),
        ..Limit::default()
    };
    Box::new(std::iter::from_fn(move || {
        if config.stop.load(Relaxed) {
            return None;
        }
        let task = tasks.get(next.fetch_add(1, Relaxed))?;
        let result = task.solve(player.as_mut(), &limit);
        // What was cut short says nothing about the player.
        (!config.stop.load(Relaxed)).then_some(result)
    }))
}

/// A position and what is right in it.
struct Task {
    number: usize,
    epd: Epd,
    points: Vec<(Move, u32)>,
}

impl Task {
    fn new(number: usize, epd: Epd) -> Option<Task> {
        let points = epd.points();
        let asks = !epd.best_moves().is_empty()
            || !epd.avoid_moves().is_empty()
            || !points.is_empty()
            || epd.dm().is_some();
        asks.then_some(Task { number, epd, points })
    }

    fn solve(&self, player: &mut dyn Player, limit: &Limit) -> Result<PositionResult, SuiteError> {
        let game = Game::from_position(self.epd.position().clone());
        player.new_game();
        let started = Instant::now();
        let mut right_since = None;
        let choice = player
            .choose_observed(&game, limit, &mut |thought| {
                if thought.rank > 1 {
                    return;
                }
                match thought.line.first() {
                    Some(&m) if self.is_right(m, Some(thought.score)) => {
                        right_since.get_or_insert(started.elapsed());
                    }
                    _ => right_since = None,
                }
            })
            .map_err(|error| SuiteError::Player {
                number: self.number,
                reason: error.to_string(),
            })?;
        let elapsed = started.elapsed();
        let is_solved = self.is_right(choice.played, choice.score);
        let points = |m: Move| {
            self.points.iter().find(|(other, _)| *other == m).map_or(0, |(_, points)| *points)
        };
        let milliseconds = |time: Duration| time.as_millis() as u64;
        Ok(PositionResult {
            number: self.number,
            id: self.epd.id().map(str::to_owned),
            fen: selfmate_chess::fen::to_fen(self.epd.position()),
            expected: self.expected(),
            played: notation::san(self.epd.position(), choice.played),
            is_solved,
            points: points(choice.played),
            max_points: self.points.iter().map(|(_, points)| *points).max().unwrap_or(0),
            solution_ms: is_solved.then(|| milliseconds(right_since.unwrap_or(elapsed))),
            ms: milliseconds(elapsed),
            nodes: choice.nodes,
        })
    }

    fn is_right(&self, m: Move, score: Option<Score>) -> bool {
        let (best, avoid) = (self.epd.best_moves(), self.epd.avoid_moves());
        if !best.is_empty() || !avoid.is_empty() {
            return (best.is_empty() || best.contains(&m)) && !avoid.contains(&m);
        }
        if let Some(moves) = self.epd.dm() {
            let mut after = self.epd.position().clone();
            after.play_unchecked(m);
            let seen = matches!(score, Some(Score::Mate(n)) if n > 0 && n as u32 <= moves);
            return after.is_checkmate() || seen;
        }
        let most = self.points.iter().map(|(_, points)| *points).max();
        self.points.iter().any(|(other, points)| *other == m && Some(*points) == most)
    }

    fn expected(&self) -> String {
        let san = |moves: &[Move]| {
            let texts: Vec<String> =
                moves.iter().map(|&m| notation::san(self.epd.position(), m)).collect();
            texts.join(" or ")
        };
        let (best, avoid) = (self.epd.best_moves(), self.epd.avoid_moves());
        match (best.is_empty(), avoid.is_empty(), self.epd.dm()) {
            (false, _, _) => san(best),
            (true, false, _) => format!("not {}", san(avoid)),
            (true, true, Some(moves)) => format!("mate in {moves}"),
            (true, true, None) => {
                let most = self.points.iter().max_by_key(|(_, points)| *points);
                most.map_or_else(String::new, |(m, _)| san(&[*m]))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUITE: &str = "6rk/6pp/8/6N1/8/8/8/K7 w - - bm Nf7#; id \"smothered\";\n\
        6k1/5ppp/8/8/8/8/5PPP/R5K1 w - - dm 1; id \"back rank\";\n\
        6k1/5ppp/8/3q4/8/8/5PPP/3R2K1 w - - am g3 h3; c0 \"Rxd5=10, Kf1=2\";\n\
        k7/8/8/8/8/8/8/K6R w - - bm Ka2; id \"not to be found\";\n";

    fn run(text: &str, player: &str) -> Result<SuiteReport, SuiteError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("suite.epd");
        std::fs::write(&path, text).unwrap();
        let limit = MoveLimit { depth: Some(4), ..MoveLimit::default() };
        let config = SuiteConfig { limit, concurrency: 2, ..SuiteConfig::new(&path, player) };
        run_suite(&config, &Registry::standard(), &mut |_| {})
    }

    #[test]
    fn solved_positions_points_and_times_are_counted() {
        for player in ["alphabeta", "stockfish"] {
            let report = run(SUITE, player).unwrap();
            assert_eq!((report.solved, report.total), (3, 4), "{report:?}");
            assert_eq!((report.points, report.max_points), (10, 10));
            let expected: Vec<&str> =
                report.positions.iter().map(|position| position.expected.as_str()).collect();
            assert_eq!(expected, ["Nf7#", "mate in 1", "not g3 or h3", "Ka2"]);
            for position in &report.positions {
                assert_eq!(position.solution_ms.is_some(), position.is_solved);
                assert!(position.solution_ms.unwrap_or(0) <= position.ms);
            }
        }
    }

    #[test]
    fn a_position_without_a_question_is_an_error() {
        let error = run("6rk/6pp/8/6N1/8/8/8/K7 w - - id \"x\";\n", "random").unwrap_err();
        assert!(error.to_string().contains("position 1: expected a best move (bm)"), "{error}");
        assert!(run(SUITE, "randm").unwrap_err().to_string().contains("did you mean"));
    }
}
