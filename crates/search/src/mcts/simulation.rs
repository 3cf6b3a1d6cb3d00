//! One simulation: the way down by the selection rules, and the way up with its value.

use std::sync::atomic::Ordering::Relaxed;

use super::batch::Batch;
use super::edge::{self, Edge};
use super::node::{Node, Sharing};
use super::params::{Expansion, RootRule};
use super::result::Proof;
use super::search::Search;
use super::select::Choice;
use super::tree::{Children, ROOT};
use crate::evaluator::{Leaf, Need};
use crate::math::softmax;
use crate::packed_move::PackedMove;
use crate::terminal::terminal;
use crate::value::{Wdl, flip_value};

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
    pub(super) fn simulate(&self, batch: &mut Batch) -> Simulation {
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
    pub(super) fn abandon(&self, path: Vec<u32>, batch: &mut Batch) {
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
    pub(super) fn expand(
        &self,
        index: u32,
        leaf: &Leaf,
        logits: &mut [f32],
        edges: &mut Vec<Edge>,
    ) -> bool {
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
