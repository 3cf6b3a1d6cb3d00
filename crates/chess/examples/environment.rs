//! The environment in three steps: a game move by move, a random game, and a batch of games on all
//! cores. Run it with `cargo run -p selfmate-chess --example environment`.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::{self, Write};

use selfmate_chess::env::{Action, ActionSpace, BatchEnv, Env};
use selfmate_chess::{Chess, Move, Role, Rules, Seed};

fn main() -> Result<(), Box<dyn Error>> {
    run(&mut io::stdout().lock())
}

pub fn run(out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    move_by_move(out)?;
    random_game(out)?;
    batch(out)
}

/// Both sides act through `step`. The reward is for the side that moved.
fn move_by_move(out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    writeln!(out, "Fool's mate, move by move:")?;
    let mut env = Env::new(Rules::default(), &SquarePairs);
    env.reset(None, Seed::new(1))?;
    for text in ["f2f3", "e5", "g4", "Qh4"] {
        let legal = env.legal_moves().len();
        let step = env.step(Action::Text(text))?;
        writeln!(out, "  {text:4} of {legal} legal moves, reward {}", step.reward)?;
    }
    let outcome = env.outcome().ok_or("the game should be over")?;
    writeln!(out, "  {} ({})", outcome.pgn(), outcome.reason)?;

    // A rejected action is an error and leaves the environment unchanged.
    if let Err(error) = env.step(Action::Text("a3")) {
        writeln!(out, "  a3: {error}")?;
    }
    Ok(())
}

/// An agent that chooses among the indices that the mask allows. This one chooses at random.
fn random_game(out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    writeln!(out, "A random game by action indices:")?;
    let mut env = Env::new(Rules { max_plies: Some(400), ..Rules::default() }, &SquarePairs);
    let mut rng = Seed::new(1).derive("agent").rng();
    env.reset(None, Seed::new(1))?;
    loop {
        let mask = env.action_mask();
        let legal: Vec<usize> = (0..mask.len()).filter(|&index| mask[index]).collect();
        let &action = rng.choose(&legal).ok_or("a running game has a legal move")?;
        let step = env.step(Action::Index(action))?;
        // A truncated game has no result. Do not learn from it as from a draw.
        if step.done || step.truncated {
            break;
        }
    }
    let seen = env.observation();
    writeln!(out, "  {} after {} plies", seen.result.unwrap_or("*"), seen.move_count)?;
    writeln!(out, "  {}", seen.fen)?;
    Ok(())
}

/// Environment `i` plays the same game as a single environment with the seed `seed.index(i)`.
fn batch(out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let games = 500;
    writeln!(out, "{games} random games in a batch:")?;
    let mut batch = BatchEnv::new(games, Seed::new(1), Rules::default(), &SquarePairs);
    let mut plies = 0;
    loop {
        let played = batch.step_random();
        if played == 0 {
            break;
        }
        plies += played;
    }
    let mut count: BTreeMap<String, usize> = BTreeMap::new();
    for outcome in batch.envs().iter().filter_map(Env::outcome) {
        *count.entry(outcome.reason.to_string()).or_default() += 1;
    }
    for (reason, count) in count {
        writeln!(out, "  {count:4} {reason}")?;
    }
    writeln!(out, "  {} plies per game", plies / games)?;
    Ok(())
}

/// The smallest useful action space: the two squares of a move. Pawns promote to queens only.
/// `selfmate-encode` has the spaces that networks use.
struct SquarePairs;

impl ActionSpace for SquarePairs {
    fn name(&self) -> &'static str {
        "square-pairs"
    }

    fn size(&self) -> usize {
        64 * 64
    }

    fn index(&self, _: &Chess, m: Move) -> Option<usize> {
        let is_underpromotion = m.promotion().is_some_and(|role| role != Role::Queen);
        let index = usize::from(m.from()?) * 64 + usize::from(m.to());
        (!is_underpromotion).then_some(index)
    }
}
