//! Alpha-beta: the classic chess engine, with an evaluation whose every number can be tuned.
//!
//! Start at [`AlphaBeta::search`]. From the root down: `driver` deepens, `negamax` is the
//! search, `prune` what it leaves out, `quiesce` settles captures, `order` picks moves, `see` counts exchanges, `table`
//! remembers positions, `tables` asks a tablebase, `eval` judges with [`Weights`] unless a [`StaticEvaluator`] does. It knows nothing of clocks
//! (callers turn them into an [`AlphaBetaLimit`]) nor of the UCI protocol.

mod bench;
mod captures;
mod driver;
mod eval;
mod history;
mod negamax;
mod node;
mod order;
mod pair;
mod pawns;
mod prune;
mod quiesce;
mod score;
mod see;
mod settings;
mod squares;
mod static_evaluator;
mod table;
mod tables;
mod weights;
mod worker;

use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::{Duration, Instant};

use selfmate_chess::tablebase::{TableResult, Tables};
use selfmate_chess::{Game, Move};

pub use bench::{bench, bench_search, bench_until};
pub use eval::StaticEval;
pub use score::Score;
pub use settings::{SettingInfo, Settings};
pub use static_evaluator::StaticEvaluator;
pub use weights::{Term, WeightInfo, Weights};

use crate::memory::{MemoryError, check_room};
use static_evaluator::CachedStaticEvaluator;
use table::Table;
use worker::{Memory, Shared};

/// When to stop and what to look at. The default never stops by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AlphaBetaLimit {
    /// Iterations to finish.
    pub depth: Option<u32>,
    /// Nodes to visit; the same number gives the same search.
    pub nodes: Option<u64>,
    /// Time to stop at, in the middle of an iteration if need be.
    pub movetime: Option<Duration>,
    /// Time after which no new iteration starts.
    pub soft_time: Option<Duration>,
    /// The number of best lines to find; 0 means 1.
    pub multipv: usize,
    /// The root moves to consider; empty means all.
    pub searchmoves: Vec<Move>,
}

impl AlphaBetaLimit {
    /// Stops after this many iterations.
    pub fn depth(depth: u32) -> AlphaBetaLimit {
        AlphaBetaLimit { depth: Some(depth), ..AlphaBetaLimit::default() }
    }

    /// Stops after this many nodes.
    pub fn nodes(nodes: u64) -> AlphaBetaLimit {
        AlphaBetaLimit { nodes: Some(nodes), ..AlphaBetaLimit::default() }
    }

    /// Stops after this time.
    pub fn movetime(time: Duration) -> AlphaBetaLimit {
        AlphaBetaLimit { movetime: Some(time), ..AlphaBetaLimit::default() }
    }
}

/// What the search tells while it runs: once for each line of each finished iteration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The iteration, in plies.
    pub depth: u32,
    /// The longest line looked at, in plies.
    pub seldepth: u32,
    /// Which of the best lines this is, from 1.
    pub multipv: usize,
    /// What the side to move can expect.
    pub score: Score,
    /// Nodes visited so far, by all threads.
    pub nodes: u64,
    /// Time since the start.
    pub time: Duration,
    /// The part of the table in use, per thousand.
    pub hashfull: u32,
    /// Positions found in tablebases, by all threads.
    pub tablebase_hits: u64,
    /// The line.
    pub pv: Vec<Move>,
}

/// One of the best lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// What the side to move can expect.
    pub score: Score,
    /// The moves; at least one.
    pub pv: Vec<Move>,
}

/// What the search has found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlphaBetaResult {
    /// The move to play; `None` when there is no legal one.
    pub best: Option<Move>,
    /// The answer it expects.
    pub ponder: Option<Move>,
    /// What the side to move can expect.
    pub score: Score,
    /// The last finished iteration.
    pub depth: u32,
    /// Nodes visited by all threads.
    pub nodes: u64,
    /// Positions found in tablebases, by all threads.
    pub tablebase_hits: u64,
    /// The best line.
    pub pv: Vec<Move>,
    /// As many best lines as were asked for and there are moves.
    pub lines: Vec<Line>,
}

/// An alpha-beta player's mind: evaluation, transposition table and move histories.
pub struct AlphaBeta {
    table: Table,
    settings: Settings,
    /// One for each thread, never empty.
    memories: Vec<Memory>,
    tables: Option<Tables>,
}

impl AlphaBeta {
    /// A single-threaded search with this evaluation and a table of this size, unless there is no
    /// memory for it.
    pub fn new(weights: Weights, hash_mb: usize) -> Result<AlphaBeta, MemoryError> {
        AlphaBeta::with_settings(weights, Settings::default(), hash_mb)
    }

    /// As [`AlphaBeta::new`], with other search settings.
    pub fn with_settings(
        weights: Weights,
        settings: Settings,
        hash_mb: usize,
    ) -> Result<AlphaBeta, MemoryError> {
        Ok(AlphaBeta {
            table: Table::new(hash_mb)?,
            memories: vec![Memory::new(weights, &settings)],
            settings,
            tables: None,
        })
    }

    /// Looks positions up in these tables, and forgets what the search found without them.
    pub fn set_tables(&mut self, tables: Option<Tables>) {
        if tables.is_some() || self.tables.is_some() {
            self.tables = tables;
            self.clear();
        }
    }

    /// Forgets everything but weights and settings, as for a new game.
    pub fn clear(&mut self) {
        self.table.clear();
        for memory in &mut self.memories {
            memory.clear();
        }
    }

    /// Gives the table another size and empties it. Without memory for that the table stays as it is.
    pub fn resize(&mut self, hash_mb: usize) -> Result<(), MemoryError> {
        self.table = Table::new(hash_mb)?;
        Ok(())
    }

    /// Sets the number of threads, at least one. Only one thread gives the same search twice.
    /// Without memory for them their number stays as it is.
    pub fn set_threads(&mut self, threads: usize) -> Result<(), MemoryError> {
        let more = threads.saturating_sub(self.memories.len());
        check_room(more.saturating_mul(Memory::BYTES), "more search threads")?;
        let weights = self.weights().clone();
        let settings = &self.settings;
        let evaluator = self.memories[0].evaluator.as_ref().map(CachedStaticEvaluator::copy);
        self.memories.resize_with(threads.max(1), || Memory {
            evaluator: evaluator.as_ref().map(CachedStaticEvaluator::copy),
            ..Memory::new(weights.clone(), settings)
        });
        Ok(())
    }

    /// Lets a evaluator take the place of the hand-written evaluation, and forgets what that has taught.
    pub fn set_evaluator(&mut self, evaluator: Box<dyn StaticEvaluator>) {
        let evaluator = CachedStaticEvaluator::new(evaluator);
        for memory in &mut self.memories {
            memory.evaluator = Some(evaluator.copy());
        }
        self.clear();
    }

    /// The weights of the hand-written evaluation.
    pub fn weights(&self) -> &Weights {
        self.memories[0].eval.weights()
    }

    /// Plays on with other weights and forgets what the old ones have taught.
    pub fn set_weights(&mut self, weights: &Weights) {
        for memory in &mut self.memories {
            memory.eval = StaticEval::new(weights.clone());
        }
        self.clear();
    }

    /// The search settings in use.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The static evaluation of a position for its side to move.
    pub fn evaluate(&mut self, game: &Game) -> i32 {
        let memory = &mut self.memories[0];
        match &mut memory.evaluator {
            None => memory.eval.score(game.position()),
            Some(evaluator) => evaluator.evaluate_position(game.position()),
        }
    }

    /// Looks for the best move until the limit or `stop`, and reports each finished iteration.
    pub fn search(
        &mut self,
        game: &Game,
        limit: &AlphaBetaLimit,
        stop: &AtomicBool,
        report: &mut dyn FnMut(&Report),
    ) -> AlphaBetaResult {
        let started = Instant::now();
        self.table.age();
        let tables = self.tables.as_ref();
        let ranking = tables.and_then(|tables| tables.rank_moves(game, &game.legal_moves()));
        // Where the order of the moves is enough to make progress, the tree is for finding mates;
        // where nothing can be won, for setting problems. Neither needs results inside it.
        let is_settled = ranking.as_ref().is_some_and(|ranking| {
            ranking.is_by_distance || ranking.best().result <= TableResult::Draw
        });
        let shared = Shared {
            table: &self.table,
            stop,
            done: AtomicBool::new(false),
            helper_nodes: AtomicU64::new(0),
            started,
            deadline: limit.movetime.and_then(|time| started.checked_add(time)),
            max_nodes: limit.nodes.unwrap_or(u64::MAX),
            tables: tables.filter(|_| !is_settled),
            tablebase_hits: AtomicU64::new(ranking.as_ref().map_or(0, |r| r.moves.len() as u64)),
            ranking,
        };
        driver::run(game, limit, &shared, &mut self.memories, &self.settings, report)
    }
}
