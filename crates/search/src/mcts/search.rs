//! One search: a tree, its root, and the two halves of a simulation.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use selfmate_chess::{Game, Move, Position, Seed};

use super::batch::Batch;
use super::gumbel::{GumbelRoot, improved_policy};
use super::node::{Node, Sharing};
use super::params::{Dirichlet, Expansion, RootRule, SearchParams};
use super::result::{MoveStatistics, Proof, SearchResult};
use super::select::Choice;
use super::tree::{Keep, ROOT, Tree};
use crate::evaluator::{Leaf, Need};
use crate::math::softmax;
use crate::packed_move::PackedMove;
use crate::terminal::terminal;
use crate::value::Wdl;

/// A search tree with its root position.
///
/// [`Search::gather`] and [`Search::apply`] may be called from several threads, each with its own
/// [`Batch`]; everything else needs the search for itself.
pub struct Search {
    params: SearchParams,
    tree: Tree,
    /// Where the part of the tree worth keeping is copied to.
    spare: Tree,
    game: Game,
    seed: Seed,
    /// When not empty, the only root moves to look at.
    only: Vec<Move>,
    sharing: Sharing,
    /// Simulations that may be started.
    budget: u64,
    started: AtomicU64,
    finished: AtomicU64,
    /// A node could not be expanded for lack of room.
    full: AtomicBool,
    root: Mutex<Root>,
}

/// What only the root needs.
#[derive(Debug)]
struct Root {
    raw: Wdl,
    gumbel: Option<GumbelRoot>,
}

/// How a walk ended.
enum Walk {
    /// At a leaf that must be evaluated.
    Leaf,
    /// At a position whose value is known; the simulation is finished.
    Known,
    /// Without result: no budget, no room, or another walk is already waiting there.
    None,
}

impl Search {
    /// An empty search.
    pub fn new(params: SearchParams) -> Search {
        // Copying needs up to half a tree beside the full one.
        let nodes = params.memory_mb.max(1) * 1_048_576 / size_of::<Node>() * 2 / 3;
        Search {
            params,
            tree: Tree::new(nodes),
            spare: Tree::new(nodes),
            game: Game::new(),
            seed: Seed::new(0),
            only: Vec::new(),
            sharing: Sharing::Alone,
            budget: 0,
            started: AtomicU64::new(0),
            finished: AtomicU64::new(0),
            full: AtomicBool::new(false),
            root: Mutex::new(Root { raw: Wdl::EVEN, gumbel: None }),
        }
    }

    /// The settings.
    pub fn params(&self) -> &SearchParams {
        &self.params
    }

    /// Sets the root, with a budget of simulations. Keeps the part of the tree that is still
    /// good when the game has gone on from the last root.
    pub fn start(&mut self, game: &Game, simulations: u64, seed: Seed) {
        self.start_among(game, &[], simulations, seed);
    }

    /// As [`Search::start`], looking only at some root moves (all, when there are none).
    pub fn start_among(&mut self, game: &Game, only: &[Move], simulations: u64, seed: Seed) {
        let kept = if only.is_empty() && self.only.is_empty() { self.find(game) } else { None };
        match kept {
            Some(index) => self.reroot(index),
            None => self.tree.clear(),
        }
        self.only = only.to_vec();
        self.game.clone_from(game);
        self.seed = seed;
        self.budget = simulations;
        self.started.store(0, Relaxed);
        self.finished.store(0, Relaxed);
        self.full.store(false, Relaxed);
        let (value, draw) = self.tree.node(ROOT).mean();
        let raw = if kept.is_some() { Wdl::new(-value, draw) } else { Wdl::EVEN };
        *self.root() = Root { raw, gumbel: None };
        if self.tree.node(ROOT).children().is_some() {
            self.prepare_root();
        }
    }

    /// Forgets the tree.
    pub fn clear(&mut self) {
        self.tree.clear();
        self.game = Game::new();
        self.only.clear();
    }

    /// Starts walks until `size` leaves wait in the batch, or no more can be started now.
    ///
    /// Walks that end at a known result are finished at once. Returns early after many of those,
    /// so that the caller can look at its clock.
    pub fn gather(&self, batch: &mut Batch, size: usize) {
        batch.begin(&self.game);
        for _ in 0..size + 64 {
            if batch.waiting.len() >= size {
                break;
            }
            match self.walk(batch) {
                Walk::Leaf | Walk::Known => {}
                Walk::None => break,
            }
        }
    }

    /// Expands the batch's leaves and carries their values up, once they are evaluated.
    pub fn apply(&self, batch: &mut Batch) {
        for index in 0..batch.waiting.len() {
            let path = std::mem::take(&mut batch.waiting[index]);
            let leaf = &batch.leaves[index];
            let evaluation = &mut batch.evaluations[index];
            let last = *path.last().expect("a path has at least the root");
            let node = self.tree.node(last);
            let expanded = leaf.need.policy()
                && self.expand(
                    node,
                    last == ROOT,
                    leaf,
                    &mut evaluation.logits,
                    &mut batch.scratch,
                );
            if expanded && last == ROOT {
                self.root().raw = evaluation.wdl;
                self.prepare_root();
            }
            if leaf.need == Need::Policy {
                if expanded {
                    batch.resumed.push(path);
                } else {
                    self.give_up(&path);
                    batch.idle.push(path);
                }
            } else {
                let moved_here = evaluation.wdl.flip();
                self.back_up(&path, moved_here, false);
                batch.idle.push(path);
            }
        }
        batch.waiting.clear();
    }

    /// True once nothing that could be searched would change the result.
    pub fn is_solved(&self) -> bool {
        self.tree.node(ROOT).proof() != Proof::Unknown
    }

    /// True when the tree has no room: call [`Search::recycle`] once no batch has work in it.
    pub fn is_full(&self) -> bool {
        self.full.load(Relaxed)
    }

    /// Makes room by forgetting the children of the least visited nodes. False when even that
    /// leaves none.
    pub fn recycle(&mut self) -> bool {
        let target = self.tree.capacity() / 2;
        let keep = Keep { min_visits: self.tree.visits_worth_keeping(target), forget_draws: false };
        self.spare.copy_subtree(&self.tree, ROOT, keep);
        std::mem::swap(&mut self.tree, &mut self.spare);
        self.full.store(false, Relaxed);
        self.tree.node(ROOT).children().is_some()
    }

    /// Simulations finished since the start.
    pub fn simulations(&self) -> u64 {
        self.finished.load(Relaxed)
    }

    /// Simulations that can still be started.
    pub fn remaining(&self) -> u64 {
        self.budget.saturating_sub(self.started.load(Relaxed))
    }

    /// Nodes in the tree.
    pub fn nodes(&self) -> usize {
        self.tree.len()
    }

    /// Memory the tree takes now.
    pub fn memory_bytes(&self) -> usize {
        self.tree.len() * size_of::<Node>()
    }

    /// How much of the memory is used, in thousandths.
    pub fn permille_full(&self) -> u32 {
        (self.tree.len() * 1000 / self.tree.capacity().max(1)).min(1000) as u32
    }

    /// Visits of the root moves, in the tree's order.
    pub fn root_visits(&self) -> Vec<u32> {
        self.tree.children(self.tree.node(ROOT)).iter().map(Node::visits).collect()
    }

    /// Walks that have started and not ended; 0 once every batch is applied.
    pub fn walks_under_way(&self) -> u32 {
        let mut pending = vec![ROOT];
        let mut most = 0;
        while let Some(index) = pending.pop() {
            let node = self.tree.node(index);
            most = most.max(u32::from(node.in_flight()));
            if let Some((first, count)) = node.children() {
                pending.extend(first..first + count as u32);
            }
        }
        most
    }

    pub(super) fn share(&mut self, sharing: Sharing) {
        self.sharing = sharing;
    }

    /// What the search has found so far.
    pub fn result(&self) -> SearchResult {
        let node = self.tree.node(ROOT);
        let children = self.tree.children(node);
        let root = self.root();
        let (value, draw) = node.mean();
        let wdl = if node.visits() > 0 { Wdl::new(-value, draw) } else { root.raw };
        let policy = self.policy_target(&root, children);
        let best = self.best_child(&root, children);
        let mut order: Vec<usize> = (0..children.len()).collect();
        order.sort_by_key(|&i| (Some(i) != best, std::cmp::Reverse(children[i].visits())));
        let board = self.game.position().board();
        let statistics = |&i: &usize| {
            let child = &children[i];
            let (value, draw) = child.mean();
            MoveStatistics {
                played: child.played().unpack(board),
                visits: child.visits(),
                prior: child.prior(),
                wdl: if child.visits() > 0 { Wdl::new(value, draw) } else { Wdl::EVEN },
                proof: child.proof(),
                line: self.line(child),
            }
        };
        SearchResult {
            best: best.map(|i| children[i].played().unpack(board)),
            wdl,
            raw_wdl: root.raw,
            policy_target: order.iter().map(|&i| policy[i]).collect(),
            moves: order.iter().map(statistics).collect(),
            simulations: self.simulations(),
            proof: node.proof().flip(),
        }
    }

    fn walk(&self, batch: &mut Batch) -> Walk {
        let mut path = match batch.resumed.pop() {
            Some(path) => {
                self.stand_at_end(batch, &path);
                path
            }
            None => {
                // The root's own evaluation is not a simulation: it has nothing to choose yet.
                let root = self.tree.node(ROOT);
                if root.children().is_some() && !self.take_from_budget() {
                    return Walk::None;
                }
                root.enter(self.sharing);
                batch.game.rewind(batch.root_ply);
                batch.standing_at = ROOT;
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
                self.back_up(&path, wdl, false);
                batch.idle.push(path);
                return Walk::Known;
            }
            let Some((first, count)) = node.children() else {
                return self.reach_leaf(batch, path);
            };
            let children = self.tree.children(node);
            debug_assert_eq!(children.len(), count);
            let chosen = self.choose(index, node, children);
            let child = &children[chosen];
            child.enter(self.sharing);
            let m = child.played().unpack(batch.game.position().board());
            batch.game.play_unchecked(m);
            batch.standing_at = first + chosen as u32;
            path.push(first + chosen as u32);
        }
    }

    /// Ends a walk at a node without children: it is over, or its evaluation is asked for.
    fn reach_leaf(&self, batch: &mut Batch, path: Vec<u32>) -> Walk {
        let index = *path.last().expect("a path has at least the root");
        let node = self.tree.node(index);
        if node.in_flight() > 1 {
            // Another walk already waits for this evaluation.
            self.give_up(&path);
            batch.idle.push(path);
            return Walk::None;
        }
        let need = match self.params.expansion {
            _ if node.visits() > 0 => Need::Policy,
            _ if index == ROOT => Need::Both,
            Expansion::FirstVisit => Need::Both,
            Expansion::SecondVisit => Need::Value,
        };
        if index == ROOT {
            if batch.game.legal_moves().is_empty() {
                self.give_up(&path);
                batch.idle.push(path);
                return Walk::None;
            }
        } else if need != Need::Policy
            && let Some(proof) = terminal(&batch.game, batch.root_ply)
        {
            node.prove(proof);
            let wdl = proof.wdl().expect("the end of a game is known");
            self.back_up(&path, wdl, true);
            batch.idle.push(path);
            return Walk::Known;
        }
        batch.ask(path, need);
        Walk::Leaf
    }

    fn choose(&self, index: u32, node: &Node, children: &[Node]) -> usize {
        let interior = |allowed, unordered| {
            let virtual_loss = self.params.virtual_loss;
            Choice { node, children, virtual_loss, allowed, unordered }
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
                        .select(children, raw)
                        .unwrap_or_else(|| interior(Some(gumbel.candidates()), true)),
                }
            }
        }
    }

    /// Takes one simulation from the budget; false when none is left.
    fn take_from_budget(&self) -> bool {
        match self.sharing {
            Sharing::Alone => {
                let started = self.started.load(Relaxed);
                self.started.store(started + u64::from(started < self.budget), Relaxed);
                started < self.budget
            }
            Sharing::Threads => {
                let next = |started| (started < self.budget).then_some(started + 1);
                self.started.fetch_update(Relaxed, Relaxed, next).is_ok()
            }
        }
    }

    /// Ends a walk without a result, as if it had never started.
    fn give_up(&self, path: &[u32]) {
        for &index in path {
            self.tree.node(index).leave(self.sharing);
        }
        if let Some(&child) = path.get(1) {
            self.started.fetch_sub(1, Relaxed);
            if let RootRule::Gumbel(_) = self.params.root
                && let Some(gumbel) = &mut self.root().gumbel
                && let Some((first, _)) = self.tree.node(ROOT).children()
            {
                gumbel.unselect((child - first) as usize);
            }
        }
    }

    /// Carries a value up. `wdl` speaks for the player who moved into the last node.
    fn back_up(&self, path: &[u32], wdl: Wdl, proven: bool) {
        let (mut value, mut draw) = (wdl.value(), wdl.draw);
        // While the node below was just proven, this one may be too.
        let mut proven_below = false;
        for &index in path.iter().rev() {
            let node = self.tree.node(index);
            if proven_below {
                let proof = Proof::from_replies(self.tree.children(node).iter().map(Node::proof));
                proven_below = proof != Proof::Unknown && self.only.is_empty();
                if proven_below && let Some(mean) = proof.mean() {
                    node.prove(proof);
                    (value, draw) = mean;
                }
            } else {
                proven_below = proven && Some(&index) == path.last();
            }
            node.leave(self.sharing);
            node.add(value, draw, self.sharing);
            value = -value * self.params.discount;
        }
        if path.len() > 1 {
            self.finished.fetch_add(1, Relaxed);
        }
    }

    /// Gives a node its children. False when the tree is full.
    fn expand(
        &self,
        node: &Node,
        is_root: bool,
        leaf: &Leaf,
        logits: &mut [f32],
        scratch: &mut Vec<(PackedMove, f32)>,
    ) -> bool {
        assert_eq!(logits.len(), leaf.legal.len(), "one logit for each legal move");
        let params = &self.params;
        let temperature =
            if is_root { params.root_policy_temperature } else { params.policy_temperature };
        softmax(logits, temperature);
        scratch.clear();
        scratch.extend(
            leaf.legal.iter().zip(&*logits).map(|(&m, &prior)| (PackedMove::new(m), prior)),
        );
        if is_root && !self.only.is_empty() {
            scratch.retain(|(m, _)| self.only.iter().any(|&only| PackedMove::new(only) == *m));
        }
        // Best prior first: a walk then looks only at children tried before and one more.
        scratch.sort_by(|a, b| b.1.total_cmp(&a.1));
        let expanded = self.tree.expand(node, scratch);
        if !expanded {
            self.full.store(true, Relaxed);
        }
        expanded
    }

    /// Noise or candidates, once the root has children.
    fn prepare_root(&self) {
        let children = self.tree.children(self.tree.node(ROOT));
        let mut rng = self.seed.derive("root").rng();
        match &self.params.root {
            RootRule::Puct(None) => {}
            RootRule::Puct(Some(Dirichlet { alpha, epsilon })) => {
                let noise: Vec<f64> =
                    children.iter().map(|_| rng.gamma(f64::from(*alpha))).collect();
                let sum: f64 = noise.iter().sum::<f64>().max(f64::MIN_POSITIVE);
                for (child, noise) in children.iter().zip(noise) {
                    let share = (noise / sum) as f32;
                    child.set_prior((1.0 - epsilon) * child.prior() + epsilon * share);
                }
            }
            RootRule::Gumbel(gumbel) => {
                let simulations = usize::try_from(self.budget.min(1 << 20)).unwrap_or(1 << 20);
                let gumbel = GumbelRoot::new(*gumbel, children, simulations, &mut rng);
                self.root().gumbel = Some(gumbel);
            }
        }
    }

    fn policy_target(&self, root: &Root, children: &[Node]) -> Vec<f32> {
        match &self.params.root {
            RootRule::Gumbel(params) => {
                improved_policy(children, root.raw.value(), params.c_visit, params.c_scale)
            }
            RootRule::Puct(_) => {
                let total: u32 = children.iter().map(Node::visits).sum();
                let share = |child: &Node| match total {
                    0 => child.prior(),
                    _ => child.visits() as f32 / total as f32,
                };
                children.iter().map(share).collect()
            }
        }
    }

    fn best_child(&self, root: &Root, children: &[Node]) -> Option<usize> {
        let win = |i: &usize| match children[*i].proof() {
            Proof::Win(plies) => Some(plies),
            _ => None,
        };
        if let Some(mate) = (0..children.len()).filter(|i| win(i).is_some()).min_by_key(win) {
            return Some(mate);
        }
        let lost = |i: usize| match children[i].proof() {
            Proof::Loss(plies) => Some(plies),
            _ => None,
        };
        if (0..children.len()).all(|i| lost(i).is_some()) {
            return (0..children.len()).max_by_key(|&i| lost(i));
        }
        let gumbel_winner = root.gumbel.as_ref().and_then(|g| g.winner(children, root.raw.value()));
        if let Some(winner) = gumbel_winner.filter(|&i| lost(i).is_none()) {
            return Some(winner);
        }
        let temperature = self.params.temperature;
        if temperature.value > 0.0 && self.game.ply() < temperature.plies as usize {
            let weight =
                |i: usize| f64::from(children[i].visits()).powf(1.0 / f64::from(temperature.value));
            let total: f64 = (0..children.len()).map(weight).sum();
            let mut drawn = self.seed.derive("choose").rng().unit() * total;
            if total > 0.0 {
                for i in 0..children.len() {
                    drawn -= weight(i);
                    if drawn < 0.0 {
                        return Some(i);
                    }
                }
            }
        }
        (0..children.len()).max_by(|&a, &b| {
            let key = |i: usize| (lost(i).is_none(), children[i].visits());
            key(a)
                .cmp(&key(b))
                .then(children[a].prior().total_cmp(&children[b].prior()))
                .then(b.cmp(&a))
        })
    }

    /// The most visited continuation that starts with this root child.
    fn line(&self, child: &Node) -> Vec<Move> {
        let mut position = self.game.position().clone();
        let mut line = Vec::new();
        let mut node = child;
        loop {
            let m = node.played().unpack(position.board());
            position.play_unchecked(m);
            line.push(m);
            let next = self.tree.children(node).iter().rev().max_by_key(|child| child.visits());
            match next {
                Some(next) if next.visits() > 0 => node = next,
                _ => return line,
            }
        }
    }

    /// Where the game's position stands in the tree, when it has gone on from the root.
    fn find(&self, game: &Game) -> Option<u32> {
        let root_ply = self.game.ply();
        let same_start = game.key_at(0) == self.game.key_at(0);
        if !same_start || game.key_at(root_ply) != Some(self.game.key()) {
            return None;
        }
        let mut index = ROOT;
        for m in game.moves().skip(root_ply) {
            let (first, _) = self.tree.node(index).children()?;
            let children = self.tree.children(self.tree.node(index));
            let chosen = children.iter().position(|child| child.played() == PackedMove::new(m))?;
            index = first + chosen as u32;
        }
        Some(index)
    }

    fn reroot(&mut self, index: u32) {
        let keep = Keep { min_visits: 0, forget_draws: true };
        self.spare.copy_subtree(&self.tree, index, keep);
        std::mem::swap(&mut self.tree, &mut self.spare);
    }

    fn root(&self) -> MutexGuard<'_, Root> {
        // A thread that panicked left at worst a simulation half counted.
        self.root.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts the walker's game where a resumed path ends.
    fn stand_at_end(&self, batch: &mut Batch, path: &[u32]) {
        let last = *path.last().expect("a path has at least the root");
        if batch.standing_at == last {
            return;
        }
        batch.game.rewind(batch.root_ply);
        for &index in &path[1..] {
            let m = self.tree.node(index).played().unpack(batch.game.position().board());
            batch.game.play_unchecked(m);
        }
        batch.standing_at = last;
    }
}
