//! `selfmate worker`: plays games for a run that is trained on another machine.

use std::cell::RefCell;
use std::num::NonZeroUsize;
use std::thread;
use std::time::Instant;

use selfmate_cluster::WorkerName;
use selfmate_cluster::worker::{Event, Options, work};

use crate::broker::AccessArgs;
use crate::output::thousands;
use crate::progress::{Progress, stop_on_signal};

#[derive(clap::Args)]
pub struct Args {
    /// Address of the NATS server, or several separated by commas
    #[arg(long, value_name = "URL", env = "SELFMATE_NATS")]
    nats: String,
    #[command(flatten)]
    access: AccessArgs,
    /// Threads that play games [default: one per core]
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
    /// Name of this worker; servers with a list of workers require it [default: the machine's name
    /// and a number]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let name = match &args.name {
        Some(name) => WorkerName::new(name)?,
        None => WorkerName::from_any(&format!("{}-{}", machine(), std::process::id())),
    };
    let threads = args.threads.map_or_else(
        || thread::available_parallelism().map_or(1, NonZeroUsize::get),
        NonZeroUsize::get,
    );
    let stop = stop_on_signal()?;
    let options = Options { access: args.access.access(&args.nats), name: name.clone(), threads };
    eprintln!("worker {name}: {threads} threads, playing games for {}", args.nats);
    let lines = RefCell::new(Lines::new());
    let sent = work(&options, &stop, &|event| lines.borrow_mut().print(&event));
    lines.borrow_mut().progress.finish();
    eprintln!("worker {name}: {} games sent", thousands(sent?));
    Ok(())
}

/// The machine's name, if it has one.
fn machine() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let name = name.or_else(|| std::env::var("HOSTNAME").ok());
    let name = name.or_else(|| std::env::var("COMPUTERNAME").ok()).unwrap_or_default();
    // Leaves room for the number.
    let name: String = name.trim().chars().take(40).collect();
    if name.is_empty() { "worker".to_owned() } else { name }
}

/// Prints the events of a worker.
struct Lines {
    progress: Progress,
    started: Instant,
    playing: String,
    trouble: String,
}

impl Lines {
    fn new() -> Lines {
        Lines {
            progress: Progress::new(),
            started: Instant::now(),
            playing: String::new(),
            trouble: String::new(),
        }
    }

    fn print(&mut self, event: &Event) {
        match event {
            Event::Connected => eprintln!("connected"),
            Event::Job(what) => {
                self.trouble.clear();
                self.playing.clone_from(what);
            }
            Event::Sent(games) => {
                let speed = *games as f64 / self.started.elapsed().as_secs_f64().max(1e-3);
                let games = thousands(*games);
                self.progress
                    .show(&format!("{}: {games} games sent, {speed:.2} per second", self.playing));
            }
            // The same problem is printed only once.
            Event::Trouble(what) if *what != self.trouble => {
                self.progress.finish();
                eprintln!("{what}; trying again");
                self.trouble.clone_from(what);
            }
            Event::Trouble(_) => {}
        }
    }
}
