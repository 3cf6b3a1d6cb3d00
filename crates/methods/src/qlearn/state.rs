//! The key of a position in the table, equal for positions that differ only by a symmetry.
//!
//! The key covers pieces, side to move, castling rights and en passant, relative to the side to
//! move. Without castling rights, positions mirrored left to right have the same key; without pawns,
//! all eight symmetries of the board have. The rules are the same there, so the values are too.

use selfmate_chess::{Bitboard, CastlingSide, Chess, Color, Move, MoveList, Position, Role};

/// A position's key and the symmetry that leads to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// Equal for symmetric positions.
    pub key: u64,
    symmetry: Symmetry,
}

/// Reflections, in this order: ranks for Black, files, ranks, diagonal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Symmetry {
    for_black: bool,
    files: bool,
    ranks: bool,
    diagonal: bool,
}

/// Bitboards by colour, then by role.
type Words = [u64; 8];

impl State {
    pub fn of(position: &Chess) -> State {
        let mover = position.turn();
        let for_black = mover == Color::Black;
        let board = position.board();
        let castles = position.castles();
        let mut rights = 0;
        for (bit, (color, side)) in [mover, !mover]
            .into_iter()
            .flat_map(|color| CastlingSide::ALL.map(|side| (color, side)))
            .enumerate()
        {
            rights |= u64::from(castles.has(color, side)) << bit;
        }
        let mut words = [0; 8];
        words[0] = board.by_color(mover).0;
        words[1] = board.by_color(!mover).0;
        for (word, role) in words[2..].iter_mut().zip(Role::ALL) {
            *word = board.by_role(role).0;
        }
        let en_passant = position.legal_ep_square().map_or(0, |square| Bitboard::from(square).0);
        let symmetries: &[Symmetry] = if rights != 0 {
            &SYMMETRIES[..1]
        } else if board.pawns().any() {
            &SYMMETRIES[..2]
        } else {
            &SYMMETRIES
        };
        let reflect = |symmetry: &Symmetry| {
            let symmetry = Symmetry { for_black, ..*symmetry };
            let pieces: Words = words.map(|word| symmetry.apply(word));
            (pieces, symmetry.apply(en_passant), symmetry)
        };
        let (pieces, en_passant, symmetry) = symmetries
            .iter()
            .map(reflect)
            .min_by_key(|(pieces, en_passant, _)| (*pieces, *en_passant))
            .expect("there is at least one symmetry");
        let key =
            pieces.into_iter().chain([en_passant, rights]).fold(0, |key, word| mix(key ^ word));
        State { key, symmetry }
    }

    /// The key of a state and a move.
    pub fn pair(&self, m: Move) -> u64 {
        let square = |square: selfmate_chess::Square| {
            self.symmetry.apply(Bitboard::from(square).0).trailing_zeros() as u64
        };
        let from = m.from().map_or(0, square);
        let promotion = m.promotion().map_or(0, |role| role as u64);
        // Plus one, so that no pair has the key of the state itself.
        mix(self.key ^ (1 + (from | square(m.to()) << 6 | promotion << 12)))
    }

    /// The keys of all legal moves.
    pub fn pairs(&self, legal: &MoveList) -> impl Iterator<Item = u64> {
        legal.iter().map(|&m| self.pair(m))
    }
}

impl Symmetry {
    fn apply(self, mut word: u64) -> u64 {
        if self.for_black != self.ranks {
            word = word.swap_bytes();
        }
        if self.files {
            word = word.swap_bytes().reverse_bits();
        }
        if self.diagonal { Bitboard(word).flip_diagonal().0 } else { word }
    }
}

const fn symmetry(files: bool, ranks: bool, diagonal: bool) -> Symmetry {
    Symmetry { for_black: false, files, ranks, diagonal }
}

/// All symmetries; the first two keep the direction of pawns.
const SYMMETRIES: [Symmetry; 8] = [
    symmetry(false, false, false),
    symmetry(true, false, false),
    symmetry(false, true, false),
    symmetry(true, true, false),
    symmetry(false, false, true),
    symmetry(true, false, true),
    symmetry(false, true, true),
    symmetry(true, true, true),
];

/// One step of splitmix64: every bit of the input reaches every bit of the output.
fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use selfmate_chess::fen::parse_fen;
    use selfmate_chess::{Game, Seed};

    use super::*;

    fn state(fen: &str) -> State {
        State::of(&parse_fen(fen).unwrap())
    }

    #[test]
    fn symmetric_positions_and_their_moves_have_the_same_keys() {
        let rook = [
            "8/8/8/3k4/8/8/8/K6R w - - 0 1",
            "8/8/8/4k3/8/8/8/R6K w - - 0 1",
            "K6R/8/8/8/3k4/8/8/8 w - - 0 1",
            "R7/8/8/8/4k3/8/8/K7 w - - 0 1",
            "k6r/8/8/8/3K4/8/8/8 b - - 0 1",
        ];
        let keys: HashSet<u64> = rook.iter().map(|fen| state(fen).key).collect();
        assert_eq!(keys.len(), 1);
        let moves = |fen: &str| -> HashSet<u64> {
            let position = parse_fen(fen).unwrap();
            State::of(&position).pairs(&position.legal_moves()).collect()
        };
        let first = moves(rook[0]);
        assert!(rook.iter().all(|fen| moves(fen) == first));
        // With pawns, only the left-right mirror image is the same.
        let pawn = state("4k3/8/8/8/8/8/P7/4K3 w - - 0 1");
        assert_eq!(pawn.key, state("3k4/8/8/8/8/8/7P/3K4 w - - 0 1").key);
        assert_ne!(pawn.key, state("4K3/P7/8/8/8/8/8/4k3 w - - 0 1").key);
    }

    #[test]
    fn different_positions_have_different_keys() {
        let fens = [
            "r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1",
            "r3k2r/8/8/8/8/8/8/R3K2R w KQ - 0 1",
            "r3k2r/8/8/8/8/8/8/R3K2R w Kkq - 0 1",
            "r3k2r/8/8/8/8/8/8/R3K2R w - - 0 1",
            "4k3/8/8/3pP3/8/8/8/4K3 w - d6 0 1",
            "4k3/8/8/3pP3/8/8/8/4K3 w - - 0 1",
            "4k3/8/8/3pP3/8/8/8/4K3 b - - 0 1",
        ];
        let keys: HashSet<u64> = fens.iter().map(|fen| state(fen).key).collect();
        assert_eq!(keys.len(), fens.len());
        // The move counters are not part of the state.
        assert_eq!(state(fens[3]).key, state("r3k2r/8/8/8/8/8/8/R3K2R w - - 7 30").key);
    }

    #[test]
    fn every_move_has_its_own_key() {
        let mut rng = Seed::new(4).rng();
        let mut game = Game::new();
        while game.outcome().is_none() && game.ply() < 200 {
            let legal = game.legal_moves();
            let state = State::of(game.position());
            let pairs: HashSet<u64> = state.pairs(&legal).collect();
            assert_eq!(pairs.len(), legal.len());
            assert!(!pairs.contains(&state.key));
            game.play_unchecked(legal[rng.below(legal.len())]);
        }
    }
}
