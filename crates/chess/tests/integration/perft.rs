//! Published node counts, up to a size that a test can afford.

use selfmate_chess::fen::parse_fen;
use selfmate_chess::perft::{divide, perft};

/// Positions with the published count for each depth from 1.
const KNOWN: &[(&str, &[u64])] = &[
    (
        "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq -",
        &[20, 400, 8_902, 197_281, 4_865_609, 119_060_324],
    ),
    (
        "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq -",
        &[48, 2_039, 97_862, 4_085_603, 193_690_690],
    ),
    (
        "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - -",
        &[14, 191, 2_812, 43_238, 674_624, 11_030_083, 178_633_661],
    ),
    (
        "r3k2r/Pppp1ppp/1b3nbN/nP6/BBP1P3/q4N2/Pp1P2PP/R2Q1RK1 w kq -",
        &[6, 264, 9_467, 422_333, 15_833_292, 706_045_033],
    ),
    (
        "rnbq1k1r/pp1Pbppp/2p5/8/2B5/8/PPP1NnPP/RNBQK2R w KQ -",
        &[44, 1_486, 62_379, 2_103_487, 89_941_194],
    ),
    (
        "r4rk1/1pp1qppp/p1np1n2/2b1p1B1/2B1P1b1/P1NP1N2/1PP1QPPP/R4RK1 w - -",
        &[46, 2_079, 89_890, 3_894_594, 164_075_551],
    ),
    // Chess960: castling through and onto the other piece's square.
    ("bqnb1rkr/pp3ppp/3ppn2/2p5/5P2/P2P4/NPP1P1PP/BQ1BNRKR w HFhf -", &[21, 528, 12_189, 326_672]),
    ("2nnrbkr/p1qppppp/8/1ppb4/6PP/3PP3/PPP2P2/BQNNRBKR w HEhe -", &[21, 807, 18_002, 667_366]),
];

#[test]
fn perft_matches_published_counts() {
    const MAX_NODES: u64 = 5_000_000;
    for (fen, counts) in KNOWN {
        let position = parse_fen(fen).unwrap();
        for (depth, &expected) in (1..).zip(*counts) {
            if expected <= MAX_NODES {
                assert_eq!(perft(&position, depth), expected, "{fen} depth {depth}");
            }
        }
    }
}

#[test]
fn divide_sums_to_perft() {
    let position = parse_fen(KNOWN[1].0).unwrap();
    assert_eq!(perft(&position, 0), 1);
    assert!(divide(&position, 0).is_empty());
    let parts = divide(&position, 4);
    assert_eq!(parts.len(), 48);
    assert_eq!(parts.iter().map(|(_, nodes)| nodes).sum::<u64>(), 4_085_603);
    // A position without moves has no leaves below it.
    assert_eq!(perft(&parse_fen("7k/5Q2/6K1/8/8/8/8/8 b - -").unwrap(), 3), 0);
}
