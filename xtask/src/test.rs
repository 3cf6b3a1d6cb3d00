//! `cargo xtask test`: the set-up and all checks. It stops at the first failure.
//!
//! Most of the time is compilation, so lints, tests, documentation and judges share one profile and
//! one set of features, and everything is compiled once. The set-up downloads while the lints
//! compile. The judges come last, when nothing is left to compile, and run in parallel.

use std::fs;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};

use crate::process::{
    TEST_FEATURES, cargo, find_program, root, run as run_command, target_dir, test_binary,
};
use crate::{direction, licence, setup};

#[derive(clap::Args)]
pub struct Options {
    /// Skip the slow steps: documentation, doctests and judges
    #[arg(long)]
    quick: bool,
}

struct Step {
    name: &'static str,
    slow: bool,
    check: fn() -> Result<()>,
}

const STEPS: &[Step] = &[
    Step { name: "format", slow: false, check: format },
    Step { name: "dependency direction", slow: false, check: direction::run },
    Step { name: "licences", slow: false, check: licence::run },
    Step { name: "lints", slow: false, check: lints },
    Step { name: "the program with its default features", slow: false, check: default_features },
    Step { name: TESTS, slow: false, check: tests },
    Step { name: "examples in the documentation", slow: true, check: doctests },
    Step { name: "documentation", slow: true, check: docs },
    Step { name: "the judges' own tests", slow: true, check: judge_tests },
];

/// The first step that needs the set-up. Earlier ones need only Rust and npm.
const TESTS: &str = "tests";

/// A check by an independent program, started as a command of xtask.
struct Judge {
    name: &'static str,
    arguments: &'static [&'static str],
}

/// Longest first.
const JUDGES: &[Judge] = &[
    Judge { name: "the page in chromium", arguments: &["judge-page"] },
    Judge { name: "the API by schemathesis", arguments: &["judge-api"] },
    Judge { name: "the environment through openenv", arguments: &["judge-openenv"] },
    // More time than the default, so that no flag falls on a busy machine.
    Judge {
        name: "games through python-chess",
        arguments: &["judge-uci", "--games=2", "--base=4", "--increment=0.2"],
    },
    Judge { name: "rules against python-chess", arguments: &["judge-rules", "--plies=20000"] },
    Judge { name: "exported networks in onnxruntime", arguments: &["judge-onnx"] },
];
/// Judges in parallel. They wait for other programs more than they compute.
const PARALLEL_JUDGES: usize = 2;

struct Outcome {
    name: &'static str,
    time: Duration,
    result: Result<()>,
}

/// Runs all steps and prints their times.
pub fn run(options: &Options) -> Result<()> {
    let started = Instant::now();
    let steps: Vec<&Step> = STEPS.iter().filter(|step| !(options.quick && step.slow)).collect();
    let judges: &[Judge] = if options.quick { &[] } else { JUDGES };
    let count = 1 + steps.len() + judges.len();

    // The scope waits for the set-up even after a failure: an interrupted installer would block the
    // next one.
    let mut outcomes = thread::scope(|scope| -> Result<Vec<Outcome>> {
        let mut setup = Some(scope.spawn(|| timed("set-up", setup::run)));
        let mut outcomes = Vec::new();
        for (number, step) in steps.iter().enumerate() {
            if step.name == TESTS
                && let Some(setup) = setup.take()
            {
                outcomes.push(setup.join().map_err(|_| anyhow!("the set-up panicked"))?);
            }
            if has_failed(&outcomes) {
                break;
            }
            println!("\n== {}/{count}: {} ==", number + 1, step.name);
            outcomes.push(timed(step.name, step.check));
        }
        Ok(outcomes)
    })?;
    if !has_failed(&outcomes) && !judges.is_empty() {
        println!("\n== {} judges in parallel ==", judges.len());
        outcomes.extend(judge(judges)?);
    }
    summarise(&outcomes, count, started.elapsed());
    let failed = outcomes.into_iter().find(|outcome| outcome.result.is_err());
    match failed {
        Some(Outcome { name, result, .. }) => {
            result.with_context(|| format!("the step '{name}' failed"))
        }
        None => Ok(()),
    }
}

fn timed(name: &'static str, check: fn() -> Result<()>) -> Outcome {
    let start = Instant::now();
    let result = check();
    Outcome { name, time: start.elapsed(), result }
}

fn has_failed(outcomes: &[Outcome]) -> bool {
    outcomes.iter().any(|outcome| outcome.result.is_err())
}

/// Runs the judges in parallel and prints the output of each when it ends. After a failure no other
/// judge starts.
fn judge(judges: &'static [Judge]) -> Result<Vec<Outcome>> {
    test_binary()?;
    let folder = target_dir()?.join("judges");
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let (next, failed, outcomes) =
        (AtomicUsize::new(0), AtomicBool::new(false), Mutex::new(Vec::new()));
    let one = |judge: &Judge| -> Result<()> {
        let log = folder.join(format!("{}.log", judge.arguments[0]));
        let file =
            fs::File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
        let status = Command::new(std::env::current_exe()?)
            .args(judge.arguments)
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            .status()?;
        let output = fs::read(&log).with_context(|| format!("cannot read {}", log.display()))?;
        println!("\n== {} ==\n{}", judge.name, String::from_utf8_lossy(&output).trim_end());
        if !status.success() {
            bail!("cargo xtask {}: {status}", judge.arguments.join(" "));
        }
        Ok(())
    };
    thread::scope(|scope| {
        for _ in 0..PARALLEL_JUDGES {
            scope.spawn(|| {
                while let Some(judge) = judges.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if failed.load(Ordering::Relaxed) {
                        break;
                    }
                    let start = Instant::now();
                    let result = one(judge);
                    failed.fetch_or(result.is_err(), Ordering::Relaxed);
                    let outcome = Outcome { name: judge.name, time: start.elapsed(), result };
                    outcomes.lock().expect("no judge panics").push(outcome);
                }
            });
        }
    });
    Ok(outcomes.into_inner().expect("no judge panics"))
}

fn summarise(outcomes: &[Outcome], count: usize, total: Duration) {
    println!("\n== summary ==");
    for Outcome { name, time, result } in outcomes {
        let verdict = if result.is_ok() { "ok" } else { "FAILED" };
        println!("{:>7.1} s  {verdict:6}  {name}", time.as_secs_f64());
    }
    let run = outcomes.len();
    println!(
        "{:>7.1} s  in total (the set-up runs beside the lints, judges in parallel), {run} of {count} steps run",
        total.as_secs_f64()
    );
}

fn format() -> Result<()> {
    run_command(&mut cargo("fmt --all --check")).context("`cargo fmt --all` puts it right")
}

fn lints() -> Result<()> {
    // The page is part of the program; its build needs npm before anything else does.
    setup::NPM.meet()?;
    run_command(&mut cargo(&format!("clippy --all-targets {TEST_FEATURES} -- -D warnings")))
}

/// Tests and lints enable more features than `cargo run`, so what users build is checked as well.
fn default_features() -> Result<()> {
    run_command(&mut cargo("check --workspace"))
}

fn tests() -> Result<()> {
    if find_program("cargo-nextest").is_some() {
        run_command(&mut cargo(&format!("nextest run {TEST_FEATURES}")))
    } else {
        run_command(&mut cargo(&format!("test --lib --bins --tests --examples {TEST_FEATURES}")))
    }
}

fn doctests() -> Result<()> {
    run_command(&mut cargo(&format!("test --doc {TEST_FEATURES}")))
}

fn docs() -> Result<()> {
    let mut doc = cargo(&format!("doc --no-deps {TEST_FEATURES}"));
    run_command(doc.env("RUSTDOCFLAGS", "-D warnings"))
}

fn judge_tests() -> Result<()> {
    let judges = root().join("xtask/judges");
    run_command(
        Command::new(setup::judge_python()?).args(["-B", "-m", "unittest"]).current_dir(judges),
    )
}
