//! `selfmate selfplay`: games of a player against itself, as data to learn from.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, ensure};
use selfmate_arena::report::duplicates;
use selfmate_arena::{MatchLimit, SelfPlayConfig, SelfPlayTally, run_selfplay};
use selfmate_methods::dataset::{BOARD, BOARD_SHAPE, Format, Games, SelfPlayGames};
use selfmate_run::atomic_file;
use serde::Serialize;
use serde_json::{Value, json};

use super::game_args::PlayArgs;
use crate::columns::ColumnArgs;
use crate::file;
use crate::output::{Output, thousands};
use crate::player;
use crate::progress::Progress;
use crate::tables::report_damage;

#[derive(clap::Args)]
#[command(after_long_help = player::help())]
pub struct Args {
    /// The player
    player: String,
    /// Number of games, each from its own opening
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    games: u64,
    /// The folder to write to; files of an earlier self-play are not overwritten
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// What to write: games.pgn, positions.jsonl, positions.parquet (needs a build with the feature
    /// `parquet`)
    #[arg(long, value_name = "FORMAT", value_delimiter = ',', default_values = ["pgn", "jsonl"])]
    format: Vec<FileFormat>,
    #[command(flatten)]
    columns: ColumnArgs,
    #[command(flatten)]
    play: PlayArgs,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum FileFormat {
    Pgn,
    Jsonl,
    Parquet,
}

impl FileFormat {
    const ALL: [FileFormat; 3] = [FileFormat::Pgn, FileFormat::Jsonl, FileFormat::Parquet];

    const fn format(self) -> Format {
        match self {
            FileFormat::Pgn => Format::Pgn,
            FileFormat::Jsonl => Format::JsonLines,
            FileFormat::Parquet => Format::Parquet,
        }
    }

    const fn file(self) -> &'static str {
        match self {
            FileFormat::Pgn => "games.pgn",
            FileFormat::Jsonl => "positions.jsonl",
            FileFormat::Parquet => "positions.parquet",
        }
    }
}

/// Describes the other files. It is written last.
const DATASET: &str = "dataset.json";

#[derive(Serialize)]
struct Report {
    player: String,
    #[serde(flatten)]
    tally: SelfPlayTally,
    /// Games that repeat another game move for move.
    duplicates: u64,
    /// False when it was stopped.
    is_finished: bool,
    seconds: f64,
    files: Vec<String>,
}

pub fn run(args: &Args, output: &Output) -> anyhow::Result<()> {
    let registry = player::registry();
    let mut formats = FileFormat::ALL.to_vec();
    formats.retain(|format| args.format.contains(format));
    for format in &formats {
        format.format().check().context("--format")?;
    }
    let player = registry.resolve(&args.play.player(&registry, &args.player)?)?;
    let config = SelfPlayConfig {
        games: args.games,
        settings: args.play.settings(MatchLimit::default())?,
        openings: args.play.openings(),
        seed: args.play.seed,
    };
    let run = args.play.run(&registry)?;
    prepare(&args.output)?;

    let started = Instant::now();
    let mut progress = Progress::new();
    let mut tally = SelfPlayTally::default();
    let games = run_selfplay(&config, &player, &run, &mut |now| {
        tally = *now;
        progress.show(&live(now, args.games));
    })?;
    progress.finish();
    report_damage(&registry);
    ensure!(!games.is_empty(), "stopped before a game was over: nothing to write");
    let duplicates = duplicates(&games);
    let is_finished = tally.games == args.games;
    let games = SelfPlayGames {
        player: player.name().to_owned(),
        limit: config.settings.limit.to_string(),
        games,
    };
    let mut files = Vec::new();
    for format in formats {
        let path = args.output.join(format.file());
        write(&path, format.format(), args, &games)?;
        files.push(path.display().to_string());
    }
    let path = args.output.join(DATASET);
    let description = json!({
        "format": "selfmate selfplay 1",
        "player": player.name(),
        "identity": player.identity()?,
        "config": config,
        "is_finished": is_finished,
        "totals": tally,
        "board": board(args),
    });
    file::write(&path, format!("{description:#}\n").as_bytes())?;
    files.push(path.display().to_string());
    let report = Report {
        player: games.player,
        tally,
        duplicates,
        is_finished,
        seconds: started.elapsed().as_secs_f64(),
        files,
    };
    output.report(&report, print)
}

/// Creates the folder, and fails if it has files that would be overwritten. That happens before the
/// first game, which may be hours before the files are written.
fn prepare(folder: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder)
        .with_context(|| format!("--output {}: cannot create the folder", folder.display()))?;
    for name in FileFormat::ALL.map(FileFormat::file).into_iter().chain([DATASET]) {
        let path = folder.join(name);
        ensure!(
            path.symlink_metadata().is_err(),
            "{} exists already: expected a folder without the files of an earlier self-play",
            path.display()
        );
    }
    Ok(())
}

fn write(path: &Path, format: Format, args: &Args, games: &SelfPlayGames) -> anyhow::Result<()> {
    atomic_file::write_with(path, |out| {
        Games::SelfPlay(games).write(format, args.columns.extras(), out)?;
        anyhow::Ok(())
    })
    .with_context(|| format!("cannot write {}", path.display()))
}

/// How to read the column `board`; `null` without it.
fn board(args: &Args) -> Value {
    match args.columns.extras().board {
        true => json!({
            "encoding": BOARD.name(),
            "version": BOARD.version(),
            "shape": BOARD_SHAPE,
            "axes": ["rank", "file", "piece"],
            "pieces": "PNBRQKpnbrqk",
        }),
        false => Value::Null,
    }
}

/// The state in one line.
fn live(tally: &SelfPlayTally, games: u64) -> String {
    format!(
        "{}  {} positions  game {}/{games}",
        results(tally),
        thousands(tally.positions),
        tally.games
    )
}

fn results(tally: &SelfPlayTally) -> String {
    let mut text = format!("White +{} ={} -{}", tally.white_wins, tally.draws, tally.black_wins);
    for (count, what) in [(tally.truncated, "truncated"), (tally.faults, "faults")] {
        if count > 0 {
            text += &format!("  {what} {count}");
        }
    }
    text
}

fn print(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let Report { player, tally, .. } = report;
    writeln!(
        out,
        "{player}: {} games, {} positions",
        thousands(tally.games),
        thousands(tally.positions)
    )?;
    writeln!(out, "{}", results(tally))?;
    if report.duplicates > 0 {
        writeln!(out, "Identical games: {}", report.duplicates)?;
    }
    for file in &report.files {
        writeln!(out, "{file}")?;
    }
    if !report.is_finished {
        writeln!(out, "(stopped before the end)")?;
    }
    Ok(())
}
