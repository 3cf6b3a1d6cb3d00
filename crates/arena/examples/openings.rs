//! Evaluates the built-in openings with Stockfish and prints those that are not balanced.
//! Run: `cargo run --release -p selfmate-arena --example openings [DEPTH] [CENTIPAWNS]`

use std::time::Duration;

use selfmate_arena::openings::{OpeningSource, Openings};
use selfmate_chess::Seed;
use selfmate_uci::{EngineCommand, EngineProcess, Go, ScoreValue};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let depth = arguments.next().map_or(Ok(14), |text| text.parse())?;
    let bound: i32 = arguments.next().map_or(Ok(60), |text| text.parse())?;
    let openings = Openings::load(&OpeningSource::BuiltIn, Seed::new(1))?;
    let mut engine = EngineProcess::start(&EngineCommand::new("stockfish"))?;
    let mut uneven = 0;
    for opening in openings.take(openings.len()) {
        engine.new_game()?;
        let answer = engine.go(&opening.game, &Go::depth(depth), Duration::from_secs(60))?;
        let score = answer.info.and_then(|info| info.score).map(|score| score.value);
        if !matches!(score, Some(ScoreValue::Cp(value)) if value.abs() <= bound) {
            println!("{}: {score:?}", opening.name.unwrap_or_default());
            uneven += 1;
        }
    }
    println!("{} openings, {uneven} beyond {bound} centipawns at depth {depth}", openings.len());
    Ok(())
}
