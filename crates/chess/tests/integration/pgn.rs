//! PGN: what is accepted, how errors are reported, and round trips.

use std::io::{self, BufReader, Read};

use proptest::prelude::*;
use selfmate_chess::epd::{EpdReadError, read_epd};
use selfmate_chess::notation::san;
use selfmate_chess::pgn::{
    Eval, Note, PgnFault, PgnGame, PgnResult, PovScore, Reader, Score, Variation, VariationMove,
    write_pgn,
};
use selfmate_chess::{CastlingMode, Color, Game, Position, Rng, Seed, fen};

fn read(text: impl AsRef<[u8]>) -> Vec<Result<PgnGame, String>> {
    Reader::new(text.as_ref()).map(|game| game.map_err(|error| error.to_string())).collect()
}

fn read_one(text: impl AsRef<[u8]>) -> PgnGame {
    let mut games = read(text);
    assert_eq!(games.len(), 1, "{games:?}");
    games.remove(0).expect("a good game")
}

fn error_of(text: &str) -> String {
    let mut games = read(text);
    assert_eq!(games.len(), 1, "{games:?}");
    games.remove(0).expect_err("a broken game")
}

fn sans(game: &PgnGame) -> String {
    let mut position = game.game.start().clone();
    let mut words = Vec::new();
    for m in game.game.moves() {
        words.push(san(&position, m));
        position.play_unchecked(m);
    }
    words.join(" ")
}

#[test]
fn all_elements_of_a_game_are_read() {
    let game = read_one(
        "\u{feff}[Event \"a \\\"quoted\\\" \\\\ name\"]\r\n[White \"Müller \"the\" great\"]\r\n\
         % an escape { ( \r\n\r\n{ before\r\n the  first } 1. e4! {best by test} $14 e5\r\n\
         (1... c5 2.Nf3 (2. c3 -- 3. d4!?) d6) ; to the end } of line\r\n\
         2.Nf3 2...Nc6 3 . Bb5 a6?! 4. Bxc6 dxc6 5. 0-0 {a} {b} * {after}\r\n",
    );
    assert_eq!(game.get("Event"), Some("a \"quoted\" \\ name"));
    assert_eq!(game.get("White"), Some("Müller \"the\" great"));
    assert_eq!(game.comment.as_deref(), Some("before the first"));
    assert_eq!(sans(&game), "e4 e5 Nf3 Nc6 Bb5 a6 Bxc6 dxc6 O-O");
    assert_eq!(game.notes.len(), 9);
    assert_eq!(game.notes[0].nags, [1, 14]);
    assert_eq!(game.notes[0].comment.as_deref(), Some("best by test"));
    assert_eq!(game.notes[1].comment.as_deref(), Some("to the end } of line"));
    assert_eq!(game.notes[5].nags, [6]);
    assert_eq!(game.notes[8].comment.as_deref(), Some("a b after"));
    let sicilian = &game.notes[1].variations[0];
    assert_eq!(sicilian.moves.len(), 3);
    let alapin = &sicilian.moves[1].note.variations[0];
    assert_eq!(alapin.moves.len(), 3);
    assert_eq!(alapin.moves[1].played, None);
    assert_eq!(alapin.moves[2].note.nags, [5]);
    assert_eq!((game.line, game.result), (1, PgnResult::Unknown));
}

#[test]
fn good_games_of_a_broken_file_are_read() {
    let games = read(include_bytes!("data/broken.pgn"));
    let summaries: Vec<String> = games
        .iter()
        .map(|game| match game {
            Ok(game) => format!(
                "line {}: {} [{}] {}",
                game.line,
                game.get("Event").unwrap_or("-"),
                sans(game),
                game.result
            ),
            Err(error) => error.clone(),
        })
        .collect();
    assert_eq!(
        summaries,
        [
            "line 2: one [e4 e5 Qh5 Nc6 Bc4 Nf6 Qxf7#] 1-0",
            "game 2, line 11: 'Nf9' is not a move: \
             expected UCI (e2e4, e7e8q) or SAN (e4, Nf3, O-O, e8=Q)",
            "game 3, line 14: bad tag '[White Bert]': expected [Name \"value\"]",
            "line 19: four: no result, no moves [] *",
            "game 5, line 23: comment is not closed: expected '}'",
            "line 25: six [c4] 1/2-1/2",
            "game 7, line 30: variation that starts here is not closed: expected ')'",
            "line 33: eight [Nf3] *",
        ]
    );
}

#[test]
fn errors_give_line_and_reason() {
    let illegal = error_of("1. e4 e5\n2. e5 *");
    assert_eq!(
        illegal,
        "game 1, line 2: 'e5' is not legal in \
         rnbqkbnr/pppp1ppp/8/4p3/4P3/8/PPPP1PPP/RNBQKBNR w KQkq - 0 2"
    );
    for (text, line, expected) in [
        ("1. e4 -- *", 1, "null move '--' in the main line"),
        (
            "1. e4 e5 2. Qh5 a6 3. Qxf7+ (3. a3 a5 4. Qxf7+ --) *",
            1,
            "null move '--' while in check",
        ),
        ("[FEN \"8/8 w\"]\n\n1. e4 *", 1, "FEN tag: bad FEN '8/8 w': board"),
        ("[A \"b\"]\n[Variant \"Atomic\"]\n\n*", 2, "Variant tag 'Atomic': expected Standard"),
        ("1. e4 ) *", 1, "unexpected ')'"),
        ("1. e4\n}\n*", 2, "unexpected '}'"),
        ("(1. e4) *", 1, "variation before any move"),
        ("1. e4 $x *", 1, "bad annotation glyph '$'"),
        ("1. e4 $70000 *", 1, "bad annotation glyph '$70000'"),
        ("1. e4 e5 2. gibberish *", 1, "'gibberish' is not a move"),
        ("1. e4 e5 2. N3 *", 1, "'N3' is not a move"),
    ] {
        let error = error_of(text);
        assert!(error.starts_with(&format!("game 1, line {line}: {expected}")), "{text}: {error}");
    }
}

#[test]
fn moves_are_read_as_people_write_them() {
    let game = read_one(
        "e2-e4 d7d5 2. e4d5 Nf6 3 Ng1-f3 N:d5 4. f1c4 c6 5. o-o Bg4 6. Re1++ e6 7. h3 Bf3 \
         8. Qf3 b5 9. Bd5 cxd5 10. a4 *",
    );
    assert_eq!(
        sans(&game),
        "e4 d5 exd5 Nf6 Nf3 Nxd5 Bc4 c6 O-O Bg4 Re1 e6 h3 Bxf3 Qxf3 b5 Bxd5 cxd5 a4"
    );
    let promotion = "[FEN \"8/P6k/8/8/8/8/7K/8 w - - 0 1\"]\n\n1. a8Q *";
    assert_eq!(sans(&read_one(promotion)), "a8=Q");
    let en_passant = read_one("1. e4 a6 2. e5 d5 3. exd6e.p. a5 4. d4 h6 5. d5 e5 6. dxe6 e.p. *");
    assert_eq!(sans(&en_passant), "e4 a6 e5 d5 exd6 a5 d4 h6 d5 e5 dxe6");
}

#[test]
fn games_without_tags_or_results_are_read() {
    let games = read("1. e4 1-0 1. d4 0-1\n1. c4 1/2-1/2\n\n{remark}\n1. b4 *\n\n\n");
    let results: Vec<PgnResult> = games.iter().map(|game| game.as_ref().unwrap().result).collect();
    assert_eq!(results, [PgnResult::White, PgnResult::Black, PgnResult::Draw, PgnResult::Unknown]);
    let lines: Vec<usize> = games.iter().map(|game| game.as_ref().unwrap().line).collect();
    assert_eq!(lines, [1, 1, 2, 5]);
    assert!(read("").is_empty());
    assert!(read("\r\n \n; nothing here\n{ nor here }\n%").is_empty());
    let tagged = read("[Result \"0-1\"]\n\n1. e4\n\n[Event \"b\"]\n[Result \"1-0\"]\n");
    assert_eq!(tagged[0].as_ref().unwrap().result, PgnResult::Black);
    assert_eq!(tagged[1].as_ref().unwrap().result, PgnResult::White);
    // A broken game without tags ends at its result too.
    let games = read("1. e5 1-0 1. d4 0-1\n");
    assert!(games[0].is_err());
    assert_eq!(sans(games[1].as_ref().unwrap()), "d4");
}

#[test]
fn names_and_comments_may_contain_any_bytes() {
    let game = read_one(b"[White \"M\xfcller\"]\n[Black \"\xc3\xa9\"]\n\n1. e4 {\xff\x00} e5 *\n");
    assert_eq!(game.get("White"), Some("Müller"));
    assert_eq!(game.get("Black"), Some("é"));
    assert_eq!(game.notes[0].comment.as_deref(), Some("ÿ\0"));
    assert_eq!(game.game.ply(), 2);
}

#[test]
fn the_tags_set_the_start_position_and_chess960() {
    let text = "[SetUp \"1\"]\n[FEN \"4k3/8/8/8/8/8/4P3/4K3 b - - 3 40\"]\n\n40... Kd7 41. e4 *";
    let game = read_one(text);
    assert_eq!(sans(&game), "Kd7 e4");
    assert!(game.to_string().contains("\n40... Kd7 41. e4 *\n"), "{game}");
    let text = "[Variant \"Chess960\"]\n\
                [FEN \"1r2k1r1/pppppppp/8/8/8/8/PPPPPPPP/1R2K1R1 w GBgb - 0 1\"]\n\n\
                1. O-O 0-0-0 *";
    let game = read_one(text);
    assert_eq!(sans(&game), "O-O O-O-O");
    assert!(read_one(game.to_string()).game.moves().eq(game.game.moves()));
    // Without the tag, this would be the start of standard chess.
    let text = "[Variant \"Fischerandom\"]\n[FEN \"rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1\"]\n\n\
                1. e4 e5 2. Nf3 Nf6 3. Be2 Be7 4. O-O O-O *";
    let game = read_one(text);
    assert_eq!(game.game.castling_mode(), CastlingMode::Chess960);
    let again = read_one(game.to_string());
    assert_eq!(again.game.castling_mode(), CastlingMode::Chess960);
    assert_eq!(again.get("Variant"), Some("Chess960"));
    assert_eq!(sans(&again), sans(&game));
}

#[test]
fn a_game_over_a_limit_is_an_error_and_the_next_game_is_read() {
    let deep = format!("1. e4 {} *\n\n[Event \"next\"]\n\n1. d4 *", "(1. d4 ".repeat(5000));
    let games = read(deep);
    assert_eq!(games[0].as_ref().unwrap_err(), "game 1, line 1: variations nested deeper than 100");
    assert_eq!(games[1].as_ref().unwrap().get("Event"), Some("next"));

    let shuffle = "Nf3 Nf6 Ng1 Ng8 ".repeat(60_000);
    assert!(error_of(&shuffle).ends_with("more than 200000 moves, counting variations"));

    for filler in ["x", "x\n"] {
        let comment = filler.repeat(20 << 20);
        let games =
            read(format!("[Event \"a\"]\n\n1. e4 {{{comment}}} *\n\n[Event \"b\"]\n\n1. d4 *"));
        assert_eq!(
            games[0].as_ref().unwrap_err(),
            "game 1, line 1: more than 16777216 bytes for one game"
        );
        assert_eq!(games[1].as_ref().unwrap().get("Event"), Some("b"));
        assert_eq!(games.len(), 2);
    }
}

#[test]
fn an_io_error_ends_the_iteration() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("the disk is gone"))
        }
    }
    let text = "[Event \"a\"]\n\n1. e4 *\n\n[Event \"b\"]\n\n1. d4\n".as_bytes();
    let mut reader = Reader::new(BufReader::new(text.chain(Broken)));
    assert!(reader.next().unwrap().is_ok());
    let error = reader.next().unwrap().unwrap_err();
    assert!(matches!(error.fault, PgnFault::Io(_)));
    assert_eq!(error.to_string(), "game 2, line 7: cannot read: the disk is gone");
    assert!(reader.next().is_none());
}

#[test]
fn a_written_game_follows_the_export_format() {
    let mut game = Game::new();
    for text in ["f3", "e5", "g4", "Qh4#"] {
        let m = selfmate_chess::notation::parse_san(game.position(), text).unwrap();
        game.play(m).unwrap();
    }
    let mut pgn = PgnGame::new(game);
    pgn.set("White", "A \"quoted\" \\ name");
    pgn.set("Opening", "Barnes");
    pgn.set("Result", "1-0");
    let score = Some(PovScore::Mover(Score::Centipawns(31)));
    let eval = Eval { score, depth: Some(12), time_ms: Some(450), clock_ms: None };
    *pgn.note_mut(0) = Note::from(eval);
    pgn.note_mut(2).comment = Some("a } inside {is} harmless\n[Event \"x\"]".to_owned());
    let mate = Eval { score: Some(PovScore::Mover(Score::Mate(5))), time_ms: Some(100), ..eval };
    pgn.note_mut(3).comment = Some(Eval { depth: Some(20), ..mate }.to_string());
    let mut file = Vec::new();
    write_pgn(&mut file, &pgn).unwrap();
    insta::assert_snapshot!(String::from_utf8(file).unwrap(), @r#"
    [Event "?"]
    [Site "?"]
    [Date "????.??.??"]
    [Round "?"]
    [White "A \"quoted\" \\ name"]
    [Black "?"]
    [Result "0-1"]
    [Opening "Barnes"]
    [PlyCount "4"]

    1. f3 {+0.31/12 0.45s} 1... e5 2. g4 {a ) inside (is) harmless [Event "x"]}
    2... Qh4# {+M5/20 0.1s} 0-1
    "#);
}

#[test]
fn evaluations_are_read_from_comments() {
    let parse = |text| Eval::parse(text).unwrap_or_default();
    let pawns = |value| Some(PovScore::Mover(Score::Centipawns(value)));
    let white = |value| Some(PovScore::White(Score::Centipawns(value)));
    let book = parse("+0.31/12 0.45s");
    assert_eq!((book.score, book.depth, book.time_ms), (pawns(31), Some(12), Some(450)));
    assert_eq!(parse("0.00/7 12s, Draw by repetition").time_ms, Some(12_000));
    assert_eq!(parse("(e4 e5) -1.50/3").score, pawns(-150));
    assert_eq!(parse("+M5/20 0.1s").score, Some(PovScore::Mover(Score::Mate(5))));
    let lichess = parse("[%eval -0.31] [%clk 0:01:02.5] Inaccuracy.");
    assert_eq!((lichess.score, lichess.clock_ms), (white(-31), Some(62_500)));
    assert_eq!(parse("[%eval #-3,18]").score, Some(PovScore::White(Score::Mate(-3))));
    assert_eq!(parse("[%eval #-3,18]").depth, Some(18));
    assert_eq!(parse("[%emt 0:00:05]").time_ms, Some(5000));
    for text in
        ["", "book", "1/2", "won in 2003", "better was +1.5", "[%eval", "[%csl Ra1]", "M-3/1"]
    {
        assert_eq!(Eval::parse(text), None, "{text}");
    }
    let black_move = PovScore::White(Score::Centipawns(50));
    assert_eq!(black_move.for_mover(Color::Black), Score::Centipawns(-50));
    assert_eq!(PovScore::Mover(Score::Mate(2)).for_white(Color::Black), Score::Mate(-2));
}

/// A game of random moves with random notes, from one of a few start positions.
fn random_game(rng: &mut Rng, plies: usize, texts: &[String]) -> PgnGame {
    let starts = [
        "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
        "bqnb1rkr/pp3ppp/3ppn2/2p5/5P2/P2P4/NPP1P1PP/BQ1BNRKR w HFhf - 2 9",
        "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 b - - 5 17",
        "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
    ];
    let mut pgn = PgnGame::new(fen::parse_game(starts[rng.below(4)]).expect("a start"));
    let text = |rng: &mut Rng| rng.choose(texts).filter(|_| rng.clone().chance(0.3)).cloned();
    pgn.comment = text(rng);
    for ply in 0..plies {
        let legal = pgn.game.legal_moves();
        let Some(&m) = rng.choose(&legal) else { break };
        let mut note = Note { comment: text(rng), ..Note::default() };
        if rng.chance(0.2) {
            note.nags = vec![rng.below(140) as u16, 65_535];
        }
        if rng.chance(0.2) {
            let mut variation = Variation { comment: text(rng), moves: Vec::new() };
            let mut position = pgn.game.position().clone();
            for _ in 0..=rng.below(4) {
                let Some(&other) = rng.choose(&position.legal_moves()) else { break };
                let note = Note { comment: text(rng), ..Note::default() };
                variation.moves.push(VariationMove { played: Some(other), note });
                position.play_unchecked(other);
            }
            if !position.is_check() {
                variation.moves.push(VariationMove { played: None, note: Note::default() });
            }
            note.variations.push(variation);
        }
        pgn.game.play(m).expect("a legal move");
        *pgn.note_mut(ply) = note;
    }
    pgn.result = PgnGame::new(pgn.game.clone()).result;
    pgn
}

fn collapsed(text: &Option<String>) -> Option<String> {
    let text = text.as_ref()?.split_whitespace().collect::<Vec<_>>().join(" ");
    let text = if text.contains('}') { text.replace('{', "(").replace('}', ")") } else { text };
    (!text.is_empty()).then_some(text)
}

fn collapse_note(note: &mut Note) {
    note.comment = collapsed(&note.comment);
    for variation in &mut note.variations {
        variation.comment = collapsed(&variation.comment);
        variation.moves.iter_mut().for_each(|played| collapse_note(&mut played.note));
    }
}

/// Repeats some bytes forever.
struct Endless(&'static [u8], usize);

impl Read for Endless {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        for byte in &mut *buffer {
            *byte = self.0[self.1];
            self.1 = (self.1 + 1) % self.0.len();
        }
        Ok(buffer.len())
    }
}

#[test]
fn endless_input_is_an_error() {
    for (bytes, reason) in [
        (&b"\0"[..], "a line is longer than 64 MB: expected a text file"),
        (b"{ no end of this comment is in sight, on this line or on the next\n", "without the end"),
        (
            b"\n                                                                  ",
            "without the end",
        ),
    ] {
        let mut games = Reader::new(BufReader::new(Endless(bytes, 0)));
        let error = games.next().unwrap().unwrap_err();
        assert!(matches!(error.fault, PgnFault::Io(_)), "{error}");
        assert!(error.to_string().contains(reason), "{error}");
        assert!(games.next().is_none());
    }
    let mut positions = read_epd(BufReader::new(Endless(b"\0", 0)));
    let error = positions.next().unwrap().unwrap_err();
    assert!(matches!(error, EpdReadError::Io { line: 1, .. }), "{error}");
    assert!(positions.next().is_none());
}

proptest! {
    #[test]
    fn random_games_round_trip(
        seed: u64,
        plies in 0usize..120,
        texts in prop::collection::vec("(\\PC|[ \\n{};%\\[\\]]){0,90}", 1..5),
        value in "(\\PC|[\"\\\\\\]\\[]){0,30}",
    ) {
        let mut rng = Seed::new(seed).rng();
        let mut first = random_game(&mut rng, plies, &texts);
        first.set("White", value.clone());
        first.set("Annotator", value.clone());
        let second = random_game(&mut rng, 10, &texts);
        let mut file = Vec::new();
        write_pgn(&mut file, &first).unwrap();
        write_pgn(&mut file, &second).unwrap();
        let text = String::from_utf8(file.clone()).unwrap();
        let read: Vec<PgnGame> = Reader::new(file.as_slice()).collect::<Result<_, _>>().unwrap();
        prop_assert_eq!(read.len(), 2, "{}", text);
        prop_assert_eq!(read[0].get("White"), Some(value.as_str()));
        prop_assert_eq!(read[0].get("Annotator"), Some(value.as_str()));
        for (mut wrote, read) in [first, second].into_iter().zip(read) {
            prop_assert_eq!(fen::to_fen(wrote.game.start()), fen::to_fen(read.game.start()));
            prop_assert!(wrote.game.moves().eq(read.game.moves()), "{}", text);
            wrote.notes.iter_mut().for_each(collapse_note);
            prop_assert_eq!(&wrote.notes, &read.notes, "{}", text);
            prop_assert_eq!(collapsed(&wrote.comment), read.comment.clone());
            prop_assert_eq!(wrote.result, read.result);
            let plies = wrote.game.ply().to_string();
            prop_assert_eq!(read.get("PlyCount"), Some(plies.as_str()));
            // Writing it again gives the same bytes.
            let again = read_one(read.to_string());
            prop_assert_eq!(again.to_string(), read.to_string());
        }
    }

    #[test]
    fn lines_stay_below_80_columns(seed: u64, plies in 0usize..200) {
        let texts = ["a comment of a few short words, again and again ".repeat(5)];
        let pgn = random_game(&mut Seed::new(seed).rng(), plies, &texts).to_string();
        let (_, moves) = pgn.split_once("\n\n").unwrap();
        prop_assert!(moves.lines().all(|line| line.len() < 80 && line == line.trim()), "{}", moves);
    }

    #[test]
    fn evaluations_round_trip(
        mate: bool,
        white: bool,
        value in -1_000_000i32..1_000_000,
        depth: Option<u32>,
        time_ms in prop::option::of(0u64..100_000_000_000),
        clock_ms in prop::option::of(0u64..100_000_000_000),
    ) {
        let score = if mate { Score::Mate(value) } else { Score::Centipawns(value) };
        let score = Some(if white { PovScore::White(score) } else { PovScore::Mover(score) });
        let eval = Eval { score, depth, time_ms, clock_ms };
        prop_assert_eq!(Eval::parse(&eval.to_string()), Some(eval), "{}", eval);
    }

    #[test]
    fn arbitrary_bytes_do_not_panic(bytes: Vec<u8>) {
        let _ = Reader::new(bytes.as_slice()).count();
    }

    #[test]
    fn arbitrary_words_do_not_panic(
        words in prop::collection::vec(prop::sample::select(vec![
            "[Event \"a\"]\n", "[", "]", "\"", "\\", "[FEN \"", "8/8/8/8/8/8/8/K1k5 w - - 0 1", "\n", "\n\n",
            "%", ";", "{", "}", "(", ")", " ", "1.", "1...", "e4", "e5", "Nf3", "--", "$", "$5", "!", "?!",
            "1-0", "*", "0-0", "=", "\u{feff}", "ü", "\r\n", "[%eval 1]", "0-1 ", "Z0", "[Variant \"960\"]",
        ]), 0..60),
        glue: bool,
    ) {
        let text = words.join(if glue { "" } else { " " });
        for game in Reader::new(text.as_bytes()) {
            match game {
                Ok(game) => {
                    prop_assert!(game.line >= 1);
                    prop_assert_eq!(game.notes.len(), game.game.ply());
                    prop_assert_eq!(sans(&read_one(game.to_string())), sans(&game));
                }
                Err(error) => prop_assert!(error.line <= text.lines().count().max(1), "{}", error),
            }
        }
    }

    #[test]
    fn arbitrary_comments_do_not_panic(text in "(\\PC|\\[%eval|[-+M#/.0-9s:, \\]]){0,40}") {
        if let Some(eval) = Eval::parse(&text) {
            let _ = eval.to_string();
        }
    }
}
