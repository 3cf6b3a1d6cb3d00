//! Alpha-beta: the classic chess engine. Every weight of its evaluation can be tuned.
//!
//! Start at [`AlphaBeta::search`]. `driver` runs iterative deepening, `negamax` is the search,
//! `prune` holds pruning and extensions, `reduce` late-move reductions, `quiesce` is the quiescence
//! search, `order`, `history` and `see` order moves, `table` is the transposition table and `tables`
//! probes tablebases. `eval` is the hand-written evaluation with its [`Weights`]; a
//! [`StaticEvaluator`] can replace it, and `correction` corrects either by the results of searches.
//! This module does not manage clocks (callers pass a [`Limit`]) and does not speak UCI.

mod bench;
mod captures;
mod correction;
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
mod reduce;
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
use crate::player::Limit;
use static_evaluator::CachedStaticEvaluator;
use table::Table;
use worker::{Memory, Shared};

/// Progress of a running search: one report for each line of each finished iteration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The finished iteration, in plies.
    pub depth: u32,
    /// The length of the longest line searched, in plies.
    pub seldepth: u32,
    /// The rank of this line among the best lines, starting at 1.
    pub multipv: usize,
    /// For the side to move.
    pub score: Score,
    /// Nodes visited so far by all threads.
    pub nodes: u64,
    pub time: Duration,
    /// Use of the transposition table, per thousand.
    pub hashfull: u32,
    /// Positions found in tablebases by all threads.
    pub tablebase_hits: u64,
    pub pv: Vec<Move>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// For the side to move.
    pub score: Score,
    /// At least one move.
    pub pv: Vec<Move>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlphaBetaResult {
    /// `None` when there is no legal move.
    pub best: Option<Move>,
    /// The expected reply.
    pub ponder: Option<Move>,
    /// For the side to move.
    pub score: Score,
    /// The last finished iteration.
    pub depth: u32,
    pub nodes: u64,
    pub tablebase_hits: u64,
    pub pv: Vec<Move>,
    /// As many lines as were requested, or as there are legal moves.
    pub lines: Vec<Line>,
}

/// An alpha-beta engine: evaluation, transposition table and move histories, which are kept from
/// one search to the next.
///
/// ```
/// use std::sync::atomic::AtomicBool;
///
/// use selfmate_chess::{fen, notation};
/// use selfmate_search::alphabeta::{AlphaBeta, Score, Weights};
/// use selfmate_search::player::Limit;
///
/// let game = fen::parse_game("6k1/5ppp/8/8/8/8/8/R5K1 w - - 0 1").unwrap();
/// let mut engine = AlphaBeta::new(Weights::default(), 1)?;
/// let stop = AtomicBool::new(false);
/// let result = engine.search(&game, &Limit::depth(3), &stop, &mut |_| {});
///
/// assert_eq!(notation::uci(game.position(), result.best.unwrap()), "a1a8");
/// assert_eq!(result.score, Score::Mate(1));
/// # Ok::<(), selfmate_search::memory::MemoryError>(())
/// ```
pub struct AlphaBeta {
    table: Table,
    settings: Settings,
    /// One for each thread; never empty.
    memories: Vec<Memory>,
    tables: Option<Tables>,
}

impl AlphaBeta {
    /// Creates a single-threaded engine with these weights and a transposition table of `hash_mb`
    /// megabytes. Fails when there is not enough memory.
    pub fn new(weights: Weights, hash_mb: usize) -> Result<AlphaBeta, MemoryError> {
        AlphaBeta::with_settings(weights, Settings::default(), hash_mb)
    }

    /// Like [`AlphaBeta::new`], with these search settings.
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

    /// Probes these tablebases from now on, and clears the results found without them.
    pub fn set_tables(&mut self, tables: Option<Tables>) {
        if tables.is_some() || self.tables.is_some() {
            self.tables = tables;
            self.clear();
        }
    }

    /// Clears everything except weights and settings, as for a new game.
    pub fn clear(&mut self) {
        self.table.clear();
        for memory in &mut self.memories {
            memory.clear();
        }
    }

    /// Resizes the transposition table and empties it. On an error the table is unchanged.
    pub fn resize(&mut self, hash_mb: usize) -> Result<(), MemoryError> {
        self.table = Table::new(hash_mb)?;
        Ok(())
    }

    /// Sets the number of threads, at least one. Only single-threaded searches are reproducible. On
    /// an error the number is unchanged.
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

    /// Replaces the hand-written evaluation by `evaluator`, and clears the results of the old one.
    pub fn set_evaluator(&mut self, evaluator: Box<dyn StaticEvaluator>) {
        let evaluator = CachedStaticEvaluator::new(evaluator);
        for memory in &mut self.memories {
            memory.evaluator = Some(evaluator.copy());
        }
        self.clear();
    }

    pub fn weights(&self) -> &Weights {
        self.memories[0].eval.weights()
    }

    /// Replaces the weights, and clears the results found with the old ones.
    pub fn set_weights(&mut self, weights: &Weights) {
        for memory in &mut self.memories {
            memory.eval = StaticEval::new(weights.clone());
        }
        self.clear();
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The static evaluation of a position for its side to move, in centipawns.
    pub fn evaluate(&mut self, game: &Game) -> i32 {
        let memory = &mut self.memories[0];
        match &mut memory.evaluator {
            None => memory.eval.score(game.position()),
            Some(evaluator) => evaluator.evaluate_position(game.position()),
        }
    }

    /// Searches for the best move until the limit is reached or `stop` is set. Calls `report` for
    /// each finished iteration. The clock of the limit is not used: managing time is the player's
    /// task, and so is passing on the stop flag of the limit.
    pub fn search(
        &mut self,
        game: &Game,
        limit: &Limit,
        stop: &AtomicBool,
        report: &mut dyn FnMut(&Report),
    ) -> AlphaBetaResult {
        let started = Instant::now();
        self.table.age();
        let tables = self.tables.as_ref();
        let ranking = tables.and_then(|tables| tables.rank_moves(game, &game.legal_moves()));
        // No probes inside the tree where the ranking alone makes progress (the search then only
        // looks for mates), or where nothing can be won (it then only has to set problems).
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
