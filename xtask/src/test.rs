//! `cargo xtask test`: set-up and all checks, in order, stopping at the first that fails.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::{
    direction, judge_onnx, judge_openenv, judge_page, judge_rules, judge_uci, licence,
    process::{cargo, find_program, root, run as run_command},
    setup,
};

/// What to leave out.
#[derive(clap::Args)]
pub struct Options {
    /// Leave out the slow steps: documentation, its examples and the judges
    #[arg(long)]
    quick: bool,
}

/// One check, with the heading it runs under.
struct Step {
    name: &'static str,
    slow: bool,
    check: fn() -> Result<()>,
}

const STEPS: &[Step] = &[
    Step { name: "set-up", slow: false, check: setup::run },
    Step { name: "format", slow: false, check: format },
    Step { name: "lints", slow: false, check: lints },
    Step { name: "dependency direction", slow: false, check: direction::run },
    Step { name: "licences", slow: false, check: licence::run },
    Step { name: "tests", slow: false, check: tests },
    Step { name: "networks against Burn", slow: true, check: burn },
    Step { name: "datasets as Parquet", slow: true, check: parquet },
    Step { name: "examples in the documentation", slow: true, check: doctests },
    Step { name: "documentation", slow: true, check: docs },
    Step { name: "the judges' own tests", slow: true, check: judge_tests },
    Step { name: "rules against python-chess", slow: true, check: rules },
    Step { name: "games through python-chess", slow: true, check: games },
    Step { name: "exported networks in onnxruntime", slow: true, check: judge_onnx::run },
    Step { name: "the page in chromium", slow: true, check: judge_page::run },
    Step { name: "the environment through openenv", slow: true, check: judge_openenv::run },
];

/// Runs the steps and prints how long each took.
pub fn run(options: &Options) -> Result<()> {
    let steps: Vec<&Step> = STEPS.iter().filter(|step| !(options.quick && step.slow)).collect();
    let mut times = Vec::new();
    let mut outcome = Ok(());
    for (number, step) in steps.iter().enumerate() {
        println!("\n== {}/{}: {} ==", number + 1, steps.len(), step.name);
        let start = Instant::now();
        outcome = (step.check)();
        times.push((step.name, start.elapsed()));
        if outcome.is_err() {
            break;
        }
    }
    summarise(&times, steps.len(), outcome.is_ok());
    let failed = times.last().map_or("", |(name, _)| name);
    outcome.with_context(|| format!("the step '{failed}' failed"))
}

fn summarise(times: &[(&str, Duration)], steps: usize, passed: bool) {
    println!("\n== summary ==");
    for (number, (name, time)) in times.iter().enumerate() {
        let failed = !passed && number + 1 == times.len();
        let verdict = if failed { "FAILED" } else { "ok" };
        println!("{:>7.1} s  {verdict:6}  {name}", time.as_secs_f64());
    }
    let total: Duration = times.iter().map(|(_, time)| *time).sum();
    println!("{:>7.1} s  in all, {} of {steps} steps run", total.as_secs_f64(), times.len());
}

fn format() -> Result<()> {
    run_command(&mut cargo("fmt --all --check")).context("`cargo fmt --all` puts it right")
}

fn lints() -> Result<()> {
    run_command(&mut cargo("clippy --workspace --all-targets -- -D warnings"))
}

fn tests() -> Result<()> {
    if find_program("cargo-nextest").is_some() {
        run_command(&mut cargo("nextest run --workspace"))
    } else {
        run_command(&mut cargo("test --workspace --lib --bins --tests --examples"))
    }
}

/// What we wrote by hand against automatic differentiation, and the devices of Burn.
fn burn() -> Result<()> {
    run_command(&mut cargo("clippy -p selfmate-nn --features burn --all-targets -- -D warnings"))?;
    run_command(&mut cargo("test -p selfmate-nn --features burn --test burn"))
}

fn parquet() -> Result<()> {
    run_command(&mut cargo("clippy -p selfmate --features parquet -- -D warnings"))?;
    run_command(&mut cargo("test -p selfmate-learn --features parquet --lib dataset"))
}

fn doctests() -> Result<()> {
    run_command(&mut cargo("test --doc --workspace"))
}

fn docs() -> Result<()> {
    run_command(cargo("doc --no-deps --workspace").env("RUSTDOCFLAGS", "-D warnings"))
}

fn judge_tests() -> Result<()> {
    let judges = root().join("xtask/judges");
    run_command(
        std::process::Command::new(setup::judge_python()?)
            .args(["-B", "-m", "unittest"])
            .current_dir(judges),
    )
}

fn games() -> Result<()> {
    // Slower clocks than the judge's own, so that a busy machine fails no test.
    judge_uci::run(&judge_uci::Options { games: 2, base: 4.0, increment: 0.2 })
}

fn rules() -> Result<()> {
    judge_rules::run(&judge_rules::Options { plies: 20_000, seed: 1 })
}
