//! `selfmate match`: a match of two players, in pairs of games from the same opening.

use std::io::{self, Write};

use selfmate_arena::{MatchConfig, MatchEvent, MatchLimit, MatchReport, Sprt, run_match};

use super::game_args::GameArgs;
use crate::output::{Output, or_unknown};
use crate::player;
use crate::progress::Progress;
use crate::tables::report_damage;

#[derive(clap::Args)]
#[command(after_long_help = player::help())]
pub struct Args {
    /// The first player
    a: String,
    /// The second player
    b: String,
    /// Maximum number of games
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    games: u64,
    /// Stop as soon as a sequential test (SPRT) decides between an advantage of E0 and of E1 for A,
    /// in normalised Elo
    #[arg(long, value_name = "E0,E1", value_parser = Sprt::parse)]
    sprt: Option<Sprt>,
    #[command(flatten)]
    game: GameArgs,
}

pub fn run(args: &Args, output: &Output) -> anyhow::Result<()> {
    let registry = player::registry();
    let config = MatchConfig {
        a: args.game.play.player(&registry, &args.a)?,
        b: args.game.play.player(&registry, &args.b)?,
        games: args.games,
        settings: args.game.play.settings(MatchLimit::default())?,
        openings: args.game.play.openings(),
        seed: args.game.play.seed,
        sprt: args.sprt,
    };
    let mut progress = Progress::new();
    let run = args.game.run(&registry)?;
    let report = run_match(&config, &run, &registry, &mut |event| match event {
        MatchEvent::Resumed { report } => {
            eprintln!("resuming after {} games", report.games);
        }
        MatchEvent::Finished { report, .. } => progress.show(&live(report, args.games)),
    })?;
    progress.finish();
    report_damage(&registry);
    output.report(&report, |report, out| print(report, &config.settings.limit, out))
}

/// The result so far, in one line.
pub fn live(report: &MatchReport, games: u64) -> String {
    // A few games with the same result show little about the difference.
    let elo = match (report.elo, report.elo_error) {
        (Some(elo), Some(error)) => format!("  Elo {elo:+.0} ± {error:.0}"),
        _ => String::new(),
    };
    format!(
        "{} - {}  +{} ={} -{}  {:.1}%{elo}  game {}/{games}",
        report.a,
        report.b,
        report.wins,
        report.draws,
        report.losses,
        report.score * 100.0,
        report.games
    )
}

/// The bounds of the difference when all games have the same result.
fn bound(report: &MatchReport) -> String {
    match (report.elo_error, report.elo_low, report.elo_high) {
        (None, Some(low), None) => format!(" (at least {low:.0}: every game was won)"),
        (None, None, Some(high)) => format!(" (at most {high:.0}: every game was lost)"),
        (None, Some(low), Some(high)) => {
            format!(" (between {low:.0} and {high:.0}: every game was drawn)")
        }
        _ => String::new(),
    }
}

/// Prints the result in the format of match runners such as fastchess.
fn print(report: &MatchReport, limit: &MatchLimit, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "Results of {} vs {} ({limit}):", report.a, report.b)?;
    writeln!(
        out,
        "Elo: {} +/- {}, nElo: {} +/- {}{}",
        or_unknown(report.elo, 2),
        or_unknown(report.elo_error, 2),
        or_unknown(report.nelo, 2),
        or_unknown(report.nelo_error, 2),
        bound(report)
    )?;
    write!(out, "LOS: {:.2} %, DrawRatio: {:.2} %", report.los * 100.0, report.draw_ratio * 100.0)?;
    match report.pairs_ratio {
        Some(ratio) => writeln!(out, ", PairsRatio: {ratio:.2}")?,
        None => writeln!(out)?,
    }
    writeln!(
        out,
        "Games: {}, Wins: {}, Losses: {}, Draws: {}, Points: {:.1} ({:.2} %)",
        report.games,
        report.wins,
        report.losses,
        report.draws,
        report.score * report.games as f64,
        report.score * 100.0
    )?;
    writeln!(out, "Ptnml(0-2): {:?}", report.pentanomial)?;
    if let Some(sprt) = &report.sprt {
        writeln!(
            out,
            "LLR: {:.2} ({:.2}, {:.2}) [{:.2}, {:.2}] {:?}",
            sprt.llr, sprt.lower, sprt.upper, sprt.sprt.elo0, sprt.sprt.elo1, sprt.decision
        )?;
    }
    let ends: Vec<String> =
        report.terminations.iter().map(|(end, n)| format!("{end} {n}")).collect();
    writeln!(out, "Ended by: {}", ends.join(", "))?;
    if report.a_faults + report.b_faults > 0 {
        writeln!(
            out,
            "Faults: {} by {}, {} by {}",
            report.a_faults, report.a, report.b_faults, report.b
        )?;
    }
    if report.duplicates > 0 {
        writeln!(out, "Identical games: {}", report.duplicates)?;
    }
    if !report.is_finished {
        writeln!(out, "(stopped before the end)")?;
    }
    Ok(())
}
