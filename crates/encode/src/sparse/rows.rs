//! `threat_rows` v1: a row of weights for every kind of move, and a small table beside it.
//!
//! Rows number the from-to pairs that a queen or knight could go (1792, squares as in
//! [`Threats`]), twice: to a square the other side does not attack, and to one it does. Then 72
//! underpromotions: (file × 3 + left, straight, right) × 3 + knight, bishop, rook. Castling is
//! king takes rook, to a safe square. No two legal moves of a position share a row.
//! The table tells moves apart by what they do wherever they are: the piece, what it captures,
//! whether the other side attacks its square before and after, and whether it gives check
//! itself (discovered checks and castling rooks do not count).

use selfmate_chess::{Move, Position, Role, Square};

use super::Threats;
use super::attacks;

/// The name stored with networks that score moves by these rows.
pub const THREAT_ROWS: &str = "threat_rows";
/// The version; a change of any row or table entry raises it.
pub const THREAT_ROWS_VERSION: u32 = 1;
/// How many rows there are.
pub const MOVE_ROWS: usize = 2 * PAIRS + 8 * 3 * 3;
/// How many entries the table has: 6 pieces × (nothing or 5 captured) × 8 flags.
pub const MOVE_TABLE: usize = 6 * 6 * 8;

const PAIRS: usize = 1792;

/// Where a move's weights stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MoveKey {
    /// The row, below [`MOVE_ROWS`].
    pub row: u16,
    /// The entry of the table, below [`MOVE_TABLE`].
    pub table: u16,
}

/// Numbers the moves of one position.
#[derive(Clone, Copy, Debug)]
pub struct MoveRows<'a> {
    threats: &'a Threats<'a>,
    attacked: u64,
    /// From where a piece of each kind would give check, P N B R Q.
    checks: [u64; 5],
}

impl<'a> MoveRows<'a> {
    /// Prepares to number the moves of a position.
    pub fn of(threats: &'a Threats<'a>) -> MoveRows<'a> {
        let attacked = threats.attacked().0;
        MoveRows { threats, attacked, checks: checks(threats, 0) }
    }

    /// The place of a legal move.
    #[inline]
    pub fn key(&self, m: Move) -> MoveKey {
        let from = m.from().unwrap_or(m.to());
        let to = m.to();
        let flag = |board: u64, square: Square| usize::from((board >> u32::from(square)) & 1 == 1);
        let hit = if m.is_castle() { 0 } else { flag(self.attacked, to) };
        let captured = m.capture().map_or(0, |role| role as usize);
        let check = match (m.role(), m.promotion()) {
            (Role::King, _) => 0,
            // The pawn leaves its square, which may have stood between.
            (_, Some(role)) => {
                flag(checks(self.threats, 1 << u32::from(from))[role as usize - 1], to)
            }
            (role, None) => flag(self.checks[role as usize - 1], to),
        };
        let flags = hit * 4 + flag(self.attacked, from) * 2 + check;
        let table = ((m.role() as usize - 1) * 6 + captured) * 8 + flags;
        MoveKey { row: self.row(m, from, to, hit) as u16, table: table as u16 }
    }

    fn row(&self, m: Move, from: Square, to: Square, hit: usize) -> usize {
        let (from, to) = (usize::from(self.threats.seen(from)), usize::from(self.threats.seen(to)));
        match m.promotion() {
            Some(role) if role != Role::Queen => {
                let direction = (to & 7) + 1 - (from & 7);
                2 * PAIRS + ((from & 7) * 3 + direction) * 3 + role as usize - 2
            }
            _ => hit * PAIRS + usize::from(PAIR[from * 64 + to]),
        }
    }
}

/// From where pieces would give check, if the squares in `left` were empty.
fn checks(threats: &Threats, left: u64) -> [u64; 5] {
    let (board, mover) = (threats.position.board(), threats.position.turn());
    let king = (board.by_color(!mover) & board.by_role(Role::King)).0;
    let empty = !board.occupied().0 | left;
    let (diagonal, straight) = (attacks::diagonal(king, empty), attacks::straight(king, empty));
    let pawns = attacks::pawns(!mover, king);
    [pawns, attacks::knights(king), diagonal, straight, diagonal | straight]
}

/// The number of each from-to pair that a queen or knight could go, counted up from a1.
static PAIR: [u16; 4096] = pairs();

const fn pairs() -> [u16; 4096] {
    let mut table = [u16::MAX; 4096];
    let mut next = 0;
    let mut index = 0;
    while index < 4096 {
        let (from, to) = (index / 64, index % 64);
        let files = (from % 8usize).abs_diff(to % 8);
        let ranks = (from / 8usize).abs_diff(to / 8);
        let queen = files == 0 || ranks == 0 || files == ranks;
        if from != to && (queen || files * ranks == 2) {
            table[index] = next;
            next += 1;
        }
        index += 1;
    }
    assert!(next as usize == PAIRS);
    table
}
