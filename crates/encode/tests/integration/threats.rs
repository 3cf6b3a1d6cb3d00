//! Properties of the threat features and the move rows.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::HashSet;

use proptest::prelude::*;
use selfmate_chess::fen::{parse_fen, parse_game};
use selfmate_chess::notation::parse_move;
use selfmate_chess::{Chess, Color, Game, Position, Role, Seed};
use selfmate_encode::sparse::{
    Attacks, FeatureSet, MOVE_ROWS, MOVE_TABLE, MoveKey, MoveRows, THREAT_ROWS,
    THREAT_ROWS_VERSION, THREATS3084, THREATS3084_LEN, THREATS3084_VERSION, Threats,
};
use shakmaty::{Bitboard, CastlingMode, EnPassantMode, Setup};

const STARTS: [&str; 6] = [
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
    "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
    "8/PPPk4/8/8/8/8/4Kppp/8 w - - 0 1",
    "r3k2r/8/8/8/8/8/8/R3K2R b KQkq - 30 40",
    "1r3kr1/pppppppp/8/8/8/8/PPPPPPPP/1R3KR1 w KQkq - 0 1",
    "rk5r/8/8/8/8/8/8/RK5R w KQkq - 0 1",
];

fn positions() -> impl Strategy<Value = Chess> {
    (0..STARTS.len(), any::<u64>(), 0..120usize).prop_map(|(start, seed, plies)| {
        let mut game = parse_game(STARTS[start]).unwrap();
        let mut rng = Seed::new(seed).rng();
        for _ in 0..plies {
            if game.outcome().is_some() {
                break;
            }
            let m = *rng.choose(&game.legal_moves()).unwrap();
            game.play_unchecked(m);
        }
        game.position().clone()
    })
}

fn features(position: &Chess) -> Vec<u16> {
    let mut features = Threats::of(position).features().as_slice().to_vec();
    features.sort_unstable();
    features
}

fn keys(position: &Chess) -> Vec<MoveKey> {
    let threats = Threats::of(position);
    let rows = MoveRows::of(&threats);
    let mut keys: Vec<_> = position.legal_moves().iter().map(|&m| rows.key(m)).collect();
    keys.sort_unstable();
    keys
}

fn by_setup(position: &Chess, change: impl Fn(Setup) -> Setup) -> Chess {
    let setup = change(position.to_setup(EnPassantMode::Legal));
    setup.position(position.castles().mode()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn attacks_equal_the_union_over_all_pieces(position in positions()) {
        let board = position.board();
        for color in Color::ALL {
            let each = board.by_color(color).into_iter().map(|square| board.attacks_from(square));
            let all = each.fold(Bitboard::EMPTY, |all, attacks| all | attacks);
            prop_assert_eq!(Attacks::of(board).by(color), all);
        }
    }

    #[test]
    fn features_are_in_range_without_duplicates(position in positions()) {
        let features = features(&position);
        let count = position.board().occupied().count();
        prop_assert!((count..=count + 5).contains(&features.len()));
        prop_assert!(features.iter().all(|&f| usize::from(f) < THREATS3084_LEN));
        prop_assert!(features.windows(2).all(|pair| pair[0] < pair[1]));
        let pieces = features.iter().filter(|&&f| f < 3072);
        let mut squares: Vec<_> = pieces.map(|f| f % 64).collect();
        squares.sort_unstable();
        squares.dedup();
        prop_assert_eq!(squares.len(), count);
        // The own king is on files e to h.
        prop_assert!(features.iter().any(|&f| f < 3072 && f % 768 / 64 == 5 && f % 8 >= 4));
    }

    #[test]
    fn swapping_colours_keeps_features_and_keys(position in positions()) {
        let twin = by_setup(&position, Setup::into_mirrored);
        prop_assert_eq!(features(&position), features(&twin));
        prop_assert_eq!(keys(&position), keys(&twin));
    }

    #[test]
    fn mirroring_without_castling_rights_keeps_features_and_keys(position in positions()) {
        let plain = by_setup(&position, |mut setup| {
            setup.castling_rights = Bitboard::EMPTY;
            setup
        });
        let twin = by_setup(&plain, |mut setup| {
            setup.board.flip_horizontal();
            setup.ep_square = setup.ep_square.map(shakmaty::Square::flip_horizontal);
            setup
        });
        prop_assert_eq!(features(&plain), features(&twin));
        prop_assert_eq!(keys(&plain), keys(&twin));
    }

    #[test]
    fn the_feature_set_equals_the_feature_list(position in positions(), other in positions()) {
        let set = Threats::of(&position).feature_set();
        let all = features(&position);
        let (added, removed) = set.changes(&FeatureSet::EMPTY);
        prop_assert_eq!(added.as_slice(), &all);
        prop_assert_eq!(removed.as_slice(), &[]);

        let others = features(&other);
        let (added, removed) = set.changes(&Threats::of(&other).feature_set());
        let without = |all: &[u16], others: &[u16]| -> Vec<u16> {
            all.iter().copied().filter(|feature| !others.contains(feature)).collect()
        };
        prop_assert_eq!(added.as_slice(), without(&all, &others));
        prop_assert_eq!(removed.as_slice(), without(&others, &all));
    }

    #[test]
    fn no_two_moves_share_a_row(position in positions()) {
        let keys = keys(&position);
        prop_assert!(keys.iter().all(|key| usize::from(key.row) < MOVE_ROWS));
        prop_assert!(keys.iter().all(|key| usize::from(key.table) < MOVE_TABLE));
        let rows: HashSet<_> = keys.iter().map(|key| key.row).collect();
        prop_assert_eq!(rows.len(), keys.len());
    }

    #[test]
    fn the_table_marks_direct_checks(position in positions()) {
        let threats = Threats::of(&position);
        let rows = MoveRows::of(&threats);
        for m in position.legal_moves() {
            let mut after = position.clone();
            after.play_unchecked(m);
            let direct = m.role() != Role::King && after.checkers().contains(m.to());
            prop_assert_eq!(rows.key(m).table & 1 == 1, direct, "{:?}", m);
        }
    }
}

#[test]
fn known_positions_have_known_features_and_rows() {
    // The board is mirrored: White's king on a1 becomes h1. White's rook is attacked and defended,
    // Black's rook is only attacked, and each king is defended by its own rook.
    let position = parse_fen("1r5k/8/8/8/8/8/8/KR6 w - - 0 1").unwrap();
    let own_king = 768 + 5 * 64 + 7;
    let other_king = 768 + 11 * 64 + 56;
    let other_rook = 2 * 768 + 9 * 64 + 62;
    let own_rook = 3 * 768 + 3 * 64 + 6;
    let expected = [own_king, other_king, other_rook, own_rook];
    assert_eq!(features(&position), expected);

    let threats = Threats::of(&position);
    let rows = MoveRows::of(&threats);
    let key = |text: &str| rows.key(parse_move(&position, text).unwrap());
    // Rook takes rook, from an attacked square to a safe one, with check.
    assert_eq!(key("b1b8").table, ((3 * 6 + 4) * 8 + 2 + 1));
    assert!(key("b1b8").row < 1792);
    assert!(key("b1b2").row >= 1792 && key("b1b2").row < 3584);
}

#[test]
fn castling_rights_and_en_passant_have_features() {
    let start = Game::new();
    assert_eq!(features(start.position())[32..], [3072, 3073, 3074, 3075]);
    let position = parse_fen("4k3/8/8/3pP3/8/8/8/4K2R w K d6 0 2").unwrap();
    assert_eq!(features(&position)[5..], [3072, 3079]);
    // Chess960 with the king on the left: after mirroring, its right-hand rook is on the left.
    let setup: shakmaty::fen::Fen = "4k3/8/8/8/8/8/8/1K5R w H - 0 1".parse().unwrap();
    let position: Chess = setup.into_position(CastlingMode::Chess960).unwrap();
    assert_eq!(features(&position)[3..], [3073]);
}

#[test]
fn the_docs_contain_every_version_and_last_index() {
    let page = include_str!("../../../../docs/encodings.md");
    for (name, version, last) in [
        (THREATS3084, THREATS3084_VERSION, THREATS3084_LEN - 1),
        (THREAT_ROWS, THREAT_ROWS_VERSION, MOVE_ROWS - 1),
        (THREAT_ROWS, THREAT_ROWS_VERSION, MOVE_TABLE - 1),
    ] {
        let heading = format!("### `{name}`, version {version}\n");
        let start = page.find(&heading).unwrap_or_else(|| panic!("no heading {heading}"));
        let section = page[start + heading.len()..].split("### ").next().unwrap();
        assert!(section.contains(&format!("-{last} |")), "{name} {last}");
    }
}
