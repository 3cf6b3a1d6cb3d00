//! Transpositions as one node: nodes of the same position have the same children.
//!
//! A node holds the statistics of the move into it, so each parent keeps its own visits and mean,
//! while everything below is shared (Czech et al. 2021, "Improving AlphaZero using Monte-Carlo
//! graph search"). Positions are shared only at the same distance from the root. The graph then has
//! no cycles, and no simulation passes a node twice.
//!
//! What depends on the path is never stored: a repetition, or the fifty-move rule, ends a simulation
//! without a proof, and every step down is checked for both.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Mutex, MutexGuard, PoisonError};

use selfmate_chess::Position;

use super::batch::Batch;
use super::node::Node;
use super::search::Search;
use super::simulation::{Ending, Simulation};
use super::tree::{Children, ROOT};
use crate::evaluator::Leaf;
use crate::terminal::{FIFTY_MOVES, is_drawn_by_history, repeats};
use crate::value::{Wdl, flip_value};

/// A position's key and its distance from the root, in plies.
type Key = (u64, u32);

/// The first expanded node of each position.
#[derive(Default)]
pub(super) struct SharedNodes(Mutex<HashMap<Key, u32>>);

impl SharedNodes {
    fn lock(&self) -> MutexGuard<'_, HashMap<Key, u32>> {
        // After a panic of another thread, every entry is still an expanded node.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn clear(&self) {
        self.lock().clear();
    }

    /// An estimate of the memory in use. It is always less than that of the tree, because an expanded
    /// node has at least four children.
    pub fn bytes(&self) -> usize {
        /// An entry and its control byte, in a table that is at most seven eighths full.
        const ENTRY: usize = (size_of::<(Key, u32)>() + 1) * 8 / 7;
        self.lock().capacity() * ENTRY
    }
}

impl Search {
    /// Gives a node the children of an earlier node of the same position, which is returned; `None`
    /// when there is none. The batch's game is at the node.
    pub(super) fn join(&self, index: u32, batch: &Batch, plies: usize) -> Option<&Node> {
        let shared = self.shared.as_ref().filter(|_| index != ROOT)?;
        let first = *shared.lock().get(&(batch.game.key(), plies as u32))?;
        Some(self.take_children(index, first))
    }

    /// Expands a leaf that is `plies` below the root, unless there is a node whose children it can
    /// take: another simulation may have expanded the same position since this one reached it.
    pub(super) fn expand_once(
        &self,
        index: u32,
        leaf: &Leaf,
        plies: usize,
        expand: impl FnOnce() -> bool,
    ) -> bool {
        let Some(shared) = self.shared.as_ref().filter(|_| index != ROOT) else { return expand() };
        match shared.lock().entry((leaf.game.key(), plies as u32)) {
            Entry::Occupied(first) => {
                self.take_children(index, *first.get());
                true
            }
            Entry::Vacant(entry) => {
                let expanded = expand();
                if expanded {
                    entry.insert(index);
                }
                expanded
            }
        }
    }

    fn take_children(&self, index: u32, first: u32) -> &Node {
        let first = self.tree.node(first);
        let children = first.children().expect("a node is registered after its expansion");
        self.tree.node(index).set_children(children);
        first
    }

    /// Finishes or continues a simulation whose last node has just taken the children of `first`.
    pub(super) fn continue_below(
        &self,
        first: &Node,
        path: Vec<u32>,
        batch: &mut Batch,
    ) -> Simulation {
        let node = self.tree.node(*path.last().expect("a path has at least the root"));
        let proof = first.proof();
        if let Some(wdl) = proof.wdl() {
            node.prove(proof);
            self.back_up(path, wdl, Ending::JustProven, batch);
        } else if node.visits() == 0 {
            self.back_up(path, self.shared_mean(first), Ending::Evaluated, batch);
        } else {
            batch.resumed.push(path);
            return Simulation::Resumed;
        }
        Simulation::Finished
    }

    /// The mean over all visits of a position, for the player who moved into it. `first` is its first
    /// expanded node, whose mean stands for the evaluation of the position itself.
    fn shared_mean(&self, first: &Node) -> Wdl {
        let children = self.tree.children(first);
        let (mut visits, mut value, mut draw) = (1.0, first.value(), first.draw());
        for node in (0..children.len()).filter_map(|child| children.node(child)) {
            let count = node.visits() as f32;
            visits += count;
            value += count * flip_value(node.value()) * self.params.discount;
            draw += count * node.draw();
        }
        Wdl::new(value / visits, draw / visits)
    }

    /// Simulations through the position of an expanded node, excluding this one.
    pub(super) fn position_visits(&self, node: &Node, children: Children<'_>) -> u32 {
        if self.shared.is_some() {
            // The node counts only the visits by its own parent. One more is its evaluation.
            return 1 + children.simulations();
        }
        let counts = node.counts();
        counts.visits() + u32::from(counts.in_flight()).saturating_sub(1)
    }

    /// Whether the path into an expanded node ends the game, which other paths to it may not. The
    /// last of `nodes` nodes is the one to check.
    pub(super) fn is_drawn_on_this_path(&self, batch: &Batch, nodes: usize) -> bool {
        // If the game is further down this path, an earlier simulation was not stopped here.
        let is_here = batch.path.len() == nodes && nodes > 1;
        self.shared.is_some() && is_here && is_drawn_by_history(&batch.game, batch.root_ply)
    }

    /// Whether the end of a game, `plies` below the root, is one on every path to its position. The
    /// batch's game is at that position.
    pub(super) fn ends_on_every_path(&self, batch: &Batch, plies: usize) -> bool {
        // At these distances, no path can have reached the fifty-move rule before.
        let longest_clock = self.game.position().halfmoves() as usize + plies;
        self.shared.is_none()
            || longest_clock < FIFTY_MOVES as usize && !repeats(&batch.game, batch.root_ply)
    }
}
