//! The search state of one thread: its stack, its memory and its stop conditions. The recursion is
//! in [`super::negamax`] and [`super::quiesce`].

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use selfmate_chess::tablebase::{Ranking, Tables};
use selfmate_chess::{Game, Move, Position};

use super::correction::Correction;
use super::eval::StaticEval;
use super::history::{Before, History};
use super::node::{Node, position_key};
use super::reduce::Reductions;
use super::score::MAX_PLY;
use super::settings::Settings;
use super::static_evaluator::CachedStaticEvaluator;
use super::table::Table;
use super::weights::Weights;

/// Shared by all threads of one search.
pub(super) struct Shared<'a> {
    pub(super) table: &'a Table,
    /// Set by the caller.
    pub(super) stop: &'a AtomicBool,
    /// Set by the main thread when it is done.
    pub(super) done: AtomicBool,
    /// Nodes of the helper threads, updated now and then.
    pub(super) helper_nodes: AtomicU64,
    pub(super) started: Instant,
    pub(super) deadline: Option<Instant>,
    /// Applies to the main thread only, so that it always stops at the same node.
    pub(super) max_nodes: u64,
    /// Tablebases to probe inside the tree.
    pub(super) tables: Option<&'a Tables>,
    /// The tablebase ranking of the root moves.
    pub(super) ranking: Option<Ranking>,
    pub(super) tablebase_hits: AtomicU64,
}

/// What one thread keeps from search to search.
pub(super) struct Memory {
    pub(super) eval: StaticEval,
    /// Replaces `eval` when set.
    pub(super) evaluator: Option<CachedStaticEvaluator>,
    pub(super) history: History,
    pub(super) correction: Correction,
    pub(super) reductions: Reductions,
}

impl Memory {
    /// An upper bound for one thread, with its stack and an evaluator that is a network.
    pub(super) const BYTES: usize = 8 << 20;

    pub(super) fn new(weights: Weights, settings: &Settings) -> Memory {
        Memory {
            eval: StaticEval::new(weights),
            evaluator: None,
            history: History::new(),
            correction: Correction::new(),
            reductions: Reductions::new(settings),
        }
    }

    /// The static evaluation of a node that is not in check.
    #[inline]
    pub(super) fn evaluate(&mut self, node: &Node) -> i32 {
        match &mut self.evaluator {
            None => self.eval.evaluate(node),
            Some(evaluator) => evaluator.evaluate(node),
        }
    }

    pub(super) fn clear(&mut self) {
        self.history.clear();
        self.correction.clear();
    }
}

/// One ply of the line being searched.
#[derive(Clone)]
pub(super) struct Frame {
    pub(super) node: Node,
    /// Piece and target square of the move played from here; `None` for a null move.
    pub(super) played: Option<usize>,
    /// The static evaluation; `None` in check.
    pub(super) eval: Option<i32>,
    /// Quiet moves that recently caused a cutoff at this ply, packed.
    pub(super) killers: [u16; 2],
    /// Cutoffs among the nodes searched at this ply since the last node two plies above.
    pub(super) cutoffs: u32,
    /// A move to skip, packed; set by the singular extension search.
    pub(super) excluded: u16,
    /// The best line from here, first move included.
    pub(super) line: Vec<Move>,
    /// Plies since the last capture, pawn move or null move: those that can be repeated.
    pub(super) reversible: usize,
}

pub(super) struct Worker<'a> {
    pub(super) shared: &'a Shared<'a>,
    pub(super) memory: &'a mut Memory,
    pub(super) settings: &'a Settings,
    pub(super) stack: Vec<Frame>,
    /// The keys of the game so far and of the line being searched.
    pub(super) keys: Vec<u64>,
    /// The index of the root's key in `keys`.
    pub(super) root_key: usize,
    /// The root moves to search in this pass, packed.
    pub(super) root_moves: Vec<u16>,
    /// The score of the root's best line in this pass.
    pub(super) root_score: i32,
    pub(super) nodes: u64,
    pub(super) deepest: usize,
    pub(super) aborted: bool,
    is_helper: bool,
}

impl<'a> Worker<'a> {
    pub(super) fn new(
        game: &Game,
        shared: &'a Shared<'a>,
        memory: &'a mut Memory,
        settings: &'a Settings,
        is_helper: bool,
    ) -> Worker<'a> {
        let root = Node::new(game.position(), &memory.eval.tables);
        // A position that was set up may have a halfmove clock without the moves that led there.
        let reversible = (game.position().halfmoves() as usize).min(game.ply());
        let mut keys: Vec<u64> = Vec::with_capacity(reversible + MAX_PLY);
        keys.extend(game.positions_back().take(reversible + 1).map(position_key));
        keys.reverse();
        let frame = Frame {
            node: root,
            played: None,
            eval: None,
            killers: [0; 2],
            cutoffs: 0,
            excluded: 0,
            line: Vec::new(),
            reversible: keys.len() - 1,
        };
        Worker {
            shared,
            memory,
            settings,
            root_key: keys.len() - 1,
            keys,
            stack: vec![frame; MAX_PLY + 4],
            root_moves: Vec::new(),
            root_score: 0,
            nodes: 0,
            deepest: 0,
            aborted: false,
            is_helper,
        }
    }

    /// Counts a node; true when the search has to stop.
    pub(super) fn out_of_budget(&mut self) -> bool {
        if self.aborted {
            return true;
        }
        self.nodes += 1;
        if self.is_helper {
            if self.nodes.is_multiple_of(1024) {
                self.shared.helper_nodes.fetch_add(1024, Relaxed);
                self.aborted |= self.shared.done.load(Relaxed);
            }
        } else {
            self.aborted |= self.nodes >= self.shared.max_nodes;
            if self.nodes.is_multiple_of(1024) {
                self.aborted |= self.shared.stop.load(Relaxed)
                    || self.shared.deadline.is_some_and(|deadline| Instant::now() >= deadline);
            }
        }
        self.aborted
    }

    pub(super) fn descend(&mut self, ply: usize, m: Move) {
        let (here, after) = self.stack.split_at_mut(ply + 1);
        let (parent, child) = (&mut here[ply], &mut after[0]);
        parent.played = Some(super::order::piece_to(parent.node.turn(), m));
        child.node.play_from(&parent.node, m, &self.memory.eval.tables);
        child.reversible = if m.is_zeroing() { 0 } else { parent.reversible + 1 };
        self.push_key(ply);
    }

    /// Plays a null move at `ply`; false when that is impossible.
    pub(super) fn descend_by_pass(&mut self, ply: usize) -> bool {
        let Some(child) = self.stack[ply].node.pass() else { return false };
        self.stack[ply].played = None;
        self.stack[ply + 1].node = child;
        self.stack[ply + 1].reversible = 0;
        self.push_key(ply);
        true
    }

    fn push_key(&mut self, ply: usize) {
        self.keys.truncate(self.root_key + ply + 1);
        self.keys.push(self.stack[ply + 1].node.key);
    }

    /// The moves that led here as piece and square, latest first.
    pub(super) fn before(&self, ply: usize) -> Before {
        let played = |back: usize| ply.checked_sub(back).and_then(|at| self.stack[at].played);
        [played(1), played(2)]
    }

    /// A draw by repetition, fifty moves or insufficient material.
    ///
    /// One repetition inside the tree is enough: a side that wanted it can repeat again. Positions
    /// of the game before the root must have occurred twice already.
    pub(super) fn is_draw(&self, ply: usize) -> bool {
        let frame = &self.stack[ply];
        let position = &frame.node.position;
        if position.halfmoves() >= 100 && !position.is_checkmate() {
            return true;
        }
        if frame.node.phase <= 4 && position.is_insufficient_material() {
            return true;
        }
        let here = self.root_key + ply;
        let mut seen_in_game = false;
        for back in (4..=frame.reversible.min(here)).step_by(2) {
            if self.keys[here - back] == frame.node.key {
                if back <= ply || seen_in_game {
                    return true;
                }
                seen_in_game = true;
            }
        }
        false
    }

    pub(super) fn all_nodes(&self) -> u64 {
        self.nodes + self.shared.helper_nodes.load(Relaxed)
    }
}
