//! Detects finished games inside a search.

use selfmate_chess::{Bitboard, Chess, Color, Game, Position};

use crate::mcts::Proof;

/// The result for the player who just moved; `None` while the game goes on.
///
/// A position that repeats within the search is a draw at its second occurrence, because the
/// repetition could go on. For positions from before the root, a draw needs the third occurrence.
pub(crate) fn terminal(game: &Game, root_ply: usize) -> Option<Proof> {
    let position = game.position();
    if repeats(game, root_ply) {
        return Some(Proof::Draw);
    }
    if !has_legal_move(position) {
        return Some(if position.is_check() { Proof::Win(0) } else { Proof::Draw });
    }
    (position.halfmoves() >= FIFTY_MOVES || position.is_insufficient_material())
        .then_some(Proof::Draw)
}

/// The halfmove clock at which a game is drawn.
pub(crate) const FIFTY_MOVES: u32 = 100;

/// Whether a position that has legal moves is a draw because of the moves that led to it.
pub(crate) fn is_drawn_by_history(game: &Game, root_ply: usize) -> bool {
    repeats(game, root_ply) || game.position().halfmoves() >= FIFTY_MOVES
}

/// Whether the position is a draw by repetition; see [`terminal`].
pub(crate) fn repeats(game: &Game, root_ply: usize) -> bool {
    let repetitions = game.repetitions();
    repetitions >= 3 || (repetitions == 2 && game.last_occurrence() >= Some(root_ply))
}

/// Whether there is a legal move, usually without generating moves.
fn has_legal_move(position: &Chess) -> bool {
    if !position.is_check() {
        let board = position.board();
        let lines = board.king_of(position.turn()).map_or(Bitboard::FULL, queen_lines);
        // When not in check, a piece that shares no line with its king cannot be pinned.
        let free = position.us() & !lines;
        let pawns = free & board.pawns();
        let pushed = if position.turn() == Color::White { pawns.shift(8) } else { pawns.shift(-8) };
        if (pushed & !board.occupied()).any() {
            return true;
        }
        let pieces = free & !board.pawns() & !board.kings();
        if pieces.into_iter().any(|from| (board.attacks_from(from) & !position.us()).any()) {
            return true;
        }
    }
    !position.legal_moves().is_empty()
}

/// All squares on a rank, file or diagonal with this one, and the square itself.
fn queen_lines(square: selfmate_chess::Square) -> Bitboard {
    shakmaty::attacks::queen_attacks(square, Bitboard::EMPTY) | Bitboard::from_square(square)
}

#[cfg(test)]
mod tests {
    use selfmate_chess::Seed;
    use selfmate_chess::fen::parse_game;
    use selfmate_chess::notation::parse_move;

    use super::*;

    #[test]
    fn the_fast_legal_move_test_agrees_with_the_generator() {
        for seed in 0..300 {
            let mut rng = Seed::new(seed).rng();
            let start = ["8/PPPk4/8/8/8/8/4Kppp/8 w - - 0 1", "4k3/8/8/8/8/8/PP6/K7 w - - 0 1"];
            let mut game = parse_game(start[seed as usize % 2]).unwrap();
            for _ in 0..80 {
                let legal = game.legal_moves();
                assert_eq!(has_legal_move(game.position()), !legal.is_empty());
                match rng.choose(&legal) {
                    Some(&m) => game.play_unchecked(m),
                    None => break,
                }
            }
        }
        for (fen, expected) in [
            ("7k/5Q2/6K1/8/8/8/8/8 b - - 0 1", false),
            ("7k/5Qp1/6P1/8/8/8/8/K7 b - - 0 1", false),
            ("R6k/6pp/8/8/8/8/8/K7 b - - 0 1", false),
            ("k7/8/8/8/8/8/1r6/K1r5 w - - 0 1", true),
        ] {
            assert_eq!(has_legal_move(parse_game(fen).unwrap().position()), expected, "{fen}");
        }
    }

    #[test]
    fn only_repetitions_within_the_search_are_draws_at_the_second_occurrence() {
        let mut game = Game::new();
        for text in ["Nf3", "Nf6", "Ng1", "Ng8"] {
            let m = parse_move(game.position(), text).unwrap();
            game.play(m).unwrap();
        }
        assert_eq!(terminal(&game, 0), Some(Proof::Draw));
        assert_eq!(terminal(&game, 1), None);
    }

    #[test]
    fn mate_counts_before_the_fifty_move_rule() {
        let mated = parse_game("R6k/6pp/8/8/8/8/8/K7 b - - 100 80").unwrap();
        assert_eq!(terminal(&mated, 0), Some(Proof::Win(0)));
        let quiet = parse_game("7k/6pp/8/8/8/8/8/KR6 b - - 100 80").unwrap();
        assert_eq!(terminal(&quiet, 0), Some(Proof::Draw));
    }
}
