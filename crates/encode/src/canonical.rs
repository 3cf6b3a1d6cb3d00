//! A position from the mover's side, reflected so that all boards that are mirror images of each other
//! have one encoding. For endings.
//!
//! A board without pawns has eight symmetries, one with pawns two. A network that sees only the
//! canonical board never has to learn them.

use selfmate_chess::env::ActionSpace;
use selfmate_chess::{Chess, Color, MoveList, Position};

use crate::MoveSpace;

/// The features of a position and the indices of its moves, on the canonical board.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Canonical {
    /// The active features of `sparse768`.
    pub features: Vec<u16>,
    /// For each legal move from-square × 64 + to-square; `None` for promotions to anything but a
    /// queen.
    pub moves: Vec<Option<u16>>,
    reflected: Vec<u16>,
}

impl Canonical {
    pub fn encode(&mut self, position: &Chess, legal: &MoveList) {
        let mover = position.turn();
        let symmetries = if position.board().pawns().is_empty() { 8 } else { 2 };
        let mut chosen = 0;
        self.features.clear();
        for symmetry in 0..symmetries {
            self.reflected.clear();
            self.reflected.extend(position.board().iter().map(|(square, piece)| {
                let side = u16::from(piece.color != mover);
                let kind = side * 6 + piece.role as u16 - 1;
                kind * 64 + reflect(symmetry, seen_by(u16::from(square), mover))
            }));
            self.reflected.sort_unstable();
            if symmetry == 0 || self.reflected < self.features {
                chosen = symmetry;
                std::mem::swap(&mut self.features, &mut self.reflected);
            }
        }
        self.moves.clear();
        self.moves.extend(legal.iter().map(|&m| {
            let index = MoveSpace::FromTo4096.index(position, m)? as u16;
            let [from, to] = [index >> 6, index & 63].map(|s| reflect(chosen, seen_by(s, mover)));
            Some(from << 6 | to)
        }));
    }

    /// The indices of the moves that have one.
    pub fn indices(&self) -> impl Iterator<Item = u16> + '_ {
        self.moves.iter().flatten().copied()
    }
}

fn seen_by(square: u16, mover: Color) -> u16 {
    if mover == Color::White { square } else { square ^ 0b111_000 }
}

/// Bit 0 of the symmetry mirrors the files, bit 1 the ranks, bit 2 flips along the long diagonal.
fn reflect(symmetry: u16, square: u16) -> u16 {
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

    fn encoded(fen: &str) -> (Vec<u16>, Vec<u16>) {
        let position = parse_fen(fen).unwrap();
        let mut canonical = Canonical::default();
        canonical.encode(&position, &position.legal_moves());
        let mut moves: Vec<u16> = canonical.indices().collect();
        moves.sort_unstable();
        (canonical.features, moves)
    }

    #[test]
    fn mirror_images_have_one_encoding() {
        // White's king on c2, its rook on e4, Black's king on g6, in all eight reflections.
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
        .map(encoded)
        .into_iter()
        .collect();
        assert_eq!(images.len(), 1);
        let other = encoded("8/8/6k1/8/3R4/8/2K5/8 w - - 0 1");
        assert!(!images.contains(&other));
    }

    #[test]
    fn boards_with_pawns_are_not_turned() {
        let one = encoded("8/8/4k3/8/8/8/P7/4K3 w - - 0 1");
        assert_eq!(one, encoded("8/8/3k4/8/8/8/7P/3K4 w - - 0 1"));
        assert_ne!(one, encoded("4K3/P7/8/8/8/4k3/8/8 w - - 0 1"));
        // Only the promotion to a queen has an index.
        let (_, moves) = encoded("8/P3k3/8/8/8/8/8/4K3 w - - 0 1");
        assert_eq!(moves.len(), 6);
    }
}
