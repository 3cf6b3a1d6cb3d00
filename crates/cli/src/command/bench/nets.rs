//! `selfmate bench nets`: the speed of residual networks in evaluation and training, the speed of a
//! server shared by many searches, and how well quantised networks agree with floating point.

use std::time::Duration;

use anyhow::Context;
use selfmate_chess::Seed;
use selfmate_methods::players;
use selfmate_nn::Model;
use selfmate_nn::residual::{
    Config, Kernel, Network, Session, Trainer, TrainingConfig, Weights, bench,
};
use serde::Serialize;

use crate::number;
use crate::output::{Output, thousands};
use crate::runs;

#[derive(clap::Args)]
pub struct Args {
    /// Seconds per measurement
    #[arg(long, default_value_t = 1.0, value_parser = number::seconds)]
    seconds: f64,
    /// The networks (4, 5, 15 and 19 blocks of 32, 64, 192 and 256 filters)
    #[arg(long, value_delimiter = ',', default_value = "toy")]
    network: Vec<Name>,
    /// Also measure how often the network of a run (NAME, NAME@STEP, net:FILE) has the same best
    /// move quantised as in floating point
    #[arg(long, value_name = "RUN")]
    agreement: Option<String>,
    /// Searches that share one server
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=1024))]
    searches: u16,
    /// Positions per evaluated batch
    #[arg(long, value_delimiter = ',', default_value = "1,8,16,32,128", value_parser = clap::value_parser!(u16).range(1..=1024))]
    batch: Vec<u16>,
    /// Positions per training batch
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u16).range(1..=4096))]
    training_batch: u16,
    /// Threads per batch [default: one, then all cores]
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
    /// The floating-point kernel: portable, avx2 or avx512.
    kernel: &'static str,
    networks: Vec<Row>,
    agreement: Option<Agreement>,
}

#[derive(Serialize)]
struct Agreement {
    network: String,
    positions: usize,
    same_best_move: f64,
    value_distance: f64,
}

#[derive(Serialize)]
struct Row {
    name: Name,
    parameters: usize,
    /// `fast` for floating point, `int8` for quantised blocks, `server` for floating point with
    /// `batch` searches that share a server.
    path: &'static str,
    batch: usize,
    threads: usize,
    inference_per_second: Option<u64>,
    training_per_second: Option<u64>,
}

pub fn run(args: &Args, output: &Output) -> anyhow::Result<()> {
    let time = Duration::from_secs_f64(args.seconds);
    let mut threads: Vec<usize> = args.threads.iter().map(|&count| count.into()).collect();
    if threads.is_empty() {
        threads = vec![1, std::thread::available_parallelism().map_or(1, Into::into)];
        threads.dedup();
    }
    // First, because it may name a run that does not exist.
    let agreement = args.agreement.as_deref().map(agreement).transpose()?;
    let mut networks = Vec::new();
    for &name in &args.network {
        measure(name, args, &threads, time, &mut networks)
            .with_context(|| format!("network {name:?}"))?;
    }
    let report = Report { kernel: Kernel::detect().name(), networks, agreement };
    output.report(&report, |report, out| {
        for row in &report.networks {
            let (what, speed) = match (row.inference_per_second, row.training_per_second) {
                (Some(speed), _) => ("evaluates", speed),
                (_, speed) => ("trains", speed.unwrap_or(0)),
            };
            writeln!(
                out,
                "{:10} {:6} batch {:4}, threads {:3} {what} {:>10} positions/s",
                format!("{:?}", row.name),
                row.path,
                row.batch,
                row.threads,
                thousands(speed)
            )?;
        }
        if let Some(Agreement { network, positions, same_best_move, value_distance }) =
            &report.agreement
        {
            writeln!(
                out,
                "{network}: quantised and floating point have the same best move in {:.1} % of {positions} \
                 positions, their values differ by {value_distance:.4}",
                100.0 * same_best_move
            )?;
        }
        writeln!(out, "\nKernels: {}", report.kernel)
    })
}

/// Compares a quantised network with floating point, on other positions than those used for
/// quantisation.
fn agreement(text: &str) -> anyhow::Result<Agreement> {
    let model = players::model(text, runs::folder(), &|passed| runs::warn(passed))
        .map_err(anyhow::Error::msg)?;
    let Model::Residual(weights) = model else {
        anyhow::bail!("{text} is not a residual network");
    };
    let positions = |count, seed| bench::positions(weights.config(), count, Seed::new(seed));
    let rounded = Network::quantised(&weights, positions(256, 1).planes());
    let (mut floats, mut bytes) = (Session::new(&Network::new(&weights)), Session::new(&rounded));
    let found = bench::agreement(&mut floats, &mut bytes, &positions(1000, 2));
    Ok(Agreement {
        network: text.to_owned(),
        positions: found.positions,
        same_best_move: found.top_move,
        value_distance: found.value_distance,
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
    for &threads in threads {
        let searches = usize::from(args.searches);
        let speed = bench::served(&networks[0].1, searches, threads, time);
        let inference_per_second = Some(speed as u64);
        rows.push(Row { inference_per_second, ..row("server", searches, threads) });
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
