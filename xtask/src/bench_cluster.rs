//! `cargo xtask bench-cluster`: measures the overhead of a cluster, with all processes on this machine.
//!
//! The same run is trained in one process and then with workers of one thread each. Wall time is
//! unreliable on a shared machine, so processor time (user and system, of all processes) is
//! measured as well. Processes are sampled ten times per second; the last 0.1 s may be missing.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::process::{cargo, root, run as run_command};
use crate::setup;

#[derive(clap::Args)]
pub struct Options {
    /// Games per run
    #[arg(long, default_value_t = 512)]
    games: u64,
    /// Threads of the learner, with and without workers
    #[arg(long, default_value_t = 2)]
    threads: u32,
    /// Numbers of workers to measure
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2, 4])]
    workers: Vec<usize>,
    /// Measure this binary instead of a release build
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Settings of the runs, such as selfplay.generation_games=256
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<String>,
}

pub fn run(options: &Options) -> Result<()> {
    setup::run()?;
    let program = match &options.program {
        Some(program) => program.clone(),
        None => {
            run_command(&mut cargo("build --release -p selfmate"))?;
            let target = std::env::var_os("CARGO_TARGET_DIR");
            target.map_or(root().join("target"), PathBuf::from).join("release/selfmate")
        }
    };
    let folder = std::env::temp_dir().join(format!("selfmate-bench-{}", std::process::id()));
    let bench = Bench { options, program, folder: folder.clone() };
    println!(
        "| | games per second | CPU seconds per game | of these broker | of these learner | bytes up per game | bytes down per game |"
    );
    println!("|---|---|---|---|---|---|---|");
    let outcome =
        bench.alone().and_then(|()| options.workers.iter().try_for_each(|&n| bench.with(n)));
    // A folder that is left behind does no harm.
    let _ = fs::remove_dir_all(folder);
    outcome
}

struct Bench<'a> {
    options: &'a Options,
    program: PathBuf,
    folder: PathBuf,
}

impl Bench<'_> {
    /// One process without workers.
    fn alone(&self) -> Result<()> {
        let folder = self.folder.join("alone");
        let mut parts = Processes::default();
        let threads = self.options.threads.to_string();
        parts.start("learner", self.train(&folder, &["--threads", &threads]))?;
        let seconds = parts.wait_for("learner")?;
        let games = self.options.games as f64;
        let cpu = parts.cpu() / games;
        println!("| one process, {threads} threads | {:.2} | {cpu:.4} | | | | |", games / seconds);
        Ok(())
    }

    /// A broker, a learner and some workers.
    fn with(&self, workers: usize) -> Result<()> {
        let folder = self.folder.join(workers.to_string());
        fs::create_dir_all(&folder)?;
        let (port, monitor) = (free_port()?, free_port()?);
        let config = folder.join("nats.conf");
        let store = folder.join("store");
        fs::write(
            &config,
            format!(
                "listen: \"127.0.0.1:{port}\"\nhttp: \"127.0.0.1:{monitor}\"\n\
                 jetstream {{ store_dir: {store:?}, sync_interval: always }}\n"
            ),
        )?;
        let mut parts = Processes::default();
        let mut server = Command::new(root().join("target/venv/bin/nats-server"));
        server.arg("-c").arg(config);
        parts.start("broker", server)?;
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            sleep(Duration::from_millis(10));
        }
        let url = format!("nats://127.0.0.1:{port}");
        for number in 0..workers {
            let mut worker = Command::new(&self.program);
            worker.args(["worker", "--nats", &url, "--threads", "1"]);
            worker.args(["--name", &format!("worker-{number}")]);
            parts.start(&format!("worker-{number}"), worker)?;
        }
        // Its threads audit games while workers play, and train while workers wait.
        let threads = self.options.threads.to_string();
        parts.start("learner", self.train(&folder, &["--nats", &url, "--threads", &threads]))?;
        let mut lines = BTreeMap::new();
        let seconds = parts.wait(|parts| {
            // Counters vanish with their connections, so the last values are kept.
            for (name, up, down) in connections(monitor) {
                lines.insert(name, (up, down));
            }
            parts.has_ended("learner")
        })?;
        let games = self.options.games as f64;
        let sum = |direction: fn(&(f64, f64)) -> f64| -> f64 {
            let of_workers = lines.iter().filter(|(name, _)| name.contains("worker"));
            of_workers.map(|(_, bytes)| direction(bytes)).sum::<f64>() / games
        };
        println!(
            "| {workers} workers of 1 thread | {:.2} | {:.4} | {:.4} | {:.4} | {:.0} | {:.0} |",
            games / seconds,
            parts.cpu() / games,
            parts.cpu_of("broker") / games,
            parts.cpu_of("learner") / games,
            sum(|bytes| bytes.0),
            sum(|bytes| bytes.1),
        );
        Ok(())
    }

    fn train(&self, folder: &Path, more: &[&str]) -> Command {
        let games = self.options.games.to_string();
        let mut train = Command::new(&self.program);
        train.args(["train", "zero", "--plain", "--run", "bench", "--seed", "1"]);
        train.args(["--games", &games, "--runs"]).arg(folder.join("runs")).args(more);
        // No ratings: they are the same work in both cases, and their number depends on the clock.
        train.args(["--set", "rating.every_seconds=1000000"]);
        for setting in &self.options.settings {
            train.args(["--set", setting]);
        }
        train
    }
}

/// Processes by name. They are killed when this is dropped.
#[derive(Default)]
struct Processes(BTreeMap<String, Process>);

struct Process {
    child: Child,
    cpu: f64,
    has_ended: bool,
}

impl Processes {
    fn start(&mut self, name: &str, mut command: Command) -> Result<()> {
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let child = child.with_context(|| format!("cannot start the {name}"))?;
        self.0.insert(name.to_owned(), Process { child, cpu: 0.0, has_ended: false });
        Ok(())
    }

    fn has_ended(&self, name: &str) -> bool {
        self.0.get(name).is_none_or(|part| part.has_ended)
    }

    fn wait_for(&mut self, name: &str) -> Result<f64> {
        self.wait(|parts| parts.has_ended(name))
    }

    /// Samples all processes until the condition holds. Returns the seconds that it took.
    fn wait(&mut self, mut is_over: impl FnMut(&Processes) -> bool) -> Result<f64> {
        let began = Instant::now();
        loop {
            for (name, part) in &mut self.0 {
                if let Some(cpu) = cpu_seconds(part.child.id()) {
                    part.cpu = cpu;
                }
                if let Some(status) = part.child.try_wait()? {
                    ensure!(status.success(), "the {name} ended with {status}");
                    part.has_ended = true;
                }
            }
            if is_over(self) {
                return Ok(began.elapsed().as_secs_f64());
            }
            sleep(Duration::from_millis(100));
        }
    }

    fn cpu(&self) -> f64 {
        self.0.values().map(|part| part.cpu).sum()
    }

    fn cpu_of(&self, name: &str) -> f64 {
        self.0.get(name).map_or(0.0, |part| part.cpu)
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        for part in self.0.values_mut() {
            // Fails if the process has already ended.
            let _ = part.child.kill();
            let _ = part.child.wait();
        }
    }
}

/// User and system time of a process. Linux counts it in hundredths of a second.
fn cpu_seconds(process: u32) -> Option<f64> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The program's name comes first, in parentheses, and may contain spaces.
    let mut fields = text.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<f64>().ok();
    Some((ticks()? + ticks()?) / 100.0)
}

/// The bytes that the broker has received from and sent to each connection.
fn connections(monitor: u16) -> Vec<(String, f64, f64)> {
    let mut text = String::new();
    if let Ok(mut stream) = TcpStream::connect(("127.0.0.1", monitor)) {
        // Without an answer there are no values this time.
        let _ = stream
            .write_all(b"GET /connz HTTP/1.0\r\n\r\n")
            .and_then(|()| stream.read_to_string(&mut text));
    }
    let body = text.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    let value: serde_json::Value = serde_json::from_str(body).unwrap_or_default();
    let connections = value["connections"].as_array().cloned().unwrap_or_default();
    let read = |connection: &serde_json::Value| {
        let bytes = |key: &str| connection[key].as_f64();
        Some((connection["name"].as_str()?.to_owned(), bytes("in_bytes")?, bytes("out_bytes")?))
    };
    connections.iter().filter_map(read).collect()
}

fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}
