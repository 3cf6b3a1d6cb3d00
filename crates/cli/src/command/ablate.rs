//! `selfmate ablate`: compares settings in many small runs of an endgame.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Instant;

use anyhow::{Context, bail};
use selfmate_methods::Settings;
use selfmate_methods::endgame::ablate::{
    self, Axis, Design, Outcome, Plan, Progress, STUDY, Summary, axes_markdown, by_axis,
    results_csv, speed_csv, summarise,
};
use selfmate_methods::endgame::{EndgameConfig, TablebaseEvaluationConfig};
use selfmate_selfplay::Ending;
use serde::Serialize;

use crate::output::Output;
use crate::progress::stop_on_signal;

#[derive(clap::Args)]
pub struct Args {
    /// The endgame: krk, kqk or kpk
    #[arg(value_parser = Ending::ALL.map(Ending::name))]
    ending: String,
    /// A setting and the values to compare, in every combination with the others: encoder, units,
    /// root_rule, puct_formula, expansion, policy_target, lambda, result_weight, max_plies, c_puct,
    /// sims, priors, transpositions, or the path of a setting [default: four root rules, three numbers
    /// of simulations]
    #[arg(long = "grid", value_name = "NAME=A,B,C")]
    axes: Vec<Axis>,
    /// The same, one setting at a time with all others as they are; `all` compares all of the above
    #[arg(long, value_name = "NAME=A,B,C|all", conflicts_with = "axes")]
    each: Vec<String>,
    /// Only estimate the time
    #[arg(long)]
    estimate: bool,
    /// Runs per combination
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=1000))]
    seeds: u64,
    /// Self-play simulations per run
    #[arg(long, value_name = "N", default_value_t = 1_500_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000_000))]
    budget: u64,
    /// Evaluations per run, the last at its end
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=1000))]
    evaluations: u64,
    /// Won positions per evaluation
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    positions: u64,
    /// Simulations per move in an evaluation
    #[arg(long = "evaluation-sims", value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    evaluation_sims: u64,
    /// A setting for all runs, such as selfplay.discount=0.99
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<String>,
    /// Name of a preset
    #[arg(long, value_name = "P", default_value = "default", value_parser = ["default", "spec", "tiny"])]
    preset: String,
    /// The output folder; if it exists, the ablation resumes [default: ablate-ENDING]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Runs at the same time [default: one per core]
    #[arg(long, value_name = "T")]
    threads: Option<NonZeroUsize>,
}

/// The default grid.
const GRID: [&str; 2] = ["root_rule=greedy,puct,top_k,gumbel", "sims=16,32,64"];

#[derive(Serialize)]
struct EstimateReport {
    combinations: usize,
    runs: u64,
    core_seconds: f64,
    threads: usize,
}

#[derive(Serialize)]
struct Report {
    ending: String,
    folder: String,
    runs: usize,
    #[serde(flatten)]
    summary: Summary,
}

pub fn run(args: &Args, output: &Output) -> anyhow::Result<()> {
    let plan = args.plan()?;
    plan.cells().context(if plan.design == Design::Grid { "--grid" } else { "--each" })?;
    let folder = args.out.clone().unwrap_or_else(|| format!("ablate-{}", args.ending).into());
    let threads = args.threads.map_or_else(
        || thread::available_parallelism().map_or(1, NonZeroUsize::get),
        NonZeroUsize::get,
    );
    let stop = stop_on_signal()?;
    let cancel = || stop.load(Relaxed);
    let estimate = ablate::estimate(&plan, &cancel)?.context("stopped")?;
    let ablate::Estimate { combinations, runs, core_seconds } = estimate;
    if args.estimate {
        let report = EstimateReport { combinations, runs, core_seconds, threads };
        return output
            .report(&report, |_, out| writeln!(out, "{}", estimate_text(&estimate, threads)));
    }
    eprintln!("{}", estimate_text(&estimate, threads));
    let (started, printing) = (Instant::now(), Mutex::new(()));
    let print_progress = |progress: &Progress<'_>| {
        let _one_at_a_time = printing.lock();
        let Progress { done, total, outcome } = progress;
        let mates = outcome.points.last().map_or(0.0, |point| 100.0 * point.report.mate_share);
        eprintln!(
            "{:6.0} s  {done}/{total}  {} seed {}: {mates:.1} % mates, {:.0} s",
            started.elapsed().as_secs_f64(),
            outcome.cell,
            outcome.seed,
            outcome.seconds
        );
    };
    let Some(outcomes) = ablate::run(&plan, &folder, threads, &stop, &print_progress)? else {
        bail!("stopped; run the same command again to complete the missing runs");
    };
    let summary = summarise(&outcomes);
    let table = table(plan.design, &args.ending, &outcomes);
    let mut files = pictures(plan.design, &args.ending, &outcomes);
    files.push(("results.csv".to_owned(), results_csv(&outcomes)));
    files.push(("speed.csv".to_owned(), speed_csv(&outcomes)));
    files.push(("table.md".to_owned(), table.clone()));
    for (name, text) in files {
        ablate::write(&folder.join(name), text.as_bytes())?;
    }
    let report = Report {
        ending: args.ending.clone(),
        folder: folder.display().to_string(),
        runs: outcomes.len(),
        summary,
    };
    output.report(&report, |report, out| {
        write!(out, "{table}")?;
        writeln!(out, "\n{} results of {}; files in {}", report.runs, report.ending, report.folder)
    })
}

fn estimate_text(estimate: &ablate::Estimate, threads: usize) -> String {
    let ablate::Estimate { combinations, runs, core_seconds } = *estimate;
    let minutes = core_seconds / threads as f64 / 60.0;
    format!(
        "{combinations} combinations, {runs} runs: about {minutes:.1} minutes on {threads} threads"
    )
}

fn table(design: Design, ending: &str, outcomes: &[Outcome]) -> String {
    match design {
        Design::Grid => summarise(outcomes).markdown(),
        Design::Each => axes_markdown(ending, outcomes),
    }
}

/// File names and SVG.
fn pictures(design: Design, ending: &str, outcomes: &[Outcome]) -> Vec<(String, String)> {
    match design {
        Design::Grid => summarise(outcomes).pictures(ending),
        Design::Each => by_axis(outcomes)
            .flat_map(|(axis, own)| {
                let pictures = summarise(own).pictures(ending).into_iter();
                pictures.map(move |(name, svg)| (format!("{axis}-{name}"), svg))
            })
            .collect(),
    }
}

impl Args {
    fn plan(&self) -> anyhow::Result<Plan> {
        let settings = Settings::preset(&self.ending, &self.preset).context("a known ending")?;
        let settings = settings.set(&self.settings).context("--set")?;
        settings.check().context("--set")?;
        let config = settings.downcast::<EndgameConfig>().context("a known ending")?.clone();
        let parsed = |texts: &[&str]| texts.iter().map(|text| text.parse()).collect();
        let each: Vec<&str> = self.each.iter().map(String::as_str).collect();
        let (design, axes): (_, Result<Vec<Axis>, _>) = match (&self.axes[..], &each[..]) {
            ([], []) => (Design::Grid, parsed(&GRID)),
            (axes, []) => (Design::Grid, Ok(axes.to_vec())),
            (_, ["all"]) => (Design::Each, parsed(&STUDY)),
            (_, each) => (Design::Each, parsed(each)),
        };
        let axes = axes.context("--each")?;
        Ok(Plan {
            evaluation: TablebaseEvaluationConfig {
                every_rounds: 0,
                positions: self.positions,
                simulations: self.evaluation_sims,
                moves: config.evaluation.map_or(50, |evaluation| evaluation.moves),
            },
            config,
            axes,
            design,
            seeds: self.seeds,
            budget: self.budget,
            evaluations: self.evaluations,
        })
    }
}
