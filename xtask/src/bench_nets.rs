//! `cargo xtask bench-peers nets`: compares the speed of our residual network with the same network in
//! PyTorch. Both use two threads and are measured in alternation.

use std::{collections::BTreeMap, process::Command};

use anyhow::{Context, Result};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    bench_peers::median,
    process::{capture, cargo, root, run as run_command},
    setup,
};

/// The shape in `selfmate bench nets` that both sides build.
const NETWORK: &str = "toy";
const THREADS: u64 = 2;

/// The goals for our speed divided by PyTorch's, by what is measured.
const GOALS: &[(&str, f64)] = &[
    ("batch 1", 2.0),
    ("batch 8", 2.0),
    ("batch 32", 2.0),
    ("batch 128", 2.0),
    ("training, batch 256", 1.2),
];

/// Medians in positions per second, and their ratio.
#[derive(Serialize)]
struct Row {
    what: &'static str,
    ours: f64,
    theirs: f64,
    /// The fastest form of the PyTorch network.
    form: String,
    ratio: f64,
    goal: f64,
}

pub fn run(rounds: u32, seconds: f64, as_json: bool) -> Result<()> {
    let python = setup::judge_python()?;
    setup::TORCH.meet()?;
    run_command(&mut cargo("build --release -p selfmate"))?;
    let (mut ours, mut theirs) = (BTreeMap::new(), BTreeMap::new());
    for round in 1..=rounds {
        eprintln!("round {round} of {rounds}");
        let seconds = (seconds / 5.0).to_string();
        let mut bench = cargo("run --quiet --release -p selfmate -- bench nets --json --seconds");
        add_ours(&read(bench.arg(&seconds))?, &mut ours)?;
        let mut peer = Command::new(&python);
        peer.args(["-B", "xtask/judges/torch_nets.py", "--seconds", &seconds]).current_dir(root());
        peer.args(["--threads", &THREADS.to_string()]);
        add_theirs(&read(&mut peer)?, &mut theirs)?;
    }
    let rows = GOALS.iter().map(|&(what, goal)| row(what, goal, &ours, &theirs));
    let rows: Vec<Row> = rows.collect::<Result<_>>()?;
    if as_json {
        println!("{:#}", json!({ "group": "nets", "rounds": rounds, "rows": rows }));
        return Ok(());
    }
    println!("5 blocks of 64 filters, {THREADS} threads, positions/s");
    println!("{:20} {:>9} {:>9}  {:14} {:>6}", "", "ours", "torch", "(its fastest)", "ratio");
    for Row { what, ours, theirs, form, ratio, goal } in rows {
        let verdict = if ratio >= goal { "met" } else { "MISSED" };
        println!(
            "{what:20} {ours:>9.0} {theirs:>9.0}  {form:14} {ratio:>5.2}x  goal {goal}x {verdict}"
        );
    }
    Ok(())
}

fn read(command: &mut Command) -> Result<Value> {
    let text = capture(command)?;
    serde_json::from_str(&text)
        .with_context(|| format!("`{}` printed no JSON", crate::process::show(command)))
}

/// Adds the speeds of our fast path in this round.
fn add_ours(report: &Value, speeds: &mut BTreeMap<String, Vec<f64>>) -> Result<()> {
    let networks = report["networks"].as_array().context("`bench nets` lists no networks")?;
    let wanted = networks
        .iter()
        .filter(|row| row["name"] == NETWORK && row["path"] == "fast" && row["threads"] == THREADS);
    for row in wanted {
        let batch = &row["batch"];
        if let Some(speed) = row["inference_per_second"].as_f64() {
            speeds.entry(format!("batch {batch}")).or_default().push(speed);
        }
        if let Some(speed) = row["training_per_second"].as_f64() {
            speeds.entry(format!("training, batch {batch}")).or_default().push(speed);
        }
    }
    Ok(())
}

/// Adds the speeds of PyTorch in this round, by what is measured and the form.
fn add_theirs(report: &Value, speeds: &mut BTreeMap<(String, String), Vec<f64>>) -> Result<()> {
    for row in report["inference"].as_array().context("torch_nets.py reports no inference")? {
        let form = row["form"].as_str().unwrap_or_default().to_owned();
        let speed = row["inference_per_second"].as_f64().context("a row without a speed")?;
        speeds.entry((format!("batch {}", row["batch"]), form)).or_default().push(speed);
    }
    let speed = report["training_per_second"].as_f64().context("no speed of training")?;
    let training = ("training, batch 256".to_owned(), "plain".to_owned());
    speeds.entry(training).or_default().push(speed);
    Ok(())
}

fn row(
    what: &'static str,
    goal: f64,
    ours: &BTreeMap<String, Vec<f64>>,
    theirs: &BTreeMap<(String, String), Vec<f64>>,
) -> Result<Row> {
    let ours = ours.get(what).with_context(|| format!("`bench nets` has no {what}"))?;
    let best = theirs
        .iter()
        .filter(|((name, _), _)| name == what)
        .map(|((_, form), speeds)| (median(speeds), form))
        .max_by(|a, b| a.0.total_cmp(&b.0));
    let (theirs, form) = best.with_context(|| format!("torch_nets.py has no {what}"))?;
    let ours = median(ours);
    Ok(Row { what, ours, theirs, form: form.clone(), ratio: ours / theirs, goal })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fastest_form_of_the_pytorch_network_counts() {
        let (mut ours, mut theirs) = (BTreeMap::new(), BTreeMap::new());
        let row = |path: &str, threads: u64, speed: f64| {
            json!({ "name": NETWORK, "path": path, "threads": threads, "batch": 8,
                    "inference_per_second": speed })
        };
        let rows = [row("fast", 2, 600.0), row("fast", 1, 9e9), row("burn", 2, 9e9)];
        add_ours(&json!({ "networks": rows }), &mut ours).unwrap();
        let form = |form: &str, speed: f64| json!({ "form": form, "batch": 8, "inference_per_second": speed });
        let forms = [form("plain", 100.0), form("traced", 200.0)];
        let report = json!({ "inference": forms, "training_per_second": 1.0 });
        add_theirs(&report, &mut theirs).unwrap();
        let row = super::row("batch 8", 2.0, &ours, &theirs).unwrap();
        assert!((row.ratio - 3.0).abs() < 1e-9 && row.form == "traced");
        assert!(super::row("batch 1", 2.0, &ours, &theirs).is_err());
    }
}
