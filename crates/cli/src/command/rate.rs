//! `selfmate rate`: a player's Elo against Stockfish's levels and the built-in rungs below them.

use std::io::{self, Write};

use selfmate_arena::{MatchLimit, RateConfig, RateReport, run_rate};

use super::game_args::GameArgs;
use crate::number;
use crate::output::{Output, or_unknown};
use crate::player;
use crate::progress::Progress;
use crate::tables::report_damage;

#[derive(clap::Args)]
#[command(after_long_help = player::help())]
pub struct Args {
    /// The player
    player: String,
    /// Stop when half the 95 % interval is below this
    #[arg(long, value_name = "ELO", default_value_t = 50.0, value_parser = number::positive)]
    error: f64,
    /// Maximum number of games
    #[arg(long, default_value_t = 400, value_parser = clap::value_parser!(u64).range(2..=1_000_000))]
    games: u64,
    #[command(flatten)]
    game: GameArgs,
}

pub fn run(args: &Args, output: &Output) -> anyhow::Result<()> {
    let registry = player::registry();
    // With --sims, the player has its limit, and Stockfish's levels have 100 ms by themselves.
    let default_limit = match args.game.play.has_only_sims() {
        true => MatchLimit::default(),
        false => MatchLimit::movetime(100),
    };
    let config = RateConfig {
        settings: args.game.play.settings(default_limit)?,
        openings: args.game.play.openings(),
        seed: args.game.play.seed,
        max_games: args.games,
        max_error: args.error,
        ..RateConfig::new(&args.game.play.player(&registry, &args.player)?)
    };
    let mut progress = Progress::new();
    let run = args.game.run(&registry)?;
    let report = run_rate(&config, &run, &registry, &mut |_, report| {
        progress.show(&format!(
            "{}  {}  game {}/{}",
            report.player,
            interval(report),
            report.games,
            args.games
        ));
    })?;
    progress.finish();
    report_damage(&registry);
    output.report(&report, print)
}

/// The rating with its interval.
fn interval(report: &RateReport) -> String {
    let [elo, low, high] =
        [report.elo, report.elo_low, report.elo_high].map(|number| or_unknown(number, 0));
    format!("{elo} [{low}, {high}]")
}

fn print(report: &RateReport, out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "{}: {} after {} games ({})",
        report.player,
        interval(report),
        report.games,
        report.limit
    )?;
    if let Some(scale) = &report.scale {
        writeln!(out, "on the scale of {scale}'s UCI_Elo")?;
    }
    writeln!(
        out,
        "\n{:32}{:>8}{:>8}{:>7}{:>7}{:>7}",
        "rung", "Elo", "games", "won", "drawn", "lost"
    )?;
    for rung in &report.rungs {
        let tally = rung.tally;
        writeln!(
            out,
            "{:32}{:>8.0}{:>8}{:>7}{:>7}{:>7}",
            rung.rung.player, rung.rung.elo, rung.games, tally.wins, tally.draws, tally.losses
        )?;
    }
    if !report.is_finished {
        writeln!(out, "(the error is still {})", or_unknown(report.elo_error, 0))?;
    }
    Ok(())
}
