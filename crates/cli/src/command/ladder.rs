//! `selfmate ladder`: rates many players, with error bars.

use std::io::{self, Write};
use std::path::PathBuf;

use selfmate_arena::rating::Rated;
use selfmate_arena::{
    LadderConfig, LadderEvent, LadderFormat, LadderReport, MatchEvent, MatchLimit, rating_svg,
    run_ladder,
};

use super::game_args::GameArgs;
use super::match_::live;
use crate::file;
use crate::number;
use crate::output::{Output, or_unknown};
use crate::player;
use crate::progress::Progress;
use crate::tables::report_damage;

#[derive(clap::Args)]
#[command(after_long_help = player::help())]
pub struct Args {
    /// The players
    #[arg(required = true, num_args = 2..)]
    players: Vec<String>,
    /// Games per pairing
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    games: u64,
    /// Only the first player plays the others
    #[arg(long)]
    gauntlet: bool,
    /// A player with a fixed rating, as PLAYER=ELO
    #[arg(long, value_name = "PLAYER=ELO", value_parser = anchor)]
    anchor: Vec<(String, f64)>,
    /// Write the rating list as an SVG picture
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    #[command(flatten)]
    game: GameArgs,
}

pub fn run(args: &Args, output: &Output) -> anyhow::Result<()> {
    let registry = player::registry();
    let named = |player: &String| args.game.play.player(&registry, player);
    let anchored =
        |(player, elo): &(String, f64)| -> anyhow::Result<_> { Ok((named(player)?, *elo)) };
    let config = LadderConfig {
        players: args.players.iter().map(named).collect::<anyhow::Result<_>>()?,
        format: if args.gauntlet { LadderFormat::Gauntlet } else { LadderFormat::RoundRobin },
        games: args.games,
        settings: args.game.play.settings(MatchLimit::default())?,
        openings: args.game.play.openings(),
        seed: args.game.play.seed,
        anchors: args.anchor.iter().map(anchored).collect::<anyhow::Result<_>>()?,
    };
    let mut progress = Progress::new();
    let mut place = String::new();
    let run = args.game.run(&registry)?;
    let report = run_ladder(&config, &run, &registry, &mut |event| match event {
        LadderEvent::Pairing { index, total, .. } => {
            place = format!("pairing {}/{total}", index + 1);
        }
        LadderEvent::Match(event) => {
            if let MatchEvent::Finished { report, .. } = &**event {
                progress.show(&format!("{place}  {}", live(report, args.games)));
            }
        }
    })?;
    progress.finish();
    report_damage(&registry);
    if let Some(path) = &args.svg {
        file::write(path, rating_svg("Ratings", &report.players).as_bytes())?;
    }
    output.report(&report, print)
}

/// Parses `PLAYER=ELO`. The player's spec may contain `=`.
fn anchor(text: &str) -> Result<(String, f64), String> {
    let (player, elo) = text.rsplit_once('=').ok_or("expected PLAYER=ELO, such as random=0")?;
    Ok((player.to_owned(), number::elo(elo)?))
}

fn print(report: &LadderReport, out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "{:>4}  {:32}{:>8}{:>8}{:>8}{:>9}",
        "", "player", "Elo", "+/-", "games", "points"
    )?;
    for (index, Rated { name, elo, elo_error, games, points, is_anchor }) in
        report.players.iter().enumerate()
    {
        let error = if *is_anchor { "fixed".into() } else { or_unknown(*elo_error, 0) };
        let elo = or_unknown(elo_error.map(|_| *elo), 0);
        writeln!(out, "{:>4}  {name:32}{elo:>8}{error:>8}{games:>8}{points:>9.1}", index + 1)?;
    }
    writeln!(out)?;
    for pairing in &report.pairings {
        let tally = pairing.tally;
        writeln!(
            out,
            "{} - {}: +{} ={} -{}",
            pairing.a, pairing.b, tally.wins, tally.draws, tally.losses
        )?;
    }
    if !report.is_finished {
        writeln!(out, "(stopped before the end)")?;
    }
    Ok(())
}
