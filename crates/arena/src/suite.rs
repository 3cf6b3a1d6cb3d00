//! Test suites: whether a player finds the expected moves of an EPD file, and how fast.

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

use crate::limit::MatchLimit;
use crate::openings::OpeningError;
use crate::openings::file::read_suite;
use crate::registry::Registry;
use crate::resolved_player::ResolvedPlayer;
use crate::spec::SpecError;

#[derive(Clone, Debug)]
pub struct SuiteConfig {
    /// The EPD file, plain or zipped.
    pub file: PathBuf,
    pub player: String,
    pub limit: MatchLimit,
    pub seed: u64,
    /// Positions solved at the same time.
    pub concurrency: usize,
    /// Ends the suite early when set.
    pub stop: Arc<AtomicBool>,
    /// Set once all files are read and the player starts.
    pub begun: Arc<AtomicBool>,
}

impl SuiteConfig {
    /// The defaults: one second per position, one position at a time.
    pub fn new(file: &Path, player: &str) -> SuiteConfig {
        SuiteConfig {
            file: file.to_owned(),
            player: player.to_owned(),
            limit: MatchLimit::movetime(1000),
            seed: 1,
            concurrency: 1,
            stop: Arc::new(AtomicBool::new(false)),
            begun: Arc::new(AtomicBool::new(false)),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SuiteReport {
    pub suite: String,
    pub player: String,
    pub solved: u64,
    pub total: u64,
    /// Points scored, in a suite that gives points.
    pub points: u64,
    /// The maximum number of points.
    pub max_points: u64,
    /// The mean time to solution of the solved positions, in milliseconds.
    pub mean_solution_ms: Option<f64>,
    pub seconds: f64,
    /// In the order of the file.
    pub positions: Vec<PositionResult>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PositionResult {
    /// The number in the file, from 1.
    pub number: usize,
    pub id: Option<String>,
    pub fen: String,
    /// What was expected, such as `Nf3 or e4`, `not Qh5` or `mate in 3`.
    pub expected: String,
    pub played: String,
    pub is_solved: bool,
    pub points: u32,
    pub max_points: u32,
    /// The time after which the player kept a correct move, in milliseconds.
    pub solution_ms: Option<u64>,
    /// The time of the search, in milliseconds.
    pub ms: u64,
    /// Simulations (tree search) or nodes (alpha-beta, other engines).
    pub nodes: Option<u64>,
}

#[derive(Debug, thiserror::Error)]
pub enum SuiteError {
    #[error(transparent)]
    File(#[from] OpeningError),
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// A position has no expected move.
    #[error("{}, position {number}: expected a best move (bm), moves to avoid (am), points (c0) or moves to mate (dm)", file.display())]
    NoExpectedMove {
        file: PathBuf,
        /// From 1.
        number: usize,
    },
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
    #[error("position {number}: {reason}")]
    Player {
        /// From 1.
        number: usize,
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
            Task::new(index + 1, epd).ok_or_else(|| SuiteError::NoExpectedMove {
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
                // The threads that did start solve all positions.
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

/// Solves the next position until there are none left.
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
    let limit = config.limit.to_limit(&config.stop);
    Box::new(std::iter::from_fn(move || {
        if config.stop.load(Relaxed) {
            return None;
        }
        let task = tasks.get(next.fetch_add(1, Relaxed))?;
        let result = task.solve(player.as_mut(), &limit);
        // The result of an interrupted search does not count.
        (!config.stop.load(Relaxed)).then_some(result)
    }))
}

/// A position with its expected moves.
struct Task {
    number: usize,
    epd: Epd,
    points: Vec<(Move, u32)>,
}

impl Task {
    fn new(number: usize, epd: Epd) -> Option<Task> {
        let points = epd.points();
        let has_expected = !epd.best_moves().is_empty()
            || !epd.avoid_moves().is_empty()
            || !points.is_empty()
            || epd.dm().is_some();
        has_expected.then_some(Task { number, epd, points })
    }

    fn solve(&self, player: &mut dyn Player, limit: &Limit) -> Result<PositionResult, SuiteError> {
        let game = Game::from_position(self.epd.position().clone());
        player.new_game();
        let started = Instant::now();
        let mut correct_since = None;
        let choice = player
            .choose_observed(&game, limit, &mut |info| {
                if info.rank > 1 {
                    return;
                }
                match info.line.first() {
                    Some(&m) if self.is_correct(m, Some(info.score)) => {
                        correct_since.get_or_insert(started.elapsed());
                    }
                    _ => correct_since = None,
                }
            })
            .map_err(|error| SuiteError::Player {
                number: self.number,
                reason: error.to_string(),
            })?;
        let elapsed = started.elapsed();
        let is_solved = self.is_correct(choice.played, choice.score);
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
            solution_ms: is_solved.then(|| milliseconds(correct_since.unwrap_or(elapsed))),
            ms: milliseconds(elapsed),
            nodes: choice.nodes,
        })
    }

    fn is_correct(&self, m: Move, score: Option<Score>) -> bool {
        let (best, avoid) = (self.epd.best_moves(), self.epd.avoid_moves());
        if !best.is_empty() || !avoid.is_empty() {
            return (best.is_empty() || best.contains(&m)) && !avoid.contains(&m);
        }
        if let Some(moves) = self.epd.dm() {
            let mut after = self.epd.position().clone();
            after.play_unchecked(m);
            let sees_mate = matches!(score, Some(Score::Mate(n)) if n > 0 && n as u32 <= moves);
            return after.is_checkmate() || sees_mate;
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
        let limit = MatchLimit { depth: Some(4), ..MatchLimit::default() };
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
    fn a_position_without_an_expected_move_is_an_error() {
        let error = run("6rk/6pp/8/6N1/8/8/8/K7 w - - id \"x\";\n", "random").unwrap_err();
        assert!(error.to_string().contains("position 1: expected a best move (bm)"), "{error}");
        assert!(run(SUITE, "randm").unwrap_err().to_string().contains("did you mean"));
    }
}
