//! A read-only view of the tree: one node at a time, as plain data.

use std::cmp::Reverse;

use selfmate_chess::{Move, Position};

use super::node::Node;
use super::result::Proof;
use super::search::Search;
use super::tree::ROOT;
use crate::packed_move::PackedMove;
use crate::value::Wdl;

#[derive(Clone, Debug, PartialEq)]
pub struct NodeView {
    pub visits: u32,
    /// For the side to move; [`Wdl::EVEN`] when the node was never visited.
    pub wdl: Wdl,
    /// For the side to move.
    pub proof: Proof,
    /// Most visited first; empty while the node has no children.
    pub moves: Vec<EdgeView>,
}

/// A move out of a node, from the point of view of the side that makes it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EdgeView {
    pub played: Move,
    pub visits: u32,
    pub prior: f32,
    /// [`Wdl::EVEN`] when the move was never tried.
    pub wdl: Wdl,
    pub proof: Proof,
}

impl Search {
    /// The node that a line of moves leads to; `None` when no simulation has visited it.
    pub fn view(&self, line: &[Move]) -> Option<NodeView> {
        let mut position = self.game.position().clone();
        let mut index = ROOT;
        for &m in line {
            let children = self.tree.children(self.tree.node(index));
            let packed = PackedMove::new(m);
            let child = (0..children.len()).find(|&child| children.played(child) == packed)?;
            index = children.index(child).filter(|&index| self.tree.node(index).visits() > 0)?;
            position.play_unchecked(children.played(child).unpack(position.board()));
        }
        let node = self.tree.node(index);
        let children = self.tree.children(node);
        let edge = |child| EdgeView {
            played: children.played(child).unpack(position.board()),
            visits: children.visits(child),
            prior: children.prior(child),
            wdl: children.node(child).map_or(Wdl::EVEN, node_wdl),
            proof: children.proof(child),
        };
        let mut moves: Vec<EdgeView> = (0..children.len()).map(edge).collect();
        // Edges are sorted by prior and the sort is stable, so ties are broken by prior.
        moves.sort_by_key(|edge| Reverse(edge.visits));
        Some(NodeView {
            visits: node.visits(),
            wdl: node_wdl(node).flip(),
            proof: node.proof().flip(),
            moves,
        })
    }
}

/// From the point of view of the player who moved into the node.
fn node_wdl(node: &Node) -> Wdl {
    match (node.proof().wdl(), node.visits()) {
        (Some(wdl), _) => wdl,
        (None, 0) => Wdl::EVEN,
        (None, _) => Wdl::new(node.value(), node.draw()),
    }
}

#[cfg(test)]
mod tests {
    use selfmate_chess::notation::parse_uci;
    use selfmate_chess::{Game, Seed};

    use super::*;
    use crate::evaluator::Material;
    use crate::mcts::{SearchParams, StopCondition, run};

    fn searched(simulations: u64) -> (Search, Game) {
        let mut search =
            Search::new(SearchParams { memory_mb: 4, ..SearchParams::default() }).unwrap();
        let game = Game::new();
        search.start(&game, simulations, Seed::new(1));
        run(&mut search, &mut Material, &StopCondition::default());
        (search, game)
    }

    #[test]
    fn the_root_and_its_children_agree_with_the_result() {
        let (search, game) = searched(300);
        let (root, result) = (search.view(&[]).unwrap(), search.result());
        assert_eq!(root.moves.len(), game.legal_moves().len());
        let visits: u32 = root.moves.iter().map(|edge| edge.visits).sum();
        assert_eq!(u64::from(visits), result.simulations);
        assert!(root.moves.is_sorted_by_key(|edge| Reverse(edge.visits)));
        for edge in root.moves.iter().filter(|edge| edge.visits > 0) {
            let below = search.view(&[edge.played]).unwrap();
            assert_eq!(below.visits, edge.visits);
            assert!((below.wdl.value() + edge.wdl.value()).abs() < 1e-5);
            let known = result.moves.iter().find(|m| m.played == edge.played).unwrap();
            assert_eq!((known.visits, known.wdl), (edge.visits, edge.wdl));
        }
    }

    #[test]
    fn nodes_that_no_simulation_has_visited_have_no_view() {
        let (search, game) = searched(5);
        let root = search.view(&[]).unwrap();
        let untried = root.moves.iter().find(|edge| edge.visits == 0).unwrap();
        assert_eq!(search.view(&[untried.played]), None);
        let illegal = parse_uci(game.position(), "e2e4").unwrap();
        assert_eq!(search.view(&[illegal, illegal]), None);
    }
}
