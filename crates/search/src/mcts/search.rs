//! The search: a tree, its root, and batches of leaves. `simulation` has the single simulation.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use selfmate_chess::tablebase::{Ranking, Tables};
use selfmate_chess::{Game, Move, Position, Seed};

use super::batch::Batch;
use super::gumbel::GumbelRoot;
use super::node::Sharing;
use super::params::{RootRule, SearchParams, Transpositions};
use super::probe::Probes;
use super::result::Proof;
use super::select::Exploration;
use super::shared::SharedNodes;
use super::simulation::{Ending, Simulation};
use super::tree::{Children, Keep, ROOT, Tree};
use crate::evaluator::Need;
use crate::memory::{MemoryError, check_limit};
use crate::packed_move::PackedMove;
use crate::value::Wdl;

/// A search tree with its root position.
///
/// [`Search::gather`] and [`Search::apply`] may be called from several threads, each with its own
/// [`Batch`]. All other methods need exclusive access.
///
/// ```
/// use selfmate_chess::{Game, Seed};
/// use selfmate_search::mcts::{StopCondition, Search, SearchParams, run};
/// use selfmate_search::{Evaluation, Evaluator, Leaf, Wdl};
///
/// /// Values every position as drawn and every move alike.
/// struct Drawn;
///
/// impl Evaluator for Drawn {
///     fn evaluate(&mut self, leaves: &[Leaf], evaluations: &mut [Evaluation]) {
///         for (leaf, evaluation) in leaves.iter().zip(evaluations) {
///             evaluation.wdl = Wdl::DRAW;
///             evaluation.logits = vec![0.0; leaf.legal.len()];
///         }
///     }
/// }
///
/// let params = SearchParams { memory_mb: 16, ..SearchParams::default() };
/// let mut search = Search::new(params)?;
/// search.start(&Game::new(), 100, Seed::new(1));
/// run(&mut search, &mut Drawn, &StopCondition::default());
///
/// let result = search.result();
/// assert_eq!(result.simulations, 100);
/// assert_eq!(result.moves.iter().map(|m| m.visits).sum::<u32>(), 100);
/// # Ok::<(), selfmate_search::memory::MemoryError>(())
/// ```
pub struct Search {
    pub(super) params: SearchParams,
    pub(super) exploration: Exploration,
    pub(super) tree: Tree,
    /// The second tree: subtrees worth keeping are copied here.
    spare: Tree,
    /// With [`Transpositions::Shared`].
    pub(super) shared: Option<SharedNodes>,
    pub(super) game: Game,
    pub(super) seed: Seed,
    /// The only root moves to search; empty means all.
    pub(super) only: Vec<Move>,
    /// Changes whenever node indices change, so that a batch notices.
    generation: u64,
    pub(super) sharing: Sharing,
    /// The number of simulations that may be started.
    pub(super) budget: u64,
    pub(super) started: AtomicU64,
    pub(super) finished: AtomicU64,
    /// A node could not be expanded because the tree is full.
    pub(super) full: AtomicBool,
    root: Mutex<Root>,
    pub(super) probes: Probes,
}

#[derive(Debug)]
pub(super) struct Root {
    pub raw: Wdl,
    pub gumbel: Option<GumbelRoot>,
}

impl Search {
    /// Creates an empty search. Fails when there is not enough memory for its tree.
    pub fn new(params: SearchParams) -> Result<Search, MemoryError> {
        let (megabytes, purpose) = (params.memory_mb.max(1), "a search tree");
        check_limit(megabytes, purpose)?;
        // Two trees share the limit, since subtrees are copied from one to the other. The last
        // fifth is a reserve, because nodes and edges do not reach their maximum together.
        let bytes = megabytes * 1_048_576 / 5 * 2;
        let tree = || Tree::new(bytes).ok_or(MemoryError::Refused { purpose, megabytes });
        let is_shared = params.transpositions == Transpositions::Shared;
        Ok(Search {
            shared: is_shared.then(SharedNodes::default),
            exploration: Exploration::new(&params.interior),
            params,
            tree: tree()?,
            spare: tree()?,
            game: Game::new(),
            seed: Seed::new(0),
            only: Vec::new(),
            generation: 0,
            sharing: Sharing::Alone,
            budget: 0,
            started: AtomicU64::new(0),
            finished: AtomicU64::new(0),
            full: AtomicBool::new(false),
            root: Mutex::new(Root { raw: Wdl::EVEN, gumbel: None }),
            probes: Probes::default(),
        })
    }

    /// Probes these tablebases from the next start on, and clears the tree.
    pub fn set_tables(&mut self, tables: Option<Tables>) {
        self.probes = Probes::new(tables);
        self.clear();
    }

    pub fn params(&self) -> &SearchParams {
        &self.params
    }

    /// Changes the root rule from the next start on.
    pub fn set_root_rule(&mut self, rule: RootRule) {
        self.params.root = rule;
    }

    /// Sets the root and the budget of simulations. Keeps the subtree when the game has continued
    /// from the last root, unless nodes are shared.
    pub fn start(&mut self, game: &Game, simulations: u64, seed: Seed) {
        self.start_among(game, &[], simulations, seed);
    }

    /// Like [`Search::start`], restricted to some root moves (`only` empty: all). When tablebases
    /// know the root, only the best-ranked of them are searched.
    pub fn start_among(&mut self, game: &Game, only: &[Move], simulations: u64, seed: Seed) {
        let ranking = self.probes.rank_root(game, only);
        let best: Vec<Move> = ranking.iter().flat_map(Ranking::best_moves).collect();
        let only = if best.is_empty() { only } else { best.as_slice() };
        // With only one move there is nothing to find out.
        let simulations = if best.len() == 1 { simulations.min(1) } else { simulations };
        let kept = if only.is_empty() && self.only.is_empty() { self.find(game) } else { None };
        // Adding noise to the same root twice would give a different distribution.
        let is_noisy = matches!(self.params.root, RootRule::Puct(Some(_)));
        let kept = kept.filter(|&index| !(is_noisy && index == ROOT) && self.shared.is_none());
        match kept {
            Some(ROOT) => {}
            Some(index) => self.reroot(index),
            None => self.clear_tree(),
        }
        self.generation += 1;
        self.only = only.to_vec();
        self.game.clone_from(game);
        self.seed = seed;
        // Visits are counted in 32 bits. Without a legal move there is nothing to simulate.
        let most = u64::from(u32::MAX / 2 - self.tree.node(ROOT).visits().min(u32::MAX / 2));
        let can_move = !game.legal_moves().is_empty();
        self.budget = if can_move { simulations.min(most) } else { 0 };
        self.started.store(0, Relaxed);
        self.finished.store(0, Relaxed);
        self.full.store(false, Relaxed);
        let node = self.tree.node(ROOT);
        let raw =
            if kept.is_some() { Wdl::new(node.value_to_move(), node.draw()) } else { Wdl::EVEN };
        *self.root() = Root { raw, gumbel: None };
        if self.tree.node(ROOT).is_expanded() {
            self.apply_root_temperature();
            self.prepare_root();
        }
    }

    pub fn clear(&mut self) {
        self.clear_tree();
        self.generation += 1;
        self.game = Game::new();
        self.only.clear();
    }

    fn clear_tree(&mut self) {
        self.tree.clear();
        if let Some(shared) = &self.shared {
            shared.clear();
        }
    }

    /// Starts simulations until `size` leaves wait in the batch or no more can be started now.
    /// False when none could be started.
    ///
    /// Simulations that need no evaluation are finished at once. Returns early after many of those,
    /// so that the caller can check its clock.
    pub fn gather(&self, batch: &mut Batch, size: usize) -> bool {
        batch.begin(&self.game, self.generation);
        let mut started = false;
        for _ in 0..size + 64 {
            if batch.waiting.len() >= size {
                break;
            }
            match self.simulate(batch) {
                Simulation::Leaf | Simulation::Finished | Simulation::Resumed => started = true,
                Simulation::None => break,
            }
        }
        started
    }

    /// Expands the evaluated leaves of the batch and backs their values up.
    pub fn apply(&self, batch: &mut Batch) {
        for index in 0..batch.waiting.len() {
            let path = std::mem::take(&mut batch.waiting[index]);
            let leaf = &batch.leaves[index];
            let evaluation = &mut batch.evaluations[index];
            let last = *path.last().expect("a path has at least the root");
            let logits = &mut evaluation.logits;
            let expand = || self.expand(last, leaf, logits, &mut batch.scratch);
            let expanded =
                leaf.need.policy() && self.expand_once(last, leaf, path.len() - 1, expand);
            if expanded && last == ROOT {
                self.root().raw = evaluation.wdl;
                self.prepare_root();
            }
            if leaf.need == Need::Policy {
                if expanded {
                    batch.resumed.push(path);
                } else {
                    self.abandon(path, batch);
                }
            } else {
                let moved_here = evaluation.wdl.flip();
                self.back_up(path, moved_here, Ending::Evaluated, batch);
            }
        }
        batch.waiting.clear();
    }

    /// True when more simulations cannot change the result.
    pub fn is_solved(&self) -> bool {
        self.tree.node(ROOT).proof() != Proof::Unknown
    }

    /// The proven result of the root, for the side to move.
    pub fn proof(&self) -> Proof {
        self.tree.node(ROOT).proof().flip()
    }

    /// True when the tree has no memory left: call [`Search::recycle`] once no batch has work in
    /// it.
    pub fn is_full(&self) -> bool {
        self.full.load(Relaxed)
    }

    /// Frees memory by dropping the children of the least visited nodes. False when that is not
    /// enough, and always with shared nodes.
    pub fn recycle(&mut self) -> bool {
        if self.shared.is_some() {
            return false;
        }
        let target = self.tree.max_bytes() / 2;
        let keep = Keep { min_visits: self.tree.visits_worth_keeping(target), forget_draws: false };
        self.spare.copy_subtree(&self.tree, ROOT, keep);
        std::mem::swap(&mut self.tree, &mut self.spare);
        self.generation += 1;
        self.full.store(false, Relaxed);
        self.reserve_root();
        self.tree.node(ROOT).is_expanded()
    }

    /// Simulations finished since the start.
    pub fn simulations(&self) -> u64 {
        self.finished.load(Relaxed)
    }

    /// Simulations that can still be started.
    pub fn remaining(&self) -> u64 {
        self.budget.saturating_sub(self.started.load(Relaxed))
    }

    /// Positions found in tablebases since the start.
    pub fn tablebase_hits(&self) -> u64 {
        self.probes.hits()
    }

    pub fn nodes(&self) -> usize {
        self.tree.len()
    }

    /// Memory in use by the tree.
    pub fn tree_bytes(&self) -> usize {
        self.tree.bytes()
    }

    /// The most memory used so far by both trees and by the table of shared nodes.
    pub fn memory_bytes(&self) -> usize {
        let shared = self.shared.as_ref().map_or(0, SharedNodes::bytes);
        self.tree.touched_bytes() + self.spare.touched_bytes() + shared
    }

    /// Memory in use, per thousand.
    pub fn permille_full(&self) -> u32 {
        (self.tree.bytes() * 1000 / self.tree.max_bytes()).min(1000) as u32
    }

    /// Visits of the root moves, in the tree's order.
    pub fn root_visits(&self) -> Vec<u32> {
        let children = self.root_children();
        (0..children.len()).map(|child| children.visits(child)).collect()
    }

    /// Simulations in flight; 0 once every batch is applied.
    pub fn simulations_in_flight(&self) -> u32 {
        u32::from(self.tree.most_in_flight())
    }

    pub(super) fn share(&mut self, sharing: Sharing) {
        self.sharing = sharing;
    }

    /// The node of the game's position, when the game has continued from the root.
    fn find(&self, game: &Game) -> Option<u32> {
        let root_ply = self.game.ply();
        let same_clock = game.start().halfmoves() == self.game.start().halfmoves();
        let same_history = (0..=root_ply).all(|ply| game.key_at(ply) == self.game.key_at(ply));
        if !same_clock || !same_history {
            return None;
        }
        let mut index = ROOT;
        for m in game.moves().skip(root_ply) {
            let children = self.tree.children(self.tree.node(index));
            let m = PackedMove::new(m);
            let chosen = (0..children.len()).find(|&child| children.played(child) == m)?;
            index = children.index(chosen)?;
        }
        Some(index)
    }

    fn reroot(&mut self, index: u32) {
        let keep = Keep { min_visits: 0, forget_draws: true };
        self.spare.copy_subtree(&self.tree, index, keep);
        std::mem::swap(&mut self.tree, &mut self.spare);
        // A root without children starts from scratch.
        if !self.tree.node(ROOT).is_expanded() {
            self.tree.node(ROOT).forget();
        }
    }

    pub(super) fn root_children(&self) -> Children<'_> {
        self.tree.children(self.tree.node(ROOT))
    }

    pub(super) fn root(&self) -> MutexGuard<'_, Root> {
        // After a panic of another thread, at worst one simulation is not counted.
        self.root.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
