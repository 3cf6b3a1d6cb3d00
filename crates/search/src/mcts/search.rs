//! The search: a tree, its root, and the two halves of a simulation.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use selfmate_chess::tablebase::{Ranking, Tables};
use selfmate_chess::{Game, Move, Position, Seed};

use super::batch::Batch;
use super::edge::{self, Edge};
use super::gumbel::GumbelRoot;
use super::node::{Node, Sharing};
use super::params::{Expansion, RootRule, SearchParams, Transpositions};
use super::probe::Probes;
use super::result::Proof;
use super::select::{Choice, Exploration};
use super::shared::SharedNodes;
use super::tree::{Children, Keep, ROOT, Tree};
use crate::evaluator::{Leaf, Need};
use crate::math::softmax;
use crate::memory::{MemoryError, check_limit};
use crate::packed_move::PackedMove;
use crate::terminal::terminal;
use crate::value::{Wdl, flip_value};

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
    exploration: Exploration,
    pub(super) tree: Tree,
    /// The second tree: subtrees worth keeping are copied here.
    spare: Tree,
    /// With [`Transpositions::Shared`].
    pub(super) shared: Option<SharedNodes>,
    pub(super) game: Game,
    pub(super) seed: Seed,
    /// The only root moves to search; empty means all.
    only: Vec<Move>,
    /// Changes whenever node indices change, so that a batch notices.
    generation: u64,
    sharing: Sharing,
    /// The number of simulations that may be started.
    pub(super) budget: u64,
    started: AtomicU64,
    finished: AtomicU64,
    /// A node could not be expanded because the tree is full.
    full: AtomicBool,
    root: Mutex<Root>,
    pub(super) probes: Probes,
}

#[derive(Debug)]
pub(super) struct Root {
    pub raw: Wdl,
    pub gumbel: Option<GumbelRoot>,
}

/// Simulations that a thread takes from the budget, and reports as finished, at a time.
const SHARE: u64 = 64;

/// The source of a value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    Evaluated,
    /// A node proven by an earlier simulation.
    Known,
    /// A node that this simulation has proven.
    JustProven,
    /// The end of the game on this path, but perhaps not on others to the same node.
    OnThisPath,
}

/// The end of a simulation.
pub(super) enum Simulation {
    /// At a leaf that must be evaluated.
    Leaf,
    /// Finished without an evaluation.
    Finished,
    /// At a node that now has children; the simulation continues from there.
    Resumed,
    /// Abandoned: no budget, no memory, or another simulation already waits at the leaf.
    None,
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

    fn simulate(&self, batch: &mut Batch) -> Simulation {
        let mut path = match batch.resumed.pop() {
            Some(path) => {
                self.replay_path(batch, &path);
                path
            }
            None => {
                // The root's own evaluation is not counted as a simulation.
                let root = self.tree.node(ROOT);
                if root.is_expanded() && !self.take_from_budget(batch) {
                    return Simulation::None;
                }
                root.enter(self.sharing);
                let mut path = batch.idle.pop().unwrap_or_default();
                path.clear();
                path.push(ROOT);
                path
            }
        };
        loop {
            let index = *path.last().expect("a path has at least the root");
            let node = self.tree.node(index);
            if index != ROOT
                && let Some(wdl) = node.proof().wdl()
            {
                self.back_up(path, wdl, Ending::Known, batch);
                return Simulation::Finished;
            }
            if !node.is_expanded() {
                return self.reach_leaf(batch, path);
            }
            if self.is_drawn_on_this_path(batch, path.len()) {
                self.back_up(path, Wdl::DRAW, Ending::OnThisPath, batch);
                return Simulation::Finished;
            }
            let children = self.tree.children(node);
            let chosen = self.choose(index, node, children);
            let Some(child) = children.index_or_add(chosen) else {
                self.full.store(true, Relaxed);
                self.abandon(path, batch);
                return Simulation::None;
            };
            self.tree.node(child).enter(self.sharing);
            // In a large tree, memory latency dominates; playing the move overlaps with the
            // prefetch.
            self.tree.prefetch_children(self.tree.node(child));
            if batch.path.get(path.len()) != Some(&child) {
                batch.rewind_to(path.len());
                batch.descend(children.played(chosen), child);
            }
            path.push(child);
        }
    }

    /// Ends a simulation at a node without children: proves it, adds it to the batch, or gives it the
    /// children of another node.
    fn reach_leaf(&self, batch: &mut Batch, path: Vec<u32>) -> Simulation {
        batch.rewind_to(path.len());
        let index = *path.last().expect("a path has at least the root");
        let node = self.tree.node(index);
        if node.in_flight() > 1 || node.is_expanded() {
            // Another simulation waits for this evaluation, or has just expanded the node.
            self.abandon(path, batch);
            return Simulation::None;
        }
        let need = match self.params.expansion {
            _ if node.visits() > 0 => Need::Policy,
            _ if index == ROOT => Need::Both,
            Expansion::FirstVisit | Expansion::RandomUntried => Need::Both,
            Expansion::SecondVisit => Need::Value,
        };
        if index == ROOT {
            if batch.game.legal_moves().is_empty() {
                self.abandon(path, batch);
                return Simulation::None;
            }
        } else if let Some(proof) =
            terminal(&batch.game, batch.root_ply).or_else(|| self.probes.proof(&batch.game))
        {
            let wdl = proof.wdl().expect("a proof has a certain result");
            let ending = if self.ends_on_every_path(batch, path.len() - 1) {
                node.prove(proof);
                Ending::JustProven
            } else {
                Ending::OnThisPath
            };
            self.back_up(path, wdl, ending, batch);
            return Simulation::Finished;
        } else if let Some(first) = self.join(index, batch, path.len() - 1) {
            return self.continue_below(first, path, batch);
        }
        batch.add_leaf(path, need);
        Simulation::Leaf
    }

    fn choose(&self, index: u32, node: &Node, children: Children<'_>) -> usize {
        let visits = self.position_visits(node, children);
        let interior = |allowed, unordered| {
            let virtual_loss = self.params.virtual_loss;
            let untried_first = self.params.expansion == Expansion::RandomUntried;
            let exploration = &self.exploration;
            Choice {
                node,
                visits,
                children,
                virtual_loss,
                allowed,
                unordered,
                untried_first,
                exploration,
            }
            .select(&self.params.interior)
        };
        if index != ROOT {
            return interior(None, false);
        }
        match &self.params.root {
            RootRule::Puct(None) => interior(None, false),
            RootRule::Puct(Some(_)) => interior(None, true),
            RootRule::Gumbel(_) => {
                let mut root = self.root();
                let raw = root.raw.value();
                match &mut root.gumbel {
                    None => interior(None, false),
                    Some(gumbel) => gumbel
                        .select(&children, raw)
                        .unwrap_or_else(|| interior(Some(gumbel.candidates()), true)),
                }
            }
        }
    }

    /// Takes one simulation from the budget; false when none is left.
    fn take_from_budget(&self, batch: &mut Batch) -> bool {
        if batch.tokens == 0 {
            // Threads take many at a time, because a counter that all threads write is slow.
            let wanted = if self.sharing == Sharing::Alone { 1 } else { SHARE };
            let started = self.started.load(Relaxed);
            let take =
                |started: u64| (started < self.budget).then(|| self.budget.min(started + wanted));
            let before = match self.sharing {
                Sharing::Alone => take(started).map(|next| {
                    self.started.store(next, Relaxed);
                    started
                }),
                Sharing::Threads => self.started.fetch_update(Relaxed, Relaxed, take).ok(),
            };
            batch.tokens = before.map_or(0, |started| wanted.min(self.budget - started));
        }
        let got_one = batch.tokens > 0;
        batch.tokens -= u64::from(got_one);
        got_one
    }

    fn count_finished(&self, batch: &mut Batch) {
        match self.sharing {
            Sharing::Alone => self.finished.store(self.finished.load(Relaxed) + 1, Relaxed),
            Sharing::Threads => {
                batch.finished += 1;
                if batch.finished >= SHARE {
                    self.finished.fetch_add(std::mem::take(&mut batch.finished), Relaxed);
                }
            }
        }
    }

    /// Abandons the unfinished simulations of a batch and updates the search's counts.
    pub(super) fn settle(&self, batch: &mut Batch) {
        while let Some(path) = batch.resumed.pop() {
            self.abandon(path, batch);
        }
        self.started.fetch_sub(std::mem::take(&mut batch.tokens), Relaxed);
        self.finished.fetch_add(std::mem::take(&mut batch.finished), Relaxed);
    }

    /// Undoes a simulation, as if it had never started.
    fn abandon(&self, path: Vec<u32>, batch: &mut Batch) {
        for &index in &path {
            self.tree.node(index).leave(self.sharing);
        }
        // The root's own evaluation took nothing from the budget.
        batch.tokens += u64::from(path.len() > 1 || self.tree.node(ROOT).is_expanded());
        if let RootRule::Gumbel(_) = self.params.root
            && let Some(&child) = path.get(1)
            && let Some(gumbel) = &mut self.root().gumbel
        {
            let children = self.root_children();
            let chosen = (0..children.len()).find(|&i| children.index(i) == Some(child));
            gumbel.unselect(chosen.expect("a simulation starts with a child of the root"));
        }
        batch.idle.push(path);
    }

    /// Backs a value up. `wdl` is from the point of view of the player who moved into the last
    /// node.
    pub(super) fn back_up(&self, path: Vec<u32>, wdl: Wdl, ending: Ending, batch: &mut Batch) {
        let (mut value, mut draw) = (wdl.value(), wdl.draw);
        // A proof may propagate upwards from a node that was just proven. A shared node may have been
        // proven by a simulation through another parent.
        let may_propagate =
            ending == Ending::JustProven || (ending == Ending::Known && self.shared.is_some());
        let mut proven_below = false;
        for &index in path.iter().rev() {
            let node = self.tree.node(index);
            if proven_below {
                let proof = Proof::from_replies(self.tree.children(node).proofs());
                // With only some root moves searched, the root itself cannot be proven.
                let is_whole = index != ROOT || self.only.is_empty();
                proven_below = proof != Proof::Unknown && is_whole;
                if proven_below && let Some(mean) = proof.mean() {
                    node.prove(proof);
                    (value, draw) = mean;
                }
            } else {
                proven_below = may_propagate && Some(&index) == path.last();
            }
            node.finish(value, draw, self.sharing);
            value = flip_value(value) * self.params.discount;
        }
        if path.len() > 1 {
            self.count_finished(batch);
            let is_known = ending != Ending::Evaluated;
            batch.stats.count(path.len() - 1, wdl.value(), is_known);
        }
        batch.idle.push(path);
    }

    /// Gives a node its children. False when the tree is full.
    fn expand(&self, index: u32, leaf: &Leaf, logits: &mut [f32], edges: &mut Vec<Edge>) -> bool {
        assert_eq!(logits.len(), leaf.legal.len(), "one logit for each legal move");
        let temperature = match index {
            ROOT => self.params.root_policy_temperature,
            _ => self.params.policy_temperature,
        };
        softmax(logits, temperature);
        edges.clear();
        let legal = leaf.legal.iter().map(|&m| PackedMove::new(m));
        edges.extend(legal.zip(&*logits).map(|(m, &prior)| Edge::new(m, prior)));
        if index == ROOT && !self.only.is_empty() {
            let only = |m| self.only.iter().any(|&only| PackedMove::new(only) == m);
            edges.retain(|edge| only(edge.played()));
        }
        match self.params.expansion {
            // Highest prior first: a simulation then looks only at tried children and the next
            // untried one.
            Expansion::FirstVisit | Expansion::SecondVisit => edge::sort(edges),
            // The first untried child is then a random one. The order must not depend on the index of
            // the node, which depends on where the tree is in memory.
            Expansion::RandomUntried => {
                let seed = self.seed.derive("untried").index(leaf.game.key());
                seed.rng().shuffle(edges);
            }
        }
        let expanded = self.tree.expand(self.tree.node(index), edges);
        if !expanded {
            self.full.store(true, Relaxed);
        }
        expanded
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

    /// Moves the batch's game to the end of a resumed path.
    fn replay_path(&self, batch: &mut Batch, path: &[u32]) {
        let common = batch.path.iter().zip(path).take_while(|(a, b)| a == b).count();
        batch.rewind_to(common);
        for step in path[common - 1..].windows(2) {
            let children = self.tree.children(self.tree.node(step[0]));
            let chosen = (0..children.len()).find(|&child| children.index(child) == Some(step[1]));
            let chosen = chosen.expect("a path goes from parents to children");
            batch.descend(children.played(chosen), step[1]);
        }
    }
}
