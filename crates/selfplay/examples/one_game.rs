//! One self-play game with a tiny network.
//!
//! Run it with `cargo run -p selfmate-selfplay --example one_game`.

use std::error::Error;
use std::sync::atomic::AtomicBool;

use selfmate_chess::{Game, MoveList, Seed, notation};
use selfmate_nn::sparse::{Network, SparseConfig, Weights};
use selfmate_run::{GameRecord, PositionRecord};
use selfmate_search::white_value;
use selfmate_selfplay::{Generation, SelfPlayConfig, SelfPlayer};

/// Plays the game with this number. The same number always gives the same game.
pub fn play(number: u64) -> Result<GameRecord, Box<dyn Error>> {
    let shape = SparseConfig { hidden: 64, value_hidden: 8, ..SparseConfig::default() };
    let network = Network::new(&Weights::random(shape, Seed::new(1))?);
    // `tiny` has few simulations and short games; `default` is for real training.
    let config = SelfPlayConfig { max_plies: 20, ..SelfPlayConfig::tiny() };
    let generation = Generation {
        config: config.clone(),
        seed: Generation::games_seed(7),
        simulations: 32,
        network: 0,
    };
    let mut player = SelfPlayer::new(&config, Box::new(network));
    let mut numbers = [number].into_iter();
    let mut record = None;
    player.play(
        &generation,
        || numbers.next(),
        |game| record = Some(game.record),
        &AtomicBool::new(false),
    );
    record.ok_or_else(|| "the game was stopped".into())
}

/// One line for a recorded position: the move that was played, the value for White, and the moves
/// with the largest shares of the policy target.
fn line(record: &GameRecord, game: &Game, legal: &MoveList, position: &PositionRecord) -> String {
    let san = |m| notation::san(game.position(), m);
    let played = record.moves.get(usize::from(position.ply)).map_or("-".to_owned(), |&m| san(m));
    let mut target: Vec<(f32, String)> =
        legal.iter().zip(&position.policy).map(|(&m, &share)| (share, san(m))).collect();
    target.sort_by(|a, b| b.0.total_cmp(&a.0));
    let best: Vec<String> =
        target.iter().take(3).map(|(share, san)| format!("{san} {:.0} %", 100.0 * share)).collect();
    // The recorded value is for the side to move.
    let value = white_value(position.value, game.turn());
    format!("{:3}  {played:7} {value:+.3}  {}", position.ply, best.join(", "))
}

pub fn describe(record: &GameRecord) -> Result<Vec<String>, Box<dyn Error>> {
    let mut lines = Vec::new();
    record.replay(|game, legal, position| lines.push(line(record, game, legal, position)))?;
    Ok(lines)
}

pub fn main() -> Result<(), Box<dyn Error>> {
    let record = play(0)?;
    println!("ply  move    White   policy target");
    for line in describe(&record)? {
        println!("{line}");
    }
    println!("{} after {} plies", record.outcome, record.moves.len());
    Ok(())
}
