//! `selfmate tablebase solve`: solves an endgame by retrograde analysis.

use std::io::{self, Write};
use std::time::Instant;

use selfmate_chess::Color;
use selfmate_chess::fen::to_fen;
use selfmate_chess::tablebase::{Ending, Exact, Material};
use serde::Serialize;

use crate::output::{Output, thousands};

#[derive(clap::Args)]
pub struct Args {
    /// The endgame: White's pieces, then Black's, such as KRK or KBNK
    #[arg(value_name = "PIECES")]
    ending: Material,
}

#[derive(Serialize)]
struct Report {
    /// The endgame, the stronger side first.
    ending: String,
    /// Time for this endgame and the smaller ones it leads to, on one core.
    seconds: f64,
    white_to_move: Side,
    black_to_move: Side,
}

#[derive(Serialize)]
struct Side {
    wins: u64,
    draws: u64,
    losses: u64,
    /// Plies of the longest mate by the side to move; `null` without a mate.
    longest: Option<u8>,
    /// A position with the longest mate.
    fen: Option<String>,
}

pub fn run(args: &Args, output: &Output) -> anyhow::Result<()> {
    let started = Instant::now();
    let ending = Exact::new().ending(&args.ending)?;
    let seconds = started.elapsed().as_secs_f64();
    let report = Report {
        ending: ending.material().to_string(),
        seconds,
        white_to_move: side(&ending, Color::White),
        black_to_move: side(&ending, Color::Black),
    };
    output.report(&report, print)
}

fn side(ending: &Ending, turn: Color) -> Side {
    let count = ending.count(turn);
    let longest = ending.longest(turn);
    Side {
        wins: count.wins,
        draws: count.draws,
        losses: count.losses,
        longest: longest.as_ref().map(|(_, plies)| *plies),
        fen: longest.map(|(position, _)| to_fen(&position)),
    }
}

fn print(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{} solved in {:.3} s", report.ending, report.seconds)?;
    writeln!(out, "{:14}{:>13}{:>13}{:>13}  longest mate", "", "won", "drawn", "lost")?;
    for (name, side) in
        [("White to move", &report.white_to_move), ("Black to move", &report.black_to_move)]
    {
        let [wins, draws, losses] = [side.wins, side.draws, side.losses].map(thousands);
        write!(out, "{name:14}{wins:>13}{draws:>13}{losses:>13}")?;
        match (side.longest, &side.fen) {
            (Some(plies), Some(fen)) => writeln!(out, "  {plies} plies: {fen}")?,
            _ => writeln!(out, "  none")?,
        }
    }
    Ok(())
}
