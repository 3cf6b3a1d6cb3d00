//! `selfmate export`: a network for other programs.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, anyhow};
use selfmate_chess::Seed;
use selfmate_learn::players;
use selfmate_nn::onnx;

use crate::output::thousands;
use crate::runs;

#[derive(clap::Args)]
pub struct Args {
    /// The network: a run's name, run:NAME@STEP, net:FILE or default
    network: String,
    /// Write it as an ONNX file
    #[arg(long, value_name = "FILE")]
    onnx: PathBuf,
    /// Also write positions with the network's answers, as safetensors, to check a runtime with
    #[arg(long, value_name = "FILE")]
    examples: Option<PathBuf>,
    /// How many positions
    #[arg(long, default_value_t = 100, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    count: u32,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let model = players::model(&args.network, runs::folder())
        .map_err(|error| anyhow!("network '{}': {error}", args.network))?;
    let write = |path: &PathBuf, bytes: Vec<u8>| {
        fs::write(path, &bytes).with_context(|| format!("cannot write {}", path.display()))?;
        eprintln!("{}: {} bytes", path.display(), thousands(bytes.len() as u64));
        anyhow::Ok(())
    };
    write(&args.onnx, onnx::encode(&model))?;
    if let Some(path) = &args.examples {
        write(path, onnx::examples(&model, args.count as usize, Seed::new(1))?)?;
    }
    Ok(())
}
