//! EPD: what is accepted, how errors are reported, and round trips.

use proptest::prelude::*;
use selfmate_chess::epd::{Epd, EpdError, EpdReadError, Operation, read_epd};
use selfmate_chess::notation::san;
use selfmate_chess::{Chess, Game, Position, Seed, fen};

fn suite() -> Vec<Result<Epd, String>> {
    let file = include_bytes!("data/suite.epd").as_slice();
    read_epd(file).map(|epd| epd.map_err(|error| error.to_string())).collect()
}

#[test]
fn good_lines_of_a_broken_suite_are_read() {
    let epds = suite();
    let good: Vec<&Epd> = epds.iter().filter_map(|epd| epd.as_ref().ok()).collect();
    let bad: Vec<&String> = epds.iter().filter_map(|epd| epd.as_ref().err()).collect();
    let sans = |epd: &Epd| -> Vec<String> {
        epd.best_moves().iter().map(|&m| san(epd.position(), m)).collect()
    };
    assert_eq!((good[0].id(), sans(good[0])), (Some("BK.01"), vec!["Qd1+".to_owned()]));
    let points: Vec<(String, u32)> =
        good[1].points().iter().map(|&(m, points)| (san(good[1].position(), m), points)).collect();
    let expected = [("f5", 10), ("Be5+", 2), ("Bf2", 3), ("Bg4", 2)];
    assert_eq!(points, expected.map(|(m, points)| (m.to_owned(), points)));
    let mate = good[2];
    assert_eq!((mate.position().halfmoves(), mate.position().fullmoves().get()), (12, 40));
    assert_eq!((mate.dm(), mate.avoid_moves().len(), mate.best_moves().len()), (Some(1), 2, 0));
    assert_eq!((mate.operand("acd"), mate.operand("ce")), (Some("9"), Some("32000")));
    assert_eq!(mate.operand("c3"), Some("a; b"));
    assert_eq!(good[3].position().fullmoves().get(), 7);
    assert_eq!(good[4].id(), Some("x"));
    assert_eq!(
        (sans(good[5]), good[5].operand("D1")),
        (vec!["e4".into(), "d4".into()], Some("20"))
    );
    assert_eq!(good.len(), 6);
    let start = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR";
    assert_eq!(
        bad,
        [
            &format!(
                "line 8: bm for {start} w KQkq - 0 1: 'e5' is not legal in {start} w KQkq - 0 1"
            ),
            "line 9: operand of 'id' is not closed: expected '\"'",
            &format!("line 10: bad FEN '{start} x KQkq - 0 1': side to move: expected 'w' or 'b'"),
        ]
    );
}

#[test]
fn errors_name_what_was_expected() {
    let start = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq -";
    assert!(matches!(Epd::parse(""), Err(EpdError::Fields(_))));
    assert!(matches!(Epd::parse("8/8/8/8/8/8/8/8 w"), Err(EpdError::Fields(_))));
    for (operations, expected) in [
        ("dm x;", "'x' after 'dm': expected a whole number"),
        ("hmvc -1;", "'-1' after 'hmvc': expected a whole number"),
        ("fmvn;", "'' after 'fmvn': expected a whole number"),
        (
            "0 1 7;",
            "'7' is not an operation: expected a name that starts with a letter, such as bm",
        ),
    ] {
        let error = Epd::parse(&format!("{start} {operations}")).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
    let mut lines = read_epd("x\n".as_bytes());
    assert!(matches!(lines.next(), Some(Err(EpdReadError::Line { line: 1, .. }))));
    let long = format!("\u{feff}{start} c0 \"{}\";\r\n{start} id \"\u{e9}\";", "x".repeat(2 << 20));
    let mut lines = read_epd(long.as_bytes());
    assert!(matches!(lines.next(), Some(Err(EpdReadError::TooLong { line: 1 }))));
    assert_eq!(lines.next().unwrap().unwrap().id(), Some("é"));
    assert!(lines.next().is_none());
}

#[test]
fn clocks_have_the_same_limits_as_in_a_fen() {
    let board = "4k3/8/8/8/8/8/8/4K3 w - -";
    for (line, field) in [
        ("hmvc 4294967295;", "halfmove clock"),
        ("fmvn 4294967295;", "fullmove number"),
        ("4294967295 1", "halfmove clock"),
        ("0 1 hmvc 10001;", "halfmove clock"),
    ] {
        match Epd::parse(&format!("{board} {line}")) {
            Err(EpdError::Fen(error)) => assert_eq!(error.field, field, "{line}"),
            other => panic!("{line}: {other:?}"),
        }
    }
    let epd = Epd::parse(&format!("{board} hmvc 10000; fmvn 100000;")).unwrap();
    assert_eq!(epd.position().halfmoves(), 10_000);
}

#[test]
fn a_suite_round_trips() {
    for epd in suite().into_iter().flatten() {
        let written = epd.to_string();
        let again: Epd = written.parse().unwrap();
        assert_eq!(again, epd);
        assert_eq!(again.to_string(), written);
    }
    let mut epd = Epd::new(Chess::default());
    epd.push(Operation::new("id", "a \"b\" c")).unwrap();
    epd.push(Operation::new("bm", "e4")).unwrap();
    assert!(epd.push(Operation::new("am", "e5")).is_err());
    assert_eq!(
        epd.to_string(),
        "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - id \"a 'b' c\"; bm e4;"
    );
}

/// Opening files have a whole FEN in each line, with both counters and without operations.
#[test]
fn an_opening_file_reads_without_errors() {
    let mut positions = vec![Chess::default()];
    for _ in 0..3 {
        let moved = positions.iter().flat_map(|position| {
            position.legal_moves().into_iter().map(|m| {
                let mut after = position.clone();
                after.play_unchecked(m);
                after
            })
        });
        positions = moved.collect();
    }
    assert_eq!(positions.len(), 8902);
    let lines: Vec<String> = positions.iter().map(fen::to_fen).collect();
    let file = lines.join("\r\n") + "\r\n\r\n";
    let epds: Vec<Epd> = read_epd(file.as_bytes()).collect::<Result<_, _>>().unwrap();
    let read: Vec<String> = epds.iter().map(|epd| fen::to_fen(epd.position())).collect();
    assert_eq!(read, lines);
}

proptest! {
    #[test]
    fn random_positions_round_trip(
        seed: u64,
        plies in 0usize..100,
        operations in prop::collection::vec(
            ("[a-zA-Z][a-zA-Z0-9_]{0,10}", prop::collection::vec("[^\"\\n\\r]{0,12}", 0..4)), 0..5,
        ),
    ) {
        let mut rng = Seed::new(seed).rng();
        let mut game = Game::new();
        for _ in 0..plies {
            let Some(&m) = rng.choose(&game.legal_moves()) else { break };
            game.play(m).unwrap();
        }
        let mut epd = Epd::new(game.position().clone());
        let best: Vec<String> =
            game.legal_moves().iter().map(|&m| san(game.position(), m)).collect();
        epd.push(Operation { opcode: "bm".to_owned(), operands: best }).unwrap();
        for (opcode, operands) in operations {
            if !["bm", "am", "dm", "hmvc", "fmvn"].contains(&opcode.as_str()) {
                epd.push(Operation { opcode, operands }).unwrap();
            }
        }
        let again = Epd::parse(&epd.to_string()).unwrap();
        prop_assert_eq!(fen::to_fen(again.position()), fen::to_fen(epd.position()));
        let legal = game.legal_moves();
        prop_assert_eq!(again.best_moves(), legal.as_slice());
        prop_assert_eq!(&again, &epd);
    }

    #[test]
    fn arbitrary_bytes_do_not_panic(bytes: Vec<u8>, text in "\\PC{0,40}") {
        let _ = read_epd(bytes.as_slice()).count();
        let line = format!("8/8/4k3/8/8/4K3/4P3/8 w - - {text}");
        if let Ok(epd) = Epd::parse(&line) {
            let _ = (epd.points(), epd.to_string());
        }
        let _ = Epd::parse(&text);
    }

    #[test]
    fn arbitrary_words_do_not_panic(
        words in prop::collection::vec(prop::sample::select(vec![
            "4k3/8/8/8/8/8/4P3/4K3", "w", "b", "-", "KQkq", "e3", "0", "1", "4294967296", ";", "\"",
            "bm", "am", "e4", "c0", "e4=10", "=", ",", "id", "dm", "hmvc", "fmvn", " ", "\n", "é",
        ]), 0..30),
    ) {
        let text = words.join(" ");
        for epd in read_epd(text.as_bytes()).flatten() {
            let _ = (epd.points(), epd.to_string());
        }
    }
}
