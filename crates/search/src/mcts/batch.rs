//! The working memory of a search thread.

use selfmate_chess::{Game, Position};

use super::edge::Edge;
use super::tree::ROOT;
use crate::evaluator::{Evaluation, Evaluator, Leaf, Need};
use crate::packed_move::PackedMove;

/// Statistics over the simulations of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SimulationStats {
    pub count: u64,
    /// The sum of the path lengths, in plies.
    pub plies: u64,
    /// The longest path, in plies.
    pub deepest: u32,
    /// Simulations that ended at a proven result.
    pub known: u64,
    /// The sum of the absolute values backed up.
    pub magnitude: f64,
}

impl SimulationStats {
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

/// The working memory of one thread: its leaves, their evaluations and the paths to them.
pub struct Batch {
    /// This thread's copy of the game, at the end of `path`.
    pub(super) game: Game,
    pub(super) root_ply: usize,
    /// The search's generation for which this data is valid.
    pub(super) generation: u64,
    /// The nodes from the root to the position of `game`. Consecutive simulations often share the
    /// start of their path, which then need not be played again.
    pub(super) path: Vec<u32>,
    pub(super) leaves: Vec<Leaf>,
    pub(super) evaluations: Vec<Evaluation>,
    /// The paths of the leaves that wait for evaluation, in the same order.
    pub(super) waiting: Vec<Vec<u32>>,
    /// Paths whose last node was just expanded; their simulations continue from there.
    pub(super) resumed: Vec<Vec<u32>>,
    /// Buffers to reuse.
    pub(super) idle: Vec<Vec<u32>>,
    pub(super) scratch: Vec<Edge>,
    pub(super) history: usize,
    /// Simulations taken from the budget but not started.
    pub(super) tokens: u64,
    /// Simulations finished but not yet counted by the search.
    pub(super) finished: u64,
    pub(super) stats: SimulationStats,
}

impl Batch {
    /// The evaluator determines how much history the leaves carry.
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

    /// Returns the statistics since the last call and resets them.
    pub fn take_stats(&mut self) -> SimulationStats {
        std::mem::take(&mut self.stats)
    }

    /// Leaves that wait for evaluation.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// True when simulations are unfinished; the next [`gather`](super::Search::gather) continues them.
    pub fn has_resumed(&self) -> bool {
        !self.resumed.is_empty()
    }

    /// True while simulations taken from the budget have not been started.
    pub(super) fn has_budget(&self) -> bool {
        self.tokens > 0
    }

    pub fn leaves(&self) -> &[Leaf] {
        &self.leaves[..self.waiting.len()]
    }

    pub fn evaluate(&mut self, evaluator: &mut dyn Evaluator) {
        let count = self.waiting.len();
        if count == 0 {
            return;
        }
        evaluator.evaluate(&self.leaves[..count], &mut self.evaluations[..count]);
    }

    /// Switches to the root of the search, and drops what belonged to another tree.
    pub(super) fn begin(&mut self, root: &Game, generation: u64) {
        debug_assert!(self.waiting.is_empty(), "apply a batch before gathering the next");
        if self.generation != generation {
            self.generation = generation;
            self.game.clone_from(root);
            self.root_ply = root.ply();
            self.path.truncate(1);
            self.resumed.clear();
            (self.tokens, self.finished) = (0, 0);
        }
    }

    /// Takes back moves until the path has this many nodes.
    pub(super) fn rewind_to(&mut self, nodes: usize) {
        if nodes < self.path.len() {
            self.path.truncate(nodes);
            self.game.rewind(self.root_ply + nodes - 1);
        }
    }

    /// Plays the move that leads to this node.
    pub(super) fn descend(&mut self, m: PackedMove, node: u32) {
        let m = m.unpack(self.game.position().board());
        self.game.play_unchecked(m);
        self.path.push(node);
    }

    pub(super) fn add_leaf(&mut self, path: Vec<u32>, need: Need) {
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
