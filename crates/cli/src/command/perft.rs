//! `selfmate perft`: counts the leaves of the move tree.

use std::time::Instant;

use selfmate_chess::Chess;
use selfmate_chess::notation::uci;
use selfmate_chess::perft::divide;
use serde::Serialize;

use super::fen_argument;
use crate::output::{Output, thousands};

#[derive(clap::Args)]
pub struct Args {
    /// Plies to look ahead
    #[arg(value_parser = clap::value_parser!(u32).range(0..=20))]
    depth: u32,
    /// The position [default: the start position]
    #[arg(long, value_parser = fen_argument, default_value = "startpos", hide_default_value = true)]
    fen: Chess,
    /// Also print the count for each move
    #[arg(long)]
    divide: bool,
}

#[derive(Serialize)]
struct Report {
    depth: u32,
    nodes: u64,
    seconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    moves: Option<Vec<MoveCount>>,
}

#[derive(Serialize)]
struct MoveCount {
    #[serde(rename = "move")]
    uci: String,
    nodes: u64,
}

pub fn run(args: &Args, output: &Output) -> anyhow::Result<()> {
    let started = Instant::now();
    let parts = divide(&args.fen, args.depth);
    let nodes = if args.depth == 0 { 1 } else { parts.iter().map(|(_, nodes)| nodes).sum() };
    let seconds = started.elapsed().as_secs_f64();
    let moves = args.divide.then(|| {
        parts.iter().map(|&(m, nodes)| MoveCount { uci: uci(&args.fen, m), nodes }).collect()
    });
    output.report(&Report { depth: args.depth, nodes, seconds, moves }, |report, out| {
        for part in report.moves.iter().flatten() {
            writeln!(out, "{}: {}", part.uci, part.nodes)?;
        }
        let millions = report.nodes as f64 / report.seconds.max(1e-9) / 1e6;
        writeln!(
            out,
            "{} nodes in {:.2} s, {millions:.0} million per second",
            thousands(report.nodes),
            report.seconds
        )
    })
}
