//! Properties of every encoding, on positions from random games with varied starts.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use proptest::prelude::*;
use selfmate_chess::env::ActionSpace;
use selfmate_chess::fen::{parse_fen, parse_game};
use selfmate_chess::notation::{parse_move, uci};
use selfmate_chess::{Chess, Color, Game, Position, Role, Seed};
use selfmate_encode::sparse::{SPARSE768, SPARSE768_LEN, SPARSE768_VERSION, sparse768};
use selfmate_encode::{MoveSpace, Planes};

const STARTS: [&str; 6] = [
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
    "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
    "8/PPPk4/8/8/8/8/4Kppp/8 w - - 0 1",
    "r3k2r/8/8/8/8/8/8/R3K2R b KQkq - 30 40",
    // Chess960: the king castles to a square that it can also reach by a normal move.
    "1r3kr1/pppppppp/8/8/8/8/PPPPPPPP/1R3KR1 w KQkq - 0 1",
    "rk5r/8/8/8/8/8/8/RK5R w KQkq - 0 1",
];

/// A random game of up to 120 plies.
fn random_game(start: usize, seed: u64, plies: usize) -> Game {
    let mut game = parse_game(STARTS[start]).unwrap();
    let mut rng = Seed::new(seed).rng();
    for _ in 0..plies {
        if game.outcome().is_some() {
            break;
        }
        let m = *rng.choose(&game.legal_moves()).unwrap();
        game.play_unchecked(m);
    }
    game
}

/// The same game with colours swapped and the board flipped.
fn mirrored(game: &Game) -> Game {
    let mirror = |position: &Chess| -> Chess {
        let setup = position.to_setup(shakmaty::EnPassantMode::Legal).into_mirrored();
        setup.position(position.castles().mode()).unwrap()
    };
    let mut twin = Game::from_position(mirror(game.start()));
    let mut position = game.start().clone();
    for m in game.moves() {
        let text = m.to_uci(position.castles().mode()).to_mirrored().to_string();
        twin.play(parse_move(twin.position(), &text).unwrap()).unwrap();
        position.play_unchecked(m);
    }
    twin
}

fn games() -> impl Strategy<Value = Game> {
    (0..STARTS.len(), any::<u64>(), 0..120usize)
        .prop_map(|(start, seed, plies)| random_game(start, seed, plies))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn moves_and_indices_are_a_bijection(game in games()) {
        let position = game.position();
        for space in MoveSpace::ALL {
            let mut seen = std::collections::HashSet::new();
            for m in position.legal_moves() {
                match space.index(position, m) {
                    Some(index) => {
                        prop_assert!(index < space.size());
                        prop_assert!(seen.insert(index), "{} twice: {}", index, uci(position, m));
                        prop_assert_eq!(space.decode(position, index), Some(m));
                    }
                    None => {
                        prop_assert_eq!(space, MoveSpace::FromTo4096);
                        prop_assert!(!matches!(m.promotion(), None | Some(Role::Queen)));
                    }
                }
            }
            let free = (0..space.size()).find(|index| !seen.contains(index)).unwrap();
            prop_assert_eq!(space.decode(position, free), None);
        }
    }

    #[test]
    fn encodings_from_the_mover_are_equal_in_a_mirrored_game(game in games()) {
        let twin = mirrored(&game);
        let (ours, theirs) = (Planes::Planes119.encoded(&game), Planes::Planes119.encoded(&twin));
        for plane in (0..119).filter(|plane| *plane != 100) {
            // Fullmove numbers increase after Black's moves, so the mirrored one may differ by one.
            if plane < 115 {
                prop_assert_eq!(&ours[plane * 64..][..64], &theirs[plane * 64..][..64], "plane {}", plane);
            }
        }
        prop_assert_eq!(ours[100 * 64] + theirs[100 * 64], 1.0);

        let (mut a, mut b) = (Vec::new(), Vec::new());
        sparse768(game.position(), &mut a);
        sparse768(twin.position(), &mut b);
        a.sort_unstable();
        b.sort_unstable();
        prop_assert_eq!(a, b);

        let az = |game: &Game| {
            let mut indices: Vec<_> = game.legal_moves().iter()
                .map(|&m| MoveSpace::Az4672.index(game.position(), m).unwrap()).collect();
            indices.sort_unstable();
            indices
        };
        prop_assert_eq!(az(&game), az(&twin));
    }

    #[test]
    fn planes_contain_every_piece_once_and_values_stay_in_range(game in games()) {
        let pieces = game.position().board().occupied().count() as f32;
        for planes in Planes::ALL {
            let values = planes.encoded(&game);
            prop_assert!(values.iter().all(|v| v.is_finite() && v.abs() <= 1.5));
            let piece_planes = match planes {
                Planes::PlanesKrk => 0..7,
                _ => 0..12,
            };
            let sum: f32 = piece_planes
                .flat_map(|plane| (0..64).map(move |square| (plane, square)))
                .map(|(plane, square)| values[planes.offset(plane, square)].abs())
                .sum();
            prop_assert_eq!(sum, pieces);
        }
        let mut features = Vec::new();
        sparse768(game.position(), &mut features);
        prop_assert_eq!(features.len(), pieces as usize);
        prop_assert!(features.iter().all(|&f| usize::from(f) < SPARSE768_LEN));
        features.sort_unstable();
        features.dedup();
        prop_assert_eq!(features.len(), pieces as usize);
    }

    #[test]
    fn history_planes_equal_the_planes_of_earlier_positions(game in games()) {
        let now = Planes::Planes119.encoded(&game);
        for age in 1..8usize {
            let planes = &now[age * 12 * 64..][..12 * 64];
            if age > game.ply() {
                prop_assert!(planes.iter().all(|&v| v == 0.0));
                continue;
            }
            let mut then = game.clone();
            then.rewind(game.ply() - age);
            let past = Planes::Planes119.encoded(&then);
            // Two plies ago the same side was to move. One ply ago the point of view was the other side's.
            if age % 2 == 0 {
                prop_assert_eq!(planes, &past[..12 * 64]);
                prop_assert_eq!(now[(101 + age) * 64], past[101 * 64]);
            }
        }
    }
}

#[test]
fn known_moves_have_known_indices() {
    let start = Chess::default();
    let index = |position: &Chess, text: &str| {
        MoveSpace::Az4672.index(position, parse_move(position, text).unwrap()).unwrap()
    };
    // North by two from e2 (square 12): plane 1. North by one: plane 0.
    assert_eq!(index(&start, "e2e4"), 64 + 12);
    assert_eq!(index(&start, "e2e3"), 12);
    // Knight two up, one right from g1 (square 6): plane 56.
    assert_eq!(index(&start, "g1h3"), 56 * 64 + 6);
    // Black has the same indices.
    let black = parse_fen("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR b KQkq - 0 1").unwrap();
    assert_eq!(index(&black, "e7e5"), 64 + 12);
    let promotion = parse_fen("1n6/P6k/8/8/8/8/8/K7 w - - 0 1").unwrap();
    assert_eq!(index(&promotion, "a7a8n"), (64 + 1) * 64 + 48);
    assert_eq!(index(&promotion, "a7b8r"), (64 + 8) * 64 + 48);
    assert_eq!(index(&promotion, "a7a8q"), 48);
    let castling = parse_fen("4k3/8/8/8/8/8/8/R3K2R w KQ - 0 1").unwrap();
    assert_eq!(index(&castling, "e1g1"), (2 * 7 + 1) * 64 + 4);
    assert_eq!(index(&castling, "e1c1"), (6 * 7 + 1) * 64 + 4);
}

#[test]
fn planes13_and_planes_krk_of_a_known_position() {
    let game = parse_game("8/8/8/3k4/8/8/8/KR6 b - - 7 9").unwrap();
    let on = |planes: Planes| -> Vec<(usize, usize)> {
        let values = planes.encoded(&game);
        (0..planes.count())
            .flat_map(|plane| (0..64).map(move |square| (plane, square)))
            .filter(|&(plane, square)| values[planes.offset(plane, square)] == 1.0)
            .collect()
    };
    assert_eq!(on(Planes::Planes13), [(3, 1), (5, 0), (11, 35)]);
    assert_eq!(on(Planes::PlanesKrk), [(0, 0), (1, 35), (5, 1)]);
    assert_eq!(Planes::PlanesKrk.encoded(&game)[8 * 64], 0.07);
    assert_eq!(game.turn(), Color::Black);
}

#[test]
fn plane_ranges_cover_every_plane_once() {
    for planes in Planes::ALL {
        let mut next = 0;
        for range in planes.ranges() {
            assert_eq!(range.first, next, "{}", planes.name());
            next = range.last + 1;
        }
        assert_eq!(next, planes.count(), "{}", planes.name());
        assert_eq!(Planes::by_name(planes.name()), Ok(planes));
    }
    let error = Planes::by_name("planes14").unwrap_err().to_string();
    assert_eq!(
        error,
        "unknown encoding 'planes14': expected one of planes119, planes13, planes12, planes_krk"
    );
}

#[test]
fn tables_in_the_docs_match_the_code() {
    let page = include_str!("../../../../docs/encodings.md");
    let section = |name: &str, version: u32| {
        let heading = format!("### `{name}`, version {version}\n");
        let start = page.find(&heading).unwrap_or_else(|| panic!("no heading {heading}"));
        page[start + heading.len()..].split("### ").next().unwrap()
    };
    for planes in Planes::ALL {
        let section = section(planes.name(), planes.version());
        let rows = section.lines().filter(|line| line.starts_with("| ")).skip(1);
        let expected = planes.ranges().iter();
        let expected = expected.map(|r| format!("| {}-{} | {} |", r.first, r.last, r.meaning));
        assert_eq!(rows.collect::<Vec<_>>(), expected.collect::<Vec<_>>(), "{}", planes.name());
    }
    for space in MoveSpace::ALL {
        let last = format!("-{} |", space.size() - 1);
        assert!(section(space.name(), space.version()).contains(&last), "{}", space.name());
    }
    assert!(section(SPARSE768, SPARSE768_VERSION).contains(&format!("-{} |", SPARSE768_LEN - 1)));
}
