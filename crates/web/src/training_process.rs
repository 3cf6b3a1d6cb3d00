//! Trainings as separate processes of our own binary (`train`), so that a crash of one does not
//! affect the other. Interrupting a training makes it write a checkpoint and stop.

use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead, BufReader, Read as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use selfmate_arena::players::stockfish_program;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::error::{ApiError, int64, without_paths};
use crate::learner::{check_settings, learners};
use crate::run::lock;

/// The longest training: about two years.
pub const MAX_MINUTES: f64 = 1e6;
/// The maximum number of trainings at the same time; each uses all cores it is given.
const MAX_TRAININGS: usize = 4;
/// Ended trainings that are remembered for their last output.
const KEPT_ENDED: usize = 32;
/// Lines of a training's standard error that are kept.
const KEPT_LINES: usize = 40;
/// The environment variable from which `selfmate serve` reads its token.
const TOKEN_VARIABLE: &str = "SELFMATE_TOKEN";
/// The maximum length of a kept line.
const LINE_BYTES: u64 = 4096;

pub struct Trainings {
    program: PathBuf,
    runs: PathBuf,
    children: Mutex<BTreeMap<String, Training>>,
}

struct Training {
    child: Child,
    stopping: bool,
    /// The last lines it printed.
    output: Arc<Mutex<VecDeque<String>>>,
    listener: Option<JoinHandle<()>>,
    started: Instant,
    /// The final state and its time.
    ended: Option<(TrainingState, Instant)>,
}

/// The state of a training of this server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrainingState {
    /// With its start time.
    Running(Instant),
    /// With its start time.
    Stopping(Instant),
    Ended,
    /// With its last line of output.
    Failed(String),
}

/// A training to start.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Order {
    #[schema(pattern = "^[A-Za-z0-9_][A-Za-z0-9_.-]{0,59}$")]
    pub name: String,
    /// The learner; `zero` by default.
    #[serde(default)]
    pub learner: Option<String>,
    /// Name of a preset.
    #[serde(default)]
    pub preset: Option<String>,
    /// Stop after this many minutes of training, including earlier sessions.
    #[serde(default)]
    #[schema(exclusive_minimum = 0, maximum = 1_000_000)]
    pub minutes: Option<f64>,
    /// Stop after this many games, including earlier sessions.
    #[serde(default, deserialize_with = "int64")]
    pub games: Option<u64>,
    /// Stop after this many training steps, including earlier sessions.
    #[serde(default, deserialize_with = "int64")]
    pub steps: Option<u64>,
    /// Random seed.
    #[serde(default, deserialize_with = "int64")]
    pub seed: Option<u64>,
    /// Threads; all cores by default.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 1024)]
    pub threads: Option<u16>,
    /// Single settings, such as `selfplay.simulations.to=200`.
    #[serde(default)]
    #[schema(max_items = 100)]
    pub set: Vec<String>,
}

impl Order {
    /// Checks everything that is passed to the training process.
    pub fn check(&self) -> Result<(), ApiError> {
        let malformed = |text: String| Err(ApiError::Malformed(text));
        let bad = |text: String| Err(ApiError::Bad(text));
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let name = &self.name;
        if name.is_empty()
            || name.len() > 60
            || !name.chars().all(plain)
            || name.starts_with(['.', '-'])
        {
            return malformed(format!(
                "name '{name}': expected up to 60 letters, digits, '-', '_' and '.'"
            ));
        }
        let known = learners();
        let learner = match &self.learner {
            None => known.first(),
            Some(name) => known.iter().find(|learner| learner.name == *name),
        };
        let Some(learner) = learner else {
            let names: Vec<&str> = known.iter().map(|learner| learner.name).collect();
            return bad(format!("unknown learner: expected one of {}", names.join(", ")));
        };
        if let Some(preset) = &self.preset
            && !learner.presets.contains(&preset.as_str())
        {
            let presets = learner.presets.join(", ");
            return bad(format!("preset '{preset}': expected one of {presets}"));
        }
        if self.minutes.is_some_and(|minutes| !(minutes > 0.0 && minutes <= MAX_MINUTES)) {
            return malformed(format!("minutes: expected a number above 0, at most {MAX_MINUTES}"));
        }
        let cores = thread::available_parallelism().map_or(1, usize::from);
        if self.threads == Some(0) {
            return malformed("threads is 0: expected at least 1".into());
        }
        if self.set.len() > 100 {
            return malformed("set: expected up to 100 settings".into());
        }
        if self.threads.is_some_and(|threads| usize::from(threads) > cores) {
            return bad(format!("threads: expected 1 to {cores}, the cores of this machine"));
        }
        if !self.set.iter().all(|setting| is_plain_setting(setting)) {
            let text = "set: expected settings such as selfplay.simulations.to=200, each with a \
                number or a word; use the command line for settings that name files or programs";
            return bad(text.into());
        }
        Ok(())
    }

    /// Checks the settings of a new run. A training with a wrong setting would end at once and
    /// leave an empty run.
    pub fn check_settings(&self) -> Result<(), ApiError> {
        let learner = self.learner.as_deref();
        check_settings(learner, self.preset.as_deref(), &self.set).map_err(ApiError::Bad)
    }

    fn arguments(&self) -> Vec<String> {
        let mut arguments = vec!["train".to_owned()];
        arguments.extend(self.learner.clone());
        let mut flag = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                // One argument, so that a value cannot be mistaken for a flag.
                arguments.push(format!("--{name}={value}"));
            }
        };
        flag("run", Some(self.name.clone()));
        flag("preset", self.preset.clone());
        flag("minutes", self.minutes.map(|minutes| minutes.to_string()));
        flag("games", self.games.map(|games| games.to_string()));
        flag("steps", self.steps.map(|steps| steps.to_string()));
        flag("seed", self.seed.map(|seed| seed.to_string()));
        flag("threads", self.threads.map(|threads| threads.to_string()));
        for setting in &self.set {
            flag("set", Some(setting.clone()));
        }
        arguments.push("--plain".to_owned());
        arguments
    }
}

/// True when the value is not a path, a command or a player spec, which some settings accept.
fn is_plain_setting(setting: &str) -> bool {
    let Some((key, value)) = setting.split_once('=') else { return false };
    let key_fits = key.chars().all(|c| c.is_ascii_lowercase() || matches!(c, '.' | '_'));
    let is_number = |c: char| c.is_ascii_digit() || matches!(c, '.' | ',' | '-' | 'e' | '[' | ']');
    let is_word = |c: char| c.is_ascii_lowercase() || c == '_';
    let value_fits = value.chars().all(is_number) || value.chars().all(is_word);
    setting.len() <= 200 && !key.is_empty() && key_fits && value_fits
}

impl Trainings {
    pub fn new(program: PathBuf, runs: PathBuf) -> Trainings {
        Trainings { program, runs, children: Mutex::default() }
    }

    /// Starts or resumes a run.
    pub fn start(&self, order: &Order) -> Result<(), ApiError> {
        order.check()?;
        let mut children = lock(&self.children);
        if let Some(training) = children.get_mut(&order.name)
            && training.look().is_active()
        {
            let text = format!("run '{}' is already being trained", order.name);
            return Err(ApiError::Conflict(text));
        }
        let active =
            children.values_mut().filter_map(|training| training.look().is_active().then_some(()));
        if active.count() >= MAX_TRAININGS {
            let text =
                format!("{MAX_TRAININGS} trainings are already running: stop one of them first");
            return Err(ApiError::Busy(text));
        }
        forget_old(&mut children);
        let mut command = Command::new(&self.program);
        // Trainings and their child processes must not get the token.
        command.env_remove(TOKEN_VARIABLE);
        command.arg("--runs").arg(&self.runs).args(order.arguments());
        if let Some(program) = stockfish_program() {
            command.arg("--stockfish").arg(program);
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        // A Ctrl-C in the server's terminal must not reach the trainings directly; the server
        // interrupts them once.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command
            .spawn()
            .map_err(|error| ApiError::Internal(format!("cannot start the training: {error}")))?;
        let output = Arc::new(Mutex::new(VecDeque::new()));
        let listener = child.stderr.take().map(|stderr| {
            let output = Arc::clone(&output);
            thread::spawn(move || read_output(BufReader::new(stderr), &output))
        });
        let started = Instant::now();
        let training = Training { child, stopping: false, output, listener, started, ended: None };
        children.insert(order.name.clone(), training);
        Ok(())
    }

    /// Interrupts a training. A second interrupt stops it at once.
    pub fn stop(&self, name: &str) -> Result<(), ApiError> {
        let mut children = lock(&self.children);
        if let Some(training) = children.get_mut(name)
            && training.look().is_active()
        {
            training.interrupt();
            return Ok(());
        }
        Err(ApiError::Conflict(format!("run '{name}' is not being trained by this server")))
    }

    /// The state of a training; `None` if this server has never trained the run.
    pub fn state(&self, name: &str) -> Option<TrainingState> {
        let state = lock(&self.children).get_mut(name).map(Training::look)?;
        Some(match state {
            TrainingState::Failed(why) => TrainingState::Failed(without_paths(&why, &self.runs)),
            state => state,
        })
    }

    /// The last lines that a training printed.
    pub fn output(&self, name: &str) -> Vec<String> {
        let output = lock(&self.children).get(name).map(|training| Arc::clone(&training.output));
        let Some(output) = output else { return Vec::new() };
        let output = lock(&output);
        output.iter().map(|line| without_paths(line, &self.runs)).collect()
    }

    /// Names of the runs being trained.
    pub fn names(&self) -> Vec<String> {
        let mut children = lock(&self.children);
        let active = children
            .iter_mut()
            .filter_map(|(name, training)| training.look().is_active().then(|| name.clone()));
        active.collect()
    }

    /// Waits until the condition holds, the training has ended or the time is over.
    pub fn wait_for(&self, name: &str, longest: Duration, is_done: impl Fn() -> bool) {
        let started = Instant::now();
        let is_active = || self.state(name).is_some_and(|state| state.is_active());
        while !is_done() && is_active() && started.elapsed() < longest {
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Stops all trainings and waits for them to end.
    pub fn stop_all(&self) {
        let mut children = lock(&self.children);
        for training in children.values_mut() {
            if matches!(training.look(), TrainingState::Running(_)) {
                training.interrupt();
            }
        }
        for training in children.values_mut() {
            // An error means that it has already been waited for.
            let _ = training.child.wait();
        }
    }
}

impl TrainingState {
    fn is_active(&self) -> bool {
        matches!(self, TrainingState::Running(_) | TrainingState::Stopping(_))
    }
}

impl Training {
    fn look(&mut self) -> TrainingState {
        if let Some((ended, _)) = &self.ended {
            return ended.clone();
        }
        let state = match self.child.try_wait() {
            Ok(None) if self.stopping => return TrainingState::Stopping(self.started),
            Ok(None) => return TrainingState::Running(self.started),
            Ok(Some(status)) if status.success() => TrainingState::Ended,
            Ok(Some(status)) => {
                let last = lock(&self.output).back().cloned();
                let state = TrainingState::Failed(last.unwrap_or_else(|| status.to_string()));
                // Its output is complete when the pipe closes. That is not waited for, because a
                // child process may keep the pipe open.
                if self.listener.as_ref().is_some_and(|listener| !listener.is_finished()) {
                    return state;
                }
                state
            }
            Err(error) => TrainingState::Failed(error.to_string()),
        };
        self.ended = Some((state.clone(), Instant::now()));
        state
    }

    #[cfg(unix)]
    fn interrupt(&mut self) {
        use rustix::process::{Pid, Signal, kill_process};
        self.stopping = true;
        // Our child has not been waited for, so the process id is still valid.
        if let Some(id) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process(id, Signal::INT);
        }
    }

    /// Without signals the training is killed; resuming starts from the last checkpoint.
    #[cfg(not(unix))]
    fn interrupt(&mut self) {
        self.stopping = true;
        let _ = self.child.kill();
    }
}

/// Forgets all but the latest ended trainings.
fn forget_old(children: &mut BTreeMap<String, Training>) {
    let ended =
        |(name, training): (&String, &Training)| Some((training.ended.as_ref()?.1, name.clone()));
    let mut ended: Vec<(Instant, String)> = children.iter().filter_map(ended).collect();
    ended.sort_unstable();
    for (_, name) in ended.iter().rev().skip(KEPT_ENDED - 1) {
        children.remove(name);
    }
}

/// Keeps the last lines. Reads everything, so that the training never blocks on its output.
fn read_output(mut input: impl BufRead, output: &Mutex<VecDeque<String>>) {
    let mut line = Vec::new();
    loop {
        line.clear();
        match input.by_ref().take(LINE_BYTES).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let text = String::from_utf8_lossy(&line).trim_end().to_owned();
        if text.is_empty() {
            continue;
        }
        let mut output = lock(output);
        if output.len() >= KEPT_LINES {
            output.pop_front();
        }
        output.push_back(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(name: &str) -> Order {
        Order { name: name.to_owned(), ..Order::default() }
    }

    #[test]
    fn orders_are_checked_before_they_become_arguments() {
        assert_eq!(order("first-1.2_x").check(), Ok(()));
        for name in ["", "..", ".hidden", "-x", "a/b", "a b", "a@1", "a:b", "ä", "a\0", "a\nb"] {
            assert!(order(name).check().is_err(), "{name}");
        }
        let error = |order: Order| order.check().unwrap_err().to_string();
        assert!(error(Order { learner: Some("--x".into()), ..order("a") }).contains("learner"));
        assert!(error(Order { preset: Some("x".into()), ..order("a") }).contains("preset 'x'"));
        assert!(error(Order { threads: Some(60_000), ..order("a") }).contains("threads"));
        assert!(error(Order { minutes: Some(f64::NAN), ..order("a") }).contains("minutes"));
        for setting in [
            "--runs=/",
            "a",
            "=1",
            "clone.files=[\"/etc/passwd\"]",
            "tune.start=../secret",
            "evaluation.opponent=uci:sh",
            "evaluation.opponent=net:x",
        ] {
            let set = vec![setting.to_owned()];
            assert!(error(Order { set, ..order("a") }).contains("set"), "{setting}");
        }
        for setting in ["a.b_c=-1.5e-3", "a=[1,2]", "selfplay.root=gumbel", "a=true"] {
            assert!(is_plain_setting(setting), "{setting}");
        }
        for (setting, wanted) in [
            ("selfplay.nonsense=1", "there is no 'nonsense'"),
            ("selfplay.simulations.to=many", "many"),
        ] {
            let order = Order { set: vec![setting.to_owned()], ..order("a") };
            assert_eq!(order.check(), Ok(()));
            let wrong = order.check_settings().unwrap_err().to_string();
            assert!(wrong.contains(wanted), "{wrong}");
        }
        let right = vec!["selfplay.simulations.to=200".to_owned()];
        assert_eq!(Order { set: right, ..order("a") }.check_settings(), Ok(()));
        let full = Order { minutes: Some(0.5), set: vec!["a.b=1".into()], ..order("a") };
        assert_eq!(
            full.arguments(),
            ["train", "--run=a", "--minutes=0.5", "--set=a.b=1", "--plain"]
        );
    }

    #[test]
    fn the_last_lines_are_kept_and_long_lines_are_split() {
        let output = Mutex::default();
        let long = "x".repeat(3 * LINE_BYTES as usize);
        let text: String = (0..100).map(|n| format!("line {n}\n")).chain([long]).collect();
        read_output(text.as_bytes(), &output);
        let output = output.into_inner().unwrap();
        assert_eq!(output.len(), KEPT_LINES);
        assert!(output.iter().all(|line| line.len() as u64 <= LINE_BYTES));
        assert!(output.contains(&"line 99".to_owned()));
    }

    #[cfg(unix)]
    fn trainings(folder: &std::path::Path, script: &str) -> Trainings {
        let program = folder.join("program");
        // Written by a child process, so that no process started by another test has the file open
        // for writing.
        let write = format!("cat > {0} && chmod +x {0}", program.display());
        let mut shell =
            Command::new("sh").args(["-c", &write]).stdin(Stdio::piped()).spawn().unwrap();
        let mut input = shell.stdin.take().unwrap();
        std::io::Write::write_all(&mut input, format!("#!/bin/sh\n{script}\n").as_bytes()).unwrap();
        drop(input);
        assert!(shell.wait().unwrap().success());
        Trainings::new(program, folder.to_owned())
    }

    #[cfg(unix)]
    #[test]
    fn the_number_of_simultaneous_trainings_is_limited() {
        let folder = tempfile::tempdir().unwrap();
        let trainings = trainings(folder.path(), "exec sleep 600");
        for number in 0..MAX_TRAININGS {
            trainings.start(&order(&format!("run-{number}"))).unwrap();
        }
        assert!(matches!(trainings.start(&order("one-more")), Err(ApiError::Busy(_))));
        assert!(matches!(trainings.start(&order("run-0")), Err(ApiError::Conflict(_))));
        trainings.stop_all();
        assert!(trainings.names().is_empty());
        trainings.start(&order("one-more")).unwrap();
        trainings.stop_all();
    }

    #[cfg(unix)]
    #[test]
    fn the_error_of_a_failed_training_is_shown_even_while_its_pipe_is_open() {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path().display().to_string();
        let script =
            format!("sleep 600 & echo $! > {here}/held; echo {here}/a is broken >&2; exit 3");
        let trainings = trainings(folder.path(), &script);
        trainings.start(&order("broken")).unwrap();
        let failed = TrainingState::Failed("runs/a is broken".to_owned());
        while trainings.state("broken") != Some(failed.clone()) {
            thread::yield_now();
        }
        assert_eq!(trainings.output("broken"), ["runs/a is broken"]);
        let held = std::fs::read_to_string(folder.path().join("held")).unwrap();
        assert!(Command::new("kill").arg(held.trim()).status().unwrap().success());
    }

    #[cfg(unix)]
    #[test]
    fn old_ended_trainings_are_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let trainings = trainings(folder.path(), "true");
        for number in 0..KEPT_ENDED + 3 {
            let name = format!("run-{number:02}");
            trainings.start(&order(&name)).unwrap();
            while trainings.state(&name) != Some(TrainingState::Ended) {
                thread::yield_now();
            }
        }
        assert_eq!(lock(&trainings.children).len(), KEPT_ENDED);
        assert_eq!(trainings.state("run-00"), None);
    }
}
