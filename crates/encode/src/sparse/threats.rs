//! `threats3084` v1: piece-square features that include whether the piece is attacked and defended.
//!
//! From the point of view of the side to move: the board is flipped for Black, and mirrored so that
//! the own king is on files e to h. Feature `bucket × 768 + (side × 6 + kind) × 64 + square`, where
//! bucket is 2 if the other side attacks the piece, plus 1 if its own side defends it. Four castling
//! rights follow (own right, own left, other right, other left), then eight en passant files (only
//! if the capture is legal).

use selfmate_chess::{Bitboard, CastlingSide, Chess, Color, Position, Role, Square};

use super::Attacks;

/// The name stored with networks that use these features.
pub const THREATS3084: &str = "threats3084";
/// A change of any feature increases the version.
pub const THREATS3084_VERSION: u32 = 1;
/// The number of features.
pub const THREATS3084_LEN: usize = CASTLING + 4 + 8;

const CASTLING: usize = 4 * 768;
const EN_PASSANT: usize = CASTLING + 4;

/// A list of features without allocation. A full board of 64 pieces with all rights has 69.
#[derive(Clone, Copy, Debug)]
pub struct Features {
    len: usize,
    items: [u16; 72],
}

impl Features {
    /// The features, each below [`THREATS3084_LEN`], without duplicates.
    pub fn as_slice(&self) -> &[u16] {
        &self.items[..self.len]
    }

    pub(super) const fn new() -> Features {
        Features { len: 0, items: [0; 72] }
    }

    #[inline(always)]
    fn push(&mut self, feature: usize) {
        self.push_if(feature, true);
    }

    /// Always writes, but advances only if `keep` is set: this avoids an unpredictable branch.
    #[inline(always)]
    pub(super) fn push_if(&mut self, feature: usize, keep: bool) {
        self.items[self.len] = feature as u16;
        self.len += usize::from(keep);
    }
}

/// A position from the point of view of the side to move, with the attacks of both sides.
#[derive(Clone, Copy, Debug)]
pub struct Threats<'a> {
    pub(super) position: &'a Chess,
    pub(super) attacks: Attacks,
    /// XOR with a square number flips and mirrors it.
    pub(super) turn: u16,
}

impl<'a> Threats<'a> {
    pub fn of(position: &'a Chess) -> Threats<'a> {
        let (board, mover) = (position.board(), position.turn());
        let king = board.king_of(mover).map_or(4, |square| u16::from(square) & 7);
        let turn = if mover == Color::White { 0 } else { 56 } | if king < 4 { 7 } else { 0 };
        Threats { position, attacks: Attacks::of(board), turn }
    }

    /// The active features.
    pub fn features(&self) -> Features {
        let mut features = Features::new();
        let (board, mover) = (self.position.board(), self.position.turn());
        for (side, color) in [mover, !mover].into_iter().enumerate() {
            let (attacked, defended) = (self.attacks.by(!color).0, self.attacks.by(color).0);
            for (kind, role) in Role::ALL.into_iter().enumerate() {
                let base = (side * 6 + kind) * 64;
                let mut pieces = (board.by_color(color) & board.by_role(role)).0;
                while pieces != 0 {
                    let square = pieces.trailing_zeros();
                    pieces &= pieces - 1;
                    let bucket = ((attacked >> square) & 1) * 2 + ((defended >> square) & 1);
                    let seen = square as usize ^ usize::from(self.turn);
                    features.push(bucket as usize * 768 + base + seen);
                }
            }
        }
        self.for_each_right(|feature| features.push(feature));
        features
    }

    /// Calls `push` with the features of castling rights and en passant.
    #[inline(always)]
    pub(super) fn for_each_right(&self, mut push: impl FnMut(usize)) {
        let castles = self.position.castles();
        if castles.any() {
            let mover = self.position.turn();
            for (side, color) in [mover, !mover].into_iter().enumerate() {
                for (left, wing) in CastlingSide::ALL.into_iter().enumerate() {
                    if castles.has(color, wing) {
                        // Only Chess960 has castling rights on a mirrored board. Right and left are swapped.
                        push(CASTLING + side * 2 + (left ^ usize::from(self.mirrored())));
                    }
                }
            }
        }
        // A legality check is expensive, so it runs only after a double pawn push.
        if self.position.maybe_ep_square().is_some()
            && let Some(square) = self.position.legal_ep_square()
        {
            push(EN_PASSANT + usize::from(self.seen(square) & 7));
        }
    }

    /// The number of a square from the point of view of the side to move.
    #[inline(always)]
    pub fn seen(&self, square: Square) -> u16 {
        u16::from(square) ^ self.turn
    }

    /// Whether files are mirrored.
    pub fn mirrored(&self) -> bool {
        self.turn & 7 != 0
    }

    /// The squares that the other side attacks.
    pub fn attacked(&self) -> Bitboard {
        self.attacks.by(!self.position.turn())
    }
}
