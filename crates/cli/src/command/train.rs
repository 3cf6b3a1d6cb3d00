//! `selfmate train`: starts or resumes a run.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::thread;

use anyhow::{Context, bail, ensure};
use clap::builder::PossibleValuesParser;
use selfmate_cluster::lease::Terms;
use selfmate_cluster::source as cluster;
use selfmate_cluster::{Cluster, Detached, Storage};
use selfmate_methods::{LEARNERS, RunConfig, Settings, learner};
use selfmate_nn::Device;
use selfmate_run::{Budget, CONFIG, Record, Run, bounded_file, check_name};
use selfmate_search::memory::limit_mb;
use selfmate_selfplay::{GameSource, LocalThreads, Watch};
use selfmate_train::{ConfigChange, End, Hardware, TrainOptions, differences};

use crate::broker::AccessArgs;
use crate::number;
use crate::output::{Output, wrong_usage};
use crate::progress::stop_on_signal;
use crate::runs;
use flags::SettingFlags;

mod flags;
mod lines;
mod view;

#[derive(clap::Args)]
pub struct Args {
    /// The learner
    #[arg(default_value = "zero", value_parser = PossibleValuesParser::new(LEARNERS.iter().map(|info| info.name)))]
    learner: String,
    /// Name of the run; an existing run is resumed [default: the learner's name]
    #[arg(long, value_name = "NAME")]
    run: Option<String>,
    /// Stop after this many minutes of training, including earlier sessions
    #[arg(long, value_name = "M", value_parser = number::minutes)]
    minutes: Option<f64>,
    /// Stop after this many games, including earlier sessions; generations are always completed
    #[arg(long, value_name = "N")]
    games: Option<u64>,
    /// Stop after this many training steps, including earlier sessions
    #[arg(long, value_name = "N")]
    steps: Option<u64>,
    /// Random seed [default: 1]
    #[arg(long, value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    seed: Option<u64>,
    /// Threads [default: one per core]
    #[arg(long, value_name = "T")]
    threads: Option<NonZeroUsize>,
    /// Device for residual networks: cpu, or a device of Burn; `doctor` lists them
    #[arg(long, value_name = "D", default_value_t = Device::Cpu, conflicts_with = "nats")]
    device: Device,
    /// Name of a preset
    #[arg(long, value_name = "P")]
    preset: Option<String>,
    /// A setting, such as selfplay.simulations.to=200; --settings lists all
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<String>,
    /// List the learner's settings with these flags applied, without training; `show RUN` lists
    /// those of a run
    #[arg(long = "settings")]
    lists_settings: bool,
    /// Read settings from a TOML file in the format of --settings
    #[arg(long, value_name = "FILE", conflicts_with = "preset")]
    config: Option<PathBuf>,
    /// Let workers play the games, through this NATS server (several separated by commas)
    #[arg(long, value_name = "URL")]
    nats: Option<String>,
    #[command(flatten)]
    access: AccessArgs,
    /// Share of workers' games that are replayed here for verification
    #[arg(long, value_name = "SHARE", default_value_t = 0.02, requires = "nats", value_parser = number::share)]
    audit: f64,
    /// Number of NATS servers that store a copy of everything
    #[arg(long, value_name = "N", default_value_t = 1, requires = "nats", value_parser = replicas)]
    replicas: usize,
    /// Print plain lines instead of the live view, also on a terminal
    #[arg(long)]
    plain: bool,
    #[command(flatten)]
    flags: SettingFlags,
}

pub fn run(args: &Args, output: &Output) -> anyhow::Result<()> {
    args.check_preset();
    if args.lists_settings {
        return args.list_settings(output);
    }
    let name = args.name();
    if let Err(error) = check_name(name) {
        wrong_usage(&format!("--run {error}"));
    }
    let threads = args.threads.map_or_else(
        || thread::available_parallelism().map_or(1, NonZeroUsize::get),
        NonZeroUsize::get,
    );
    ensure!(threads <= MOST_THREADS, "--threads {threads}: expected at most {MOST_THREADS}");
    args.device.check()?;
    let hardware = Hardware { threads, device: args.device };
    let mut asked = args.asked()?;
    ensure!(
        args.nats.is_none() || asked.info().is_distributed,
        "--nats: {} has no self-play games that workers could play",
        args.learner
    );
    ensure!(
        args.device == Device::Cpu || asked.info().has_device,
        "--device {}: {} has no residual network, and other networks run only on the cpu",
        args.device,
        args.learner
    );
    let path = runs::folder().join(name);
    ensure!(
        // The speed of this machine says nothing about the number of workers.
        args.nats.is_none()
            || args.games.is_some()
            || args.plans_itself()
            || asked.plan_games().is_none()
            || path.exists(),
        "--nats: set the planned number of games with --games or --set plan_games=N",
    );
    // Before the folder is created, so that rejected settings leave nothing behind.
    let new = if path.exists() { None } else { Some(args.new_config(hardware)?) };
    let mut run = Run::open(&path)?;
    let config = match run.config()? {
        Some(text) => {
            let stored = RunConfig::parse(&text).with_context(|| path.display().to_string())?;
            match args.check_same(&stored) {
                // The run has no content yet: an earlier attempt failed on a wrong file or engine.
                Err(_) if run.is_blank()? => {
                    run.forget_metrics()?;
                    begin(&mut run, args.new_config(hardware)?)?
                }
                checked => checked.map(|()| stored)?,
            }
        }
        None => {
            ensure!(run.is_blank()?, "{}", without_config(&run)?);
            begin(&mut run, new.map_or_else(|| args.new_config(hardware), Ok)?)?
        }
    };
    args.check_memory(&config.settings, threads)?;
    let stop = stop_on_signal()?;
    let budget = Budget { minutes: args.minutes, games: args.games, steps: args.steps };
    let mut source = args.source(run.path(), threads)?;
    let mut lines = lines::Lines::default();
    let mut view = None;
    // The view shows self-play; other learners print their own numbers as lines.
    if !args.plain && config.settings.rating().is_some() {
        let scene = view::Scene::new(args.title(&config, budget, threads), runs::metrics(&run)?);
        view = view::View::open(scene, &stop);
    }
    let watch: &mut dyn Watch = match &mut view {
        Some(view) => view,
        None => &mut lines,
    };
    let options = TrainOptions { seed: config.seed, budget, hardware, stop: &stop };
    let end = config.settings.train(&mut run, &options, &mut *source, watch)?;
    // The view must release the terminal before anything else is printed.
    drop(view);
    if let End::Collapsed(reason) = end {
        bail!("{reason}");
    }
    let has_learned = run.steps()?.iter().any(|&step| step > 0);
    let seconds = runs::metrics(&run)?.last().and_then(Record::elapsed_s).unwrap_or_default();
    lines::print_line(&lines::closing(&args.learner, name, &end, seconds, has_learned));
    Ok(())
}

impl Args {
    fn name(&self) -> &str {
        self.run.as_deref().unwrap_or(&self.learner)
    }

    /// Lists the settings as TOML, which `--config` can read.
    fn list_settings(&self, output: &Output) -> anyhow::Result<()> {
        let settings = self.asked()?;
        let is_measured = settings.rating().is_some();
        output.report(&settings.to_table(), |table, out| {
            for (name, value) in flat(table) {
                write!(out, "{name} = {}", runs::setting_text(value))?;
                if name == "plan_games" && is_measured && !self.plans_itself() {
                    write!(out, " # measured when the run starts, unless it is set")?;
                }
                writeln!(out)?;
            }
            Ok(())
        })
    }

    /// Exits like clap for a wrong flag if the learner has no such preset.
    fn check_preset(&self) {
        let Some(preset) = &self.preset else { return };
        if Settings::preset(&self.learner, preset).is_none() {
            let presets = learner(&self.learner).map_or(&[][..], |info| info.presets).join(", ");
            wrong_usage(&format!("--preset '{preset}': {} has {presets}", self.learner));
        }
    }

    fn source(&self, folder: &Path, threads: usize) -> anyhow::Result<Box<dyn GameSource>> {
        let Some(url) = &self.nats else {
            return Ok(match Detached::open(folder, threads)? {
                Some(detached) => Box::new(detached),
                None => Box::new(LocalThreads(threads)),
            });
        };
        let cluster = Cluster::open(cluster::Options {
            access: self.access.access(url),
            storage: Storage { replicas: self.replicas, ..Storage::default() },
            run: self.name().to_owned(),
            folder: folder.to_owned(),
            threads,
            audit_share: self.audit,
            terms: Terms::default(),
        })?;
        Ok(Box::new(cluster))
    }

    /// The settings of the flags.
    fn asked(&self) -> anyhow::Result<Settings> {
        let preset = self.preset.as_deref().unwrap_or("default");
        let mut settings =
            Settings::preset(&self.learner, preset).context("presets are checked first")?;
        if let Some(path) = &self.config {
            let bytes = bounded_file::read(path, MAX_CONFIG)
                .with_context(|| format!("cannot read {}", path.display()))?;
            let text = String::from_utf8(bytes)
                .with_context(|| format!("{} is not a text file", path.display()))?;
            settings = settings.merge(&path.display().to_string(), &text)?;
        }
        let flags = self.flags.settings(&self.learner, &settings.to_table());
        let settings = settings.set(&flags)?.set(&self.settings)?;
        settings.check()?;
        Ok(settings)
    }

    /// The config of a new run.
    fn new_config(&self, hardware: Hardware) -> anyhow::Result<RunConfig> {
        let mut settings = self.asked()?;
        if !self.plans_itself() {
            let plan = match (self.games, self.minutes) {
                (Some(games), _) => Some(games.max(1)),
                (None, minutes) => {
                    // Measuring also needs memory, but not for the games that are not planned yet.
                    let mut least = settings.clone();
                    if let Some(games) = least.plan_games() {
                        *games = 1;
                    }
                    self.check_memory(&least, hardware.threads)?;
                    settings.measure_plan(minutes.unwrap_or(DEFAULT_MINUTES), hardware)?
                }
            };
            if let (Some(plan), Some(games)) = (plan, settings.plan_games()) {
                *games = plan;
            }
        }
        self.check_memory(&settings, hardware.threads)?;
        Ok(RunConfig::new(self.seed.unwrap_or(DEFAULT_SEED), settings))
    }

    /// Rejects settings that need more memory than available.
    fn check_memory(&self, settings: &Settings, threads: usize) -> anyhow::Result<()> {
        // Workers play the games; here only one game at a time is replayed.
        let playing = if self.nats.is_some() { 1 } else { threads };
        Ok(settings.check_memory(playing, limit_mb() as u64)?)
    }

    /// The title of the live view.
    fn title(&self, config: &RunConfig, budget: Budget, threads: usize) -> view::Title {
        let rating = config.settings.rating();
        view::Title {
            run: self.name().to_owned(),
            learner: self.learner.clone(),
            seed: config.seed,
            threads,
            budget,
            rating_nodes: rating.map_or(0, |rating| rating.nodes),
            rating_seconds: rating.map_or(0.0, |rating| rating.every_seconds),
        }
    }

    fn plans_itself(&self) -> bool {
        self.config.is_some()
            || self.has_planned_steps()
            || self.preset.as_deref() == Some("tiny")
            || self.settings.iter().any(|setting| setting.starts_with("plan_games="))
    }

    /// True if the run is planned in steps, which need no measurement.
    fn has_planned_steps(&self) -> bool {
        self.asked().is_ok_and(|settings| settings.to_table().contains_key("plan_steps"))
    }

    /// Rejects flags that differ from a stored run.
    fn check_same(&self, stored: &RunConfig) -> anyhow::Result<()> {
        let (name, seed) = (self.name(), stored.seed);
        let learner = stored.settings.learner();
        ensure!(
            learner == self.learner,
            "run '{name}' is a run of {learner}, not of {}: choose another --run",
            self.learner
        );
        if let Some(asked) = self.seed {
            ensure!(
                asked == seed,
                "run '{name}' has seed {seed}, not {asked}: choose another --run"
            );
        }
        let is_plain = self.preset.is_none() && self.config.is_none() && self.flags.is_empty();
        if is_plain && self.settings.is_empty() {
            return Ok(());
        }
        let mut asked = self.asked()?;
        if !self.plans_itself()
            && let (Some(plan), Some(games)) =
                (stored.settings.clone().plan_games(), asked.plan_games())
        {
            *games = *plan;
        }
        match differences(&stored.settings.to_table(), &asked.to_table()).first() {
            Some(ConfigChange { name: key, then: stored, now: asked, .. }) => bail!(
                "run '{name}' was started with {key} = {stored}, not {asked}: choose another --run"
            ),
            None => Ok(()),
        }
    }
}

/// A tip for a flag of `train` that does not exist.
pub fn tip(words: &[String], flag: &str) -> String {
    let named = words.iter().find_map(|word| learner(word)).unwrap_or(&LEARNERS[0]);
    let table = Settings::preset(named.name, "default").map(|settings| settings.to_table());
    let settings: Vec<String> = table.iter().flat_map(flat).map(|(name, _)| name).collect();
    flags::tip(named.name, flag, &settings)
}

/// Writes the config of a new run.
fn begin(run: &mut Run, config: RunConfig) -> anyhow::Result<RunConfig> {
    run.write_config(&config.to_toml())?;
    Ok(config)
}

/// The error for a trained run without a config, with what to do.
fn without_config(run: &Run) -> anyhow::Result<String> {
    let checkpoints = run.path().join("checkpoints");
    let copies = run.steps()?.into_iter().rev();
    let copy = copies.map(|step| checkpoints.join(step.to_string()).join(CONFIG));
    let what_to_do = match copy.into_iter().find(|copy| copy.is_file()) {
        Some(copy) => format!("copy {} there", copy.display()),
        None => "put it back".to_owned(),
    };
    Ok(format!(
        "run '{}' has been trained, but its {} is missing: {what_to_do}, or choose another --run",
        run.name(),
        run.path().join(CONFIG).display(),
    ))
}

/// All settings with their full names; settings outside of tables come first.
fn flat(table: &toml::Table) -> Vec<(String, &toml::Value)> {
    let (diverged, whole): (Vec<_>, Vec<_>) = table.iter().partition(|(_, value)| value.is_table());
    let mut settings: Vec<(String, &toml::Value)> =
        whole.into_iter().map(|(name, value)| (name.clone(), value)).collect();
    for (name, table) in diverged.iter().filter_map(|(name, value)| Some((name, value.as_table()?)))
    {
        let inner = flat(table).into_iter();
        settings.extend(inner.map(|(key, value)| (format!("{name}.{key}"), value)));
    }
    settings
}

/// Parses the number of replicas.
fn replicas(text: &str) -> Result<usize, String> {
    match text {
        "1" => Ok(1),
        "3" => Ok(3),
        "5" => Ok(5),
        _ => Err("expected 1, 3 or 5".to_owned()),
    }
}

const DEFAULT_SEED: u64 = 1;
/// The largest settings file that is read.
const MAX_CONFIG: u64 = 1 << 20;
/// More threads would only wait for each other.
const MOST_THREADS: usize = 1024;
/// The planned duration of schedules without `--minutes`.
const DEFAULT_MINUTES: f64 = 60.0;
