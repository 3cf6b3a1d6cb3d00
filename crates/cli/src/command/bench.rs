//! `selfmate bench`: measures the speed of every part and computes one deterministic signature.
//!
//! The signature changes exactly when rules, encodings or search behave differently; it does not
//! depend on speed.

mod endgame;
mod nets;
mod search;
mod searches;
mod zero;

use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::{Duration, Instant};

use selfmate_chess::env::{Action, ActionSpace, BatchEnv, Env};
use selfmate_chess::perft::perft;
use selfmate_chess::{Chess, Game, Rules, Seed};
use selfmate_encode::sparse::sparse768;
use selfmate_encode::{MoveSpace, Planes};
use selfmate_search::alphabeta;
use selfmate_search::memory::check_room;
use serde::Serialize;

use crate::number;
use crate::output::{Output, thousands};

#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    what: Option<What>,
    /// Seconds per part
    #[arg(long, default_value_t = 1.0, value_parser = number::seconds)]
    seconds: f64,
    /// Measure only this part; the JSON report lists the names
    #[arg(long, value_name = "NAME", value_parser = PARTS.iter().map(|(name, _)| *name).collect::<Vec<_>>())]
    part: Option<String>,
}

#[derive(clap::Subcommand)]
enum What {
    /// Residual networks: evaluated and trained positions per second
    Nets(nets::Args),
    /// A player's tree search: simulations per second
    Search(searches::Args),
}

#[derive(Serialize)]
struct Report {
    /// Changes when rules, encodings or search change.
    signature: String,
    /// Nodes of the alpha-beta benchmark, the same on every machine.
    nodes: u64,
    nodes_per_second: u64,
    #[serde(flatten)]
    parts: BTreeMap<&'static str, Part>,
}

#[derive(Serialize)]
struct Part {
    per_second: u64,
    unit: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_per_simulation: Option<f64>,
    /// Shares of the time, which sum to 1, by what it is spent on.
    #[serde(skip_serializing_if = "Option::is_none")]
    shares: Option<BTreeMap<&'static str, f64>>,
    #[serde(skip)]
    label: &'static str,
}

/// Measures one part for about this time.
type Measure = fn(Duration) -> Part;

/// All parts by name. Other programs rely on the names.
const PARTS: &[(&str, Measure)] = &[
    ("perft", |_| bench_perft()),
    ("environment", bench_environment),
    ("environment_batch", bench_batch),
    ("planes119", |time| {
        bench_encoding("planes119", time, &mut |game, out| Planes::Planes119.encode(game, out))
    }),
    ("sparse768", bench_sparse),
    ("mcts_uniform", search::mcts_uniform),
    ("mcts_uniform_threads", search::mcts_uniform_threads),
    ("mcts_material", search::mcts_material),
    ("mcts_800", search::mcts_800),
    ("rollout", search::rollout),
    ("rollout_full", search::rollout_full),
    ("network_value", zero::values),
    ("network_policy", zero::policies),
    ("zero_trees", zero::trees),
    ("zero_selfplay", zero::selfplay),
    ("zero_training", zero::training),
    ("krk_selfplay", endgame::default),
    ("krk_spec_selfplay", endgame::spec),
];

/// The reason why allocations of single parts cannot fail.
const ROOM: &str = "enough memory was checked at the start";

pub fn run(args: &Args, output: &Output) -> anyhow::Result<()> {
    match &args.what {
        Some(What::Nets(args)) => return nets::run(args, output),
        Some(What::Search(args)) => return searches::run(args, output),
        None => {}
    }
    let time = Duration::from_secs_f64(args.seconds);
    let started = Instant::now();
    check_room(2 << 30, "the benchmark")?;
    let nodes = alphabeta::bench()?;
    let nodes_per_second = per_second("", nodes, started.elapsed(), "nodes").per_second;
    let signature = signature(nodes);
    let is_wanted = |name: &str| args.part.as_deref().is_none_or(|part| part == name);
    let wanted = PARTS.iter().filter(|(name, _)| is_wanted(name));
    let parts = wanted.map(|(name, measure)| (*name, measure(time))).collect();
    let report = Report { signature, nodes, nodes_per_second, parts };
    output.report(&report, |report, out| {
        // In the order of PARTS, from the rules up.
        for part in PARTS.iter().filter_map(|(name, _)| report.parts.get(name)) {
            let per_second = thousands(part.per_second);
            write!(out, "{:38} {per_second:>14} {}/s", part.label, part.unit)?;
            if let Some(bytes) = part.bytes_per_simulation {
                write!(out, ", {bytes:.0} bytes each")?;
            }
            for (name, share) in part.shares.iter().flatten() {
                write!(out, ", {name} {:.0} %", 100.0 * share)?;
            }
            writeln!(out)?;
        }
        writeln!(out, "\nSignature       : {}", report.signature)?;
        writeln!(out, "Nodes searched  : {}", report.nodes)?;
        writeln!(out, "Nodes/second    : {}", report.nodes_per_second)
    })
}

/// A hash of everything that must not change unnoticed: random games with their moves, outcomes and
/// encodings, trees of every root rule, nodes of alpha-beta.
fn signature(nodes: u64) -> String {
    let mut sum: u64 = 0xCBF2_9CE4_8422_2325;
    let mut add = |value: u64| sum = (sum ^ value).wrapping_mul(0x0000_0100_0000_01B3);
    add(nodes);
    search::fingerprint(&mut add);
    let mut env = Env::new(Rules::default(), &MoveSpace::Az4672);
    let mut planes = vec![0.0; Planes::Planes119.size()];
    for game in 0..20 {
        env.reset_to(Chess::default(), Seed::new(1).derive("bench").index(game));
        while let Some(m) = env.sample() {
            let index = MoveSpace::Az4672.index(env.game().position(), m);
            add(index.map_or(u64::MAX, |index| index as u64));
            if env.game().ply().is_multiple_of(16) {
                Planes::Planes119.encode(env.game(), &mut planes);
                planes.iter().for_each(|value| add(u64::from(value.to_bits())));
            }
            let step = env.step(Action::Move(m));
            add(step.map_or(u64::MAX, |step| step.reward as u64));
        }
        add(env.game().key());
    }
    format!("{sum:016x}")
}

fn bench_perft() -> Part {
    let started = Instant::now();
    let nodes = perft(&Chess::default(), 5);
    per_second("perft, all cores", nodes, started.elapsed(), "nodes")
}

/// Random games until their end: legal moves, a choice, the step and all draw rules.
fn bench_environment(time: Duration) -> Part {
    let started = Instant::now();
    let mut env = Env::new(Rules::default(), &MoveSpace::Az4672);
    let (mut plies, mut game) = (0, 0);
    while started.elapsed() < time {
        env.reset_to(Chess::default(), Seed::new(1).derive("bench").index(game));
        while env.step_random().is_some() {
            plies += 1;
        }
        game += 1;
    }
    per_second("environment, one core", plies, started.elapsed(), "plies")
}

/// As [`bench_environment`], with many games in parallel, 16 plies at a time.
fn bench_batch(time: Duration) -> Part {
    const GAMES: usize = 256;
    const PLIES: usize = 16;
    let seed = Seed::new(1).derive("bench batch");
    let mut batch = BatchEnv::new(GAMES, seed, Rules::default(), &MoveSpace::Az4672);
    let started = Instant::now();
    let (mut plies, mut round) = (0, 0);
    while started.elapsed() < time {
        batch.reset(seed.index(round));
        loop {
            let played = batch.play_random(PLIES);
            plies += played as u64;
            // The few long games at the end would only measure waiting.
            if played < GAMES * PLIES / 2 {
                break;
            }
        }
        round += 1;
    }
    per_second("environment, all cores", plies, started.elapsed(), "plies")
}

fn bench_encoding(
    label: &'static str,
    time: Duration,
    encode: &mut dyn FnMut(&Game, &mut [f32]),
) -> Part {
    let games = sample_games();
    let mut out = vec![0.0; Planes::Planes119.size()];
    let mut count = 0;
    let started = Instant::now();
    while started.elapsed() < time {
        for game in &games {
            encode(game, &mut out);
            black_box(&out);
            count += 1;
        }
    }
    per_second(label, count, started.elapsed(), "positions")
}

fn bench_sparse(time: Duration) -> Part {
    let mut features = Vec::new();
    bench_encoding("sparse768", time, &mut |game, _| {
        sparse768(game.position(), &mut features);
        black_box(&features);
    })
}

/// Positions 0 to 80 plies into random games.
fn sample_games() -> Vec<Game> {
    let mut env = Env::new(Rules::default(), &MoveSpace::Az4672);
    (0..64)
        .map(|index| {
            env.reset_to(Chess::default(), Seed::new(2).derive("bench").index(index));
            for _ in 0..index + 16 {
                if let Some(m) = env.sample() {
                    env.step(Action::Move(m)).expect("a sampled move is legal");
                }
            }
            env.game().clone()
        })
        .collect()
}

fn per_second(label: &'static str, count: u64, elapsed: Duration, unit: &'static str) -> Part {
    let per_second = (count as f64 / elapsed.as_secs_f64().max(1e-9)) as u64;
    Part { per_second, unit, bytes_per_simulation: None, shares: None, label }
}
