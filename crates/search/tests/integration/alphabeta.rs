//! Alpha-beta from outside: mates, draws, limits and reproducibility.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use selfmate_chess::{Bitboard, Chess, Game, Position, Role, fen, notation};
use selfmate_search::alphabeta::{
    AlphaBeta, AlphaBetaResult, Score, StaticEvaluator, Weights, bench,
};
use selfmate_search::player::Limit;
use shakmaty::{CastlingMode, EnPassantMode, FromSetup, Setup};

const KIWIPETE: &str = "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1";

/// Position, moves to mate, and the only first move; checked with Stockfish.
const MATES: &[(&str, i32, &str)] = &[
    ("6k1/5ppp/8/8/8/8/8/R5K1 w - - 0 1", 1, "a1a8"),
    ("6rk/6pp/8/6N1/8/8/8/6K1 w - - 0 1", 1, "g5f7"),
    ("7k/7p/5K2/8/8/8/8/B7 w - - 0 1", 1, "f6f7"),
    ("r4rk1/5ppp/8/8/3B4/3Q4/8/6RK w - - 0 1", 2, "g1g7"),
    ("7k/8/8/5K2/8/8/8/R7 w - - 0 1", 2, "f5g6"),
    ("6k1/8/8/5K2/8/8/8/R7 w - - 0 1", 3, "f5f6"),
    ("8/1k6/8/1K1R4/8/8/8/8 w - - 0 1", 4, "d5c5"),
    ("r2r3k/6pp/8/6N1/2Q5/8/6PP/6K1 w - - 0 1", 4, "g5f7"),
];

fn game(text: &str) -> Game {
    fen::parse_game(text).expect("a position")
}

fn search(game: &Game, limit: &Limit) -> AlphaBetaResult {
    let never = AtomicBool::new(false);
    AlphaBeta::new(Weights::default(), 8).unwrap().search(game, limit, &never, &mut |_| {})
}

fn best(game: &Game, result: &AlphaBetaResult) -> String {
    notation::uci(game.position(), result.best.expect("a move"))
}

#[test]
fn mates_in_one_to_four_are_found_within_a_node_budget() {
    for &(text, moves, first) in MATES {
        let mut game = game(text);
        let result = search(&game, &Limit::nodes(50_000));
        assert_eq!(result.score, Score::Mate(moves), "{text}");
        assert_eq!(best(&game, &result), first, "{text}");
        assert_eq!(result.pv.len() as i32, 2 * moves - 1, "{text}");
        for m in result.pv {
            game.play(m).expect("the line is legal");
        }
        assert!(game.position().is_checkmate(), "{text}");
    }
}

/// Regression test: `Vec::with_capacity` once took its size from the halfmove clock (32 GB).
#[test]
fn a_large_halfmove_clock_without_history_needs_no_memory() {
    let setup = Setup { halfmoves: u32::MAX, ..Chess::default().to_setup(EnPassantMode::Legal) };
    let position = Chess::from_setup(setup, CastlingMode::Standard).expect("a position");
    let result = search(&Game::from_position(position), &Limit::depth(2));
    assert!(result.best.is_some());
}

#[test]
fn the_losing_side_sees_the_mate_too() {
    // Black has one move, then Rh8 is mate.
    let result = search(&game("k7/8/1K6/8/8/8/8/7R b - - 0 1"), &Limit::depth(4));
    assert_eq!(result.score, Score::Mate(-1));
}

#[test]
fn positions_without_moves_have_no_best_move() {
    let mated = search(&game("R5k1/5ppp/8/8/8/8/8/6K1 b - - 0 1"), &Limit::depth(3));
    assert_eq!((mated.best, mated.score), (None, Score::Mate(0)));
    let stalemate = search(&game("7k/5Q2/6K1/8/8/8/8/8 b - - 0 1"), &Limit::depth(3));
    assert_eq!((stalemate.best, stalemate.score), (None, Score::Cp(0)));
    assert!(stalemate.lines.is_empty());
}

#[test]
fn a_lost_game_is_saved_by_perpetual_check() {
    // Black threatens mate and is a rook up; the queen checks on e8 and h5 forever.
    let game = game("6k1/6p1/8/7Q/8/8/qr6/7K w - - 0 1");
    let result = search(&game, &Limit::depth(8));
    assert_eq!((best(&game, &result).as_str(), result.score), ("h5e8", Score::Cp(0)));
}

#[test]
fn a_third_repetition_is_sought_when_losing() {
    let mut game = game("6k1/8/8/8/8/8/5PPP/R5K1 w - - 0 1");
    for text in ["a1b1", "g8h8", "b1a1", "h8g8", "a1b1", "g8h8", "b1a1"] {
        let m = notation::parse_uci(game.position(), text).expect("a legal move");
        game.play(m).expect("a legal move");
    }
    // After the king returns to g8, the position occurs for the third time.
    let result = search(&game, &Limit::depth(6));
    assert_eq!((best(&game, &result).as_str(), result.score), ("h8g8", Score::Cp(0)));
}

#[test]
fn mate_comes_before_the_fifty_move_draw() {
    let mating = game("7k/8/6K1/8/8/8/8/R7 w - - 99 80");
    let result = search(&mating, &Limit::depth(4));
    assert_eq!((best(&mating, &result).as_str(), result.score), ("a1a8", Score::Mate(1)));
    // A mate in two comes one move too late.
    let drawn = search(&game("7k/8/8/5K2/8/8/8/R7 w - - 99 80"), &Limit::depth(6));
    assert_eq!(drawn.score, Score::Cp(0));
}

#[test]
fn the_same_limit_gives_the_same_search() {
    let game = game(KIWIPETE);
    for limit in [Limit::nodes(30_000), Limit::depth(8)] {
        assert_eq!(search(&game, &limit), search(&game, &limit));
    }
    assert_eq!(search(&game, &Limit::nodes(30_000)).nodes, 30_000);
}

#[test]
fn a_cleared_engine_searches_like_a_new_one() {
    let never = AtomicBool::new(false);
    let mut used = AlphaBeta::new(Weights::default(), 8).unwrap();
    let limit = Limit::depth(7);
    used.search(&Game::new(), &limit, &never, &mut |_| {});
    used.clear();
    let again = used.search(&game(KIWIPETE), &limit, &never, &mut |_| {});
    assert_eq!(again, search(&game(KIWIPETE), &limit));
}

#[test]
fn multipv_lines_are_distinct_and_sorted() {
    let limit = Limit { lines: 4, ..Limit::depth(6) };
    let result = search(&Game::new(), &limit);
    assert_eq!(result.lines.len(), 4);
    assert!(result.lines.is_sorted_by_key(|line| -line.score.centipawns()));
    let mut first: Vec<_> = result.lines.iter().map(|line| line.pv[0].to_string()).collect();
    first.sort();
    first.dedup();
    assert_eq!(first.len(), 4);
    // There are never more lines than legal moves.
    let limit = Limit { lines: 9, ..Limit::depth(4) };
    assert_eq!(search(&game("k7/8/1K6/8/8/8/8/7R b - - 0 1"), &limit).lines.len(), 1);
}

#[test]
fn only_the_requested_root_moves_are_searched() {
    let game = game("6k1/5ppp/8/8/8/8/8/R5K1 w - - 0 1");
    let quiet = notation::parse_uci(game.position(), "g1f2").expect("a legal move");
    let limit = Limit { only: vec![quiet], ..Limit::depth(5) };
    let result = search(&game, &limit);
    assert_eq!(result.best, Some(quiet));
    assert_ne!(result.score, Score::Mate(1));
}

#[test]
fn even_one_node_or_a_raised_stop_flag_yields_a_legal_move() {
    let stopped = AtomicBool::new(true);
    let mut engine = AlphaBeta::new(Weights::plain(), 1).unwrap();
    let result = engine.search(&Game::new(), &Limit::default(), &stopped, &mut |_| {});
    assert!(Game::new().position().is_legal(result.best.expect("a move")));
    assert!(result.nodes <= 2048);
    let result = search(&Game::new(), &Limit::nodes(1));
    assert!(Game::new().position().is_legal(result.best.expect("a move")));
}

#[test]
fn time_limits_end_the_search() {
    let time = Duration::from_millis(20);
    assert!(search(&Game::new(), &Limit::movetime(time)).depth >= 1);
    let soft = Limit { soft_time: Some(time), ..Limit::default() };
    assert!(search(&Game::new(), &soft).depth >= 1);
}

#[test]
fn reports_come_in_order_with_legal_lines() {
    let never = AtomicBool::new(false);
    let mut depths = Vec::new();
    let mut nodes = 0;
    let start = game(KIWIPETE);
    let limit = Limit::depth(9);
    AlphaBeta::new(Weights::default(), 1).unwrap().search(&start, &limit, &never, &mut |report| {
        depths.push(report.depth);
        assert!(report.nodes >= nodes && report.hashfull <= 1000);
        nodes = report.nodes;
        assert!(!report.pv.is_empty());
        let mut game = start.clone();
        for m in &report.pv {
            game.play(*m).expect("every move of the line is legal");
        }
    });
    assert_eq!(depths, (1..=9).collect::<Vec<_>>());
}

#[test]
fn two_threads_find_the_mate_as_well() {
    let never = AtomicBool::new(false);
    let mut engine = AlphaBeta::new(Weights::default(), 8).unwrap();
    engine.set_threads(2).unwrap();
    let &(text, moves, _) = MATES.last().expect("there are mates");
    let limit = Limit::nodes(100_000);
    let result = engine.search(&game(text), &limit, &never, &mut |_| {});
    assert_eq!(result.score, Score::Mate(moves));
}

#[test]
fn unusual_positions_do_not_panic() {
    for text in [
        // Eight queens, promotions everywhere, kings only, Chess960, in check and mated, 218 moves.
        "QQQQQQQQ/8/8/8/8/8/k7/7K b - - 0 1",
        "8/PPPPPPPP/8/8/8/8/pppp1ppp/k6K w - - 0 1",
        "8/8/4k3/8/8/4K3/8/8 w - - 0 1",
        "bqrkrnbn/pppppppp/8/8/8/8/PPPPPPPP/BQRKRNBN w KQkq - 0 1",
        "rnb1kbnr/pppp1ppp/8/4p3/6Pq/5P2/PPPPP2P/RNBQKBNR w KQkq - 1 3",
        "R6R/3Q4/1Q4Q1/4Q3/2Q4Q/Q4Q2/pp1Q4/kBNN1KB1 w - - 0 1",
    ] {
        let game = game(text);
        let result = search(&game, &Limit::nodes(20_000));
        assert_eq!(result.best.is_some(), !game.legal_moves().is_empty(), "{text}");
    }
}

#[test]
fn the_bench_signature_is_unchanged() {
    // Changes with every change of search or evaluation. Mention it in the commit message.
    assert_eq!(bench(), Ok(316_280));
}

/// Counts pieces, and panics when called in check.
struct Counter;

impl StaticEvaluator for Counter {
    fn evaluate(&mut self, position: &Chess) -> i32 {
        assert!(!position.is_check());
        let worth =
            [(Role::Pawn, 100), (Role::Knight, 300), (Role::Bishop, 300), (Role::Rook, 500)];
        let side = |pieces: Bitboard| -> i32 {
            let count = |role| (pieces & position.board().by_role(role)).count() as i32;
            900 * count(Role::Queen)
                + worth.map(|(role, worth)| worth * count(role)).iter().sum::<i32>()
        };
        side(position.us()) - side(position.them())
    }

    fn copy(&self) -> Box<dyn StaticEvaluator> {
        Box::new(Counter)
    }
}

/// The same score for every position.
struct Constant(i32);

impl StaticEvaluator for Constant {
    fn evaluate(&mut self, _: &Chess) -> i32 {
        self.0
    }

    fn copy(&self) -> Box<dyn StaticEvaluator> {
        Box::new(Constant(self.0))
    }
}

#[test]
fn the_hand_written_evaluation_does_not_affect_a_static_evaluator() {
    let endgame = "8/8/8/4k3/8/8/2R5/4K3 w - - 0 1";
    for text in [KIWIPETE, endgame] {
        let game = game(text);
        let by_weights = [Weights::default(), Weights::plain()].map(|weights| {
            let mut engine = AlphaBeta::new(weights, 8).unwrap();
            engine.set_evaluator(Box::new(Counter));
            assert_eq!(engine.evaluate(&game), Counter.evaluate(game.position()));
            let never = AtomicBool::new(false);
            engine.search(&game, &Limit::depth(8), &never, &mut |_| {})
        });
        assert_eq!(by_weights[0], by_weights[1]);
    }
}

#[test]
fn with_a_constant_evaluator_only_mates_have_a_score() {
    let never = AtomicBool::new(false);
    for threads in [1, 2] {
        let mut engine = AlphaBeta::new(Weights::default(), 8).unwrap();
        engine.set_evaluator(Box::new(Constant(0)));
        engine.set_threads(threads).unwrap();
        let limit = Limit::depth(6);
        assert_eq!(engine.search(&Game::new(), &limit, &never, &mut |_| {}).score, Score::Cp(0));
        let mate = game("6k1/5ppp/8/8/8/8/8/R5K1 w - - 0 1");
        assert_eq!(engine.search(&mate, &limit, &never, &mut |_| {}).score, Score::Mate(1));
    }
}

#[test]
fn the_highest_static_score_is_not_a_mate() {
    let never = AtomicBool::new(false);
    for opinion in [i32::MAX, i32::MIN] {
        let mut engine = AlphaBeta::new(Weights::default(), 8).unwrap();
        engine.set_evaluator(Box::new(Constant(opinion)));
        let limit = Limit::depth(4);
        let result = engine.search(&Game::new(), &limit, &never, &mut |_| {});
        assert!(matches!(result.score, Score::Cp(_)), "{result:?}");
    }
}
