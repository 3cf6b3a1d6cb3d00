//! The input of the small policy network.

use selfmate_chess::env::ActionSpace;
use selfmate_chess::{Chess, Color, Move, MoveList, Position};
use selfmate_encode::{MoveSpace, sparse};

/// The features of a position and the indices of its moves, both relative to the side to move.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PolicyInput {
    /// The indices of the active features.
    pub features: Vec<u16>,
    /// The legal moves that have an index; underpromotions have none.
    pub legal: Vec<Move>,
    /// The index of each move in `legal`.
    pub moves: Vec<u16>,
}

impl PolicyInput {
    pub fn encode(&mut self, position: &Chess, legal: &MoveList) {
        sparse::sparse768(position, &mut self.features);
        self.legal.clear();
        self.moves.clear();
        for &m in legal {
            if let Some(index) = MoveSpace::FromTo4096.index(position, m) {
                self.legal.push(m);
                self.moves.push(mirrored_for(index as u16, position.turn()));
            }
        }
    }
}

/// The move's index on the board as the mover sees it: for Black the ranks of both squares are
/// mirrored.
fn mirrored_for(index: u16, mover: Color) -> u16 {
    if mover == Color::White { index } else { index ^ (56 << 6 | 56) }
}

#[cfg(test)]
mod tests {
    use selfmate_chess::fen::parse_fen;

    use super::*;

    fn input(fen: &str) -> PolicyInput {
        let position = parse_fen(fen).unwrap();
        let mut input = PolicyInput::default();
        input.encode(&position, &position.legal_moves());
        input.features.sort_unstable();
        input.moves.sort_unstable();
        input
    }

    #[test]
    fn mirrored_positions_have_the_same_input() {
        let white = input("4k3/8/8/8/8/2N5/PP6/R3K3 w Q - 0 1");
        let black = input("r3k3/pp6/2n5/8/8/8/8/4K3 b q - 0 1");
        assert_eq!(white.features, black.features);
        assert_eq!(white.moves, black.moves);
    }

    #[test]
    fn only_queen_promotions_have_an_index() {
        let input = input("8/P3k3/8/8/8/8/8/4K3 w - - 0 1");
        let promotions = input.legal.iter().filter(|m| m.is_promotion()).count();
        assert_eq!((promotions, input.legal.len()), (1, 6));
        let mut numbers = input.moves.clone();
        numbers.dedup();
        assert_eq!(numbers.len(), input.moves.len());
    }
}
