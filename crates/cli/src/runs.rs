//! The folder of runs, and the summary of a run.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use selfmate_run::{Alarm, Rating, Record, RunReader, RunTotals};
use serde::Serialize;

#[derive(clap::Args, Clone, Debug)]
pub struct RunsArgs {
    /// The folder of runs
    #[arg(
        long = "runs",
        value_name = "DIR",
        env = "SELFMATE_RUNS",
        default_value = "./runs",
        global = true
    )]
    pub folder: PathBuf,
}

static FOLDER: OnceLock<PathBuf> = OnceLock::new();

/// Sets the folder at the start of the program, because every player spec may name a run.
pub fn set_folder(args: &RunsArgs) {
    FOLDER.get_or_init(|| args.folder.clone());
}

/// The folder of runs.
pub fn folder() -> &'static Path {
    // Help texts are built before the flags are read.
    FOLDER.get().map_or(Path::new("./runs"), PathBuf::as_path)
}

/// Finds a run by name, with or without `run:`. The error lists the runs.
pub fn find(name: &str) -> anyhow::Result<RunReader> {
    Ok(RunReader::find(folder(), name.strip_prefix("run:").unwrap_or(name))?)
}

/// Prints a warning on standard error, each text only once: every thread of a match builds players.
pub fn warn(what: &dyn Display) {
    static PRINTED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let text = what.to_string();
    if PRINTED.lock().unwrap_or_else(PoisonError::into_inner).insert(text.clone()) {
        eprintln!("selfmate: warning: {text}");
    }
}

/// The records of a run. Prints warnings for damaged lines.
pub fn metrics(run: &RunReader) -> anyhow::Result<Vec<Record>> {
    let (records, damages) = run.metrics()?;
    for damage in damages {
        warn(&format!("{damage}; left out"));
    }
    Ok(records)
}

/// The summary of a run.
#[derive(Serialize)]
pub struct Summary {
    pub run: String,
    /// From the config.
    pub learner: Option<String>,
    /// From the config.
    pub seed: Option<u64>,
    /// Seconds since the run was created.
    pub age_s: Option<f64>,
    /// Seconds since the last record.
    pub recorded_s: Option<f64>,
    /// Seconds of training.
    pub elapsed_s: f64,
    pub generation: u64,
    pub games: u64,
    pub positions: u64,
    pub simulations: u64,
    pub steps: u64,
    /// The steps of the checkpoints.
    pub checkpoints: Vec<u64>,
    pub latest: Latest,
    /// Why the training ended; `None` while it runs, and after a kill.
    pub ended: Option<String>,
}

/// The newest checkpoint, rating, alarm and metrics.
#[derive(Serialize)]
pub struct Latest {
    /// The step of the newest checkpoint.
    pub checkpoint: Option<u64>,
    pub rating: Option<Rating>,
    pub alarm: Option<Alarm>,
    /// The learner's metrics.
    pub values: BTreeMap<String, f64>,
}

pub fn config(run: &RunReader) -> anyhow::Result<toml::Table> {
    let text = run.config()?.unwrap_or_default();
    text.parse().map_err(|error: toml::de::Error| {
        // The error text shows the line over several lines; its first line has the place.
        let (place, what) = (error.to_string(), error.message());
        let place = place.lines().next().unwrap_or_default();
        anyhow::anyhow!("{}: {place}: {what}", run.path().join("run.toml").display())
    })
}

/// A setting as text. Numbers stored in single precision have no extra digits: `0.9`, not
/// `0.8999999761581421`.
pub fn setting_text(value: &toml::Value) -> String {
    match value {
        toml::Value::Float(number) if f64::from(*number as f32) == *number => {
            format!("{:?}", *number as f32)
        }
        value => value.to_string(),
    }
}

/// Summarises a run.
pub fn summary(
    run: &RunReader,
    config: &toml::Table,
    metrics: &[Record],
) -> anyhow::Result<Summary> {
    let totals = RunTotals::new(run, metrics)?;
    let RunTotals { progress, checkpoints, .. } = totals;
    let latest = Latest {
        checkpoint: checkpoints.last().copied(),
        rating: totals.ratings.last().cloned(),
        alarm: totals.alarms.last().cloned(),
        values: progress.values,
    };
    Ok(Summary {
        run: run.name(),
        learner: config.get("learner").and_then(toml::Value::as_str).map(str::to_owned),
        seed: config
            .get("seed")
            .and_then(toml::Value::as_integer)
            .and_then(|seed| u64::try_from(seed).ok()),
        age_s: totals.age_s,
        recorded_s: totals.recorded_s,
        elapsed_s: totals.elapsed_s,
        generation: progress.generation,
        games: progress.games,
        positions: progress.positions,
        simulations: progress.simulations,
        steps: progress.steps,
        checkpoints,
        latest,
        ended: totals.ended,
    })
}

/// A duration as text: `45 s`, `12 min`, `3 h 05`, `2 d 4 h`.
pub fn span(seconds: f64) -> String {
    let minutes = (seconds / 60.0).floor() as u64;
    match minutes {
        _ if seconds < 90.0 => format!("{seconds:.0} s"),
        0..90 => format!("{minutes} min"),
        90..2880 => format!("{} h {:02}", minutes / 60, minutes % 60),
        _ => format!("{} d {} h", minutes / 1440, minutes % 1440 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_have_no_extra_digits() {
        let text = |number: f64| setting_text(&toml::Value::Float(number));
        assert_eq!(text(f64::from(0.9f32)), "0.9");
        assert_eq!(text(f64::from(1e-8f32)), "1e-8");
        assert_eq!(
            (text(0.9), text(160.0), text(1e-4)),
            ("0.9".into(), "160.0".into(), "0.0001".into())
        );
        assert_eq!(setting_text(&toml::Value::String("wdl".into())), "\"wdl\"");
    }

    #[test]
    fn durations_are_readable() {
        let cases = [
            (0.0, "0 s"),
            (89.0, "89 s"),
            (91.0, "1 min"),
            (3600.0, "60 min"),
            (11_100.0, "3 h 05"),
            (187_200.0, "2 d 4 h"),
        ];
        for (seconds, text) in cases {
            assert_eq!(span(seconds), text);
        }
    }
}
