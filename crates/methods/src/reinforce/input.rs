//! A position as the small policy network sees it.

use selfmate_chess::env::ActionSpace;
use selfmate_chess::{Chess, Color, Move, MoveList, Position};
use selfmate_encode::{MoveSpace, sparse};

/// The features of a position and the numbers of its moves, both from the mover's side.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct View {
    /// The features that are on.
    pub features: Vec<u16>,
    /// The moves that have a number. A pawn becomes a queen or stays: other promotions have none.
    pub legal: Vec<Move>,
    /// Their numbers.
    pub moves: Vec<u16>,
}

impl View {
    /// Looks at a position.
    pub fn look(&mut self, position: &Chess, legal: &MoveList) {
        sparse::sparse768(position, &mut self.features);
        self.legal.clear();
        self.moves.clear();
        for &m in legal {
            if let Some(index) = MoveSpace::FromTo4096.index(position, m) {
                self.legal.push(m);
                self.moves.push(seen(index as u16, position.turn()));
            }
        }
    }
}

/// The number of a move as its mover sees the board: for Black both squares change their ranks.
fn seen(index: u16, mover: Color) -> u16 {
    if mover == Color::White { index } else { index ^ (56 << 6 | 56) }
}

#[cfg(test)]
mod tests {
    use selfmate_chess::fen::parse_fen;

    use super::*;

    fn view(fen: &str) -> View {
        let position = parse_fen(fen).unwrap();
        let mut view = View::default();
        view.look(&position, &position.legal_moves());
        view.features.sort_unstable();
        view.moves.sort_unstable();
        view
    }

    #[test]
    fn both_sides_see_the_same_board() {
        let white = view("4k3/8/8/8/8/2N5/PP6/R3K3 w Q - 0 1");
        let black = view("r3k3/pp6/2n5/8/8/8/8/4K3 b q - 0 1");
        assert_eq!(white.features, black.features);
        assert_eq!(white.moves, black.moves);
    }

    #[test]
    fn a_pawn_becomes_a_queen() {
        let view = view("8/P3k3/8/8/8/8/8/4K3 w - - 0 1");
        let promotions = view.legal.iter().filter(|m| m.is_promotion()).count();
        assert_eq!((promotions, view.legal.len()), (1, 6));
        let mut numbers = view.moves.clone();
        numbers.dedup();
        assert_eq!(numbers.len(), view.moves.len());
    }
}
