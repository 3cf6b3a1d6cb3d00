//! `selfmate serve`: the web page and its API.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use anyhow::Context;
use selfmate_cluster::{Access, ClusterError, Member, Report, status};
use selfmate_web::{
    ClusterView, ClusterWatcher, Config, Limits, Server, WorkerView, missing_page, random_token,
};

use crate::broker::AccessArgs;
use crate::progress::stop_on_signal;
use crate::runs;

#[derive(clap::Args)]
pub struct Args {
    /// The address; if other machines can reach it, changes need the printed token
    #[arg(long, value_name = "ADDR", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    bind: IpAddr,
    /// The port; 0 selects a free one
    #[arg(long, value_name = "N", default_value_t = 8000)]
    port: u16,
    /// A host name of the page, besides addresses and localhost
    #[arg(long = "host", value_name = "NAME")]
    hosts: Vec<String>,
    /// Require this token of 16 or more characters, also on a local address; prefer the environment
    /// variable, which other users cannot see
    #[arg(long, value_name = "TOKEN", env = "SELFMATE_TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// Also show a distributed run, through this NATS server (several separated by commas)
    #[arg(long, value_name = "URL")]
    nats: Option<String>,
    #[command(flatten)]
    access: AccessArgs,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let token = match &args.token {
        Some(token) => Some(token.clone()),
        None if args.bind.is_loopback() => None,
        None => Some(random_token()?),
    };
    let config = Config {
        address: SocketAddr::new(args.bind, args.port),
        runs: runs::folder().to_owned(),
        program: std::env::current_exe().context("cannot find the selfmate binary")?,
        token: token.clone(),
        hosts: args.hosts.clone(),
        limits: Limits::default(),
        cluster: args.nats.as_ref().map(|url| watched(args.access.access(url))),
    };
    let stop = stop_on_signal()?;
    let server = Server::start(config)?;
    let fragment = match (&args.token, &token) {
        // A token chosen by the user is not printed.
        (None, Some(token)) => format!("/#/?token={token}"),
        _ => String::new(),
    };
    println!("selfmate is at http://{}{fragment}", reachable(server.address()));
    if let Some(missing) = missing_page() {
        eprintln!("selfmate: the web page is missing, only the API is served: {missing}");
    }
    while !stop.load(Ordering::Relaxed) {
        thread::sleep(Duration::from_millis(100));
    }
    let trainings = server.trainings();
    if !trainings.is_empty() {
        eprintln!("waiting for the trainings to write their checkpoints: {}", trainings.join(", "));
    }
    drop(server);
    Ok(())
}

/// An address that can be opened in a browser. An unspecified address is replaced by the one that
/// this machine uses to reach others.
fn reachable(address: SocketAddr) -> SocketAddr {
    if !address.ip().is_unspecified() {
        return address;
    }
    let (any, far, near): (IpAddr, &str, IpAddr) = match address.ip() {
        IpAddr::V4(any) => (any.into(), "192.0.2.1:9", Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(any) => (any.into(), "[2001:db8::1]:9", Ipv6Addr::LOCALHOST.into()),
    };
    // Documentation addresses: connecting a UDP socket selects the local address without sending
    // anything.
    let own = UdpSocket::bind((any, 0)).and_then(|socket| {
        socket.connect(far)?;
        socket.local_addr()
    });
    SocketAddr::new(own.map_or(near, |own| own.ip()), address.port())
}

/// Watches the cluster of a broker for the page.
fn watched(access: Access) -> ClusterWatcher {
    ClusterWatcher::new(move || match status(&access) {
        Ok(report) => Ok(view(report)),
        // The errors may contain passwords and file names, so they are replaced.
        Err(ClusterError::NoLearner { .. }) => Err("the learner does not answer".to_owned()),
        Err(_) => Err("the NATS server does not answer".to_owned()),
    })
}

fn view(report: Report) -> ClusterView {
    let Report { run, generation, network, missing, games, rejected, waiting, members, .. } =
        report;
    ClusterView {
        run,
        generation,
        network: network.map(|hash| hash.to_string()),
        missing,
        games,
        waiting,
        rejected,
        members,
        workers: report.workers.into_iter().map(worker).collect(),
        bans: report.bans.into_iter().map(|(name, why)| (name.to_string(), why)).collect(),
    }
}

fn worker(member: Member) -> WorkerView {
    WorkerView {
        name: member.name.to_string(),
        version: member.version,
        threads: member.threads,
        games: member.games,
        games_per_second: member.games_per_second,
        duplicates: member.duplicates,
        rejected: member.rejected,
        audited: member.audited,
        held: member.held,
        silent_s: member.silent_s,
        is_current: member.is_current,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_printed_address_can_be_opened() {
        let given: SocketAddr = "127.0.0.1:8000".parse().unwrap();
        assert_eq!(reachable(given), given);
        for all in ["0.0.0.0:8000", "[::]:8000"] {
            let shown = reachable(all.parse().unwrap());
            assert!(!shown.ip().is_unspecified() && shown.port() == 8000, "{shown}");
        }
    }
}
