//! `selfmate cluster status`: the state of a distributed run.

use std::io::{self, Write};

use selfmate_cluster::{Report, status};

use crate::broker::AccessArgs;
use crate::output::{Output, thousands};

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Show workers, games, speed and rejected games
    Status(StatusArgs),
}

#[derive(clap::Args)]
struct StatusArgs {
    /// Address of the NATS server, or several separated by commas
    #[arg(long, value_name = "URL", env = "SELFMATE_NATS")]
    nats: String,
    #[command(flatten)]
    access: AccessArgs,
}

pub fn run(args: &Args, output: &Output) -> anyhow::Result<()> {
    let Command::Status(args) = &args.command;
    let report = status(&args.access.access(&args.nats))?;
    output.report(&report, write)
}

fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    match report.generation {
        Some(generation) => writeln!(
            out,
            "run {}: generation {generation}, {} games missing",
            report.run,
            thousands(report.missing)
        )?,
        None => writeln!(out, "run {}: training", report.run)?,
    }
    let network = report.network.map_or("none".to_owned(), |hash| hash.short());
    let current = report.workers.iter().filter(|member| member.is_current).count();
    writeln!(out, "network {network}, on {current} of {} workers", report.members)?;
    let waiting = report.waiting.map_or("?".to_owned(), thousands);
    writeln!(out, "{} games accepted, {waiting} waiting at the broker", thousands(report.games))?;
    for (kind, count) in &report.rejected {
        writeln!(out, "rejected, {kind}: {}", thousands(*count))?;
    }
    if !report.workers.is_empty() {
        writeln!(out)?;
        writeln!(
            out,
            "{:<24} {:>7} {:>9} {:>9} {:>6} {:>8} {:>8} {:>8}",
            "worker", "threads", "games", "per s", "held", "audited", "rejected", "silent"
        )?;
    }
    for member in &report.workers {
        writeln!(
            out,
            "{:<24} {:>7} {:>9} {:>9.2} {:>6} {:>8} {:>8} {:>6.0} s",
            member.name.as_str(),
            member.threads,
            thousands(member.games),
            member.games_per_second,
            member.held,
            member.audited,
            member.rejected.values().sum::<u64>(),
            member.silent_s,
        )?;
    }
    for (worker, reason) in &report.bans {
        writeln!(out, "banned: {worker}: {reason}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use selfmate_cluster::{Member, WorkerName};

    use super::*;

    #[test]
    fn a_report_is_printed_as_text() {
        let name = WorkerName::new("north-1").unwrap();
        let report = Report {
            run: "first".to_owned(),
            generation: Some(12),
            missing: 340,
            games: 1684,
            rejected: BTreeMap::from([("late".to_owned(), 3)]),
            waiting: Some(2),
            members: 1,
            workers: vec![Member {
                name: name.clone(),
                version: "0.1.0".to_owned(),
                threads: 4,
                sent: 1700,
                games: 1684,
                duplicates: 1,
                rejected: BTreeMap::from([("late".to_owned(), 3)]),
                audited: 35,
                diverged: 0,
                held: 16,
                games_per_second: 3.217,
                silent_s: 1.2,
                is_current: true,
            }],
            bans: BTreeMap::from([(WorkerName::new("mallory").unwrap(), "faked".to_owned())]),
            ..Report::default()
        };
        let mut out = Vec::new();
        write(&report, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "run first: generation 12, 340 games missing");
        assert_eq!(lines[1], "network none, on 1 of 1 workers");
        assert_eq!(lines[2], "1,684 games accepted, 2 waiting at the broker");
        assert_eq!(lines[3], "rejected, late: 3");
        let columns: Vec<&str> = lines[6].split_whitespace().collect();
        let expected = ["north-1", "4", "1,684", "3.22", "16", "35", "3", "1", "s"];
        assert_eq!(columns, expected);
        assert_eq!(lines[7], "banned: mallory: faked");
    }
}
