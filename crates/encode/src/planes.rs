//! Dense inputs: stacks of 8×8 planes, one after the other, rank 1 and file a first.
//!
//! `planes119` v1, from the point of view of the side to move: the board is flipped for Black, and
//! "own" means the side to move.
//!
//! | planes | meaning |
//! |---|---|
//! | 0-95 | for each of the last 8 positions, newest first: own P N B R Q K, then the other side's |
//! | 96-99 | castling rights: own king side, own queen side, other king side, other queen side |
//! | 100 | 1 if White is to move |
//! | 101-108 | for each of the 8 positions: 1 if it had occurred before |
//! | 109 | halfmove clock / 100 |
//! | 110-114 | 1 if the halfmove clock is at least 10, 20, 40, 60, 80 |
//! | 115 | fullmove number / 200, at most 1 |
//! | 116-118 | 1 if the fullmove number is at least 10, 30, 60 |
//!
//! The planes of positions before the start of the game are zero.
//!
//! `planes13` v1, from White's point of view: 0-5 White's P N B R Q K, 6-11 Black's, 12 is 1 if
//! White is to move.
//!
//! `planes12` v1: the 8×8×12 board tensor of the environment. The piece index varies fastest: the
//! value is at `(rank × 8 + file) × 12 + piece`.
//!
//! `planes_krk` v1, from White's point of view: 0 White's king, 1 Black's king, 2-6 the other pieces
//! P N B R Q (1 for White's, -1 for Black's), 7 is 1 if White is to move, 8 halfmove clock / 100.

use selfmate_chess::env::board_tensor;
use selfmate_chess::{Bitboard, CastlingSide, Chess, Color, Game, Position, Role};

use crate::UnknownEncoding;

/// A dense encoding of a game's current position.
///
/// ```
/// use selfmate_chess::Game;
/// use selfmate_encode::Planes;
///
/// let planes = Planes::by_name("planes119")?;
/// let values = planes.encoded(&Game::new());
/// assert_eq!(values.len(), 119 * 64);
/// // Plane 0 holds the own pawns of the current position. e2 is square 12.
/// assert_eq!(values[planes.offset(0, 12)], 1.0);
/// # Ok::<(), selfmate_encode::UnknownEncoding>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Planes {
    /// Eight positions of history, as in AlphaZero.
    Planes119,
    /// Pieces by colour, and the side to move.
    Planes13,
    /// Pieces by colour; the piece index varies fastest.
    Planes12,
    /// Small, for endings with few pieces.
    PlanesKrk,
}

/// Consecutive planes with one meaning, for documentation and display.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlaneRange {
    pub first: usize,
    /// Inclusive.
    pub last: usize,
    pub meaning: &'static str,
}

const HISTORY: usize = 8;

impl Planes {
    pub const ALL: [Planes; 4] =
        [Planes::Planes119, Planes::Planes13, Planes::Planes12, Planes::PlanesKrk];

    pub fn by_name(name: &str) -> Result<Planes, UnknownEncoding> {
        Self::ALL.into_iter().find(|planes| planes.name() == name).ok_or_else(|| UnknownEncoding {
            name: name.to_owned(),
            known: Self::ALL.map(Planes::name).to_vec(),
        })
    }

    pub const fn name(self) -> &'static str {
        match self {
            Planes::Planes119 => "planes119",
            Planes::Planes13 => "planes13",
            Planes::Planes12 => "planes12",
            Planes::PlanesKrk => "planes_krk",
        }
    }

    /// A change of any value increases the version.
    pub const fn version(self) -> u32 {
        1
    }

    /// The number of planes.
    pub const fn count(self) -> usize {
        match self {
            Planes::Planes119 => 119,
            Planes::Planes13 => 13,
            Planes::Planes12 => 12,
            Planes::PlanesKrk => 9,
        }
    }

    /// The number of values.
    pub const fn size(self) -> usize {
        self.count() * 64
    }

    /// The number of positions it encodes, the current one included.
    pub const fn history(self) -> usize {
        match self {
            Planes::Planes119 => HISTORY,
            Planes::Planes13 | Planes::Planes12 | Planes::PlanesKrk => 1,
        }
    }

    /// Writes the encoding of a game's current position to `out`.
    ///
    /// # Panics
    ///
    /// Panics unless `out` has length [`Planes::size`].
    pub fn encode(self, game: &Game, out: &mut [f32]) {
        assert_eq!(out.len(), self.size(), "length of the output for {}", self.name());
        out.fill(0.0);
        match self {
            Planes::Planes119 => planes119(game, out),
            Planes::Planes13 => planes13(game.position(), out),
            Planes::Planes12 => planes12(game.position(), out),
            Planes::PlanesKrk => planes_krk(game.position(), out),
        }
    }

    /// Like [`Planes::encode`], into a new vector.
    pub fn encoded(self, game: &Game) -> Vec<f32> {
        let mut out = vec![0.0; self.size()];
        self.encode(game, &mut out);
        out
    }

    /// The index of a plane's value on a square (0 = a1, 63 = h8).
    pub const fn offset(self, plane: usize, square: usize) -> usize {
        match self {
            Planes::Planes12 => square * 12 + plane,
            _ => plane * 64 + square,
        }
    }

    pub const fn ranges(self) -> &'static [PlaneRange] {
        match self {
            Planes::Planes119 => PLANES119,
            Planes::Planes13 => PLANES13,
            Planes::Planes12 => PLANES12,
            Planes::PlanesKrk => PLANES_KRK,
        }
    }
}

const fn range(first: usize, last: usize, meaning: &'static str) -> PlaneRange {
    PlaneRange { first, last, meaning }
}

const PLANES119: &[PlaneRange] = &[
    range(0, 11, "now: own P N B R Q K, other P N B R Q K"),
    range(12, 23, "1 ply ago"),
    range(24, 35, "2 plies ago"),
    range(36, 47, "3 plies ago"),
    range(48, 59, "4 plies ago"),
    range(60, 71, "5 plies ago"),
    range(72, 83, "6 plies ago"),
    range(84, 95, "7 plies ago"),
    range(96, 99, "castling: own king side, own queen side, other king side, other queen side"),
    range(100, 100, "White to move"),
    range(101, 108, "repetition of each of the 8 positions"),
    range(109, 109, "halfmove clock / 100"),
    range(110, 114, "halfmove clock at least 10, 20, 40, 60, 80"),
    range(115, 115, "fullmove number / 200"),
    range(116, 118, "fullmove number at least 10, 30, 60"),
];
const PLANES13: &[PlaneRange] = &[
    range(0, 5, "White's P N B R Q K"),
    range(6, 11, "Black's P N B R Q K"),
    range(12, 12, "White to move"),
];
const PLANES12: &[PlaneRange] =
    &[range(0, 5, "White's P N B R Q K"), range(6, 11, "Black's P N B R Q K")];
const PLANES_KRK: &[PlaneRange] = &[
    range(0, 0, "White's king"),
    range(1, 1, "Black's king"),
    range(2, 6, "other P N B R Q: 1 White's, -1 Black's"),
    range(7, 7, "White to move"),
    range(8, 8, "halfmove clock / 100"),
];

fn planes119(game: &Game, out: &mut [f32]) {
    let position = game.position();
    let mover = position.turn();
    for (age, past) in game.positions_back().take(HISTORY).enumerate() {
        for (side, color) in [mover, !mover].into_iter().enumerate() {
            for (kind, role) in Role::ALL.into_iter().enumerate() {
                let pieces = past.board().by_color(color) & past.board().by_role(role);
                let seen = if mover == Color::White { pieces } else { pieces.flip_vertical() };
                set(out, age * 12 + side * 6 + kind, seen, 1.0);
            }
        }
        if game.repetitions_at(game.ply() - age) > 1 {
            fill(out, 101 + age, 1.0);
        }
    }
    let castles = position.castles();
    for (plane, (color, side)) in
        (96..).zip([(mover, true), (mover, false), (!mover, true), (!mover, false)])
    {
        let side = CastlingSide::from_king_side(side);
        fill(out, plane, f32::from(u8::from(castles.has(color, side))));
    }
    fill(out, 100, white_to_move(position));
    let halfmoves = position.halfmoves();
    fill(out, 109, halfmoves as f32 / 100.0);
    for (plane, threshold) in (110..).zip([10, 20, 40, 60, 80]) {
        fill(out, plane, at_least(halfmoves, threshold));
    }
    let fullmoves = position.fullmoves().get();
    fill(out, 115, (fullmoves as f32 / 200.0).min(1.0));
    for (plane, threshold) in (116..).zip([10, 30, 60]) {
        fill(out, plane, at_least(fullmoves, threshold));
    }
}

fn planes13(position: &Chess, out: &mut [f32]) {
    for (side, color) in Color::ALL.into_iter().enumerate() {
        for (kind, role) in Role::ALL.into_iter().enumerate() {
            let pieces = position.board().by_color(color) & position.board().by_role(role);
            set(out, side * 6 + kind, pieces, 1.0);
        }
    }
    fill(out, 12, white_to_move(position));
}

fn planes12(position: &Chess, out: &mut [f32]) {
    let tensor = board_tensor(position.board());
    for (value, &piece) in out.iter_mut().zip(tensor.as_flattened().as_flattened()) {
        *value = f32::from(piece);
    }
}

fn planes_krk(position: &Chess, out: &mut [f32]) {
    let board = position.board();
    set(out, 0, board.kings() & board.white(), 1.0);
    set(out, 1, board.kings() & board.black(), 1.0);
    for (kind, role) in Role::ALL.into_iter().filter(|&role| role != Role::King).enumerate() {
        set(out, 2 + kind, board.by_role(role) & board.white(), 1.0);
        set(out, 2 + kind, board.by_role(role) & board.black(), -1.0);
    }
    fill(out, 7, white_to_move(position));
    fill(out, 8, position.halfmoves() as f32 / 100.0);
}

fn set(out: &mut [f32], plane: usize, squares: Bitboard, value: f32) {
    for square in squares {
        out[plane * 64 + usize::from(square)] = value;
    }
}

fn fill(out: &mut [f32], plane: usize, value: f32) {
    out[plane * 64..(plane + 1) * 64].fill(value);
}

fn white_to_move(position: &Chess) -> f32 {
    f32::from(u8::from(position.turn() == Color::White))
}

fn at_least(value: u32, threshold: u32) -> f32 {
    f32::from(u8::from(value >= threshold))
}
