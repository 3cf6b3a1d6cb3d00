//! `threat_rows` v1: a weight row for every kind of move, and a small additional table.
//!
//! Rows number the 1792 from-to pairs of queen and knight moves (squares as in [`Threats`]) twice:
//! first with a target that the other side does not attack, then with one that it attacks. 72
//! underpromotions follow: (file × 3 + left, straight, right) × 3 + knight, bishop, rook. Castling is
//! king takes rook, to a square that is not attacked. No two legal moves of a position share a row.
//! The table depends on the kind of move and not on its squares: the piece, what it captures,
//! whether the other side attacks its square before and after, and whether the piece itself gives
//! check (discovered checks and checks by a castling rook do not count).

use selfmate_chess::{Move, Position, Role, Square};

use super::Threats;
use super::attacks;

/// The name stored with networks that score moves with these rows.
pub const THREAT_ROWS: &str = "threat_rows";
/// A change of any row or table entry increases the version.
pub const THREAT_ROWS_VERSION: u32 = 1;
/// The number of rows.
pub const MOVE_ROWS: usize = 2 * PAIRS + 8 * 3 * 3;
/// The number of table entries: 6 pieces × (no capture or 5 captured pieces) × 8 flags.
pub const MOVE_TABLE: usize = 6 * 6 * 8;

const PAIRS: usize = 1792;

/// The indices of a move's weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MoveKey {
    /// Below [`MOVE_ROWS`].
    pub row: u16,
    /// Below [`MOVE_TABLE`].
    pub table: u16,
}

/// Computes the keys of one position's moves.
#[derive(Clone, Copy, Debug)]
pub struct MoveRows<'a> {
    threats: &'a Threats<'a>,
    attacked: u64,
    /// The squares from which a P N B R Q of the side to move would give check.
    checks: [u64; 5],
}

impl<'a> MoveRows<'a> {
    pub fn of(threats: &'a Threats<'a>) -> MoveRows<'a> {
        let attacked = threats.attacked().0;
        MoveRows { threats, attacked, checks: checks(threats, 0) }
    }

    /// The key of a legal move.
    #[inline]
    pub fn key(&self, m: Move) -> MoveKey {
        let from = m.from().unwrap_or(m.to());
        let to = m.to();
        let flag = |board: u64, square: Square| usize::from((board >> u32::from(square)) & 1 == 1);
        let hit = if m.is_castle() { 0 } else { flag(self.attacked, to) };
        let captured = m.capture().map_or(0, |role| role as usize);
        let check = match (m.role(), m.promotion()) {
            (Role::King, _) => 0,
            // The pawn leaves its square, which may open the line to the king.
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

/// The squares from which a P N B R Q would give check if the squares in `left` were empty.
fn checks(threats: &Threats, left: u64) -> [u64; 5] {
    let (board, mover) = (threats.position.board(), threats.position.turn());
    let king = (board.by_color(!mover) & board.by_role(Role::King)).0;
    let empty = !board.occupied().0 | left;
    let (diagonal, straight) = (attacks::diagonal(king, empty), attacks::straight(king, empty));
    let pawns = attacks::pawns(!mover, king);
    [pawns, attacks::knights(king), diagonal, straight, diagonal | straight]
}

/// The number of each from-to pair of a queen or knight move, in order of from- and to-square.
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
