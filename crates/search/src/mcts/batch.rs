//! The working memory of a searching thread.

use selfmate_chess::{Game, Position};

use super::edge::Edge;
use super::tree::ROOT;
use crate::evaluator::{Evaluation, Evaluator, Leaf, Need};
use crate::packed_move::PackedMove;

/// What the stats of a thread looked like.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SimulationStats {
    /// SimulationStats that ended.
    pub count: u64,
    /// Plies from the root to where they ended, added up.
    pub plies: u64,
    /// The longest of them.
    pub deepest: u32,
    /// Those that ended where the result is certain.
    pub known: u64,
    /// The sizes of the values that they carried back, added up.
    pub magnitude: f64,
}

impl SimulationStats {
    /// Adds those of another search.
    pub fn add(&mut self, other: &SimulationStats) {
        self.count += other.count;
        self.plies += other.plies;
        self.deepest = self.deepest.max(other.deepest);
        self.known += other.known;
        self.magnitude += other.magnitude;
    }

    pub(super) fn count(&mut self, plies: usize, value: f32, is_known: bool) {
        self.count += 1;
        self.plies += plies as u64;
        self.deepest = self.deepest.max(plies as u32);
        self.known += u64::from(is_known);
        self.magnitude += f64::from(value.abs());
    }
}

/// The working memory of one thread: stats under path and what is asked about them.
pub struct Batch {
    /// The simulation's own copy of the game.
    pub(super) game: Game,
    pub(super) root_ply: usize,
    /// The search's generation that all of this belongs to.
    pub(super) generation: u64,
    /// The nodes on the path to where `game` stands, from the root on. SimulationStats often begin as the one
    /// before did: what they have in common need not be played again.
    pub(super) path: Vec<u32>,
    pub(super) leaves: Vec<Leaf>,
    pub(super) evaluations: Vec<Evaluation>,
    /// The stats that wait for the evaluations, in the same order.
    pub(super) waiting: Vec<Vec<u32>>,
    /// SimulationStats whose last node has just got its children: they go on.
    pub(super) resumed: Vec<Vec<u32>>,
    /// Paths to use again.
    pub(super) idle: Vec<Vec<u32>>,
    pub(super) scratch: Vec<Edge>,
    pub(super) history: usize,
    /// Simulations taken from the budget and not started yet.
    pub(super) tokens: u64,
    /// Simulations finished and not yet counted by the search.
    pub(super) finished: u64,
    pub(super) stats: SimulationStats,
}

impl Batch {
    /// Working memory for a search with this evaluator.
    pub fn new(evaluator: &dyn Evaluator) -> Batch {
        Batch {
            game: Game::new(),
            root_ply: 0,
            generation: u64::MAX,
            path: vec![ROOT],
            leaves: Vec::new(),
            evaluations: Vec::new(),
            waiting: Vec::new(),
            resumed: Vec::new(),
            idle: Vec::new(),
            scratch: Vec::new(),
            history: evaluator.history(),
            tokens: 0,
            finished: 0,
            stats: SimulationStats::default(),
        }
    }

    /// What its stats looked like since the last time this was asked.
    pub fn take_stats(&mut self) -> SimulationStats {
        std::mem::take(&mut self.stats)
    }

    /// Leaves that wait for their evaluation.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// True when nothing waits for an evaluation.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// True when stats are half done: the next gather goes on with them.
    pub fn has_resumed(&self) -> bool {
        !self.resumed.is_empty()
    }

    /// True while simulations taken from the budget are still to be started.
    pub(super) fn has_budget(&self) -> bool {
        self.tokens > 0
    }

    /// The waiting leaves.
    pub fn leaves(&self) -> &[Leaf] {
        &self.leaves[..self.waiting.len()]
    }

    /// Has the waiting leaves evaluated.
    pub fn evaluate(&mut self, evaluator: &mut dyn Evaluator) {
        let count = self.waiting.len();
        if count == 0 {
            return;
        }
        evaluator.evaluate(&self.leaves[..count], &mut self.evaluations[..count]);
    }

    /// Takes over the root of the search, and forgets what belonged to another tree.
    pub(super) fn begin(&mut self, root: &Game, generation: u64) {
        debug_assert!(self.waiting.is_empty(), "a batch is applied before the next is gathered");
        if self.generation != generation {
            self.generation = generation;
            self.game.clone_from(root);
            self.root_ply = root.ply();
            self.path.truncate(1);
            self.resumed.clear();
            (self.tokens, self.finished) = (0, 0);
        }
    }

    /// Takes moves back until so many nodes of the path are left.
    pub(super) fn go_back(&mut self, nodes: usize) {
        if nodes < self.path.len() {
            self.path.truncate(nodes);
            self.game.rewind(self.root_ply + nodes - 1);
        }
    }

    /// Plays a move that leads to this node.
    pub(super) fn go_on(&mut self, m: PackedMove, node: u32) {
        let m = m.unpack(self.game.position().board());
        self.game.play_unchecked(m);
        self.path.push(node);
    }

    pub(super) fn ask(&mut self, path: Vec<u32>, need: Need) {
        let index = self.waiting.len();
        if self.leaves.len() <= index {
            self.leaves.push(Leaf::default());
            self.evaluations.push(Evaluation::default());
        }
        let leaf = &mut self.leaves[index];
        leaf.game.copy_recent(&self.game, self.history);
        leaf.need = need;
        if need.policy() {
            leaf.legal = self.game.legal_moves();
        } else {
            leaf.legal.clear();
        }
        self.waiting.push(path);
    }
}
