//! The flags that say how long a player thinks, and numbers as people read them.

use std::time::Duration;

use selfmate_search::Wdl;
use selfmate_search::player::{Limit, Score};

/// How long to think about a move.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct ThinkArgs {
    /// Simulations of a tree search for each move; of alpha-beta, Stockfish and other UCI engines,
    /// which have none, as many nodes
    #[arg(long, visible_alias = "nodes", value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub sims: Option<u64>,
    /// Plies of search for each move
    #[arg(long, value_name = "PLIES", value_parser = clap::value_parser!(u32).range(1..=200))]
    pub depth: Option<u32>,
    /// Milliseconds for each move
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..=86_400_000))]
    pub movetime: Option<u64>,
}

impl ThinkArgs {
    /// As a limit for one move.
    pub fn limit(&self) -> Limit {
        Limit {
            nodes: self.sims,
            depth: self.depth,
            movetime: self.movetime.map(Duration::from_millis),
            ..Limit::default()
        }
    }
}

/// A score as `+1.25` pawns or `mate in 3`.
pub fn score_text(score: Score) -> String {
    match score {
        Score::Centipawns(value) => format!("{:+.2}", f64::from(value) / 100.0),
        Score::Mate(moves) if moves > 0 => format!("mate in {moves}"),
        Score::Mate(moves) => format!("mated in {}", -moves),
    }
}

/// Chances as whole percent: `win 40 draw 35 loss 25`.
pub fn wdl_text(wdl: Wdl) -> String {
    let percent = |share: f32| (share * 100.0).round();
    format!("win {}% draw {}% loss {}%", percent(wdl.win), percent(wdl.draw), percent(wdl.loss))
}
