//! `selfmate value-map`: learned values of every square beside tablebase values.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Context;
use selfmate_chess::Color;
use selfmate_methods::endgame::{Oracle, Placement, Trained, ValueMap};

use crate::file;
use crate::output::Output;
use crate::runs;

#[derive(clap::Args)]
pub struct Args {
    /// A run of krk, kqk or kpk
    run: String,
    /// All pieces but one, Black's in lower case; the missing one is tried on every square
    #[arg(long, value_name = "PIECES", default_value = "Ke3,Rd4")]
    place: Placement,
    /// Evaluate with Black to move
    #[arg(long)]
    black: bool,
    /// Write an SVG picture
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

pub fn run(args: &Args, output: &Output) -> anyhow::Result<()> {
    let run = runs::find(&args.run)?;
    let trained = Trained::load(&run, None)?;
    let ending = trained.ending();
    let Trained { config, step, network, skipped_checkpoints } = trained;
    if let Some(skipped) = skipped_checkpoints {
        runs::warn(&skipped);
    }
    let oracle = Oracle::solve(ending)?;
    let turn = Color::from_white(!args.black);
    let discount = config.selfplay.discount;
    let map = ValueMap::new(&oracle, &network, discount, &args.place, turn).context("--place")?;
    if let Some(path) = &args.svg {
        let title = format!("{} at step {step}: {}", run.name(), args.place);
        file::write(path, map.svg(&title).as_bytes())?;
    }
    output.report(&map, print)
}

fn print(map: &ValueMap, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{:52}tablebase", format!("learned: {} on every square", map.piece))?;
    for rank in (0..8).rev() {
        let line = |values: &[Option<f64>]| -> String {
            let line = values[8 * rank..8 * rank + 8].iter();
            line.map(|value| value.map_or("     ·".to_owned(), |value| format!("{value:6.2}")))
                .collect()
        };
        writeln!(out, "{}{}   {}", rank + 1, line(&map.learned), line(&map.tablebase))?;
    }
    let files: String = ('a'..='h').map(|file| format!("{file:>6}")).collect();
    writeln!(out, " {files}   {files}")?;
    writeln!(out, "mean error {:.3}", map.error)
}
