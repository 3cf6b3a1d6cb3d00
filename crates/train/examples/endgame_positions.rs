//! Writes the positions in which `endgame_mistakes` counts mistakes: `cargo run --release -p
//! selfmate-train --example endgame_positions > crates/train/src/endgame_mistakes/positions.txt`.
//! They are drawn at random, among those with moves that keep the result and moves that do not.

use selfmate_chess::tablebase::{Exact, Material, position};
use selfmate_chess::{Color, Piece, Seed, Square, fen, notation};

/// Endings and how many positions of each.
const ENDINGS: [(&str, usize); 13] = [
    ("KQK", 10),
    ("KRK", 20),
    ("KPK", 60),
    ("KQKR", 60),
    ("KQKP", 60),
    ("KRKP", 70),
    ("KRKB", 40),
    ("KRKN", 50),
    ("KBNK", 20),
    ("KBPK", 30),
    ("KNPK", 30),
    ("KBKP", 25),
    ("KNKP", 25),
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let exact = Exact::new();
    for (name, count) in ENDINGS {
        let material: Material = name.parse()?;
        let mut rng = Seed::new(1).derive(name).rng();
        let mut found = 0;
        while found < count {
            // Either color may be the stronger side, and either may be to move.
            let swapped = rng.below(2) == 1;
            let side = |color: Color| if swapped { !color } else { color };
            let pieces: Vec<Piece> =
                material.pieces().iter().map(|p| p.role.of(side(p.color))).collect();
            let squares: Vec<Square> =
                pieces.iter().map(|_| Square::new(rng.below(64) as u32)).collect();
            let turn = if rng.below(2) == 1 { Color::White } else { Color::Black };
            let is_distinct = (1..squares.len()).all(|i| !squares[..i].contains(&squares[i]));
            let Some(position) = position(&pieces, &squares, turn).filter(|_| is_distinct) else {
                continue;
            };
            let Some(moves) = exact.moves(&position) else { continue };
            let Some(best) = moves.first().map(|(_, verdict)| verdict.points()) else { continue };
            let keeping: Vec<String> = moves
                .iter()
                .filter(|(_, verdict)| verdict.points() == best)
                .map(|(m, _)| notation::uci(&position, *m))
                .collect();
            if best < 0 || keeping.len() == moves.len() {
                continue;
            }
            println!("{}; {}", fen::to_fen(&position), keeping.join(" "));
            found += 1;
        }
    }
    Ok(())
}
