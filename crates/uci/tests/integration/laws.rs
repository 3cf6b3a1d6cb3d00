//! Properties of the messages: they round-trip, and no input panics.

use proptest::prelude::*;
use selfmate_chess::{CastlingMode, Game};
use selfmate_uci::{
    Bound, Command, EngineOption, Go, Info, OptionKind, PositionCommand, Reply, Score, ScoreValue,
    UciMove,
};

/// Words that are not UCI keywords (all of which are lower case).
const WORD: &str = "[A-Z0-9][A-Za-z0-9_.-]{0,8}";

fn words() -> impl Strategy<Value = String> {
    prop::collection::vec(WORD, 1..4).prop_map(|words| words.join(" "))
}

fn uci_move() -> impl Strategy<Value = UciMove> {
    "[a-h][1-8][a-h][1-8][qrbn]?".prop_map(|text| text.parse().expect("a move by its pattern"))
}

fn moves() -> impl Strategy<Value = Vec<UciMove>> {
    prop::collection::vec(uci_move(), 0..6)
}

prop_compose! {
    fn go()(
        searchmoves in moves(),
        flags: (bool, bool),
        times: (Option<u64>, Option<u64>, Option<u64>, Option<u64>),
        limits: (Option<u32>, Option<u32>, Option<u64>, Option<u32>, Option<u64>, Option<u32>),
    ) -> Go {
        let ((ponder, infinite), (wtime, btime, winc, binc)) = (flags, times);
        let (movestogo, depth, nodes, mate, movetime, perft) = limits;
        Go {
            searchmoves, ponder, wtime, btime, winc, binc, movestogo, depth, nodes, mate, movetime,
            infinite, perft,
        }
    }
}

fn position() -> impl Strategy<Value = PositionCommand> {
    let fen = "[pnbrqkPNBRQK1-8/]{1,20} [wb] [KQkq-] - [0-9] [0-9]";
    let moves = moves().prop_map(|moves| moves.iter().map(ToString::to_string).collect());
    (proptest::option::of(fen), moves).prop_map(|(fen, moves)| PositionCommand { fen, moves })
}

fn command() -> impl Strategy<Value = Command> {
    prop_oneof![
        Just(Command::Uci),
        any::<bool>().prop_map(Command::Debug),
        Just(Command::IsReady),
        (words(), proptest::option::of(words()))
            .prop_map(|(name, value)| Command::SetOption { name, value }),
        words().prop_map(Command::Register),
        Just(Command::UciNewGame),
        position().prop_map(Command::Position),
        go().prop_map(|go| Command::Go(Box::new(go))),
        Just(Command::Stop),
        Just(Command::PonderHit),
        Just(Command::Quit),
        Just(Command::Extra("bench 16 1 13".to_owned())),
        Just(Command::Flip),
        Just(Command::Wait),
        words().prop_map(Command::Unknown),
    ]
}

fn option() -> impl Strategy<Value = EngineOption> {
    let kind = prop_oneof![
        any::<bool>().prop_map(|default| OptionKind::Check { default }),
        any::<(i64, i64, i64)>().prop_map(|(default, min, max)| OptionKind::Spin {
            default,
            min,
            max
        }),
        (words(), prop::collection::vec(words(), 0..4))
            .prop_map(|(default, choices)| OptionKind::Combo { default, choices }),
        Just(OptionKind::Button),
        proptest::option::of(words())
            .prop_map(|default| OptionKind::String { default: default.unwrap_or_default() }),
    ];
    (words(), kind).prop_map(|(name, kind)| EngineOption { name, kind })
}

fn score() -> impl Strategy<Value = Score> {
    let value =
        prop_oneof![any::<i32>().prop_map(ScoreValue::Cp), any::<i32>().prop_map(ScoreValue::Mate)];
    let bound = proptest::option::of(prop_oneof![Just(Bound::Lower), Just(Bound::Upper)]);
    (value, bound).prop_map(|(value, bound)| Score { value, bound })
}

prop_compose! {
    fn info()(
        depths: (Option<u32>, Option<u32>, Option<u32>),
        score in proptest::option::of(score()),
        wdl: Option<[u16; 3]>,
        counts: (Option<u64>, Option<u64>, Option<u32>, Option<u64>, Option<u64>, Option<u32>),
        current in (proptest::option::of(uci_move()), any::<Option<u32>>()),
        refutation in moves(),
        currline in proptest::option::of((any::<u32>(), prop::collection::vec(uci_move(), 1..4))),
        pv in moves(),
        string in proptest::option::of(words()),
    ) -> Info {
        let (depth, seldepth, multipv) = depths;
        let (nodes, nps, hashfull, tbhits, time, cpuload) = counts;
        let (currmove, currmovenumber) = current;
        Info {
            depth, seldepth, multipv, score, wdl, nodes, nps, hashfull, tbhits, time, cpuload,
            currmove, currmovenumber, refutation, currline, pv, string,
        }
    }
}

fn reply() -> impl Strategy<Value = Reply> {
    prop_oneof![
        words().prop_map(Reply::IdName),
        words().prop_map(Reply::IdAuthor),
        option().prop_map(Reply::Option),
        Just(Reply::UciOk),
        Just(Reply::ReadyOk),
        (uci_move(), proptest::option::of(uci_move())).prop_map(|(best, ponder)| {
            Reply::BestMove { best: best.to_string(), ponder: ponder.map(|m| m.to_string()) }
        }),
        info().prop_map(|info| Reply::Info(Box::new(info))),
        words().prop_map(Reply::Unknown),
    ]
}

/// Protocol words in random order, which reach more code than random text.
fn jumble() -> impl Strategy<Value = String> {
    let vocabulary = "uci debug isready setoption register ucinewgame position go stop ponderhit \
        quit name value startpos fen moves searchmoves wtime btime depth nodes mate movetime \
        infinite ponder perft id author option type check spin combo button string default min max \
        var bestmove info score cp lowerbound wdl pv currline refutation multipv e2e4 e7e8q 0000 \
        -1 0 7 99999999999999999999999999 <empty> é \u{feff} 8/8/8/8/8/8/8/8 w - K";
    let words: Vec<&str> = vocabulary.split(' ').collect();
    prop::collection::vec(prop::sample::select(words), 0..12).prop_map(|words| words.join(" "))
}

proptest! {
    #[test]
    fn commands_round_trip(command in command()) {
        prop_assert_eq!(Command::parse(&command.to_string()), command);
    }

    #[test]
    fn replies_round_trip(reply in reply()) {
        prop_assert_eq!(Reply::parse(&reply.to_string()), reply);
    }

    #[test]
    fn arbitrary_input_does_not_panic(bytes: Vec<u8>, jumble in jumble()) {
        for text in [String::from_utf8_lossy(&bytes).into_owned(), jumble] {
            let reply = Reply::parse(&text);
            prop_assert_eq!(Reply::parse(&reply.to_string()), reply);
            let command = Command::parse(&text);
            if let Command::Position(position) = &command {
                let _ = position.game();
            }
            prop_assert_eq!(Command::parse(&command.to_string()), command);
        }
    }

    #[test]
    fn games_round_trip_as_position_commands(choices in prop::collection::vec(any::<prop::sample::Index>(), 0..120)) {
        let mut game = Game::new();
        for choice in choices {
            let legal = game.legal_moves();
            if legal.is_empty() {
                break;
            }
            game.play(legal[choice.index(legal.len())]).unwrap();
        }
        for mode in [CastlingMode::Standard, CastlingMode::Chess960] {
            let line = PositionCommand::from_game(&game, mode).to_string();
            let Command::Position(position) = Command::parse(&line) else {
                return Err(TestCaseError::fail(line));
            };
            let again = position.game().unwrap();
            prop_assert_eq!(again.position(), game.position());
            prop_assert_eq!(again.repetitions(), game.repetitions());
        }
    }
}
