//! `selfmate bench nets`: how fast the residual networks judge and learn.

use std::time::Duration;

use anyhow::Context;
use selfmate_chess::Seed;
use selfmate_nn::residual::{
    Config, Kernel, Network, Session, Trainer, TrainingConfig, Weights, bench,
};
use serde::Serialize;

use crate::output::{Output, thousands};

#[derive(clap::Args)]
pub struct Args {
    /// Seconds to spend on each figure
    #[arg(long, default_value_t = 1.0)]
    seconds: f64,
    /// The networks (4, 5, 15 and 19 blocks of 32, 64, 192 and 256 filters)
    #[arg(long, value_delimiter = ',', default_value = "toy")]
    network: Vec<Name>,
    /// Positions judged at a time
    #[arg(long, value_delimiter = ',', default_value = "1,8,32,128", value_parser = clap::value_parser!(u16).range(1..=1024))]
    batch: Vec<u16>,
    /// Positions learned at a time
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u16).range(1..=4096))]
    training_batch: u16,
    /// Threads that share a batch [default: one, then all cores]
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Vec<u16>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
enum Name {
    Small,
    Toy,
    Standard,
    Large,
}

#[derive(Serialize)]
struct Report {
    /// The inner loops of floats: portable, avx2 or avx512.
    kernel: &'static str,
    networks: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    name: Name,
    parameters: usize,
    /// `fast` in floats, `int8` with its blocks in bytes.
    path: &'static str,
    batch: usize,
    threads: usize,
    inference_per_second: Option<u64>,
    training_per_second: Option<u64>,
}

pub fn run(args: &Args, output: &Output) -> anyhow::Result<()> {
    let time = super::duration(args.seconds)?;
    let mut threads: Vec<usize> = args.threads.iter().map(|&count| count.into()).collect();
    if threads.is_empty() {
        threads = vec![1, std::thread::available_parallelism().map_or(1, Into::into)];
        threads.dedup();
    }
    let mut networks = Vec::new();
    for &name in &args.network {
        measure(name, args, &threads, time, &mut networks)
            .with_context(|| format!("network {name:?}"))?;
    }
    let report = Report { kernel: Kernel::detect().name(), networks };
    output.report(&report, |report, out| {
        for row in &report.networks {
            let (what, speed) = match (row.inference_per_second, row.training_per_second) {
                (Some(speed), _) => ("judges", speed),
                (_, speed) => ("learns", speed.unwrap_or(0)),
            };
            writeln!(
                out,
                "{:10} {:5} batch {:4}, threads {:3} {what} {:>10} positions/s",
                format!("{:?}", row.name),
                row.path,
                row.batch,
                row.threads,
                thousands(speed)
            )?;
        }
        writeln!(out, "\nKernels: {}", report.kernel)
    })
}

fn measure(
    name: Name,
    args: &Args,
    threads: &[usize],
    time: Duration,
    rows: &mut Vec<Row>,
) -> anyhow::Result<()> {
    let config = match name {
        Name::Small => Config::small(),
        Name::Toy => Config::toy(),
        Name::Standard => Config::standard(),
        Name::Large => Config::large(),
    };
    let weights = Weights::random(config, Seed::new(1))?;
    let most = args.batch.iter().copied().max().unwrap_or(1).max(64);
    let positions = bench::positions(config, most.into(), Seed::new(1));
    let row = |path, batch, threads| Row {
        name,
        parameters: config.parameters(),
        path,
        batch,
        threads,
        inference_per_second: None,
        training_per_second: None,
    };
    let networks = [
        ("fast", Network::new(&weights)),
        ("int8", Network::quantised(&weights, positions.planes())),
    ];
    for (path, network) in &networks {
        for &threads in threads {
            let mut session = Session::with_threads(network, threads)?;
            for &batch in &args.batch {
                let speed = bench::inference(&mut session, &positions, batch.into(), time);
                let inference_per_second = Some(speed as u64);
                rows.push(Row { inference_per_second, ..row(path, batch.into(), threads) });
            }
        }
    }
    let batch = bench::positions(config, args.training_batch.into(), Seed::new(2));
    for &threads in threads {
        let mut trainer = Trainer::new(weights.clone(), TrainingConfig::default(), threads)?;
        let speed = bench::training(&mut trainer, &batch, time)?;
        let training_per_second = Some(speed as u64);
        rows.push(Row { training_per_second, ..row("fast", batch.len(), threads) });
    }
    Ok(())
}
