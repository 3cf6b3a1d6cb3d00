//! Where nodes live: chunks that grow as needed up to a limit.
//!
//! Children stand side by side. Memory is won back by copying what is worth keeping into a
//! second tree ([`Tree::copy_subtree`]), which is also how a subtree becomes the next root.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use super::node::Node;
use super::result::Proof;
use crate::packed_move::PackedMove;

/// The index of the root.
pub(super) const ROOT: u32 = 0;

const CHUNK_BITS: u32 = 13;
const CHUNK: u32 = 1 << CHUNK_BITS;

pub(super) struct Tree {
    chunks: Box<[OnceLock<Box<[Node]>>]>,
    /// The first index not given out yet.
    next: AtomicU32,
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
    /// A tree of at most this many nodes, holding only an unvisited root.
    pub fn new(max_nodes: usize) -> Tree {
        let chunks = max_nodes.div_ceil(CHUNK as usize).clamp(1, (u32::MAX / CHUNK) as usize);
        let tree = Tree {
            chunks: (0..chunks).map(|_| OnceLock::new()).collect(),
            next: AtomicU32::new(0),
        };
        tree.clear();
        tree
    }

    /// Forgets everything; keeps the memory for the next tree.
    pub fn clear(&self) {
        self.next.store(0, Relaxed);
        let root = self.allocate(1).expect("a tree has room for its root");
        debug_assert_eq!(root, ROOT);
        self.node(root).reset(PackedMove::default(), 1.0);
    }

    /// Nodes in use.
    pub fn len(&self) -> usize {
        self.next.load(Relaxed) as usize
    }

    /// The most nodes there can be.
    pub fn capacity(&self) -> usize {
        self.chunks.len() * CHUNK as usize
    }

    pub fn node(&self, index: u32) -> &Node {
        &self.chunk(index)[(index % CHUNK) as usize]
    }

    /// A node's children; none while it is not expanded.
    pub fn children(&self, node: &Node) -> &[Node] {
        match node.children() {
            None => &[],
            Some((first, count)) => self.block(first, count),
        }
    }

    fn block(&self, first: u32, count: usize) -> &[Node] {
        let start = (first % CHUNK) as usize;
        &self.chunk(first)[start..start + count]
    }

    fn chunk(&self, index: u32) -> &[Node] {
        self.chunks[(index >> CHUNK_BITS) as usize].get().expect("an index given out has its chunk")
    }

    /// Gives `node` these children, best prior first. False when the tree is full.
    pub fn expand(&self, node: &Node, children: &[(PackedMove, f32)]) -> bool {
        let Some(first) = self.allocate(children.len() as u32) else { return false };
        for (child, &(played, prior)) in self.block(first, children.len()).iter().zip(children) {
            child.reset(played, prior);
        }
        node.set_children(first, children.len());
        true
    }

    /// Room for `count` nodes side by side, so within one chunk.
    fn allocate(&self, count: u32) -> Option<u32> {
        debug_assert!(count <= CHUNK);
        let mut next = self.next.load(Relaxed);
        loop {
            let room = CHUNK - next % CHUNK;
            let first = if count <= room { next } else { next + room };
            let chunk = (first >> CHUNK_BITS) as usize;
            if chunk >= self.chunks.len() {
                return None;
            }
            match self.next.compare_exchange_weak(next, first + count, Relaxed, Relaxed) {
                Ok(_) => {
                    self.chunks[chunk]
                        .get_or_init(|| (0..CHUNK).map(|_| Node::default()).collect());
                    return Some(first);
                }
                Err(changed) => next = changed,
            }
        }
    }

    /// Replaces this tree by the subtree below `root` of another.
    pub fn copy_subtree(&self, other: &Tree, root: u32, keep: Keep) {
        self.clear();
        self.node(ROOT).copy_from(other.node(root));
        let mut pending = vec![(root, ROOT)];
        while let Some((old, new)) = pending.pop() {
            let (old, new) = (other.node(old), self.node(new));
            if keep.forget_draws && matches!(new.proof(), Proof::Draw) {
                new.forget();
                continue;
            }
            let Some((old_first, count)) = old.children() else { continue };
            if old.visits() < keep.min_visits {
                continue;
            }
            let Some(first) = self.allocate(count as u32) else { continue };
            for offset in 0..count as u32 {
                self.node(first + offset).copy_from(other.node(old_first + offset));
                pending.push((old_first + offset, first + offset));
            }
            new.set_children(first, count);
        }
    }

    /// The fewest visits a node must have for its children to be kept, so that at most
    /// `target` nodes remain below `root`.
    pub fn visits_worth_keeping(&self, target: usize) -> u32 {
        let mut blocks: Vec<(u32, usize)> = Vec::new();
        let mut pending = vec![ROOT];
        while let Some(index) = pending.pop() {
            let node = self.node(index);
            if let Some((first, count)) = node.children() {
                blocks.push((node.visits(), count));
                pending.extend(first..first + count as u32);
            }
        }
        blocks.sort_unstable_by(|a, b| b.cmp(a));
        let mut kept = 1;
        for (visits, count) in blocks {
            kept += count;
            if kept > target {
                // Every block of this size goes, so that which ones stay does not depend on order.
                return visits + 1;
            }
        }
        0
    }
}
