use proptest::prelude::*;
use selfmate_chess::fen::parse_game;
use selfmate_chess::{Game, Seed};

use super::*;

const STARTS: [Option<&str>; 4] = [
    None,
    Some("r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1"),
    Some("8/PPPk4/8/8/8/8/4Kppp/8 b - - 0 1"),
    Some("1r3kr1/pppppppp/8/8/8/8/PPPPPPPP/1R3KR1 w KQkq - 0 1"),
];

/// A game of random moves with random search results at three of four plies.
fn random_game(seed: u64, plies: usize) -> GameRecord {
    let mut rng = Seed::new(seed).rng();
    let start = STARTS[rng.below(STARTS.len())];
    let mut game = start.map_or_else(Game::new, |fen| parse_game(fen).unwrap());
    let mut positions = Vec::new();
    let outcome = loop {
        let legal = game.legal_moves();
        if let Some(outcome) = game.outcome_given(&legal) {
            break outcome;
        }
        if game.ply() == plies {
            break Outcome { winner: Some(Color::White), reason: Reason::Adjudication };
        }
        if rng.chance(0.75) {
            let weights: Vec<f64> = legal.iter().map(|_| rng.gamma(0.3) + 1e-12).collect();
            let sum: f64 = weights.iter().sum();
            positions.push(PositionRecord {
                ply: game.ply() as u16,
                value: rng.unit() as f32 * 2.0 - 1.0,
                draw: rng.unit() as f32,
                policy: weights.iter().map(|weight| (weight / sum) as f32).collect(),
            });
        }
        game.play_unchecked(*rng.choose(&legal).unwrap());
    };
    let start = start.map(str::to_owned);
    let moves = game.moves().collect();
    GameRecord { number: seed, network: 300, start, moves, outcome, positions }
}

#[test]
fn a_game_is_read_back_rounded_and_encodes_to_the_same_bytes() {
    for seed in 0..60 {
        let record = random_game(seed, 120);
        let bytes = record.encode().unwrap();
        let stored = GameRecord::decode(&bytes).unwrap();
        assert_eq!(stored, record.clone().rounded());
        assert_eq!(stored.encode().unwrap(), bytes);
        for (stored, given) in stored.positions.iter().zip(&record.positions) {
            assert!((stored.value - given.value).abs() < 2e-5);
            assert!((stored.draw - given.draw).abs() < 2.0e-3);
            for (stored, given) in stored.policy.iter().zip(&given.policy) {
                assert!((stored - given).abs() <= 0.065 * given + 1.3e-7, "{stored} {given}");
            }
        }
    }
}

#[test]
fn policies_are_stored_by_move_and_not_by_generator_order() {
    let policy: Vec<f32> = (0..20).map(|index| if index == 7 { 1.0 } else { 0.0 }).collect();
    let recorded = PositionRecord { ply: 0, value: 0.0, draw: 0.0, policy };
    let outcome = Outcome { winner: None, reason: Reason::Adjudication };
    let record = GameRecord {
        number: 0,
        network: 0,
        start: None,
        moves: vec![],
        outcome,
        positions: vec![recorded],
    };
    let bytes = record.encode().unwrap();
    let packed: Vec<u16> =
        Game::new().legal_moves().iter().map(|&m| PackedMove::new(m).0).collect();
    let place = packed.iter().filter(|&&other| other < packed[7]).count();
    let stored = &bytes[bytes.len() - 20..];
    assert_eq!(stored.iter().position(|&byte| byte == 1), Some(place));
}

#[test]
fn a_position_takes_less_than_45_bytes_on_average() {
    let games: Vec<_> = (0..100).map(|seed| random_game(4 * seed, 200)).collect();
    let bytes: usize = games.iter().map(|game| game.encode().unwrap().len()).sum();
    let positions: usize = games.iter().map(|game| game.positions.len()).sum();
    assert!(bytes < 45 * positions, "{} bytes per position", bytes as f64 / positions as f64);
}

#[test]
fn integers_of_any_size_round_trip() {
    for value in [0, 1, 127, 128, 300, 1 << 35, u64::MAX] {
        let mut bytes = Vec::new();
        number(&mut bytes, value);
        let mut bytes = Bytes(&bytes);
        assert_eq!((bytes.number(), bytes.0.len()), (Some(value), 0));
    }
    assert_eq!(Bytes(&[0xff; 20]).number(), None);
}

#[test]
fn every_outcome_round_trips() {
    for reason in REASONS {
        for winner in [None, Some(Color::White), Some(Color::Black)] {
            let outcome = Outcome { winner, reason };
            assert_eq!(outcome_from(outcome_byte(outcome)), Some(outcome));
        }
    }
    assert_eq!((outcome_from(0x39), outcome_from(0x0f)), (None, None));
}

#[test]
fn games_that_cannot_be_stored_are_rejected_with_a_reason() {
    let error = |change: fn(&mut GameRecord)| {
        let mut record = random_game(1, 40);
        change(&mut record);
        record.encode().unwrap_err().to_string()
    };
    let text = error(|record| record.positions[3].value = f32::NAN);
    assert!(text.contains("the value is NaN: expected a number from -1 to 1"), "{text}");
    let text = error(|record| record.positions[0].draw = 1.5);
    assert!(text.starts_with("game 1, ply ") && text.contains("draw probability is 1.5"), "{text}");
    let text = error(|record| record.positions[0].policy.fill(0.0));
    assert!(text.contains("sums to 0.0000: expected 1"), "{text}");
    let text = error(|record| record.positions.swap(0, 1));
    assert!(text.contains("expected positions in order"), "{text}");
}

#[test]
fn decoding_errors_name_game_and_ply() {
    let record = random_game(2, 30);
    let bytes = record.encode().unwrap();
    let packed = record.moves.iter().flat_map(|&m| PackedMove::new(m).0.to_le_bytes());
    let packed: Vec<u8> = packed.collect();
    let moves = bytes.windows(packed.len()).position(|window| window == packed).unwrap();
    let sixth = moves + 10;
    let mut broken = bytes.clone();
    broken[sixth..sixth + 2].copy_from_slice(&[0, 0]);
    let text = GameRecord::decode(&broken).unwrap_err().to_string();
    assert!(text.starts_with("game 2, ply 5: move code"), "{text}");
    let text = GameRecord::decode(&bytes[..bytes.len() - 1]).unwrap_err().to_string();
    assert!(text.starts_with("game 2, ply ") && text.ends_with("truncated"), "{text}");
    let text = GameRecord::decode(&[bytes, vec![0]].concat()).unwrap_err().to_string();
    assert_eq!(text, "game 2: 1 bytes after the end of the record");
    assert_eq!(
        GameRecord::decode(&[9]).unwrap_err().to_string(),
        "a game: version 9: expected version 1"
    );
}

proptest! {
    #[test]
    fn modified_bytes_are_rejected_or_decode_to_a_valid_game(
        seed in 0..40u64,
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        length in any::<prop::sample::Index>(),
        is_cut in any::<bool>(),
    ) {
        let mut bytes = random_game(seed, 60).encode().unwrap();
        if is_cut {
            bytes.truncate(length.index(bytes.len()));
        }
        for (place, value) in flips {
            if !bytes.is_empty() {
                let place = place.index(bytes.len());
                bytes[place] = value;
            }
        }
        // Everything that decodes encodes to the same bytes again.
        if let Ok(record) = GameRecord::decode(&bytes) {
            let bytes = record.encode().unwrap();
            prop_assert_eq!(GameRecord::decode(&bytes).unwrap().encode().unwrap(), bytes);
        }
    }

    #[test]
    fn random_bytes_are_rejected(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = GameRecord::decode(&bytes);
    }
}
