//! A position as the endgame network sees it: from the mover's side, and turned so that all boards
//! that are mirror images of each other are one.
//!
//! Without pawns the board has eight symmetries, with pawns two. The network never has to learn
//! that they do not matter.

use selfmate_chess::env::ActionSpace;
use selfmate_chess::{Chess, Color, MoveList, Position};
use selfmate_encode::MoveSpace;

/// The features of a position and the numbers of its moves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// The features of `sparse768` that are on, for the board as it was turned.
    pub features: Vec<u16>,
    /// For each legal move from-square × 64 + to-square, on the board as it was turned; `None` for
    /// promotions to anything but a queen.
    pub moves: Vec<Option<u16>>,
    turned: Vec<u16>,
}

impl View {
    /// Looks at a position.
    pub fn look(&mut self, position: &Chess, legal: &MoveList) {
        let mover = position.turn();
        let symmetries = if position.board().pawns().is_empty() { 8 } else { 2 };
        let mut chosen = 0;
        self.features.clear();
        for symmetry in 0..symmetries {
            self.turned.clear();
            self.turned.extend(position.board().iter().map(|(square, piece)| {
                let side = u16::from(piece.color != mover);
                let kind = side * 6 + piece.role as u16 - 1;
                kind * 64 + turn(symmetry, seen(u16::from(square), mover))
            }));
            self.turned.sort_unstable();
            if symmetry == 0 || self.turned < self.features {
                chosen = symmetry;
                std::mem::swap(&mut self.features, &mut self.turned);
            }
        }
        self.moves.clear();
        self.moves.extend(legal.iter().map(|&m| {
            let number = MoveSpace::FromTo4096.index(position, m)? as u16;
            let [from, to] = [number >> 6, number & 63].map(|s| turn(chosen, seen(s, mover)));
            Some(from << 6 | to)
        }));
    }

    /// The numbers of the moves that have one.
    pub fn numbers(&self) -> impl Iterator<Item = u16> + '_ {
        self.moves.iter().flatten().copied()
    }
}

/// A square as the mover sees it.
fn seen(square: u16, mover: Color) -> u16 {
    if mover == Color::White { square } else { square ^ 0b111_000 }
}

/// A square on a board that is mirrored (bit 0: files, bit 1: ranks) and flipped along the long
/// diagonal (bit 2).
fn turn(symmetry: u16, square: u16) -> u16 {
    let files = if symmetry & 1 != 0 { 0b000_111 } else { 0 };
    let ranks = if symmetry & 2 != 0 { 0b111_000 } else { 0 };
    let square = square ^ files ^ ranks;
    if symmetry & 4 != 0 { square >> 3 | (square & 7) << 3 } else { square }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use selfmate_chess::fen::parse_fen;

    use super::*;

    fn view(fen: &str) -> (Vec<u16>, Vec<u16>) {
        let position = parse_fen(fen).unwrap();
        let mut view = View::default();
        view.look(&position, &position.legal_moves());
        let mut moves: Vec<u16> = view.numbers().collect();
        moves.sort_unstable();
        (view.features, moves)
    }

    #[test]
    fn mirror_images_are_one() {
        // White's king on c2, its rook on e4, Black's king on g6, turned in all eight ways.
        let images: HashSet<_> = [
            "8/8/6k1/8/4R3/8/2K5/8 w - - 0 1",
            "8/8/1k6/8/3R4/8/5K2/8 w - - 0 1",
            "8/2K5/8/4R3/8/6k1/8/8 w - - 0 1",
            "8/5K2/8/3R4/8/1k6/8/8 w - - 0 1",
            "8/5k2/8/3R4/8/1K6/8/8 w - - 0 1",
            "8/8/1K6/8/3R4/8/5k2/8 w - - 0 1",
            "8/2k5/8/4R3/8/6K1/8/8 w - - 0 1",
            "8/8/6K1/8/4R3/8/2k5/8 w - - 0 1",
            // And Black's, with the colours changed.
            "8/8/6K1/8/4r3/8/2k5/8 b - - 0 1",
        ]
        .map(view)
        .into_iter()
        .collect();
        assert_eq!(images.len(), 1);
        let other = view("8/8/6k1/8/3R4/8/2K5/8 w - - 0 1");
        assert!(!images.contains(&other));
    }

    #[test]
    fn pawns_know_where_forward_is() {
        let one = view("8/8/4k3/8/8/8/P7/4K3 w - - 0 1");
        assert_eq!(one, view("8/8/3k4/8/8/8/7P/3K4 w - - 0 1"));
        assert_ne!(one, view("4K3/P7/8/8/8/4k3/8/8 w - - 0 1"));
        // Four promotions, one number.
        let (_, moves) = view("8/P3k3/8/8/8/8/8/4K3 w - - 0 1");
        assert_eq!(moves.len(), 6);
    }
}
