//! The tree: nodes, and the edges between them.
//!
//! An expanded node has a block of edges, highest prior first. The nodes of its children are
//! allocated in groups of four and only when simulations reach them: most legal moves are never
//! tried, and an edge takes a sixth of the memory of a node. The node stores the index of its first
//! group; the indices of the other groups follow the edges in the block. Memory is freed by copying
//! what is worth keeping into a second tree ([`Tree::copy_subtree`]), which is also how a subtree
//! becomes the next root.

use std::sync::atomic::{
    AtomicU32,
    Ordering::{AcqRel, Acquire, Relaxed},
};

use super::bump::Bump;
use super::edge::Edge;
use super::node::{Location, Node};
use super::result::Proof;
use crate::packed_move::PackedMove;

pub(super) const ROOT: u32 = 0;

/// Nodes per group.
pub(super) const GROUP: usize = 4;

/// A tree with fewer nodes fits in the cache, so prefetching would not help.
const SMALL: usize = 1 << 15;

pub(super) struct Tree {
    nodes: Bump<Node>,
    /// Blocks of edges and group indices.
    edges: Bump<AtomicU32>,
    /// Unused nodes after the root, so that groups start at multiples of 32 bytes. An aligned group
    /// spans two cache lines instead of three.
    padding: usize,
    max_bytes: usize,
}

/// Which parts of a subtree to copy.
#[derive(Clone, Copy, Debug)]
pub(super) struct Keep {
    /// Nodes with fewer visits lose their children.
    pub min_visits: u32,
    /// Proven draws are dropped: a repetition on the path from the old root may not be one from the
    /// new root.
    pub forget_draws: bool,
}

impl Tree {
    /// A tree of at most `max_bytes` with only an unvisited root; `None` when there is not enough
    /// memory.
    pub fn new(max_bytes: usize) -> Option<Tree> {
        let nodes: Bump<Node> = Bump::new(max_bytes / size_of::<Node>())?;
        let is_even =
            |node: &usize| (nodes.address(0) + node * size_of::<Node>()).is_multiple_of(32);
        let tree = Tree {
            padding: (1..5).find(is_even).unwrap_or(1) - 1,
            nodes,
            edges: Bump::new(max_bytes / size_of::<AtomicU32>())?,
            max_bytes,
        };
        tree.clear();
        Some(tree)
    }

    /// Drops all nodes and keeps the memory.
    pub fn clear(&self) {
        self.nodes.clear();
        self.edges.clear();
        let root = self.nodes.allocate(1 + self.padding);
        // Edges start at 1, so that 0 can mean none.
        let unused = self.edges.allocate(1);
        debug_assert_eq!((root, unused), (Some(ROOT), Some(0)));
        self.node(ROOT).forget();
    }

    pub fn len(&self) -> usize {
        self.nodes.len() - self.padding
    }

    pub fn bytes(&self) -> usize {
        self.len() * size_of::<Node>() + self.edges.len() * size_of::<AtomicU32>()
    }

    /// The most memory ever in use.
    pub fn touched_bytes(&self) -> usize {
        let nodes = self.nodes.touched() - self.padding;
        nodes * size_of::<Node>() + self.edges.touched() * size_of::<AtomicU32>()
    }

    pub fn max_bytes(&self) -> usize {
        self.max_bytes
    }

    pub fn node(&self, index: u32) -> &Node {
        self.nodes.get(index)
    }

    /// Prefetches a node's children.
    pub fn prefetch_children(&self, node: &Node) {
        if let Some(location) = node.children() {
            self.edges.prefetch::<3>(location.edges);
            self.nodes.prefetch::<2>(location.first_group);
        }
    }

    /// Empty while the node is not expanded.
    pub fn children(&self, node: &Node) -> Children<'_> {
        let none = Location { edges: 0, count: 0, first_group: 0 };
        let location = node.children().unwrap_or(none);
        let size = location.count + later_groups(location.count);
        let (edges, later_groups) = self.edges.slice(location.edges, size).split_at(location.count);
        Children { tree: self, edges, first_group: location.first_group, later_groups }
    }

    /// Gives a node its edges, highest prior first. False when the tree is full.
    pub fn expand(&self, node: &Node, edges: &[Edge]) -> bool {
        let groups = later_groups(edges.len());
        let size = edges.len() + groups;
        let bytes = size * size_of::<AtomicU32>() + GROUP * size_of::<Node>();
        if self.bytes() + bytes > self.max_bytes {
            return false;
        }
        let (Some(first), Some(first_group)) = (self.edges.allocate(size), self.new_group()) else {
            return false;
        };
        let block = self.edges.slice(first, size);
        let unreached = std::iter::repeat_n(0, groups);
        for (slot, value) in block.iter().zip(edges.iter().map(|edge| edge.0).chain(unreached)) {
            slot.store(value, Relaxed);
        }
        node.set_children(Location { edges: first, count: edges.len(), first_group });
        true
    }

    /// Four unvisited nodes.
    fn new_group(&self) -> Option<u32> {
        let first = self.nodes.allocate(GROUP)?;
        self.nodes.slice(first, GROUP).iter().for_each(Node::forget);
        Some(first)
    }

    /// Replaces this tree by the subtree below `root` of another one.
    pub fn copy_subtree(&self, other: &Tree, root: u32, keep: Keep) {
        self.clear();
        self.node(ROOT).copy_from(other.node(root));
        let mut pending = vec![(root, ROOT)];
        let mut edges = Vec::new();
        while let Some((old_index, new_index)) = pending.pop() {
            let (old, new) = (other.node(old_index), self.node(new_index));
            if keep.forget_draws && new.proof() == Proof::Draw {
                new.remove_draw_proof();
                continue;
            }
            let children = other.children(old);
            if children.len() == 0 || old.visits() < keep.min_visits {
                continue;
            }
            edges.clear();
            edges.extend((0..children.len()).map(|i| children.edge(i)));
            if !self.expand(new, &edges) {
                continue;
            }
            let copies = self.children(new);
            for child in 0..children.len() {
                if let Some(old) = children.index(child)
                    && other.node(old).visits() > 0
                    && let Some(new) = copies.index_or_add(child)
                {
                    self.node(new).copy_from(other.node(old));
                    pending.push((old, new));
                }
            }
        }
    }

    /// The minimum visits for a node to keep its children, so that at most `target` bytes remain.
    pub fn visits_worth_keeping(&self, target: usize) -> u32 {
        let mut blocks: Vec<(u32, usize)> = Vec::new();
        self.for_each(|node, children| {
            if children.len() > 0 {
                let later = children.later_groups;
                let groups = 1 + later.iter().filter(|first| first.load(Relaxed) != 0).count();
                let edges = children.len() + later.len();
                let bytes = edges * size_of::<AtomicU32>() + groups * GROUP * size_of::<Node>();
                blocks.push((node.visits(), bytes));
            }
        });
        blocks.sort_unstable_by(|a, b| b.cmp(a));
        let mut kept = 0;
        for (visits, bytes) in blocks {
            kept += bytes;
            if kept > target {
                // All blocks with this many visits are dropped, so that the result does not depend
                // on the order.
                return visits + 1;
            }
        }
        0
    }

    /// The most simulations in flight at any node.
    pub fn most_in_flight(&self) -> u16 {
        let nodes = self.nodes.slice(0, self.nodes.len()).iter();
        nodes.map(Node::in_flight).max().unwrap_or(0)
    }

    /// Calls `visit` for every node that a simulation has reached, once for each path to it.
    fn for_each(&self, mut visit: impl FnMut(&Node, &Children<'_>)) {
        let mut pending = vec![ROOT];
        while let Some(index) = pending.pop() {
            let node = self.node(index);
            let children = self.children(node);
            visit(node, &children);
            pending.extend((0..children.len()).filter_map(|child| children.index(child)));
        }
    }
}

/// An edge for each legal move, and a node for each child that was tried.
#[derive(Clone, Copy)]
pub(super) struct Children<'a> {
    tree: &'a Tree,
    edges: &'a [AtomicU32],
    /// The index of the first node of the first group.
    first_group: u32,
    /// The index of the first node of each later group; 0 for groups never reached.
    later_groups: &'a [AtomicU32],
}

/// The number of groups after the first.
fn later_groups(children: usize) -> usize {
    children.div_ceil(GROUP).saturating_sub(1)
}

impl<'a> Children<'a> {
    pub fn len(&self) -> usize {
        self.edges.len()
    }

    fn edge(&self, child: usize) -> Edge {
        Edge(self.edges[child].load(Relaxed))
    }

    pub fn played(&self, child: usize) -> PackedMove {
        self.edge(child).played()
    }

    pub fn prior(&self, child: usize) -> f32 {
        self.edge(child).prior()
    }

    /// Changes a prior without sorting again, so only the root may use this.
    pub fn set_prior(&self, child: usize, prior: f32) {
        self.edges[child].store(Edge::new(self.played(child), prior).0, Relaxed);
    }

    /// The child's node, when a simulation has reached its group.
    pub fn node(&self, child: usize) -> Option<&'a Node> {
        self.index(child).map(|index| self.tree.node(index))
    }

    /// The index of the child's node.
    pub fn index(&self, child: usize) -> Option<u32> {
        let first = match child / GROUP {
            0 => self.first_group,
            group => match self.later_groups[group - 1].load(Acquire) {
                0 => return None,
                first => first,
            },
        };
        Some(first + (child % GROUP) as u32)
    }

    /// The index of the child's node, which is created if necessary. `None` when the tree is full.
    pub fn index_or_add(&self, child: usize) -> Option<u32> {
        if let Some(index) = self.index(child) {
            return Some(index);
        }
        if self.tree.bytes() + GROUP * size_of::<Node>() > self.tree.max_bytes {
            return None;
        }
        let first = self.tree.new_group()?;
        // If another thread was faster, its group is used and this one stays unused.
        let slot = &self.later_groups[child / GROUP - 1];
        let _ = slot.compare_exchange(0, first, AcqRel, Acquire);
        self.index(child)
    }

    /// The children in groups of up to four: their edges, and their nodes when a simulation has
    /// reached any of them.
    pub fn groups(&self) -> impl Iterator<Item = (&'a [AtomicU32], Option<&'a [Node]>)> {
        let (tree, first) = (self.tree, self.first_group);
        let later = self.later_groups.iter().map(|first| first.load(Acquire));
        let firsts = std::iter::once(first).chain(later);
        self.edges.chunks(GROUP).zip(firsts).map(move |(edges, first)| {
            (edges, (first != 0).then(|| tree.nodes.slice(first, GROUP)))
        })
    }

    /// Prefetches the nodes of all groups but the first: together they take little longer than one.
    pub fn prefetch_later_groups(&self) {
        if self.tree.nodes.len() < SMALL {
            return;
        }
        for slot in self.later_groups {
            match slot.load(Relaxed) {
                0 => break,
                first => self.tree.nodes.prefetch::<2>(first),
            }
        }
    }

    /// Finished simulations and those in flight, through all children.
    pub fn simulations(&self) -> u32 {
        let nodes = self.groups().filter_map(|(_, nodes)| nodes).flatten();
        nodes.map(Node::counts).map(|c| c.visits() + u32::from(c.in_flight())).sum()
    }

    pub fn visits(&self, child: usize) -> u32 {
        self.node(child).map_or(0, Node::visits)
    }

    pub fn proof(&self, child: usize) -> Proof {
        self.node(child).map_or(Proof::Unknown, Node::proof)
    }

    pub fn proofs(&self) -> impl Iterator<Item = Proof> + '_ {
        (0..self.len()).map(|child| self.proof(child))
    }
}
