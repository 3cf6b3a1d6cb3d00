//! `threats3084` v1: piece-squares that know whether the piece is attacked and defended.
//!
//! Seen from the side to move: the board is turned for Black, and mirrored so that the mover's
//! king stands on files e to h. Feature `bucket × 768 + (side × 6 + kind) × 64 + square`, where
//! bucket is 2 when the other side attacks the piece, plus 1 when its own side defends it; then
//! four castling rights (own right, own left, other right, other left) and eight en passant
//! files (only when the capture is legal).

use selfmate_chess::{Bitboard, CastlingSide, Chess, Color, Position, Role, Square};

use super::Attacks;

/// The name stored with networks that take these features.
pub const THREATS3084: &str = "threats3084";
/// The version; a change of any feature raises it.
pub const THREATS3084_VERSION: u32 = 1;
/// How many features there are.
pub const THREATS3084_LEN: usize = CASTLING + 4 + 8;

const CASTLING: usize = 4 * 768;
const EN_PASSANT: usize = CASTLING + 4;

/// Features that are on, in a fixed place: a full board with all rights has 69.
#[derive(Clone, Copy, Debug)]
pub struct Features {
    len: usize,
    items: [u16; 72],
}

impl Features {
    /// The features, each below [`THREATS3084_LEN`] and none twice.
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

    /// Writes in any case and keeps what was written only if so told: no branch to guess.
    #[inline(always)]
    pub(super) fn push_if(&mut self, feature: usize, keep: bool) {
        self.items[self.len] = feature as u16;
        self.len += usize::from(keep);
    }
}

/// A position as its mover sees it, with the attacks of both sides.
#[derive(Clone, Copy, Debug)]
pub struct Threats<'a> {
    pub(super) position: &'a Chess,
    pub(super) attacks: Attacks,
    /// Exclusive or with a square's number turns and mirrors it.
    pub(super) turn: u16,
}

impl<'a> Threats<'a> {
    /// Looks at a position from the mover's side.
    pub fn of(position: &'a Chess) -> Threats<'a> {
        let (board, mover) = (position.board(), position.turn());
        let king = board.king_of(mover).map_or(4, |square| u16::from(square) & 7);
        let turn = if mover == Color::White { 0 } else { 56 } | if king < 4 { 7 } else { 0 };
        Threats { position, attacks: Attacks::of(board), turn }
    }

    /// The features that are on.
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
        self.each_right(|feature| features.push(feature));
        features
    }

    /// Castling rights and en passant.
    #[inline(always)]
    pub(super) fn each_right(&self, mut push: impl FnMut(usize)) {
        let castles = self.position.castles();
        if castles.any() {
            let mover = self.position.turn();
            for (side, color) in [mover, !mover].into_iter().enumerate() {
                for (left, wing) in CastlingSide::ALL.into_iter().enumerate() {
                    if castles.has(color, wing) {
                        // Only Chess960 has rights on a mirrored board: right and left swap.
                        push(CASTLING + side * 2 + (left ^ usize::from(self.mirrored())));
                    }
                }
            }
        }
        // Legality costs a look for pins, so ask only where a pawn has just gone two squares.
        if self.position.maybe_ep_square().is_some()
            && let Some(square) = self.position.legal_ep_square()
        {
            push(EN_PASSANT + usize::from(self.seen(square) & 7));
        }
    }

    /// The number of a square as the mover sees it.
    #[inline(always)]
    pub fn seen(&self, square: Square) -> u16 {
        u16::from(square) ^ self.turn
    }

    /// Left and right are swapped.
    pub fn mirrored(&self) -> bool {
        self.turn & 7 != 0
    }

    /// The squares the other side attacks.
    pub fn attacked(&self) -> Bitboard {
        self.attacks.by(!self.position.turn())
    }
}
