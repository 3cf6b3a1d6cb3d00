//! All squares that a side attacks, computed for the whole board at once.
//!
//! Sliding attacks use Kogge-Stone fills, because lookup tables would compete with network weights
//! for the cache. Pinned pieces attack like others.

use selfmate_chess::{Bitboard, Board, Color, Role};

const NOT_A: u64 = 0xFEFE_FEFE_FEFE_FEFE;
const NOT_H: u64 = 0x7F7F_7F7F_7F7F_7F7F;
const NOT_AB: u64 = NOT_A & (NOT_A << 1);
const NOT_GH: u64 = NOT_H & (NOT_H >> 1);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attacks {
    white: u64,
    black: u64,
}

impl Attacks {
    pub fn of(board: &Board) -> Attacks {
        Attacks { white: side(board, Color::White), black: side(board, Color::Black) }
    }

    /// The squares that a side attacks. Squares of its own pieces are included: it defends them.
    pub fn by(self, color: Color) -> Bitboard {
        Bitboard(if color == Color::White { self.white } else { self.black })
    }
}

fn side(board: &Board, color: Color) -> u64 {
    let pieces = |role: Role| (board.by_color(color) & board.by_role(role)).0;
    let empty = !board.occupied().0;
    let queens = pieces(Role::Queen);
    pawns(color, pieces(Role::Pawn))
        | knights(pieces(Role::Knight))
        | kings(pieces(Role::King))
        | straight(pieces(Role::Rook) | queens, empty)
        | diagonal(pieces(Role::Bishop) | queens, empty)
}

pub(super) fn pawns(color: Color, pawns: u64) -> u64 {
    if color == Color::White {
        ((pawns << 7) & NOT_H) | ((pawns << 9) & NOT_A)
    } else {
        ((pawns >> 9) & NOT_H) | ((pawns >> 7) & NOT_A)
    }
}

pub(super) fn knights(knights: u64) -> u64 {
    let near = ((knights << 1) & NOT_A) | ((knights >> 1) & NOT_H);
    let far = ((knights << 2) & NOT_AB) | ((knights >> 2) & NOT_GH);
    (near << 16) | (near >> 16) | (far << 8) | (far >> 8)
}

fn kings(kings: u64) -> u64 {
    let row = kings | ((kings << 1) & NOT_A) | ((kings >> 1) & NOT_H);
    (row | (row << 8) | (row >> 8)) & !kings
}

/// The attacks of rooks on these squares.
pub(super) fn straight(sliders: u64, empty: u64) -> u64 {
    up::<8>(sliders, empty, !0)
        | down::<8>(sliders, empty, !0)
        | up::<1>(sliders, empty, NOT_A)
        | down::<1>(sliders, empty, NOT_H)
}

/// The attacks of bishops on these squares.
pub(super) fn diagonal(sliders: u64, empty: u64) -> u64 {
    up::<9>(sliders, empty, NOT_A)
        | down::<9>(sliders, empty, NOT_H)
        | up::<7>(sliders, empty, NOT_H)
        | down::<7>(sliders, empty, NOT_A)
}

/// Slides towards higher squares. `board` excludes the file on which a step would wrap around.
#[inline(always)]
fn up<const STEP: u32>(sliders: u64, empty: u64, board: u64) -> u64 {
    let mut free = empty & board;
    let mut reached = sliders;
    reached |= free & (reached << STEP);
    free &= free << STEP;
    reached |= free & (reached << (2 * STEP));
    free &= free << (2 * STEP);
    reached |= free & (reached << (4 * STEP));
    (reached << STEP) & board
}

/// Slides towards lower squares.
#[inline(always)]
fn down<const STEP: u32>(sliders: u64, empty: u64, board: u64) -> u64 {
    let mut free = empty & board;
    let mut reached = sliders;
    reached |= free & (reached >> STEP);
    free &= free >> STEP;
    reached |= free & (reached >> (2 * STEP));
    free &= free >> (2 * STEP);
    reached |= free & (reached >> (4 * STEP));
    (reached >> STEP) & board
}
