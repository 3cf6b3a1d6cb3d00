//! The state of the coordinator: the current job, its leases, the workers and the bans. It has
//! neither sockets nor a clock, so it can be tested without them.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::audit::Agreement;
use crate::ban::Bans;
use crate::error::ClusterError;
use crate::hash::Hash;
use crate::job::PROTOCOL;
use crate::key::Key;
use crate::lease::{Leases, Terms};
use crate::message::{Answer, Ask, Grant, Heartbeat, HeartbeatReply, MAX_GRANT, MAX_HELD};
use crate::rejection::Rejection;
use crate::status::{Member, Report};
use crate::subject::WorkerName;

pub struct CoordinatorState {
    run: String,
    key: Key,
    bans: Bans,
    terms: Terms,
    workers: BTreeMap<WorkerName, WorkerEntry>,
    /// Messages on subjects without a valid worker name.
    strangers: u64,
    current: Option<Current>,
}

/// The job that is being played.
struct Current {
    job: Hash,
    generation: u64,
    network: Option<Hash>,
    leases: Leases,
}

struct WorkerEntry {
    member: Member,
    first_seen: Duration,
    last_seen: Duration,
    job: Option<Hash>,
}

/// More workers than this can only be made-up names; further ones are ignored.
const MAX_WORKERS: usize = 50_000;
/// Workers and bans that a report lists.
const MAX_LISTED: usize = 1000;
/// When to ask again while all games are lent.
const ALL_LENT_WAIT_MS: u64 = 1000;
/// When to ask again while there is no job.
const NO_JOB_WAIT_MS: u64 = 5000;

impl CoordinatorState {
    pub fn new(run: String, key: Key, bans: Bans, terms: Terms) -> CoordinatorState {
        let workers = BTreeMap::new();
        CoordinatorState { run, key, bans, terms, workers, strangers: 0, current: None }
    }

    /// Starts to lend the games of a job.
    pub fn begin(
        &mut self,
        job: Hash,
        generation: u64,
        network: Option<Hash>,
        numbers: impl IntoIterator<Item = u64>,
    ) {
        let leases = Leases::new(numbers, self.terms);
        self.current = Some(Current { job, generation, network, leases });
    }

    /// Ends the current job.
    pub fn end(&mut self) {
        self.current = None;
    }

    /// The current job.
    pub fn job(&self) -> Option<Hash> {
        self.current.as_ref().map(|current| current.job)
    }

    /// Games of the current job that have not arrived.
    pub fn missing(&self) -> usize {
        self.current.as_ref().map_or(0, |current| current.leases.missing())
    }

    pub fn ask(&mut self, worker: &WorkerName, ask: &Ask, now: Duration) -> Answer {
        if let Some(reason) = self.bans.reason(worker) {
            return Answer::Refused { reason: reason.to_owned() };
        }
        if ask.protocol != PROTOCOL {
            let reason = format!(
                "the worker has protocol {}: expected {PROTOCOL}; use the same version of selfmate for \
                 coordinator and workers",
                ask.protocol
            );
            return Answer::Refused { reason };
        }
        let Some(entry) = self.entry(worker, now) else {
            return Answer::Wait { milliseconds: NO_JOB_WAIT_MS };
        };
        entry.member.version = ask.version.chars().take(32).collect();
        entry.member.threads = ask.threads;
        entry.job = ask.job;
        let Some(current) = &mut self.current else {
            return Answer::Wait { milliseconds: NO_JOB_WAIT_MS };
        };
        current.leases.expire(now);
        if ask.job == Some(current.job) {
            current.leases.extend(worker, &ask.has, now);
        }
        let room = MAX_HELD.saturating_sub(current.leases.held_by(worker));
        let most = (ask.want as usize).min(MAX_GRANT).min(room);
        let numbers = current.leases.lend(worker, most, now);
        if numbers.is_empty() {
            return Answer::Wait { milliseconds: ALL_LENT_WAIT_MS };
        }
        let job = current.job;
        let grant = |number| Grant { number, token: self.key.token(worker, &job, number) };
        Answer::Work { job, games: numbers.into_iter().map(grant).collect() }
    }

    pub fn heartbeat(
        &mut self,
        worker: &WorkerName,
        heartbeat: &Heartbeat,
        now: Duration,
    ) -> HeartbeatReply {
        let job = self.job();
        if self.bans.reason(worker).is_some() {
            return HeartbeatReply { job: None };
        }
        let Some(entry) = self.entry(worker, now) else { return HeartbeatReply { job } };
        entry.member.sent = heartbeat.sent;
        entry.job = heartbeat.job;
        if let Some(current) = &mut self.current {
            if heartbeat.leaving {
                current.leases.release(worker);
            } else if heartbeat.job == Some(current.job) {
                current.leases.extend(worker, &heartbeat.has, now);
            }
            current.leases.expire(now);
        }
        HeartbeatReply { job }
    }

    /// Ends leases whose time is up.
    pub fn expire(&mut self, now: Duration) {
        if let Some(current) = &mut self.current {
            current.leases.expire(now);
        }
    }

    pub fn is_banned(&self, worker: &WorkerName) -> bool {
        self.bans.reason(worker).is_some()
    }

    /// Accepts a valid game. Returns false if it had arrived before.
    pub fn accept(&mut self, worker: &WorkerName, number: u64, now: Duration) -> bool {
        let is_new = self.current.as_mut().is_some_and(|current| current.leases.finish(number));
        if let Some(entry) = self.entry(worker, now) {
            let count = if is_new { &mut entry.member.games } else { &mut entry.member.duplicates };
            *count += 1;
        }
        is_new
    }

    /// Whether no game of the worker was accepted since the coordinator started.
    pub fn is_new_worker(&self, worker: &WorkerName) -> bool {
        self.workers.get(worker).is_none_or(|entry| entry.member.games == 0)
    }

    pub fn count_rejection(&mut self, worker: &WorkerName, kind: &str, now: Duration) {
        if let Some(entry) = self.entry(worker, now) {
            *entry.member.rejected.entry(kind.to_owned()).or_default() += 1;
        }
    }

    /// Counts a message on a subject without a valid worker name.
    pub const fn count_stranger(&mut self) {
        self.strangers += 1;
    }

    /// Marks a removed game as missing again.
    pub fn reopen(&mut self, number: u64) {
        if let Some(current) = &mut self.current {
            current.leases.reopen(number);
        }
    }

    /// Counts an audit. Returns how many games of the worker were audited, and how many diverged.
    pub fn count_audit(&mut self, worker: &WorkerName, agreement: &Agreement) -> (u64, u64) {
        let Some(entry) = self.workers.get_mut(worker) else { return (0, 0) };
        let member = &mut entry.member;
        member.audited += 1;
        match agreement {
            Agreement::Same => {}
            Agreement::Diverged { .. } => member.diverged += 1,
            Agreement::Different(what) => {
                let kind = Rejection::Audit(what.clone()).kind();
                *member.rejected.entry(kind.to_owned()).or_default() += 1;
            }
        }
        (member.audited, member.diverged)
    }

    /// Bans a worker and ends its leases. Returns false if it was banned before.
    pub fn ban(&mut self, worker: &WorkerName, reason: &str) -> Result<bool, ClusterError> {
        if let Some(current) = &mut self.current {
            current.leases.release(worker);
        }
        self.bans.add(worker, reason)
    }

    pub fn report(&self, now: Duration) -> Report {
        let job = self.job();
        let mut rejected: BTreeMap<String, u64> = BTreeMap::new();
        let mut workers = Vec::new();
        for entry in self.workers.values() {
            for (kind, count) in &entry.member.rejected {
                *rejected.entry(kind.clone()).or_default() += count;
            }
            let held = self
                .current
                .as_ref()
                .map_or(0, |current| current.leases.held_by(&entry.member.name) as u64);
            let seconds = (entry.last_seen - entry.first_seen).as_secs_f64().max(1.0);
            workers.push(Member {
                held,
                games_per_second: entry.member.games as f64 / seconds,
                silent_s: now.saturating_sub(entry.last_seen).as_secs_f64(),
                is_current: job.is_some() && entry.job == job,
                ..entry.member.clone()
            });
        }
        let games = workers.iter().map(|member| member.games).sum();
        let count = workers.len();
        // A message has no room for ten thousand workers: keep those seen most recently.
        workers.sort_by(|a, b| a.silent_s.total_cmp(&b.silent_s));
        workers.truncate(MAX_LISTED);
        workers.sort_by(|a, b| a.name.cmp(&b.name));
        if self.strangers > 0 {
            rejected.insert("stranger".to_owned(), self.strangers);
        }
        Report {
            run: self.run.clone(),
            generation: self.current.as_ref().map(|current| current.generation),
            network: self.current.as_ref().and_then(|current| current.network),
            missing: self.missing() as u64,
            games,
            members: count as u64,
            rejected,
            waiting: None,
            workers,
            bans: self
                .bans
                .iter()
                .take(MAX_LISTED)
                .map(|(name, reason)| (name.clone(), reason.to_owned()))
                .collect(),
        }
    }

    /// The entry of a worker that has just sent something; `None` when there are too many workers.
    fn entry(&mut self, worker: &WorkerName, now: Duration) -> Option<&mut WorkerEntry> {
        if self.workers.len() >= MAX_WORKERS && !self.workers.contains_key(worker) {
            return None;
        }
        let entry = self.workers.entry(worker.clone()).or_insert_with(|| WorkerEntry {
            member: Member {
                name: worker.clone(),
                version: String::new(),
                threads: 0,
                sent: 0,
                games: 0,
                duplicates: 0,
                rejected: BTreeMap::new(),
                audited: 0,
                diverged: 0,
                held: 0,
                games_per_second: 0.0,
                silent_s: 0.0,
                is_current: false,
            },
            first_seen: now,
            last_seen: now,
            job: None,
        });
        entry.last_seen = now;
        Some(entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job;

    const fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn worker(name: &str) -> WorkerName {
        WorkerName::new(name).unwrap()
    }

    fn ask(want: u32) -> Ask {
        let (version, job, has) = ("0.1.0".to_owned(), None, Vec::new());
        Ask { protocol: PROTOCOL, version, threads: 2, want, job, has }
    }

    fn state(folder: &std::path::Path) -> CoordinatorState {
        let bans = Bans::open(&folder.join("bans.jsonl")).unwrap();
        CoordinatorState::new("first".to_owned(), Key::new([1; 32]), bans, Terms::default())
    }

    fn games(answer: Answer) -> Vec<u64> {
        match answer {
            Answer::Work { games, .. } => games.iter().map(|grant| grant.number).collect(),
            answer => panic!("{answer:?}"),
        }
    }

    #[test]
    fn games_are_lent_and_counted_once_and_the_report_shows_it() {
        let folder = tempfile::tempdir().unwrap();
        let mut state = state(folder.path());
        let (a, b) = (worker("a"), worker("b"));
        assert_eq!(state.ask(&a, &ask(2), at(0)), Answer::Wait { milliseconds: NO_JOB_WAIT_MS });
        let job = job::tests::job();
        state.begin(job.hash(), 3, Some(Hash::of(b"network")), 0..3);
        assert_eq!(games(state.ask(&a, &ask(2), at(0))), [0, 1]);
        assert_eq!(games(state.ask(&b, &ask(2), at(0))), [2]);
        assert!(state.is_new_worker(&a));
        assert!(state.accept(&a, 0, at(1)) && !state.accept(&b, 0, at(1)));
        assert!(!state.is_new_worker(&a) && state.is_new_worker(&b));
        let heartbeat = Heartbeat { job: Some(job.hash()), has: vec![1], sent: 1, leaving: false };
        assert_eq!(
            state.heartbeat(&a, &heartbeat, at(2)),
            HeartbeatReply { job: Some(job.hash()) }
        );
        let report = state.report(at(10));
        assert_eq!((report.missing, report.games, report.workers.len()), (2, 1, 2));
        let first = &report.workers[0];
        assert_eq!((first.held, first.games, first.silent_s), (1, 1, 8.0));
        assert!(first.is_current && !report.workers[1].is_current);
        assert_eq!(report.workers[1].duplicates, 1);
        // A worker that leaves gives its game back.
        state.heartbeat(&a, &Heartbeat { leaving: true, ..heartbeat }, at(10));
        assert_eq!(games(state.ask(&b, &ask(2), at(10))), [1]);
        state.end();
        assert_eq!(
            state.heartbeat(&b, &Heartbeat::default(), at(11)),
            HeartbeatReply { job: None }
        );
    }

    #[test]
    fn a_banned_worker_loses_its_leases_and_gets_no_more_games() {
        let folder = tempfile::tempdir().unwrap();
        let mut state = state(folder.path());
        let (a, b) = (worker("a"), worker("b"));
        state.begin(job::tests::job().hash(), 3, None, 0..2);
        state.ask(&a, &ask(2), at(0));
        assert!(state.ban(&a, "faked").unwrap() && !state.ban(&a, "again").unwrap());
        let refused = Answer::Refused { reason: "faked".to_owned() };
        assert_eq!(state.ask(&a, &ask(2), at(1)), refused);
        assert_eq!(games(state.ask(&b, &ask(2), at(1))), [0, 1]);
        let report = state.report(at(1));
        assert_eq!(report.bans.get(&a).map(String::as_str), Some("faked"));
        let old = Ask { protocol: 0, ..ask(1) };
        assert!(matches!(state.ask(&b, &old, at(1)), Answer::Refused { .. }));
    }
}
