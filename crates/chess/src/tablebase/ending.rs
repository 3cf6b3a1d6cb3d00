//! One ending solved: the distance to mate of every position.
//!
//! The table is a byte for every way to place the pieces, legal or not. Turned and mirrored boards
//! have the same one: White's king is on the files a to d and, without pawns, on the ranks 1 to 4.
//! No square is its own mirror image, so positions and moves correspond one to one.

use shakmaty::{
    Bitboard, Board, CastlingMode, Chess, Color, File, FromSetup, Piece, Rank, Role, Setup, Square,
    attacks,
};

use super::material::Material;

/// The most pieces of an ending: each more takes 64 times the memory.
pub const MAX_PIECES: usize = 4;

/// What best play comes to, the fifty-move rule aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The side to move is mated in so many plies, an even number.
    Loss(u8),
    /// Nobody can force mate.
    Draw,
    /// The side to move mates in so many plies, an odd number.
    Win(u8),
}

impl Verdict {
    /// As the distance says: who is to move when mate is on the board has lost.
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

    /// What the move that leads here comes to for the side that makes it.
    #[must_use]
    pub const fn a_move_before(self) -> Verdict {
        match self {
            Verdict::Loss(plies) => Verdict::Win(plies + 1),
            Verdict::Draw => Verdict::Draw,
            Verdict::Win(plies) => Verdict::Loss(plies + 1),
        }
    }

    /// Better verdicts have a higher one: quick wins, draws, long losses.
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

/// What a byte of a table means when it is no distance.
pub(super) const DRAW: u8 = 253;
/// Not found yet.
pub(super) const UNKNOWN: u8 = 254;
/// No position: pieces on one square, pawns on the last ranks, a king that could be taken.
pub(super) const ILLEGAL: u8 = 255;

/// The table of an ending.
#[derive(Clone, PartialEq, Eq)]
pub struct Ending {
    material: Material,
    pub(super) values: Vec<u8>,
}

/// A way to place the pieces: their squares in the order of [`Material::pieces`], and who moves.
#[derive(Clone, Copy)]
pub(super) struct Placement {
    pub squares: [Square; MAX_PIECES],
    pub turn: Color,
}

/// How many positions of a side to move are won, drawn and lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Won by the side to move.
    pub wins: u64,
    /// Drawn.
    pub draws: u64,
    /// Lost by the side to move.
    pub losses: u64,
}

impl Ending {
    /// The table before anything is known.
    pub(super) fn unknown(material: Material) -> Ending {
        let count = king_squares(&material) << (6 * (material.pieces().len() - 1) + 1);
        Ending { material, values: vec![UNKNOWN; count] }
    }

    /// Its pieces.
    pub fn material(&self) -> &Material {
        &self.material
    }

    /// What pieces on these squares, in the order of [`Material::pieces`], come to; `None` when it is no
    /// position of the ending.
    pub fn verdict(&self, squares: &[Square], turn: Color) -> Option<Verdict> {
        let mut placement = Placement { squares: [Square::A1; MAX_PIECES], turn };
        let pieces = self.material.pieces().len();
        if squares.len() != pieces {
            return None;
        }
        placement.squares[..pieces].copy_from_slice(squares);
        match self.values[self.number(&placement)] {
            ILLEGAL => None,
            DRAW | UNKNOWN => Some(Verdict::Draw),
            plies => Some(Verdict::mate_in(plies)),
        }
    }

    /// All positions with what they come to, one for each family of mirrored ones.
    pub fn positions(&self) -> impl Iterator<Item = (Chess, Verdict)> + '_ {
        (0..self.values.len()).filter_map(|number| {
            let placement = self.placement(number);
            let verdict = self.verdict(self.squares(&placement), placement.turn)?;
            Some((self.position(&placement)?, verdict))
        })
    }

    /// How many positions there are with this side to move, mirrored ones too.
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

    /// A position whose mate is the furthest away of those that a side to move wins; `None`
    /// when it wins nothing.
    pub fn longest(&self, turn: Color) -> Option<(Chess, u8)> {
        let numbers = (usize::from(turn.is_black())..self.values.len()).step_by(2);
        let wins =
            numbers.filter(|&number| self.values[number] < DRAW && self.values[number] % 2 == 1);
        let positions = wins.rev().max_by_key(|&number| self.values[number]);
        let number = positions?;
        Some((self.position(&self.placement(number))?, self.values[number]))
    }

    /// The squares of the pieces.
    pub(super) fn squares<'a>(&self, placement: &'a Placement) -> &'a [Square] {
        &placement.squares[..self.material.pieces().len()]
    }

    /// The place of a placement in the table.
    pub(super) fn number(&self, placement: &Placement) -> usize {
        let king = placement.squares[0];
        let mut mirror = if king.file() > File::D { 0b000_111 } else { 0 };
        if king.rank() > Rank::Fourth && king_squares(&self.material) == 16 {
            mirror |= 0b111_000;
        }
        let place = |square: Square| usize::from(square) ^ mirror;
        let king = place(king);
        let number = self.squares(placement)[1..]
            .iter()
            .fold(king / 8 * 4 + king % 8, |number, &square| number << 6 | place(square));
        number << 1 | usize::from(placement.turn.is_black())
    }

    /// The placement at a place of the table.
    pub(super) fn placement(&self, number: usize) -> Placement {
        let mut squares = [Square::A1; MAX_PIECES];
        let mut rest = number >> 1;
        for square in squares[1..self.material.pieces().len()].iter_mut().rev() {
            *square = Square::new((rest & 63) as u32);
            rest >>= 6;
        }
        squares[0] = Square::new((rest / 4 * 8 + rest % 4) as u32);
        Placement { squares, turn: Color::from_white(number.is_multiple_of(2)) }
    }

    fn position(&self, placement: &Placement) -> Option<Chess> {
        position(self.material.pieces(), self.squares(placement), placement.turn)
    }

    pub(super) fn occupied(&self, placement: &Placement) -> Bitboard {
        self.squares(placement).iter().copied().collect()
    }

    /// Whether a side's king is attacked; the piece `taken` no longer attacks.
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

/// Pieces on squares as a position; `None` when they cannot stand so.
pub fn position(pieces: &[Piece], squares: &[Square], turn: Color) -> Option<Chess> {
    let mut setup = Setup::empty();
    setup.board = Board::empty();
    for (piece, square) in pieces.iter().zip(squares) {
        setup.board.set_piece_at(*square, *piece);
    }
    setup.turn = turn;
    Chess::from_setup(setup, CastlingMode::Standard).ok()
}

/// How many squares White's king has in the table.
fn king_squares(material: &Material) -> usize {
    let has_pawns = Color::ALL.into_iter().any(|side| material.has_pawns(side));
    if has_pawns { 32 } else { 16 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_placements_correspond_and_mirrored_ones_are_one() {
        for (name, images) in [("KRK", &[0b111, 0b111_000, 0b111_111][..]), ("KPK", &[0b111])] {
            let ending = Ending::unknown(name.parse().unwrap());
            for number in 0..ending.values.len() {
                let placement = ending.placement(number);
                assert_eq!(ending.number(&placement), number);
                for image in images {
                    let squares =
                        placement.squares.map(|square| Square::new(u32::from(square) ^ image));
                    assert_eq!(ending.number(&Placement { squares, ..placement }), number);
                }
            }
        }
    }
}
