//! The table of one ending: the distance to mate of every position.
//!
//! The table has one byte for every placement of the pieces, legal or not. Mirrored placements
//! share an entry: White's king is on files a to d and, without pawns, on ranks 1 to 4. No square
//! is its own mirror image, so positions and moves correspond one to one.

use shakmaty::{
    Bitboard, Board, CastlingMode, Chess, Color, File, FromSetup, Piece, Rank, Role, Setup, Square,
    attacks,
};

use super::material::Material;

/// Each further piece takes 64 times the memory.
pub const MAX_PIECES: usize = 4;

/// The result with best play, ignoring the fifty-move rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The side to move is mated in this many plies, an even number.
    Loss(u8),
    /// Neither side can force mate.
    Draw,
    /// The side to move mates in this many plies, an odd number.
    Win(u8),
}

impl Verdict {
    /// At distance 0 the side to move is mated, so even distances are losses.
    pub(super) const fn mate_in(plies: u8) -> Verdict {
        if plies.is_multiple_of(2) { Verdict::Loss(plies) } else { Verdict::Win(plies) }
    }

    /// 1 for a win, 0 for a draw, -1 for a loss.
    pub const fn points(self) -> i32 {
        match self {
            Verdict::Loss(_) => -1,
            Verdict::Draw => 0,
            Verdict::Win(_) => 1,
        }
    }

    /// The value, for the side that makes it, of a move that leads to a position with this value.
    #[must_use]
    pub const fn a_move_before(self) -> Verdict {
        match self {
            Verdict::Loss(plies) => Verdict::Win(plies + 1),
            Verdict::Draw => Verdict::Draw,
            Verdict::Win(plies) => Verdict::Loss(plies + 1),
        }
    }

    /// Higher is better: quick wins, long wins, draws, long losses, quick losses.
    pub const fn rank(self) -> i32 {
        match self {
            Verdict::Loss(plies) => plies as i32 - 1000,
            Verdict::Draw => 0,
            Verdict::Win(plies) => 1000 - plies as i32,
        }
    }

    /// Plies to mate; `None` for a draw.
    pub const fn plies(self) -> Option<u8> {
        match self {
            Verdict::Loss(plies) | Verdict::Win(plies) => Some(plies),
            Verdict::Draw => None,
        }
    }
}

// Bytes of a table that are not distances.
pub(super) const DRAW: u8 = 253;
/// Not solved yet.
pub(super) const UNKNOWN: u8 = 254;
/// Two pieces on one square, a pawn on the first or last rank, or the side not to move in check.
pub(super) const ILLEGAL: u8 = 255;

#[derive(Clone, PartialEq, Eq)]
pub struct Ending {
    material: Material,
    pub(super) values: Vec<u8>,
}

/// The squares of the pieces, in the order of [`Material::pieces`], and the side to move.
#[derive(Clone, Copy)]
pub(super) struct Placement {
    pub squares: [Square; MAX_PIECES],
    pub turn: Color,
}

/// The number of positions by result for the side to move.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    pub wins: u64,
    pub draws: u64,
    pub losses: u64,
}

impl Ending {
    pub(super) fn unknown(material: Material) -> Ending {
        let count = king_squares(&material) << (6 * (material.pieces().len() - 1) + 1);
        Ending { material, values: vec![UNKNOWN; count] }
    }

    pub fn material(&self) -> &Material {
        &self.material
    }

    /// The value with the pieces on these squares, in the order of [`Material::pieces`]; `None` if
    /// the position is illegal.
    pub fn verdict(&self, squares: &[Square], turn: Color) -> Option<Verdict> {
        let mut placement = Placement { squares: [Square::A1; MAX_PIECES], turn };
        let pieces = self.material.pieces().len();
        if squares.len() != pieces {
            return None;
        }
        placement.squares[..pieces].copy_from_slice(squares);
        match self.values[self.index(&placement)] {
            ILLEGAL => None,
            DRAW | UNKNOWN => Some(Verdict::Draw),
            plies => Some(Verdict::mate_in(plies)),
        }
    }

    /// All legal positions with their values, one of each set of mirror images.
    pub fn positions(&self) -> impl Iterator<Item = (Chess, Verdict)> + '_ {
        (0..self.values.len()).filter_map(|index| {
            let placement = self.placement(index);
            let verdict = self.verdict(self.squares(&placement), placement.turn)?;
            Some((self.position(&placement)?, verdict))
        })
    }

    /// Counts the positions with this side to move, mirror images included.
    pub fn count(&self, turn: Color) -> Count {
        let mut count = Count::default();
        let images = (64 / king_squares(&self.material)) as u64;
        for &value in self.values.iter().skip(usize::from(turn.is_black())).step_by(2) {
            match value {
                ILLEGAL => {}
                DRAW | UNKNOWN => count.draws += images,
                plies if plies.is_multiple_of(2) => count.losses += images,
                _ => count.wins += images,
            }
        }
        count
    }

    /// The longest win of a side to move, with its distance in plies; `None` if the side has no wins.
    pub fn longest(&self, turn: Color) -> Option<(Chess, u8)> {
        let indices = (usize::from(turn.is_black())..self.values.len()).step_by(2);
        let wins =
            indices.filter(|&index| self.values[index] < DRAW && self.values[index] % 2 == 1);
        let positions = wins.rev().max_by_key(|&index| self.values[index]);
        let index = positions?;
        Some((self.position(&self.placement(index))?, self.values[index]))
    }

    pub(super) fn squares<'a>(&self, placement: &'a Placement) -> &'a [Square] {
        &placement.squares[..self.material.pieces().len()]
    }

    /// The index of a placement in the table.
    pub(super) fn index(&self, placement: &Placement) -> usize {
        let king = placement.squares[0];
        let mut mirror = if king.file() > File::D { 0b000_111 } else { 0 };
        if king.rank() > Rank::Fourth && king_squares(&self.material) == 16 {
            mirror |= 0b111_000;
        }
        let place = |square: Square| usize::from(square) ^ mirror;
        let king = place(king);
        let index = self.squares(placement)[1..]
            .iter()
            .fold(king / 8 * 4 + king % 8, |index, &square| index << 6 | place(square));
        index << 1 | usize::from(placement.turn.is_black())
    }

    /// The placement at an index of the table.
    pub(super) fn placement(&self, index: usize) -> Placement {
        let mut squares = [Square::A1; MAX_PIECES];
        let mut rest = index >> 1;
        for square in squares[1..self.material.pieces().len()].iter_mut().rev() {
            *square = Square::new((rest & 63) as u32);
            rest >>= 6;
        }
        squares[0] = Square::new((rest / 4 * 8 + rest % 4) as u32);
        Placement { squares, turn: Color::from_white(index.is_multiple_of(2)) }
    }

    fn position(&self, placement: &Placement) -> Option<Chess> {
        position(self.material.pieces(), self.squares(placement), placement.turn)
    }

    pub(super) fn occupied(&self, placement: &Placement) -> Bitboard {
        self.squares(placement).iter().copied().collect()
    }

    /// Whether the king of `side` is attacked, if the piece `taken` has been captured.
    pub(super) fn is_in_check(
        &self,
        placement: &Placement,
        side: Color,
        taken: Option<usize>,
    ) -> bool {
        let king = placement.squares[usize::from(side.is_black())];
        let occupied = self.occupied(placement);
        self.material.pieces().iter().zip(placement.squares).enumerate().any(
            |(index, (piece, square))| {
                piece.color != side
                    && taken != Some(index)
                    && attacks::attacks(square, *piece, occupied).contains(king)
            },
        )
    }

    pub(super) fn is_legal(&self, placement: &Placement) -> bool {
        let pieces = self.material.pieces();
        let may_stand = |(piece, square): (&Piece, &Square)| {
            piece.role != Role::Pawn || !Bitboard::BACKRANKS.contains(*square)
        };
        self.occupied(placement).count() == pieces.len()
            && pieces.iter().zip(&placement.squares).all(may_stand)
            && !self.is_in_check(placement, !placement.turn, None)
    }
}

/// Sets up pieces on squares; `None` if the position is illegal.
pub fn position(pieces: &[Piece], squares: &[Square], turn: Color) -> Option<Chess> {
    let mut setup = Setup::empty();
    setup.board = Board::empty();
    for (piece, square) in pieces.iter().zip(squares) {
        setup.board.set_piece_at(*square, *piece);
    }
    setup.turn = turn;
    Chess::from_setup(setup, CastlingMode::Standard).ok()
}

/// The number of squares of White's king in the table.
fn king_squares(material: &Material) -> usize {
    let has_pawns = Color::ALL.into_iter().any(|side| material.has_pawns(side));
    if has_pawns { 32 } else { 16 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_and_placements_correspond_and_mirror_images_share_an_index() {
        for (name, images) in [("KRK", &[0b111, 0b111_000, 0b111_111][..]), ("KPK", &[0b111])] {
            let ending = Ending::unknown(name.parse().unwrap());
            for index in 0..ending.values.len() {
                let placement = ending.placement(index);
                assert_eq!(ending.index(&placement), index);
                for image in images {
                    let squares =
                        placement.squares.map(|square| Square::new(u32::from(square) ^ image));
                    assert_eq!(ending.index(&Placement { squares, ..placement }), index);
                }
            }
        }
    }
}
