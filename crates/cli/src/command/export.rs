//! `selfmate export`: writes a network or the games of a run for other programs.

use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, ensure};
use selfmate_chess::Seed;
use selfmate_methods::dataset::{Format, Games};
use selfmate_methods::players;
use selfmate_nn::onnx;
use selfmate_run::atomic_file;

use crate::columns::ColumnArgs;
use crate::file;
use crate::output::thousands;
use crate::runs;

#[derive(clap::Args)]
pub struct Args {
    /// The network: a run's name, run:NAME@STEP, net:FILE or default; for games, a run's name
    network: String,
    /// Write the network as an ONNX file
    #[arg(long, value_name = "FILE", required_unless_present_any = ["pgn", "jsonl", "parquet"])]
    onnx: Option<PathBuf>,
    /// Also write positions with the network's outputs as safetensors, to test a runtime
    #[arg(long, value_name = "FILE", requires = "onnx")]
    examples: Option<PathBuf>,
    /// Write the run's games as PGN
    #[arg(long, value_name = "FILE")]
    pgn: Option<PathBuf>,
    /// Write the positions of the run's games as JSON, one per line
    #[arg(long, value_name = "FILE")]
    jsonl: Option<PathBuf>,
    /// Write the positions as Parquet (needs a build with the feature `parquet`)
    #[arg(long, value_name = "FILE")]
    parquet: Option<PathBuf>,
    #[command(flatten)]
    columns: ColumnArgs,
    /// Number of positions for --examples
    #[arg(long, default_value_t = 100, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    count: u32,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    file::check_distinct(&[
        ("--onnx", args.onnx.as_deref()),
        ("--examples", args.examples.as_deref()),
        ("--pgn", args.pgn.as_deref()),
        ("--jsonl", args.jsonl.as_deref()),
        ("--parquet", args.parquet.as_deref()),
    ]);
    for (path, format) in [
        (&args.pgn, Format::Pgn),
        (&args.jsonl, Format::JsonLines),
        (&args.parquet, Format::Parquet),
    ] {
        if let Some(path) = path {
            write_games(args, path, format)?;
        }
    }
    let Some(onnx_file) = &args.onnx else { return Ok(()) };
    let model = players::model(&args.network, runs::folder(), &|skipped| {
        runs::warn(skipped);
    })
    .map_err(|error| anyhow!("network '{}': {error}", args.network))?;
    let write = |path: &PathBuf, bytes: Vec<u8>| {
        file::write(path, &bytes)?;
        eprintln!("{}: {} bytes", path.display(), thousands(bytes.len() as u64));
        anyhow::Ok(())
    };
    write(onnx_file, onnx::encode(&model)?)?;
    if let Some(path) = &args.examples {
        write(path, onnx::examples(&model, args.count as usize, Seed::new(1))?)?;
    }
    Ok(())
}

/// Writes games of a run to a file atomically.
fn write_games(args: &Args, path: &Path, format: Format) -> anyhow::Result<()> {
    format.check().with_context(|| format!("{}", path.display()))?;
    let run = runs::find(&args.network)?;
    let games = atomic_file::write_with(path, |out| {
        let games = Games::Run(&run).write(format, args.columns.extras(), out)?;
        ensure!(games > 0, "run '{}' has no stored games: nothing to write", run.name());
        anyhow::Ok(games)
    });
    let games = games.with_context(|| format!("cannot write {}", path.display()))?;
    eprintln!("{}: {} games", path.display(), thousands(games));
    Ok(())
}
