//! `selfmate suite`: test positions with known answers, or agreement with an opening book.

use std::io::{self, Write};
use std::path::PathBuf;

use selfmate_arena::{
    BookConfig, BookReport, MatchLimit, SuiteConfig, SuiteReport, book_agreement, run_suite,
};

use crate::limit::LimitArgs;
use crate::output::Output;
use crate::player::{self, DeviceArgs, with_flags};
use crate::progress::{CleanStop, Progress};

#[derive(clap::Args)]
#[command(after_long_help = player::help())]
pub struct Args {
    /// An EPD file with best moves or mates; with --book a Polyglot (.bin) or PGN book
    file: PathBuf,
    /// The player
    player: String,
    /// Measure how often the player's first choice is in this opening book, by ply
    #[arg(long)]
    book: bool,
    #[command(flatten)]
    limit: LimitArgs,
    #[command(flatten)]
    device: DeviceArgs,
    /// Seed of the player's randomness
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Positions searched at the same time
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    concurrency: u16,
}

pub fn run(args: &Args, output: &Output) -> anyhow::Result<()> {
    let registry = player::registry();
    let text = with_flags(&registry, &args.player, &args.limit, args.device)?;
    let default = match args.limit.sims {
        Some(_) => MatchLimit::default(),
        None => MatchLimit::movetime(1000),
    };
    let limit = args.limit.to_match_limit(None, default);
    let CleanStop { stop, begun } = CleanStop::on_signal()?;
    let mut progress = Progress::new();
    if args.book {
        let config = BookConfig {
            limit,
            seed: args.seed,
            stop,
            begun,
            ..BookConfig::new(&args.file, &text)
        };
        let report = book_agreement(&config, &registry, &mut |ply| {
            progress.show(&format!("ply {}: {} of {}", ply.ply, ply.agreed, ply.total));
        })?;
        progress.finish();
        return output.report(&report, print_book);
    }
    let config = SuiteConfig {
        limit,
        seed: args.seed,
        stop,
        begun,
        concurrency: usize::from(args.concurrency),
        ..SuiteConfig::new(&args.file, &text)
    };
    let (mut solved, mut total) = (0, 0);
    let report = run_suite(&config, &registry, &mut |position| {
        total += 1;
        solved += u32::from(position.is_solved);
        progress.show(&format!("{solved} of {total} solved"));
    })?;
    progress.finish();
    output.report(&report, print_suite)
}

fn print_suite(report: &SuiteReport, out: &mut dyn Write) -> io::Result<()> {
    for position in report.positions.iter().filter(|position| !position.is_solved) {
        let id = position.id.as_deref().unwrap_or("");
        let number = position.number;
        writeln!(
            out,
            "{number:4} {id:20} played {}, expected {}",
            position.played, position.expected
        )?;
    }
    writeln!(
        out,
        "{}: {} of {} solved in {:.1} s",
        report.player, report.solved, report.total, report.seconds
    )?;
    if let Some(mean) = report.mean_solution_ms {
        writeln!(out, "mean time to solution {mean:.0} ms")?;
    }
    if report.max_points > 0 {
        writeln!(out, "{} of {} points", report.points, report.max_points)?;
    }
    Ok(())
}

fn print_book(report: &BookReport, out: &mut dyn Write) -> io::Result<()> {
    for ply in &report.by_ply {
        let share = 100.0 * ply.agreed as f64 / ply.total.max(1) as f64;
        writeln!(
            out,
            "ply {:3}: {:4} of {:4} in the book ({share:.0}%)",
            ply.ply, ply.agreed, ply.total
        )?;
    }
    writeln!(
        out,
        "{}: {} of {} choices are in {}",
        report.player, report.agreed, report.total, report.book
    )
}
