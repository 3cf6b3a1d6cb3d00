//! Games end exactly when the rules end them.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use selfmate_chess::fen::{MAX_FULLMOVE_NUMBER, MAX_HALFMOVE_CLOCK, parse_fen, parse_game, to_fen};
use selfmate_chess::notation::{MoveError, parse_move, san, uci};
use selfmate_chess::{DrawRules, Game, Move, Position, Reason, Role, Rules, Square};

fn play(game: &mut Game, line: &str) {
    for text in line.split_whitespace() {
        let m = parse_move(game.position(), text).unwrap();
        game.play(m).unwrap();
    }
}

#[test]
fn fools_mate_is_won_by_black() {
    let mut game = Game::new();
    play(&mut game, "f3 e5 g4 Qh4");
    let outcome = game.outcome().unwrap();
    assert_eq!((outcome.pgn(), outcome.reason), ("0-1", Reason::Checkmate));
}

#[test]
fn stalemate_and_bare_kings_are_draws() {
    let game = parse_game("7k/5Q2/6K1/8/8/8/8/8 b - - 0 1").unwrap();
    assert_eq!(game.outcome().unwrap().reason, Reason::Stalemate);
    let game = parse_game("7k/8/6K1/8/8/8/8/8 b - - 0 1").unwrap();
    assert_eq!(game.outcome().unwrap().reason, Reason::InsufficientMaterial);
}

#[test]
fn the_third_repetition_ends_a_game_with_claims_and_the_fifth_one_without() {
    let mut game = Game::new();
    for expected in 1..=5 {
        assert_eq!(game.repetitions(), expected);
        let outcome = game.outcome().map(|o| o.reason);
        assert_eq!(outcome, (expected >= 3).then_some(Reason::Threefold));
        let automatic = Rules { draws: DrawRules::Automatic, max_plies: None };
        let outcome = game.clone().with_rules(automatic).outcome().map(|o| o.reason);
        assert_eq!(outcome, (expected >= 5).then_some(Reason::Fivefold));
        play(&mut game, "Nf3 Nf6 Ng1 Ng8");
    }
}

#[test]
fn lost_castling_rights_make_another_position() {
    let mut game = parse_game("r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1").unwrap();
    // Ke1 restores the pieces but not White's castling rights, so the count starts again.
    play(&mut game, "Ke2 Rb8 Ke1 Ra8");
    assert_eq!(game.repetitions(), 1);
    play(&mut game, "Ke2 Rb8 Ke1 Ra8");
    assert_eq!(game.repetitions(), 2);
}

#[test]
fn a_legal_en_passant_capture_makes_another_position() {
    let mut game = parse_game("4k3/8/8/8/4p3/8/3P4/4K2R w - - 0 1").unwrap();
    play(&mut game, "d4 Kd8 Ke2 Ke8 Ke1");
    // Same pieces, same side to move, but exd3 is no longer possible.
    assert_eq!(game.repetitions(), 1);
    play(&mut game, "Kd8 Ke2 Ke8 Ke1");
    assert_eq!(game.repetitions(), 2);
}

#[test]
fn fifty_or_seventy_five_moves_without_progress_are_a_draw() {
    let at = |clock: u32, draws| {
        let game = parse_game(&format!("6k1/8/8/8/8/8/8/K6R w - - {clock} 90")).unwrap();
        game.with_rules(Rules { draws, max_plies: None }).outcome().map(|o| o.reason)
    };
    assert_eq!(at(99, DrawRules::Claimed), None);
    assert_eq!(at(100, DrawRules::Claimed), Some(Reason::FiftyMoves));
    assert_eq!(at(149, DrawRules::Automatic), None);
    assert_eq!(at(150, DrawRules::Automatic), Some(Reason::SeventyFiveMoves));
}

#[test]
fn checkmate_on_the_hundredth_ply_without_progress_counts() {
    let mut game = parse_game("7k/8/6K1/8/8/8/8/R7 w - - 99 90").unwrap();
    play(&mut game, "Ra8");
    assert_eq!(game.outcome().unwrap().reason, Reason::Checkmate);
}

#[test]
fn the_ply_cap_truncates_without_a_result() {
    let mut game = Game::new().with_rules(Rules { draws: DrawRules::Claimed, max_plies: Some(2) });
    play(&mut game, "e4");
    assert_eq!(game.outcome(), None);
    play(&mut game, "e5");
    let outcome = game.outcome().unwrap();
    assert!(outcome.is_truncated());
    assert_eq!(outcome.pgn(), "*");
}

#[test]
fn an_illegal_move_is_reported_and_changes_nothing() {
    let mut game = Game::new();
    let m = Move::Normal {
        role: Role::Pawn,
        from: Square::E2,
        capture: None,
        to: Square::E5,
        promotion: None,
    };
    let before = to_fen(game.position());
    let error = game.play(m).unwrap_err();
    assert_eq!(error.to_string(), format!("illegal move e2e5 in {before}"));
    assert_eq!((to_fen(game.position()), game.ply()), (before, 0));
}

#[test]
fn undo_and_rewind_restore_positions() {
    let mut game = Game::new();
    let start = to_fen(game.position());
    play(&mut game, "e4 e5 Nf3 Nc6");
    let m = game.undo().unwrap();
    assert_eq!(uci(game.position(), m), "b8c6");
    game.rewind(0);
    assert_eq!(to_fen(game.position()), start);
    assert_eq!(game.undo(), None);
}

#[test]
fn errors_of_a_fen_name_the_field() {
    let field = |fen: &str| parse_fen(fen).unwrap_err().field;
    assert_eq!(field(""), "whole");
    assert_eq!(field("8/8/8/8/8/8/8 w - - 0 1"), "board");
    assert_eq!(field("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR x KQkq - 0 1"), "side to move");
    assert_eq!(field("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KX - 0 1"), "castling");
    assert_eq!(field("4k3/8/8/8/8/8/8/4K3 w K - 0 1"), "castling");
    assert_eq!(field("4k3/8/8/8/8/8/8/4K3 w - e9 0 1"), "en passant");
    assert_eq!(field("4k3/8/8/8/8/8/8/4K3 w - - x 1"), "halfmove clock");
    assert_eq!(field("4k3/8/8/8/8/8/8/4K3 w - - 0 x"), "fullmove number");
    assert_eq!(field("4k3/8/8/8/8/8/8/8 w - - 0 1"), "board");
    assert_eq!(field("4k3/8/8/8/8/8/8/P3K3 w - - 0 1"), "board");
    assert_eq!(field("4k3/4R3/8/8/8/8/8/4K3 w - - 0 1"), "side to move");
}

#[test]
fn impossible_clocks_are_rejected() {
    let with = |clocks: &str| parse_fen(&format!("4k3/8/8/8/8/8/8/4K3 w - - {clocks}"));
    for (halfmoves, fullmoves) in [(150, 75), (999, 9999), (10_000, 100_000)] {
        let position = with(&format!("{halfmoves} {fullmoves}")).unwrap();
        assert_eq!((position.halfmoves(), position.fullmoves().get()), (halfmoves, fullmoves));
    }
    for clocks in ["10001 1", "4294967295 1", "99999999999999999999 1"] {
        let error = with(clocks).unwrap_err();
        assert_eq!(error.field, "halfmove clock", "{clocks}");
        assert_eq!(
            error.expected,
            format!("expected a whole number from 0 to {MAX_HALFMOVE_CLOCK}")
        );
    }
    for clocks in ["0 100001", "0 4294967295", "0 99999999999999999999"] {
        let error = with(clocks).unwrap_err();
        assert_eq!(error.field, "fullmove number", "{clocks}");
        assert_eq!(
            error.expected,
            format!("expected a whole number from 1 to {MAX_FULLMOVE_NUMBER}")
        );
    }
}

#[test]
fn moves_are_parsed_in_uci_and_san_and_errors_give_the_reason() {
    let position = parse_fen("r3k2r/8/8/8/8/8/1P6/R3K2R w KQkq - 0 1").unwrap();
    let castle = parse_move(&position, "e1g1").unwrap();
    assert_eq!(parse_move(&position, "O-O").unwrap(), castle);
    assert_eq!((uci(&position, castle), san(&position, castle)), ("e1g1".into(), "O-O".into()));
    assert!(matches!(parse_move(&position, "hello"), Err(MoveError::Syntax(_))));
    assert!(matches!(parse_move(&position, "e1e8"), Err(MoveError::Illegal { .. })));
    assert!(matches!(parse_move(&position, "0000"), Err(MoveError::Syntax(_))));
    let twins = parse_fen("4k3/8/8/8/8/8/8/R3K2R w - - 0 1").unwrap();
    assert!(parse_move(&twins, "Rf1").is_ok());
    let twins = parse_fen("4k3/8/8/8/8/4K3/8/R6R w - - 0 1").unwrap();
    assert!(matches!(parse_move(&twins, "Rd1"), Err(MoveError::Ambiguous { .. })));
}

#[test]
fn chess960_castling_is_king_takes_rook() {
    let position = parse_fen("2k5/8/8/8/8/8/8/1RK1R3 w EB - 0 1").unwrap();
    assert!(position.castles().mode().is_chess960());
    let m = parse_move(&position, "O-O").unwrap();
    assert_eq!(uci(&position, m), "c1e1");
    assert_eq!(parse_move(&position, "c1e1").unwrap(), m);
}
