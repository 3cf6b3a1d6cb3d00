//! The tree: nodes, and the edges between them.
//!
//! A node that is expanded has a block of edges, best prior first. Its children's nodes come in
//! groups of four and only as simulations reach them: most legal moves are never tried, and an edge takes
//! a sixth of a node. The node knows its first group, the block's end where the others stand. Memory is won back by copying what is
//! worth keeping into a second tree ([`Tree::copy_subtree`]), which is also how a subtree
//! becomes the next root.

use std::sync::atomic::{
    AtomicU32,
    Ordering::{AcqRel, Acquire, Relaxed},
};

use super::bump::Bump;
use super::edge::Edge;
use super::node::{Node, Place};
use super::result::Proof;
use crate::packed_move::PackedMove;

/// The index of the root.
pub(super) const ROOT: u32 = 0;

/// Nodes in a group.
pub(super) const GROUP: usize = 4;

/// A tree of so few nodes is in the cache anyway.
const SMALL: usize = 1 << 15;

pub(super) struct Tree {
    nodes: Bump<Node>,
    /// Blocks of edges and places of groups.
    edges: Bump<AtomicU32>,
    /// Nodes after the root that stay unused, so that groups start on multiples of 32 bytes: they
    /// touch two lines of the cache then, and three elsewhere.
    padding: usize,
    max_bytes: usize,
}

/// What to keep of a subtree.
#[derive(Clone, Copy, Debug)]
pub(super) struct Keep {
    /// Nodes with fewer visits lose their children.
    pub min_visits: u32,
    /// Draws are found again: a repetition on the way from the old root may not be one from
    /// the new.
    pub forget_draws: bool,
}

impl Tree {
    /// A tree of at most this many bytes, holding only an unvisited root; `None` when there is no
    /// such memory.
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

    /// Forgets everything; keeps the memory for the next tree.
    pub fn clear(&self) {
        self.nodes.clear();
        self.edges.clear();
        let root = self.nodes.allocate(1 + self.padding);
        // Edges start at 1, so that 0 can mean none.
        let unused = self.edges.allocate(1);
        debug_assert_eq!((root, unused), (Some(ROOT), Some(0)));
        self.node(ROOT).forget();
    }

    /// Nodes in use.
    pub fn len(&self) -> usize {
        self.nodes.len() - self.padding
    }

    /// Memory in use.
    pub fn bytes(&self) -> usize {
        self.len() * size_of::<Node>() + self.edges.len() * size_of::<AtomicU32>()
    }

    /// Memory that was ever in use.
    pub fn touched_bytes(&self) -> usize {
        let nodes = self.nodes.touched() - self.padding;
        nodes * size_of::<Node>() + self.edges.touched() * size_of::<AtomicU32>()
    }

    /// The most memory that may be in use.
    pub fn max_bytes(&self) -> usize {
        self.max_bytes
    }

    pub fn node(&self, index: u32) -> &Node {
        self.nodes.get(index)
    }

    /// Asks for a node's children ahead of their use.
    pub fn prefetch_children(&self, node: &Node) {
        if let Some(place) = node.children() {
            self.edges.prefetch::<3>(place.edges);
            self.nodes.prefetch::<2>(place.first_group);
        }
    }

    /// A node's children; none while it is not expanded.
    pub fn children(&self, node: &Node) -> Children<'_> {
        let nothing = Place { edges: 0, count: 0, first_group: 0 };
        let place = node.children().unwrap_or(nothing);
        let size = place.count + later_groups(place.count);
        let (edges, later_groups) = self.edges.slice(place.edges, size).split_at(place.count);
        Children { tree: self, edges, first_group: place.first_group, later_groups }
    }

    /// Gives a node edges, best prior first. False when the tree is full.
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
        let places = std::iter::repeat_n(0, groups);
        for (slot, value) in block.iter().zip(edges.iter().map(|edge| edge.0).chain(places)) {
            slot.store(value, Relaxed);
        }
        node.set_children(Place { edges: first, count: edges.len(), first_group });
        true
    }

    /// Four nodes that were never visited.
    fn new_group(&self) -> Option<u32> {
        let first = self.nodes.allocate(GROUP)?;
        self.nodes.slice(first, GROUP).iter().for_each(Node::forget);
        Some(first)
    }

    /// Replaces this tree by the subtree below `root` of another.
    pub fn copy_subtree(&self, other: &Tree, root: u32, keep: Keep) {
        self.clear();
        self.node(ROOT).copy_from(other.node(root));
        let mut pending = vec![(root, ROOT)];
        let mut edges = Vec::new();
        while let Some((old_index, new_index)) = pending.pop() {
            let (old, new) = (other.node(old_index), self.node(new_index));
            if keep.forget_draws && new.proof() == Proof::Draw {
                new.doubt_draw();
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

    /// The fewest visits a node must have for its children to be kept, so that at most
    /// `target` bytes remain.
    pub fn visits_worth_keeping(&self, target: usize) -> u32 {
        let mut blocks: Vec<(u32, usize)> = Vec::new();
        self.for_each(|node, children| {
            if children.len() > 0 {
                let later = children.later_groups;
                let groups = 1 + later.iter().filter(|place| place.load(Relaxed) != 0).count();
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
                // Every block of this many visits goes, so that which ones stay does not depend on order.
                return visits + 1;
            }
        }
        0
    }

    /// Visits every node that a simulation has reached.
    pub fn for_each(&self, mut visit: impl FnMut(&Node, &Children<'_>)) {
        let mut pending = vec![ROOT];
        while let Some(index) = pending.pop() {
            let node = self.node(index);
            let children = self.children(node);
            visit(node, &children);
            pending.extend((0..children.len()).filter_map(|child| children.index(child)));
        }
    }
}

/// A node's children: an edge for each legal move, a node for each that was tried.
#[derive(Clone, Copy)]
pub(super) struct Children<'a> {
    tree: &'a Tree,
    edges: &'a [AtomicU32],
    /// The first node of the first group.
    first_group: u32,
    /// The first node of each later group; 0 for groups never reached.
    later_groups: &'a [AtomicU32],
}

/// How many groups come after the first.
fn later_groups(children: usize) -> usize {
    children.div_ceil(GROUP).saturating_sub(1)
}

impl<'a> Children<'a> {
    /// How many legal moves there are.
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

    /// Changes a prior. The order stays, so only a root may do this.
    pub fn set_prior(&self, child: usize, prior: f32) {
        self.edges[child].store(Edge::new(self.played(child), prior).0, Relaxed);
    }

    /// The child's node, when a simulation has reached its group.
    pub fn node(&self, child: usize) -> Option<&'a Node> {
        self.index(child).map(|index| self.tree.node(index))
    }

    /// Where the child's node stands.
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

    /// Where the child's node stands, made if need be. `None` when the tree is full.
    pub fn index_or_add(&self, child: usize) -> Option<u32> {
        if let Some(index) = self.index(child) {
            return Some(index);
        }
        if self.tree.bytes() + GROUP * size_of::<Node>() > self.tree.max_bytes {
            return None;
        }
        let first = self.tree.new_group()?;
        // Should another thread have been quicker, its group counts and this one stays unused.
        let place = &self.later_groups[child / GROUP - 1];
        let _ = place.compare_exchange(0, first, AcqRel, Acquire);
        self.index(child)
    }

    /// The children in groups of up to four: their edges, and their nodes when a simulation has
    /// reached any of them.
    pub fn groups(&self) -> impl Iterator<Item = (&'a [AtomicU32], Option<&'a [Node]>)> {
        let (tree, first) = (self.tree, self.first_group);
        let later = self.later_groups.iter().map(|place| place.load(Acquire));
        let places = std::iter::once(first).chain(later);
        self.edges.chunks(GROUP).zip(places).map(move |(edges, place)| {
            (edges, (place != 0).then(|| tree.nodes.slice(place, GROUP)))
        })
    }

    /// Asks for the nodes of all groups but the first ahead of their use: together they come in
    /// little more time than one.
    pub fn prefetch_later_groups(&self) {
        if self.tree.nodes.len() < SMALL {
            return;
        }
        for place in self.later_groups {
            match place.load(Relaxed) {
                0 => break,
                first => self.tree.nodes.prefetch::<2>(first),
            }
        }
    }

    pub fn visits(&self, child: usize) -> u32 {
        self.node(child).map_or(0, Node::visits)
    }

    pub fn proof(&self, child: usize) -> Proof {
        self.node(child).map_or(Proof::Unknown, Node::proof)
    }

    /// What is proven about each child.
    pub fn proofs(&self) -> impl Iterator<Item = Proof> + '_ {
        (0..self.len()).map(|child| self.proof(child))
    }
}
