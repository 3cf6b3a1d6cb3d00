//! Runs as the commands see them: where they are, and what one comes to.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use selfmate_run::{Alarm, Rating, Record, RunReader, RunTotals};
use serde::Serialize;

/// Where the runs are.
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

/// Says once, at the start of the program, where the runs are: every player spec may name one.
pub fn set_folder(args: &RunsArgs) {
    FOLDER.get_or_init(|| args.folder.clone());
}

/// The folder of runs.
pub fn folder() -> &'static Path {
    // Help texts are made before the flags are read.
    FOLDER.get().map_or(Path::new("./runs"), PathBuf::as_path)
}

/// A run by its name, with or without `run:` before it; the error says which there are.
pub fn find(name: &str) -> anyhow::Result<RunReader> {
    Ok(RunReader::find(folder(), name.strip_prefix("run:").unwrap_or(name))?)
}

/// Says on standard error that something is not as it should be, once however often it is found:
/// every thread of a match looks a player up.
pub fn warn(what: &dyn Display) {
    static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let text = what.to_string();
    if SAID.lock().unwrap_or_else(PoisonError::into_inner).insert(text.clone()) {
        eprintln!("selfmate: warning: {text}");
    }
}

/// The records of a run; warns of lines that cannot be read.
pub fn metrics(run: &RunReader) -> anyhow::Result<Vec<Record>> {
    let (records, damages) = run.metrics()?;
    for damage in damages {
        warn(&format!("{damage}; left out"));
    }
    Ok(records)
}

/// What a run comes to so far.
#[derive(Serialize)]
pub struct Summary {
    pub run: String,
    /// From the config.
    pub learner: Option<String>,
    /// From the config.
    pub seed: Option<u64>,
    /// Seconds since the run was begun.
    pub age_s: Option<f64>,
    /// Seconds since something was last recorded.
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
    /// Why the training ended; `None` while it goes on, and after a kill.
    pub ended: Option<String>,
}

/// The newest of everything.
#[derive(Serialize)]
pub struct Latest {
    /// The step of the newest checkpoint.
    pub checkpoint: Option<u64>,
    pub rating: Option<Rating>,
    pub alarm: Option<Alarm>,
    /// The learner's curves.
    pub values: BTreeMap<String, f64>,
}

/// The config of a run.
pub fn config(run: &RunReader) -> anyhow::Result<toml::Table> {
    let text = run.config()?.unwrap_or_default();
    text.parse().map_err(|error: toml::de::Error| {
        // Its text is a picture of the line; the first line says where.
        let (place, what) = (error.to_string(), error.message());
        let place = place.lines().next().unwrap_or_default();
        anyhow::anyhow!("{}: {place}: {what}", run.path().join("run.toml").display())
    })
}

/// The value of a setting as people write it: one that is kept in single precision has no more
/// digits than that, `0.9` and not `0.8999999761581421`.
pub fn setting_text(value: &toml::Value) -> String {
    match value {
        toml::Value::Float(number) if f64::from(*number as f32) == *number => {
            format!("{:?}", *number as f32)
        }
        value => value.to_string(),
    }
}

/// Adds up a run.
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

/// A span of time as people say it: `45 s`, `12 min`, `3 h 05`, `2 d 4 h`.
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
    fn settings_have_the_digits_that_were_written() {
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
    fn spans_are_said_as_people_say_them() {
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
