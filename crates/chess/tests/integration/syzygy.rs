//! Syzygy tables: errors name the bad file, and results agree with known endings.
//!
//! Tests of what they say need all tables with up to four pieces and fail without them.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::path::Path;
use std::sync::Arc;

use selfmate_chess::fen::{parse_fen, parse_game, to_fen};
use selfmate_chess::tablebase::{FiftyMoveRule, Syzygy, TableResult, Tablebase, Tables};
use selfmate_chess::{Bitboard, Board, Chess, Color, Game, Piece, Position, Rng, Seed, Square};

const BACKRANKS: Bitboard = Bitboard::BACKRANKS;

/// The first bytes of a WDL table.
const MAGIC: [u8; 4] = [0x71, 0xe8, 0x23, 0x5d];

fn message(folders: &str) -> String {
    Syzygy::open(folders).unwrap_err().to_string()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn errors_name_folders_without_tables() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("nowhere");
    assert!(message(text(&missing)).contains("nowhere: "), "{}", message(text(&missing)));
    let error = message(text(folder.path()));
    assert!(error.ends_with("no Syzygy tables there: expected files such as KRvK.rtbw"), "{error}");
    assert!(error.starts_with(text(folder.path())), "{error}");
    assert!(message("").contains("expected one, or several separated by"));
    // Other files are not tables.
    std::fs::write(folder.path().join("README.txt"), "KRvK.rtbw").unwrap();
    assert!(message(text(folder.path())).contains("no Syzygy tables there"));
}

#[test]
fn errors_name_damaged_files() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("KRvK.rtbw");
    std::fs::write(&file, [0; 100]).unwrap();
    let error = message(text(folder.path()));
    assert!(error.contains("KRvK.rtbw: not a valid Syzygy table: 100 bytes long"), "{error}");
    std::fs::write(&file, [0; 80]).unwrap();
    let error = message(text(folder.path()));
    assert!(error.contains("KRvK.rtbw") && error.contains("signature"), "{error}");
    // Valid size and signature, bad contents: found by the probe, and treated as unknown.
    let mut bytes = vec![0; 80];
    bytes[..4].copy_from_slice(&MAGIC);
    std::fs::write(&file, bytes).unwrap();
    let tables = Syzygy::open(text(folder.path())).unwrap();
    assert_eq!((tables.max_pieces(), tables.count()), (3, 1));
    let position = parse_fen("8/8/8/4k3/8/8/2R5/4K3 w - - 0 1").unwrap();
    let error = tables.probe_result(&position).unwrap_err().to_string();
    assert!(error.contains("KRvK.rtbw: not a valid Syzygy table"), "{error}");
    assert_eq!(tables.after_zeroing(&position), None);
    assert_eq!(tables.damage(), Some(error));
    // A missing table is not damage.
    let position = parse_fen("8/8/8/4k3/8/8/2Q5/4K3 w - - 0 1").unwrap();
    assert_eq!(tables.probe_result(&position).unwrap(), None);
}

/// The folders of Syzygy tables of up to four pieces: what SELFMATE_SYZYGY names, or else those that
/// `cargo xtask setup` fetches.
pub fn syzygy_path() -> String {
    std::env::var("SELFMATE_SYZYGY").unwrap_or_else(|_| {
        let tables = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/syzygy");
        assert!(Path::new(tables).exists(), "no Syzygy tables: `cargo xtask setup` fetches them");
        tables.to_owned()
    })
}

fn tables() -> Arc<Syzygy> {
    let tables = Syzygy::open(&syzygy_path()).unwrap();
    assert!(tables.max_pieces() >= 4, "these tests need all tables with up to four pieces");
    Arc::new(tables)
}

#[test]
fn textbook_endings_have_their_known_results() {
    use TableResult::*;
    let tables = tables();
    for (fen, expected) in [
        ("8/8/8/4k3/8/8/2R5/4K3 w - - 0 1", Win),
        ("8/8/8/4k3/8/8/2R5/4K3 b - - 0 1", Loss),
        ("8/8/8/8/3k4/3R4/8/6K1 b - - 0 1", Draw),
        ("8/8/8/4k3/8/8/2B5/4K3 w - - 0 1", Draw),
        // A king on the sixth rank in front of its pawn wins with either side to move.
        ("4k3/8/4K3/4P3/8/8/8/8 w - - 0 1", Win),
        ("4k3/8/4K3/4P3/8/8/8/8 b - - 0 1", Loss),
        // Black to move: stalemate or nothing better. White to move: the king goes around.
        ("4k3/4P3/4K3/8/8/8/8/8 b - - 0 1", Draw),
        ("4k3/4P3/4K3/8/8/8/8/8 w - - 0 1", Win),
        // A rook's pawn does not win against a king in the corner.
        ("k7/8/K7/P7/8/8/8/8 w - - 0 1", Draw),
        ("8/8/8/4k3/4P3/4K3/8/8 w - - 0 1", Draw),
        // Bishop and knight mate; two knights do not.
        ("8/8/8/4k3/8/8/2BN4/4K3 w - - 0 1", Win),
        ("8/8/8/4k3/8/8/2NN4/4K3 w - - 0 1", Draw),
    ] {
        let found = tables.probe_result(&parse_fen(fen).unwrap()).unwrap();
        assert_eq!(found, Some(expected), "{fen}");
    }
    let castling = parse_fen("8/8/8/4k3/8/8/8/4K2R w K - 0 1").unwrap();
    assert_eq!(tables.probe_result(&castling).unwrap(), None);
}

#[test]
fn the_halfmove_clock_decides_long_wins() {
    let tables = tables();
    let at = |clock: u32| parse_fen(&format!("8/8/8/8/8/3k4/8/B1K3N1 w - - {clock} 80")).unwrap();
    let dtz = tables.probe_dtz(&at(0)).unwrap().unwrap().plies;
    assert!((30..=70).contains(&dtz), "{dtz}");
    let clock = |plies: i32| u32::try_from(100 - plies).unwrap();
    let result = |clock| tables.probe_result(&at(clock)).unwrap();
    assert_eq!(result(clock(dtz + 2)), Some(TableResult::Win));
    assert_eq!(result(clock(dtz - 2)), Some(TableResult::CursedWin));
    let outcome = |clock, rule| {
        let tables = Tables::new(tables.clone() as Arc<dyn Tablebase>).under(rule);
        tables.outcome(&at(clock)).unwrap().winner
    };
    assert_eq!(outcome(clock(dtz + 2), FiftyMoveRule::Obeyed), Some(Color::White));
    assert_eq!(outcome(clock(dtz - 2), FiftyMoveRule::Obeyed), None);
    assert_eq!(outcome(clock(dtz - 2), FiftyMoveRule::Ignored), Some(Color::White));
    // In a search only positions right after a capture or a pawn move are certain.
    let tables = Tables::new(tables);
    assert_eq!(tables.in_search(&at(0)), Some(TableResult::Win));
    assert_eq!(tables.in_search(&at(1)), None);
}

/// These pieces (White's in capitals) on random squares.
fn random_position(pieces: &str, rng: &mut Rng) -> Chess {
    loop {
        let mut board = Board::empty();
        for piece in pieces.chars() {
            let squares: Vec<Square> = Square::ALL
                .into_iter()
                .filter(|&square| board.piece_at(square).is_none())
                .filter(|&square| !piece.eq_ignore_ascii_case(&'p') || !BACKRANKS.contains(square))
                .collect();
            let piece = Piece::from_char(piece).unwrap();
            board.set_piece_at(*rng.choose(&squares).unwrap(), piece);
        }
        let turn = if rng.chance(0.5) { 'w' } else { 'b' };
        if let Ok(position) = parse_fen(&format!("{board} {turn} - - 0 1")) {
            return position;
        }
    }
}

#[test]
fn a_position_has_the_value_of_its_best_move() {
    let tables = tables();
    let value = |position: &Chess| -> i32 {
        let result = tables.probe_after_zeroing(position).unwrap();
        result
            .unwrap_or_else(|| panic!("no table for {}", to_fen(position)))
            .points(FiftyMoveRule::Ignored)
    };
    let mut rng = Seed::new(11).rng();
    for pieces in ["KRk", "KQk", "KPk", "KBNk", "KRkp", "KQkr", "KPkp", "KPPk", "KRkb"] {
        for _ in 0..60 {
            let position = random_position(pieces, &mut rng);
            let legal = position.legal_moves();
            let best = legal.iter().map(|&m| {
                let mut after = position.clone();
                after.play_unchecked(m);
                -value(&after)
            });
            let no_move = if position.is_check() { -1 } else { 0 };
            let expected = best.max().unwrap_or(no_move);
            assert_eq!(value(&position), expected, "{}", to_fen(&position));
        }
    }
}

#[test]
fn playing_the_best_ranked_moves_wins_won_positions() {
    let tables = tables();
    let tables = Tables::new(tables);
    let mut rng = Seed::new(12).rng();
    for pieces in ["KRk", "KQk", "KPk", "KBNk", "KQkr", "KQkp"] {
        let mut won = 0;
        while won < 5 {
            let mut game = Game::from_position(random_position(pieces, &mut rng));
            let winner = tables.outcome(game.position()).unwrap().winner;
            if game.outcome().is_some() || winner != Some(Color::White) {
                continue;
            }
            let start = to_fen(game.position());
            while game.outcome().is_none() {
                let legal = game.legal_moves();
                let ranking = tables.rank_moves(&game, &legal).unwrap();
                assert!(ranking.is_by_distance && ranking.moves.len() == legal.len());
                let defends = game.turn() == Color::Black;
                let best: Vec<_> = ranking.best_moves().collect();
                game.play(*rng.choose(if defends { &legal } else { &best }).unwrap()).unwrap();
            }
            assert_eq!(game.outcome().unwrap().winner, Some(Color::White), "{start}");
            won += 1;
        }
    }
}

#[test]
fn flipped_bits_do_not_panic() {
    let source = std::env::split_paths(&syzygy_path())
        .map(|folder| folder.join("KRvK.rtbw"))
        .find(|path| path.exists())
        .unwrap();
    let whole = std::fs::read(source).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("KRvK.rtbw");
    let mut rng = Seed::new(13).rng();
    for _ in 0..200 {
        let mut bytes = whole.clone();
        let place = 4 + rng.below(bytes.len() - 4);
        bytes[place] ^= 1 << rng.below(8);
        std::fs::write(&file, bytes).unwrap();
        let tables = Syzygy::open(text(folder.path())).unwrap();
        for _ in 0..5 {
            // Any answer is fine: the checksum is not verified.
            let _ = tables.probe_result(&random_position("KRk", &mut rng));
        }
    }
    let game = parse_game("8/8/8/4k3/8/8/2R5/4K3 w - - 0 1").unwrap();
    std::fs::write(&file, whole).unwrap();
    let tables = Syzygy::open(text(folder.path())).unwrap();
    assert_eq!(tables.probe_result(game.position()).unwrap(), Some(TableResult::Win));
}
