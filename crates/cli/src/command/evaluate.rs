//! `selfmate evaluate`: evaluates a run of an endgame against the tablebase.

use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::time::Instant;

use anyhow::bail;
use selfmate_chess::Seed;
use selfmate_methods::endgame::{
    Oracle, TablebaseEvaluationConfig, TablebaseReport, Trained, evaluate,
};
use serde::Serialize;

use crate::output::{Output, thousands};
use crate::progress::stop_on_signal;
use crate::runs;

#[derive(clap::Args)]
pub struct Args {
    /// A run of krk, kqk or kpk
    run: String,
    /// Won positions to play out against each defender
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    positions: u64,
    /// Simulations per move
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    sims: u64,
    /// Maximum number of moves to mate
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    moves: u32,
    /// Seed of the positions and of the defenders' moves
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Threads [default: one per core]
    #[arg(long, value_name = "T")]
    threads: Option<NonZeroUsize>,
}

#[derive(Serialize)]
struct Report {
    run: String,
    /// The step of the checkpoint.
    step: u64,
    ending: &'static str,
    sims: u64,
    moves: u32,
    #[serde(flatten)]
    report: TablebaseReport,
    simulations_per_second: f64,
}

pub fn run(args: &Args, output: &Output) -> anyhow::Result<()> {
    let run = runs::find(&args.run)?;
    let trained = Trained::load(&run, None)?;
    let ending = trained.ending();
    let Trained { config, step, network, skipped_checkpoints } = trained;
    if let Some(skipped) = skipped_checkpoints {
        runs::warn(&skipped);
    }
    let evaluation = TablebaseEvaluationConfig {
        every_rounds: 0,
        positions: args.positions,
        simulations: args.sims,
        moves: args.moves,
    };
    let threads = args.threads.map_or(0, NonZeroUsize::get);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
    let oracle = Oracle::solve(ending)?;
    let stop = stop_on_signal()?;
    let cancel = || stop.load(std::sync::atomic::Ordering::Relaxed);
    let started = Instant::now();
    let seed = Seed::new(args.seed).derive("evaluation");
    let report =
        pool.install(|| evaluate(&config.selfplay, &evaluation, &oracle, &network, seed, &cancel));
    let Some(report) = report else { bail!("stopped") };
    let report = Report {
        run: run.name(),
        step,
        ending: ending.name(),
        sims: evaluation.simulations,
        moves: evaluation.moves,
        simulations_per_second: report.all_simulations as f64 / started.elapsed().as_secs_f64(),
        report,
    };
    output.report(&report, print)
}

fn print(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let Report { run, step, ending, sims, moves, report: result, simulations_per_second } = report;
    writeln!(out, "{run} at step {}: {ending}", thousands(*step))?;
    writeln!(
        out,
        "{} won positions, {sims} simulations per move, at most {moves} moves\n",
        thousands(result.positions)
    )?;
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    for (name, value) in [
        ("mates against the best defence", percent(result.mate_share)),
        ("mates against random moves", percent(result.random_mate_share)),
        ("mates against a simple heuristic", percent(result.heuristic_mate_share)),
        ("wins thrown away", percent(result.thrown_share)),
        ("best moves", percent(result.optimal_share)),
        ("plies lost per move", format!("{:.3}", result.regret_plies)),
        ("moves to mate", format!("{:.2}", result.mate_moves)),
        ("moves to mate with best play", format!("{:.2}", result.best_moves)),
        ("mean error of values", format!("{:.3}", result.value_error)),
        ("depth of simulations", format!("{:.1}, at most {}", result.depth, result.deepest)),
        ("simulations that reach a terminal node", percent(result.terminal_share)),
        ("mean absolute value of backups", format!("{:.3}", result.backup)),
        ("bytes per node", format!("{:.1}", result.node_bytes)),
        ("simulations per second", thousands(*simulations_per_second as u64)),
    ] {
        writeln!(out, "{name:38}{value:>16}")?;
    }
    Ok(())
}
