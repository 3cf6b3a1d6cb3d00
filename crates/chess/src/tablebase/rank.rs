//! Ranks the moves of a position by tablebase, so that won positions are won.
//!
//! Wins are ranked by the plies to the next capture, pawn move or mate (DTZ). A player that always
//! plays a best move makes progress with each of them and cannot go in circles. Losing moves rank
//! equally, unless the fifty-move rule may save one of them.

use shakmaty::{Chess, Move, Position};

use super::{FiftyMoveRule, TableResult, Tables};
use crate::game::Game;

/// A move and its tablebase value for the side that makes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankedMove {
    pub played: Move,
    pub result: TableResult,
    /// Plies to the next capture, pawn move or mate, this move included; negative if it loses.
    /// `None` if only results are known.
    pub dtz: Option<i32>,
    /// Higher is better.
    pub rank: i32,
}

/// The moves of a position, best first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranking {
    pub moves: Vec<RankedMove>,
    /// Ranked by distance, so that the best move makes progress. Otherwise ranked by result only.
    pub is_by_distance: bool,
}

/// Larger than any distance.
const CERTAIN_RANK: i32 = 1 << 18;
/// The plies that the fifty-move rule allows.
const FIFTY_MOVE_PLIES: i32 = 100;

impl Ranking {
    pub fn best(&self) -> RankedMove {
        self.moves[0]
    }

    /// All moves that rank equal to the best.
    pub fn best_moves(&self) -> impl Iterator<Item = Move> + '_ {
        let best = self.best().rank;
        self.moves.iter().filter(move |ranked| ranked.rank == best).map(|ranked| ranked.played)
    }

    pub fn find(&self, played: Move) -> Option<&RankedMove> {
        self.moves.iter().find(|ranked| ranked.played == played)
    }
}

impl Tables {
    /// Ranks the given legal moves; `None` if `moves` is empty or one of them leads to a position
    /// that is not in the tables.
    pub fn rank_moves(&self, game: &Game, moves: &[Move]) -> Option<Ranking> {
        if moves.is_empty() || !self.covers(game.position()) {
            return None;
        }
        let mut line = game.clone();
        let mut after_each = |rank: &dyn Fn(&Game, Move) -> Option<RankedMove>| {
            let ranked = moves.iter().map(|&m| {
                line.play_unchecked(m);
                let ranked = rank(&line, m);
                line.rewind(game.ply());
                ranked
            });
            let mut moves: Vec<RankedMove> = ranked.collect::<Option<_>>()?;
            // A stable sort: equal moves keep their order.
            moves.sort_by_key(|ranked| -ranked.rank);
            Some(moves)
        };
        let clock = game.position().halfmoves() as i32;
        if let Some(moves) = after_each(&|after, m| self.rank_by_distance(after, m, clock)) {
            return Some(Ranking { moves, is_by_distance: true });
        }
        let moves = after_each(&|after, m| self.rank_by_result(after, m))?;
        Some(Ranking { moves, is_by_distance: false })
    }

    /// `clock` is the halfmove clock before the move.
    fn rank_by_distance(&self, after: &Game, played: Move, clock: i32) -> Option<RankedMove> {
        let position = after.position();
        if position.is_checkmate() {
            return Some(RankedMove {
                played,
                result: TableResult::Win,
                dtz: Some(1),
                rank: CERTAIN_RANK,
            });
        }
        let dtz = if self.is_drawn_by_rule(after) {
            0
        } else if played.is_zeroing() {
            before_zeroing(self.tablebase.after_zeroing(position)?.flip())
        } else {
            let dtz = -self.tablebase.dtz(position)?;
            dtz + dtz.signum()
        };
        // The distance may be one ply too short, so a certain win must come one ply early.
        let (result, rank) = match dtz {
            1.. if dtz + clock < FIFTY_MOVE_PLIES => (TableResult::Win, CERTAIN_RANK - dtz),
            1.. => (TableResult::CursedWin, CERTAIN_RANK / 2 - dtz - clock),
            0 => (TableResult::Draw, 0),
            _ => {
                let certain = clock - dtz < FIFTY_MOVE_PLIES;
                let result = if certain { TableResult::Loss } else { TableResult::BlessedLoss };
                // If the loss takes more than half of the plies left by the rule, it may still be saved.
                let hopeless = clock - 2 * dtz < FIFTY_MOVE_PLIES;
                (result, if hopeless { -CERTAIN_RANK } else { clock - dtz - CERTAIN_RANK / 2 })
            }
        };
        let result = match self.rule {
            FiftyMoveRule::Obeyed => result,
            FiftyMoveRule::Ignored => result.under(FiftyMoveRule::Ignored),
        };
        Some(RankedMove { played, result, dtz: Some(dtz), rank })
    }

    fn rank_by_result(&self, after: &Game, played: Move) -> Option<RankedMove> {
        let position = after.position();
        let result = if position.is_checkmate() {
            TableResult::Win
        } else if self.is_drawn_by_rule(after) {
            TableResult::Draw
        } else {
            let result = self.tablebase.after_zeroing(position)?.flip();
            if self.rule == FiftyMoveRule::Ignored { result.under(self.rule) } else { result }
        };
        let rank = match result {
            TableResult::Loss => -CERTAIN_RANK,
            TableResult::BlessedLoss => -CERTAIN_RANK / 2,
            TableResult::Draw => 0,
            TableResult::CursedWin => CERTAIN_RANK / 2,
            TableResult::Win => CERTAIN_RANK,
        };
        Some(RankedMove { played, result, dtz: None, rank })
    }

    /// Threefold repetition or the fifty-move rule. The caller has excluded checkmate.
    fn is_drawn_by_rule(&self, game: &Game) -> bool {
        let position: &Chess = game.position();
        game.repetitions() >= 3
            || (self.rule == FiftyMoveRule::Obeyed
                && position.halfmoves() as i32 >= FIFTY_MOVE_PLIES)
    }
}

/// The distance of a capture or pawn move with this result.
fn before_zeroing(result: TableResult) -> i32 {
    match result {
        TableResult::Loss => -1,
        TableResult::BlessedLoss => -FIFTY_MOVE_PLIES - 1,
        TableResult::Draw => 0,
        TableResult::CursedWin => FIFTY_MOVE_PLIES + 1,
        TableResult::Win => 1,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use shakmaty::{Color, Square};

    use super::super::Tablebase;
    use super::*;
    use crate::fen::parse_game;
    use crate::notation::parse_move;

    /// A made-up tablebase of KRK: the nearer the lone king is to a corner, the nearer the mate.
    struct Corner {
        has_distances: bool,
    }

    impl Tablebase for Corner {
        fn max_pieces(&self) -> usize {
            3
        }

        fn after_zeroing(&self, position: &Chess) -> Option<TableResult> {
            let board = position.board();
            if board.rooks().is_empty() {
                return Some(TableResult::Draw);
            }
            let rook = board.rooks() & board.by_color(position.turn());
            Some(if rook.any() { TableResult::Win } else { TableResult::Loss })
        }

        fn result(&self, position: &Chess) -> Option<TableResult> {
            self.after_zeroing(position)
        }

        fn dtz(&self, position: &Chess) -> Option<i32> {
            let result = self.after_zeroing(position)?;
            let king = position.board().king_of(Color::Black)?;
            let plies = 2 + 4 * king.distance(Square::H8) as i32;
            self.has_distances.then(|| plies * result.points(FiftyMoveRule::Obeyed))
        }
    }

    fn tables(has_distances: bool) -> Tables {
        Tables::new(Arc::new(Corner { has_distances }))
    }

    fn rank(tables: &Tables, game: &Game) -> Ranking {
        tables.rank_moves(game, &game.legal_moves()).unwrap()
    }

    #[test]
    fn wins_are_ranked_by_distance_and_mate_comes_first() {
        let game = parse_game("7k/8/6K1/8/8/8/8/R7 w - - 0 1").unwrap();
        let ranking = rank(&tables(true), &game);
        assert!(ranking.is_by_distance);
        let mate = parse_move(game.position(), "Ra8").unwrap();
        assert_eq!(ranking.best_moves().collect::<Vec<_>>(), [mate]);
        assert_eq!(ranking.best().dtz, Some(1));
        let quiet = parse_move(game.position(), "Ra2").unwrap();
        let quiet = ranking.find(quiet).unwrap();
        assert_eq!((quiet.result, quiet.dtz), (TableResult::Win, Some(3)));
    }

    #[test]
    fn a_win_that_comes_too_late_is_cursed_unless_the_rule_is_ignored() {
        let late = parse_game("8/8/8/4k3/8/8/R7/4K3 w - - 97 90").unwrap();
        let best = rank(&tables(true), &late).best();
        assert_eq!((best.result, best.rank > 0), (TableResult::CursedWin, true));
        let careless = tables(true).under(FiftyMoveRule::Ignored);
        assert_eq!(rank(&careless, &late).best().result, TableResult::Win);
        let in_time = parse_game("8/8/8/4k3/8/8/R7/4K3 w - - 40 90").unwrap();
        assert_eq!(rank(&tables(true), &in_time).best().result, TableResult::Win);
    }

    #[test]
    fn a_saving_capture_ranks_first_and_losing_moves_rank_equally() {
        let game = parse_game("8/8/8/3kR3/8/8/8/4K3 b - - 0 1").unwrap();
        let ranking = rank(&tables(true), &game);
        let saved: Vec<Move> = ranking.best_moves().collect();
        assert_eq!(saved, [parse_move(game.position(), "Kxe5").unwrap()]);
        assert_eq!(ranking.best().result, TableResult::Draw);
        let lost = parse_game("7k/8/5K2/8/8/8/8/R7 b - - 0 1").unwrap();
        let ranking = rank(&tables(true), &lost);
        assert_eq!(ranking.best_moves().count(), lost.legal_moves().len());
        assert_eq!(ranking.best().result, TableResult::Loss);
    }

    #[test]
    fn a_third_repetition_is_a_draw_even_if_the_tables_have_a_win() {
        let mut game = parse_game("7k/8/8/4K3/8/8/8/R7 w - - 0 1").unwrap();
        for text in ["Ra2", "Kg8", "Ra1", "Kh8", "Ra2", "Kg8", "Ra1", "Kh8"] {
            game.play(parse_move(game.position(), text).unwrap()).unwrap();
        }
        let again = parse_move(game.position(), "Ra2").unwrap();
        let ranking = rank(&tables(true), &game);
        assert_eq!(ranking.find(again).unwrap().result, TableResult::Draw);
        assert_eq!(ranking.best().result, TableResult::Win);
    }

    #[test]
    fn moves_rank_by_result_without_distances_and_not_at_all_without_tables() {
        let game = parse_game("8/8/8/3kR3/8/8/8/4K3 b - - 0 1").unwrap();
        let ranking = rank(&tables(false), &game);
        assert!(!ranking.is_by_distance);
        assert_eq!((ranking.best().result, ranking.best().dtz), (TableResult::Draw, None));
        let four = parse_game("8/8/8/3kR3/8/8/8/R3K3 b - - 0 1").unwrap();
        assert_eq!(tables(true).rank_moves(&four, &four.legal_moves()), None);
        assert_eq!(tables(true).up_to(2).rank_moves(&game, &game.legal_moves()), None);
        let castling = parse_game("8/8/8/3k4/8/8/8/4K2R w K - 0 1").unwrap();
        assert_eq!(tables(true).rank_moves(&castling, &castling.legal_moves()), None);
        assert_eq!(tables(true).in_search(castling.position()), None);
    }
}
