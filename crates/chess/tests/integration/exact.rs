//! Exact endings: every value follows from those a move later, and outside sources agree.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use selfmate_chess::fen::{parse_fen, to_fen};
use selfmate_chess::tablebase::{
    Count, Exact, ExactError, FiftyMoveRule, Syzygy, Verdict, position,
};
use selfmate_chess::{Chess, Color, Position, Square};

use crate::syzygy::syzygy_path;

fn verdict(exact: &Exact, fen: &str) -> Option<Verdict> {
    exact.verdict(&parse_fen(fen).unwrap())
}

#[test]
fn known_positions_have_their_known_values() {
    let exact = Exact::new();
    for (fen, expected) in [
        // Mated, mate in one, stalemate.
        ("R5k1/8/6K1/8/8/8/8/8 b - - 0 1", Verdict::Loss(0)),
        ("6k1/8/6K1/8/8/8/8/R7 w - - 0 1", Verdict::Win(1)),
        ("7k/5Q2/6K1/8/8/8/8/8 b - - 0 1", Verdict::Draw),
        // The rook is lost.
        ("8/8/8/8/8/8/2kR4/K7 b - - 0 1", Verdict::Draw),
        // Without the opposition a pawn does not win; a rook's pawn does not win even with it.
        ("8/8/8/4k3/4P3/4K3/8/8 w - - 0 1", Verdict::Draw),
        ("k7/8/K7/P7/8/8/8/8 w - - 0 1", Verdict::Draw),
        ("8/8/4k3/8/8/3KB3/8/8 w - - 0 1", Verdict::Draw),
        // A pawn that mates as a queen, and one that has to become a rook.
        ("k7/4P3/K7/8/8/8/8/8 w - - 0 1", Verdict::Win(1)),
        ("8/k1P5/2K5/8/8/8/8/8 w - - 0 1", Verdict::Win(3)),
        ("8/8/8/8/8/8/8/K1k5 w - - 0 1", Verdict::Draw),
    ] {
        assert_eq!(verdict(&exact, fen), Some(expected), "{fen}");
    }
    let won = verdict(&exact, "4k3/8/4K3/4P3/8/8/8/8 b - - 0 1");
    assert!(matches!(won, Some(Verdict::Loss(_))), "the opposition decides: {won:?}");
}

#[test]
fn swapping_colours_keeps_the_value() {
    let exact = Exact::new();
    for (white, black) in [
        ("8/8/8/3k4/8/8/8/R3K3 w - - 0 1", "r3k3/8/8/8/3K4/8/8/8 b - - 0 1"),
        ("8/8/8/3k4/8/8/4P3/4K3 b - - 0 1", "4k3/4p3/8/8/3K4/8/8/8 w - - 0 1"),
        ("8/8/8/3k4/8/8/4P3/4K3 w - - 0 1", "4k3/4p3/8/8/3K4/8/8/8 b - - 0 1"),
    ] {
        assert_eq!(verdict(&exact, white), verdict(&exact, black), "{white}");
        assert!(verdict(&exact, white).is_some());
    }
}

#[test]
fn longest_mates_and_counts_are_the_published_ones() {
    let exact = Exact::new();
    // 16, 10 and 28 moves.
    for (name, plies) in
        [("KRK", Some(31)), ("KQK", Some(19)), ("KPK", Some(55)), ("KBK", None), ("KNK", None)]
    {
        let ending = exact.ending(&name.parse().unwrap()).unwrap();
        let longest = ending.longest(Color::White);
        assert_eq!(longest.as_ref().map(|(_, plies)| *plies), plies, "{name}");
        if let Some((position, plies)) = longest {
            assert_eq!(exact.verdict(&position), Some(Verdict::Win(plies)), "{name}");
        }
        assert!(ending.longest(Color::Black).is_none());
    }
    let rook = exact.ending(&"KRK".parse().unwrap()).unwrap();
    assert_eq!(rook.count(Color::White), Count { wins: 175_168, draws: 0, losses: 0 });
    let black = rook.count(Color::Black);
    assert_eq!((black.wins, black.draws + black.losses), (0, 223_944));
}

#[test]
fn endings_that_cannot_be_solved_are_rejected() {
    let exact = Exact::new();
    assert_eq!(verdict(&exact, "4k3/8/8/8/8/8/8/4K2R w K - 0 1"), None);
    assert_eq!(verdict(&exact, "4k3/pp6/8/8/8/8/PP6/4K3 w - - 0 1"), None);
    assert_eq!(verdict(&exact, "4k3/p7/8/8/8/8/P7/4K3 w - - 0 1"), None);
    let error = |name: &str| exact.ending(&name.parse().unwrap()).err().unwrap();
    assert!(matches!(error("KPKP"), ExactError::Pawns(_)));
    assert_eq!(error("KRRKR").to_string(), "KRRKR: 5 pieces: expected at most 4");
}

/// The best value among a position's moves, from shakmaty's moves and the values after them.
fn a_move_later(exact: &Exact, position: &Chess) -> Verdict {
    match exact.moves(position).unwrap().first() {
        Some((_, best)) => *best,
        None if position.is_check() => Verdict::Loss(0),
        None => Verdict::Draw,
    }
}

#[test]
fn values_follow_from_those_one_move_later() {
    // Only one assignment of distances is consistent: each leads down to a mate, and a draw has a
    // move to a draw and no move that wins.
    let exact = Exact::new();
    for (name, step) in [("KRK", 1), ("KQK", 7), ("KPK", 7), ("KBK", 31), ("KNK", 31)] {
        let ending = exact.ending(&name.parse().unwrap()).unwrap();
        for (position, verdict) in ending.positions().step_by(step) {
            assert_eq!(verdict, a_move_later(&exact, &position), "{}", to_fen(&position));
        }
    }
}

/// Solves six endings of four pieces: `cargo test --release -p selfmate-chess four_pieces -- --ignored`
#[test]
#[ignore = "takes minutes without optimisation"]
fn values_with_four_pieces_follow_from_those_one_move_later() {
    let exact = Exact::new();
    for (name, white, black) in [
        ("KBBK", Some(37), None),
        ("KBNK", Some(65), None),
        ("KRKP", Some(51), Some(85)),
        ("KQKR", Some(69), Some(37)),
    ] {
        let ending = exact.ending(&name.parse().unwrap()).unwrap();
        for (position, verdict) in ending.positions().step_by(97) {
            assert_eq!(verdict, a_move_later(&exact, &position), "{}", to_fen(&position));
        }
        let longest = |side| ending.longest(side).map(|(_, plies)| plies);
        assert_eq!((longest(Color::White), longest(Color::Black)), (white, black), "{name}");
    }
}

#[test]
fn syzygy_agrees_on_every_position_of_three_pieces() {
    let tables = Syzygy::open(&syzygy_path()).unwrap();
    let exact = Exact::new();
    for name in ["KRK", "KQK", "KPK", "KBK", "KNK"] {
        let ending = exact.ending(&name.parse().unwrap()).unwrap();
        let pieces = ending.material().pieces();
        let mut seen = 0;
        for number in 0..2 * 64 * 64 * 64 {
            let square = |place: u32| Square::new(number >> (1 + 6 * place) & 63);
            let squares = [square(0), square(1), square(2)];
            let turn = Color::from_white(number % 2 == 0);
            let ours = ending.verdict(&squares, turn);
            let distinct = (1..3).all(|place| !squares[..place].contains(&squares[place]));
            let position = position(pieces, &squares, turn).filter(|_| distinct);
            assert_eq!(ours.is_some(), position.is_some(), "{name} {squares:?} {turn}");
            let Some(position) = position else { continue };
            let theirs = tables.probe_after_zeroing(&position).unwrap().unwrap();
            let theirs = theirs.points(FiftyMoveRule::Obeyed);
            assert_eq!(ours.unwrap().points(), theirs, "{}", to_fen(&position));
            seen += 1;
        }
        let count = |side| ending.count(side);
        let all = [count(Color::White), count(Color::Black)];
        let all: u64 = all.iter().map(|side| side.wins + side.draws + side.losses).sum();
        assert_eq!(seen, all, "{name}");
    }
}
