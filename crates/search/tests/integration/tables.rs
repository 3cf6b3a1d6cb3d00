//! Searches with tablebases: made-up ones whose results must be used, and real ones that must win.
//!
//! The latter are Syzygy tables with up to four pieces; those tests fail without them.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use selfmate_chess::fen::{parse_game, to_fen};
use selfmate_chess::notation::uci;
use selfmate_chess::tablebase::{Syzygy, TableResult, Tablebase, Tables};
use selfmate_chess::{Board, Chess, Color, Game, Move, Piece, Position, Rng, Seed, Square};
use selfmate_search::alphabeta::{AlphaBeta, AlphaBetaResult, Score, Weights};
use selfmate_search::evaluator::{Material, Uniform};
use selfmate_search::mcts::{Proof, Search, SearchParams, SearchResult, StopCondition, run};
use selfmate_search::player::Limit;
use selfmate_search::{Evaluator, Wdl};

/// After White captures the pawn, king and rook against king is left.
const CAPTURE: &str = "4k3/8/8/8/8/8/p7/R5K1 w - - 0 1";

/// Returns this result, right or wrong, for king and rook against king; has no distances.
struct RookEnding(TableResult);

impl Tablebase for RookEnding {
    fn max_pieces(&self) -> usize {
        3
    }

    fn after_zeroing(&self, position: &Chess) -> Option<TableResult> {
        let rook = position.board().rooks();
        let own = (rook & position.us()).any();
        rook.any().then_some(if own { self.0 } else { self.0.flip() })
    }

    fn result(&self, position: &Chess) -> Option<TableResult> {
        self.after_zeroing(position)
    }

    fn dtz(&self, _: &Chess) -> Option<i32> {
        None
    }
}

fn rook_ending(result: TableResult) -> Tables {
    Tables::new(Arc::new(RookEnding(result)))
}

fn alphabeta(game: &Game, tables: Option<Tables>, depth: u32) -> AlphaBetaResult {
    let mut search = AlphaBeta::new(Weights::default(), 4).unwrap();
    search.set_tables(tables);
    let never = AtomicBool::new(false);
    search.search(game, &Limit::depth(depth), &never, &mut |_| {})
}

fn mcts(
    game: &Game,
    tables: Option<Tables>,
    evaluator: &mut dyn Evaluator,
    simulations: u64,
) -> SearchResult {
    let mut search =
        Search::new(SearchParams { memory_mb: 16, ..SearchParams::default() }).unwrap();
    search.set_tables(tables);
    search.start(game, simulations, Seed::new(1));
    run(&mut search, evaluator, &StopCondition::default());
    search.result()
}

fn text(game: &Game, m: Option<Move>) -> String {
    uci(game.position(), m.unwrap())
}

#[test]
fn alphabeta_uses_tablebase_results() {
    let game = parse_game(CAPTURE).unwrap();
    let without = alphabeta(&game, None, 5);
    assert_eq!((text(&game, without.best).as_str(), without.tablebase_hits), ("a1a2", 0));
    let won = alphabeta(&game, Some(rook_ending(TableResult::Win)), 5);
    assert_eq!(text(&game, won.best), "a1a2");
    assert_eq!(won.score, Score::Cp(19_999));
    assert!(won.tablebase_hits > 0);
    // Tables with a draw for the ending keep White from capturing.
    let drawn = alphabeta(&game, Some(rook_ending(TableResult::Draw)), 5);
    assert_ne!(text(&game, drawn.best), "a1a2");
    // A win spoiled by the fifty-move rule is a draw.
    let cursed = alphabeta(&game, Some(rook_ending(TableResult::CursedWin)), 5);
    assert_ne!(text(&game, cursed.best), "a1a2");
    // Limited to fewer pieces, the tables are not used.
    let limited = alphabeta(&game, Some(rook_ending(TableResult::Draw).up_to(2)), 5);
    assert_eq!((text(&game, limited.best).as_str(), limited.tablebase_hits), ("a1a2", 0));
}

#[test]
fn tablebase_hits_of_all_threads_are_counted() {
    let game = parse_game(CAPTURE).unwrap();
    let mut search = AlphaBeta::new(Weights::default(), 4).unwrap();
    search.set_threads(3).unwrap();
    search.set_tables(Some(rook_ending(TableResult::Win)));
    let never = AtomicBool::new(false);
    let result = search.search(&game, &Limit::depth(8), &never, &mut |_| {});
    assert_eq!(text(&game, result.best), "a1a2");
    assert!(result.tablebase_hits > 0);
}

#[test]
fn a_tree_search_uses_tablebase_results_as_proofs() {
    let game = parse_game(CAPTURE).unwrap();
    let won = mcts(&game, Some(rook_ending(TableResult::Win)), &mut Uniform, 2000);
    assert_eq!(text(&game, won.best), "a1a2");
    assert_eq!(won.proof, Proof::Win(Proof::DISTANT + 1));
    assert!(won.simulations < 2000 && won.tablebase_hits > 0, "{won:?}");
    let drawn = mcts(&game, Some(rook_ending(TableResult::Draw)), &mut Material, 2000);
    let capture = drawn.moves.iter().find(|m| uci(game.position(), m.played) == "a1a2").unwrap();
    assert_eq!((capture.proof, capture.wdl), (Proof::Draw, Wdl::DRAW));
    assert_ne!(text(&game, drawn.best), "a1a2");
    assert_eq!(mcts(&game, None, &mut Uniform, 100).tablebase_hits, 0);
}

#[test]
fn without_distances_only_moves_that_keep_the_result_are_searched() {
    // Without distances, capturing the rook is the only move that does not lose.
    let game = parse_game("8/8/8/3kR3/8/8/8/4K3 b - - 0 1").unwrap();
    let tables = || Some(Tables::new(Arc::new(NothingLeft(RookEnding(TableResult::Win)))));
    let result = alphabeta(&game, tables(), 3);
    assert_eq!((text(&game, result.best).as_str(), result.score), ("d5e5", Score::Cp(0)));
    let result = mcts(&game, tables(), &mut Uniform, 50);
    assert_eq!((text(&game, result.best).as_str(), result.wdl), ("d5e5", Wdl::DRAW));
    assert_eq!((result.moves.len(), result.simulations), (1, 1));
}

/// Another tablebase, and bare kings in addition.
struct NothingLeft(RookEnding);

impl Tablebase for NothingLeft {
    fn max_pieces(&self) -> usize {
        self.0.max_pieces()
    }

    fn after_zeroing(&self, position: &Chess) -> Option<TableResult> {
        self.0.after_zeroing(position).or(Some(TableResult::Draw))
    }

    fn result(&self, position: &Chess) -> Option<TableResult> {
        self.after_zeroing(position)
    }

    fn dtz(&self, _: &Chess) -> Option<i32> {
        None
    }
}

/// The folders of Syzygy tables of up to four pieces: what SELFMATE_SYZYGY names, or else those that
/// `cargo xtask setup` fetches.
fn syzygy_path() -> String {
    std::env::var("SELFMATE_SYZYGY").unwrap_or_else(|_| {
        let tables = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/syzygy");
        assert!(Path::new(tables).exists(), "no Syzygy tables: `cargo xtask setup` fetches them");
        tables.to_owned()
    })
}

fn syzygy() -> Tables {
    Tables::new(Arc::new(Syzygy::open(&syzygy_path()).unwrap()))
}

/// A position with these pieces on random squares that White, to move, wins.
fn won_position(pieces: &str, tables: &Tables, rng: &mut Rng) -> Game {
    loop {
        let mut board = Board::empty();
        for piece in pieces.chars() {
            let free: Vec<Square> =
                Square::ALL.into_iter().filter(|&s| board.piece_at(s).is_none()).collect();
            board.set_piece_at(*rng.choose(&free).unwrap(), Piece::from_char(piece).unwrap());
        }
        if let Ok(game) = parse_game(&format!("{board} w - - 0 1"))
            && game.outcome().is_none()
            && tables.outcome(game.position()).unwrap().winner == Some(Color::White)
        {
            return game;
        }
    }
}

/// Plays White by `choose` against random moves, and returns the winner.
fn play_out(mut game: Game, rng: &mut Rng, mut choose: impl FnMut(&Game) -> Move) -> Option<Color> {
    while game.outcome().is_none() {
        let m = match game.turn() {
            Color::White => choose(&game),
            Color::Black => *rng.choose(&game.legal_moves()).unwrap(),
        };
        game.play(m).unwrap();
    }
    game.outcome().unwrap().winner
}

#[test]
fn alphabeta_wins_positions_that_are_won_by_tablebase() {
    let tables = syzygy();
    let mut rng = Seed::new(21).rng();
    for pieces in ["KRk", "KQk", "KBNk", "KBBk", "KQkr"] {
        for _ in 0..4 {
            let game = won_position(pieces, &tables, &mut rng);
            let start = to_fen(game.position());
            let mut search = AlphaBeta::new(Weights::default(), 1).unwrap();
            search.set_tables(Some(tables.clone()));
            let never = AtomicBool::new(false);
            let winner = play_out(game, &mut rng, |game| {
                // One ply: without tables it would not even see the mate.
                let limit = Limit::depth(1);
                let result = search.search(game, &limit, &never, &mut |_| {});
                assert!(result.tablebase_hits > 0);
                assert!(matches!(result.score, Score::Cp(19_000..) | Score::Mate(1..)));
                result.best.unwrap()
            });
            assert_eq!(winner, Some(Color::White), "{start}");
        }
    }
}

#[test]
fn a_tree_search_wins_positions_that_are_won_by_tablebase() {
    let tables = syzygy();
    let mut rng = Seed::new(22).rng();
    for pieces in ["KRk", "KQk", "KBNk"] {
        for _ in 0..3 {
            let game = won_position(pieces, &tables, &mut rng);
            let start = to_fen(game.position());
            let params = SearchParams { memory_mb: 4, ..SearchParams::default() };
            let mut search = Search::new(params).unwrap();
            search.set_tables(Some(tables.clone()));
            let winner = play_out(game, &mut rng, |game| {
                search.start(game, 8, Seed::new(1));
                run(&mut search, &mut Uniform, &StopCondition::default());
                let result = search.result();
                assert_eq!(result.wdl, Wdl::WIN);
                result.best.unwrap()
            });
            assert_eq!(winner, Some(Color::White), "{start}");
        }
    }
}

#[test]
fn lines_are_sorted_by_tablebase_rank() {
    let tables = syzygy();
    // The rook is attacked: some moves leave it and draw, the others win sooner or later.
    let game = parse_game("8/8/8/8/3k4/4R3/8/6K1 w - - 0 1").unwrap();
    let mut search = AlphaBeta::new(Weights::default(), 1).unwrap();
    search.set_tables(Some(tables.clone()));
    let never = AtomicBool::new(false);
    let legal = game.legal_moves();
    let limit = Limit { lines: legal.len(), ..Limit::depth(3) };
    let result = search.search(&game, &limit, &never, &mut |_| {});
    let ranking = tables.rank_moves(&game, &legal).unwrap();
    assert_eq!(result.lines.len(), legal.len());
    let ranks: Vec<i32> =
        result.lines.iter().map(|line| ranking.find(line.pv[0]).unwrap().rank).collect();
    assert!(ranks.is_sorted_by(|a, b| a >= b), "{ranks:?}");
    assert!(result.lines.iter().any(|line| line.score == Score::Cp(0)), "{:?}", result.lines);
    assert!(result.lines[0].score.centipawns() > 19_000);
}
