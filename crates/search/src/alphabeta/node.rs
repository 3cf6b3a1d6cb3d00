//! A position with the data that the search needs at every node.
//!
//! Keys, the piece-square score and the phase are updated incrementally, because computing them
//! from scratch costs more than the move itself. The rules come from shakmaty.

use selfmate_chess::{Bitboard, Chess, Color, Move, Position, Role, Square};
use shakmaty::attacks;

use super::pair::Pair;
use super::weights::Weights;
use crate::phase::ROLE_WEIGHTS;

const FILE_A: u64 = 0x0101_0101_0101_0101;
const FILE_H: u64 = FILE_A << 7;

#[derive(Clone)]
pub(super) struct Node {
    pub(super) position: Chess,
    /// Equal for equal positions: pieces, side to move, castling rights, legal en passant.
    pub(super) key: u64,
    /// Equal for equal pawns and kings.
    pub(super) pawn_key: u64,
    /// Equal for equal pieces of White and of Black, without pawns.
    pub(super) piece_keys: [u64; 2],
    /// Piece values and piece-square values, White's minus Black's.
    pub(super) squares: Pair,
    /// The game phase: 24 with all pieces, 0 with kings and pawns only.
    pub(super) phase: i32,
    /// The pieces that give check to the side to move.
    pub(super) checkers: Bitboard,
}

impl Node {
    pub(super) fn new(position: &Chess, tables: &SquareTables) -> Node {
        let mut node = Node {
            key: position_key(position),
            pawn_key: 0,
            piece_keys: [0; 2],
            squares: Pair::default(),
            phase: 0,
            checkers: position.checkers(),
            position: position.clone(),
        };
        // Adding the pieces below toggles the key again, so keep the value from here.
        let key = node.key;
        for (square, piece) in position.board() {
            node.add(piece.color, piece.role, square, tables);
        }
        node.key = key;
        node
    }

    pub(super) fn in_check(&self) -> bool {
        self.checkers.any()
    }

    pub(super) fn turn(&self) -> Color {
        self.position.turn()
    }

    /// Whether the side to move has more than king and pawns. Without that, zugzwang is likely.
    pub(super) fn has_pieces(&self) -> bool {
        let board = self.position.board();
        (self.position.us() & !(board.pawns() | board.kings())).any()
    }

    /// For each role, the squares from which it would attack the enemy king.
    pub(super) fn check_squares(&self) -> [Bitboard; 7] {
        let board = self.position.board();
        let them = !self.turn();
        let king = board.king_of(them).expect("both sides have a king");
        let diagonal = attacks::bishop_attacks(king, board.occupied());
        let straight = attacks::rook_attacks(king, board.occupied());
        [
            Bitboard::EMPTY,
            attacks::pawn_attacks(them, king),
            attacks::knight_attacks(king),
            diagonal,
            straight,
            diagonal | straight,
            Bitboard::EMPTY,
        ]
    }

    /// The squares that the side not to move attacks.
    pub(super) fn threats(&self) -> Bitboard {
        let board = self.position.board();
        let (us, them) = (self.turn(), self.position.them());
        let pawns = (board.pawns() & them).0;
        let (low, high) = (pawns & !FILE_A, pawns & !FILE_H);
        let mut threats = match us.is_white() {
            // Black's pawns attack downwards.
            true => Bitboard(low >> 9 | high >> 7),
            false => Bitboard(low << 7 | high << 9),
        };
        for square in them & !board.pawns() {
            threats |= board.attacks_from(square);
        }
        threats
    }

    /// Sets this node to the position after a legal move in `parent`.
    pub(super) fn play_from(&mut self, parent: &Node, m: Move, tables: &SquareTables) {
        // In place: a node is three cache lines, and copying it twice shows in profiles.
        self.clone_from(parent);
        let us = parent.turn();
        self.position.play_unchecked(m);
        self.key ^= state_key(&parent.position) ^ state_key(&self.position) ^ KEYS.black;
        match m {
            Move::Normal { role, from, capture, to, promotion } => {
                if let Some(captured) = capture {
                    self.remove(!us, captured, to, tables);
                }
                self.remove(us, role, from, tables);
                self.add(us, promotion.unwrap_or(role), to, tables);
            }
            Move::EnPassant { from, to } => {
                let captured = Square::from_coords(to.file(), from.rank());
                self.remove(!us, Role::Pawn, captured, tables);
                self.remove(us, Role::Pawn, from, tables);
                self.add(us, Role::Pawn, to, tables);
            }
            Move::Castle { king, rook } => {
                let (king_to, rook_to) = castled(king, rook);
                self.remove(us, Role::King, king, tables);
                self.remove(us, Role::Rook, rook, tables);
                self.add(us, Role::King, king_to, tables);
                self.add(us, Role::Rook, rook_to, tables);
            }
            Move::Put { .. } => unreachable!("standard chess has no drops"),
        }
        self.checkers = self.position.checkers();
    }

    /// The key after a move, ignoring changes of castling and en passant rights. Good enough to
    /// prefetch the hash entry.
    pub(super) fn likely_key(&self, m: Move) -> u64 {
        let us = self.turn();
        let mut key = self.key ^ KEYS.black;
        if let Move::Normal { role, from, capture, to, promotion } = m {
            key ^= KEYS.piece(us, role, from) ^ KEYS.piece(us, promotion.unwrap_or(role), to);
            if let Some(captured) = capture {
                key ^= KEYS.piece(!us, captured, to);
            }
        }
        key
    }

    /// The position with the other side to move. `None` when shakmaty rejects the position, for
    /// example one with more pieces than a game can have.
    pub(super) fn pass(&self) -> Option<Node> {
        let position = self.position.clone().swap_turn().ok()?;
        let key = self.key ^ state_key(&self.position) ^ state_key(&position) ^ KEYS.black;
        Some(Node { position, key, ..self.clone() })
    }

    fn add(&mut self, color: Color, role: Role, square: Square, tables: &SquareTables) {
        self.toggle_keys(color, role, square);
        self.squares += tables.at(color, role, square);
        self.phase += ROLE_WEIGHTS[role as usize];
    }

    fn remove(&mut self, color: Color, role: Role, square: Square, tables: &SquareTables) {
        self.toggle_keys(color, role, square);
        self.squares -= tables.at(color, role, square);
        self.phase -= ROLE_WEIGHTS[role as usize];
    }

    fn toggle_keys(&mut self, color: Color, role: Role, square: Square) {
        let key = KEYS.piece(color, role, square);
        self.key ^= key;
        if matches!(role, Role::Pawn | Role::King) {
            self.pawn_key ^= key;
        }
        if role != Role::Pawn {
            self.piece_keys[usize::from(color.is_black())] ^= key;
        }
    }
}

/// The target squares of king and rook; `rook` is where the rook starts.
pub(super) fn castled(king: Square, rook: Square) -> (Square, Square) {
    let rank = u32::from(king) & 56;
    let (king_file, rook_file) = if rook > king { (6, 5) } else { (2, 3) };
    (Square::new(rank + king_file), Square::new(rank + rook_file))
}

/// The key of a position, computed from scratch.
pub(super) fn position_key(position: &Chess) -> u64 {
    let mut key = state_key(position);
    if position.turn().is_black() {
        key ^= KEYS.black;
    }
    for (square, piece) in position.board() {
        key ^= KEYS.piece(piece.color, piece.role, square);
    }
    key
}

/// The part of the key for castling and en passant rights.
fn state_key(position: &Chess) -> u64 {
    let mut key = 0;
    for rook in position.castles().castling_rights() {
        key ^= KEYS.castling[rook.to_usize()];
    }
    if position.maybe_ep_square().is_some()
        && let Some(square) = position.legal_ep_square()
    {
        key ^= KEYS.en_passant[square.to_usize() & 7];
    }
    key
}

/// Piece value plus piece-square value for each piece, from White's point of view.
pub(super) struct SquareTables([[Pair; 64]; 12]);

impl SquareTables {
    pub(super) fn new(weights: &Weights) -> SquareTables {
        let by_role = [
            &weights.pawn_square,
            &weights.knight_square,
            &weights.bishop_square,
            &weights.rook_square,
            &weights.queen_square,
            &weights.king_square,
        ];
        let mut tables = [[Pair::default(); 64]; 12];
        for (role, squares) in by_role.into_iter().enumerate() {
            let value = if role < 5 { weights.piece_value.at(role) } else { Pair::default() };
            for square in 0..64 {
                // The weights are listed from a8; shakmaty counts from a1.
                let worth = value + squares.at(square ^ 56);
                tables[role][square] = worth;
                tables[role + 6][square ^ 56] = -worth;
            }
        }
        SquareTables(tables)
    }

    fn at(&self, color: Color, role: Role, square: Square) -> Pair {
        self.0[piece_index(color, role)][square.to_usize()]
    }
}

/// White pawn to king are 0 to 5, black pawn to king 6 to 11.
pub(super) fn piece_index(color: Color, role: Role) -> usize {
    role as usize - 1 + if color.is_white() { 0 } else { 6 }
}

struct Keys {
    pieces: [[u64; 64]; 12],
    castling: [u64; 64],
    en_passant: [u64; 8],
    black: u64,
}

static KEYS: Keys = Keys::new();

impl Keys {
    /// Fixed random numbers (splitmix64), so that a search is the same on every machine.
    const fn new() -> Keys {
        let mut keys =
            Keys { pieces: [[0; 64]; 12], castling: [0; 64], en_passant: [0; 8], black: random(0) };
        let mut index = 0;
        while index < 12 * 64 {
            keys.pieces[index / 64][index % 64] = random(1 + index as u64);
            index += 1;
        }
        let mut square = 0;
        while square < 64 {
            keys.castling[square] = random(1000 + square as u64);
            square += 1;
        }
        let mut file = 0;
        while file < 8 {
            keys.en_passant[file] = random(2000 + file as u64);
            file += 1;
        }
        keys
    }

    fn piece(&self, color: Color, role: Role, square: Square) -> u64 {
        self.pieces[piece_index(color, role)][square.to_usize()]
    }
}

const fn random(index: u64) -> u64 {
    let mut z = (index + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use selfmate_chess::{Game, Seed};

    use super::*;

    #[test]
    fn incremental_updates_match_a_fresh_node() {
        let tables = SquareTables::new(&Weights::default());
        for number in 0..40 {
            let mut rng = Seed::new(7).index(number).rng();
            let mut game = Game::new();
            let mut node = Node::new(game.position(), &tables);
            while game.outcome().is_none() && game.ply() < 200 {
                let legal = game.legal_moves();
                let m = legal[rng.below(legal.len())];
                let parent = node.clone();
                node.play_from(&parent, m, &tables);
                game.play(m).expect("a legal move");
                let fresh = Node::new(game.position(), &tables);
                assert_eq!(node.key, fresh.key);
                assert_eq!(node.pawn_key, fresh.pawn_key);
                assert_eq!(node.piece_keys, fresh.piece_keys);
                assert_eq!(node.squares, fresh.squares);
                assert_eq!(node.phase, fresh.phase);
                assert_eq!(node.checkers, fresh.checkers);
            }
        }
    }

    #[test]
    fn the_key_depends_on_side_castling_and_legal_en_passant() {
        let key =
            |fen: &str| position_key(&selfmate_chess::fen::parse_fen(fen).expect("a position"));
        let all = key("r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1");
        assert_ne!(all, key("r3k2r/8/8/8/8/8/8/R3K2R b KQkq - 0 1"));
        assert_ne!(all, key("r3k2r/8/8/8/8/8/8/R3K2R w KQk - 0 1"));
        let passed = "4k3/8/8/8/3pP3/8/8/4K3 b - ";
        assert_ne!(key(&format!("{passed}e3 0 1")), key(&format!("{passed}- 0 1")));
        let no_capture = "4k3/8/8/8/4P3/8/8/4K3 b - ";
        assert_eq!(key(&format!("{no_capture}e3 0 1")), key(&format!("{no_capture}- 0 1")));
    }
}
