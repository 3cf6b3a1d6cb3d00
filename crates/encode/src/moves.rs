//! Moves as indices of a network's policy output.
//!
//! | space | index | point of view | promotions |
//! |---|---|---|---|
//! | `az4672` v1 | plane × 64 + from-square | the side to move | all |
//! | `from_to4096` v1 | from × 64 + to | White | to a queen; others have no index |
//!
//! The planes of `az4672`:
//!
//! | planes | indices | meaning |
//! |---|---|---|
//! | 0-55 | 0-3583 | queen-like: direction (N NE E SE S SW W NW) × 7 + distance - 1; also pawns, kings, queen promotions |
//! | 56-63 | 3584-4095 | knight: the jumps of `KNIGHT_JUMPS` |
//! | 64-72 | 4096-4671 | promotion to knight, bishop, rook × capture to the left, straight, capture to the right |
//!
//! Castling is the king's move of two squares. In Chess960 that could also be a normal king move,
//! so castling is written as king takes rook.

use selfmate_chess::env::ActionSpace;
use selfmate_chess::{CastlingMode, Chess, Move, Position, Role, Square};

use crate::{UnknownEncoding, seen_by};

/// A numbering of moves.
///
/// ```
/// use selfmate_chess::Game;
/// use selfmate_chess::env::ActionSpace;
/// use selfmate_chess::notation::parse_move;
/// use selfmate_encode::MoveSpace;
///
/// let game = Game::new();
/// let position = game.position();
/// let m = parse_move(position, "e4")?;
/// let index = MoveSpace::Az4672.index(position, m).expect("every legal move has an index");
/// assert_eq!(index, 64 + 12); // plane 1, two squares north; e2 is square 12
/// assert_eq!(MoveSpace::Az4672.decode(position, index), Some(m));
/// # Ok::<(), selfmate_chess::notation::MoveError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MoveSpace {
    /// The 8×8×73 moves of AlphaZero, from the point of view of the side to move.
    Az4672,
    /// From-square and to-square, from White's point of view.
    FromTo4096,
}

impl MoveSpace {
    pub const ALL: [MoveSpace; 2] = [MoveSpace::Az4672, MoveSpace::FromTo4096];

    pub fn by_name(name: &str) -> Result<MoveSpace, UnknownEncoding> {
        Self::ALL.into_iter().find(|space| space.name() == name).ok_or_else(|| UnknownEncoding {
            name: name.to_owned(),
            known: Self::ALL.map(|space| space.name()).to_vec(),
        })
    }

    /// A change of any index increases the version.
    pub const fn version(self) -> u32 {
        1
    }

    /// The moves that have an index in some position, in UCI notation, with their indices: with White to
    /// move for `az4672`, whose ranks are mirrored for Black, and for both sides in `from_to4096`.
    pub fn uci_indices(self) -> Vec<(String, usize)> {
        let mut moves = Vec::new();
        for (from, to) in Square::ALL.into_iter().flat_map(|from| Square::ALL.map(|to| (from, to)))
        {
            let (ranks, files) = steps(from, to);
            let is_line = ranks == 0 || files == 0 || ranks.abs() == files.abs();
            let is_possible = is_line || KNIGHT_JUMPS.contains(&(ranks, files));
            if from == to || (self == MoveSpace::Az4672 && !is_possible) {
                continue;
            }
            let index = |promotion| match self {
                MoveSpace::Az4672 => az4672(from, to, promotion),
                MoveSpace::FromTo4096 => from_to4096(from, to),
            };
            moves.push((format!("{from}{to}"), index(None)));
            let is_whites = usize::from(from) / 8 == 6 && ranks == 1;
            let is_blacks = usize::from(from) / 8 == 1 && ranks == -1;
            let roles: &[Role] = match self {
                _ if files.abs() > 1 => &[],
                MoveSpace::Az4672 if is_whites => {
                    &[Role::Knight, Role::Bishop, Role::Rook, Role::Queen]
                }
                MoveSpace::FromTo4096 if is_whites || is_blacks => &[Role::Queen],
                _ => &[],
            };
            let promotion =
                |&role: &Role| (format!("{from}{to}{}", role.char()), index(Some(role)));
            moves.extend(roles.iter().map(promotion));
        }
        moves
    }

    /// The legal move with this index, if there is one.
    pub fn decode(self, position: &Chess, index: usize) -> Option<Move> {
        position.legal_moves().into_iter().find(|&m| self.index(position, m) == Some(index))
    }
}

impl ActionSpace for MoveSpace {
    fn name(&self) -> &'static str {
        match self {
            MoveSpace::Az4672 => "az4672",
            MoveSpace::FromTo4096 => "from_to4096",
        }
    }

    fn size(&self) -> usize {
        match self {
            MoveSpace::Az4672 => 4672,
            MoveSpace::FromTo4096 => 4096,
        }
    }

    fn index(&self, position: &Chess, m: Move) -> Option<usize> {
        let (from, to) = squares(position, m)?;
        match self {
            MoveSpace::Az4672 => {
                let mover = position.turn();
                Some(az4672(seen_by(mover, from), seen_by(mover, to), m.promotion()))
            }
            MoveSpace::FromTo4096 => match m.promotion() {
                None | Some(Role::Queen) => Some(from_to4096(from, to)),
                Some(_) => None,
            },
        }
    }
}

/// The from- and to-square that determine the index.
fn squares(position: &Chess, m: Move) -> Option<(Square, Square)> {
    match m {
        Move::Castle { king, rook } => match position.castles().mode() {
            CastlingMode::Chess960 => Some((king, rook)),
            CastlingMode::Standard => {
                let to = if rook > king { king.offset(2) } else { king.offset(-2) };
                to.map(|to| (king, to))
            }
        },
        _ => m.from().map(|from| (from, m.to())),
    }
}

/// Rank step and file step of each knight plane, clockwise from north.
const KNIGHT_JUMPS: [(i32, i32); 8] =
    [(2, 1), (1, 2), (-1, 2), (-2, 1), (-2, -1), (-1, -2), (1, -2), (2, -1)];

fn from_to4096(from: Square, to: Square) -> usize {
    usize::from(from) * 64 + usize::from(to)
}

/// How many ranks and files a move goes up and to the right.
fn steps(from: Square, to: Square) -> (i32, i32) {
    let ranks = i32::from(to.rank()) - i32::from(from.rank());
    (ranks, i32::from(to.file()) - i32::from(from.file()))
}

fn az4672(from: Square, to: Square, promotion: Option<Role>) -> usize {
    let (ranks, files) = steps(from, to);
    let plane = match promotion {
        Some(role @ (Role::Knight | Role::Bishop | Role::Rook)) => {
            64 + (role as usize - Role::Knight as usize) * 3 + (files + 1) as usize
        }
        _ => match KNIGHT_JUMPS.iter().position(|&jump| jump == (ranks, files)) {
            Some(jump) => 56 + jump,
            None => queen_direction(ranks, files) * 7 + ranks.abs().max(files.abs()) as usize - 1,
        },
    };
    plane * 64 + usize::from(from)
}

/// 0 for north, clockwise to 7 for north-west.
fn queen_direction(ranks: i32, files: i32) -> usize {
    match (ranks.signum(), files.signum()) {
        (1, 0) => 0,
        (1, 1) => 1,
        (0, 1) => 2,
        (-1, 1) => 3,
        (-1, 0) => 4,
        (-1, -1) => 5,
        (0, -1) => 6,
        _ => 7,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use selfmate_chess::notation::uci;
    use selfmate_chess::{Color, Game, Seed};

    use super::*;

    #[test]
    fn legal_moves_have_the_indices_of_the_whole_map() {
        let mut rng = Seed::new(1).rng();
        for space in MoveSpace::ALL {
            let all = space.uci_indices();
            let map: HashMap<&str, usize> = all.iter().map(|(m, index)| (&m[..], *index)).collect();
            assert_eq!(map.len(), all.len(), "each move once");
            let mut promotions = 0;
            for _ in 0..30 {
                let mut game = Game::new();
                while game.outcome().is_none() {
                    let (legal, position) = (game.legal_moves(), game.position());
                    for &m in &legal {
                        let text = uci(position, m);
                        let is_mirrored = space == MoveSpace::Az4672 && game.turn() == Color::Black;
                        let mirror = |c: char| match c.to_digit(10) {
                            Some(rank) if is_mirrored => char::from(b'0' + 9 - rank as u8),
                            _ => c,
                        };
                        let key: String = text.chars().map(mirror).collect();
                        let found = map.get(&key[..]).copied();
                        assert_eq!(found, space.index(position, m), "{text} {}", space.name());
                        promotions += usize::from(m.is_promotion());
                    }
                    game.play_unchecked(*rng.choose(&legal).unwrap());
                }
            }
            assert!(promotions > 50, "{promotions}");
        }
        let (az4672, from_to) =
            (MoveSpace::Az4672.uci_indices(), MoveSpace::FromTo4096.uci_indices());
        // A queen's and a knight's moves, and 22 promotions to each of four pieces.
        assert_eq!(az4672.len(), 1456 + 336 + 4 * 22);
        let indices: HashSet<usize> = az4672.iter().map(|(_, index)| *index).collect();
        assert_eq!(indices.len(), 1456 + 336 + 3 * 22, "a promotion to a queen is a queen's move");
        // All pairs of squares, and 22 promotions to a queen for either side.
        assert_eq!(from_to.len(), 64 * 63 + 2 * 22);
    }
}
