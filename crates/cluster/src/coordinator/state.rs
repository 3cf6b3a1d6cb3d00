//! What the coordinator knows: its workers, the games they hold and what came in. It has neither
//! sockets nor a clock, so it answers at once and is tested without either.

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
    workers: BTreeMap<WorkerName, Seen>,
    /// Messages from nobody who could be known.
    strangers: u64,
    current: Option<Current>,
}

/// What is being played.
struct Current {
    hash: Hash,
    generation: u64,
    network: Option<Hash>,
    leases: Leases,
}

/// What is known of a worker.
struct Seen {
    member: Member,
    first: Duration,
    last: Duration,
    job: Option<Hash>,
}

/// Workers that are remembered; more than that can only be somebody who makes up names.
const MAX_WORKERS: usize = 50_000;
/// Workers that a report lists, and as many that are refused.
const MAX_LISTED: usize = 1000;
/// When to ask again: when all games are lent, and when there is no job.
const SOON_MS: u64 = 1000;
const LATER_MS: u64 = 5000;

impl CoordinatorState {
    /// For a run.
    pub fn new(run: String, key: Key, bans: Bans, terms: Terms) -> CoordinatorState {
        let workers = BTreeMap::new();
        CoordinatorState { run, key, bans, terms, workers, strangers: 0, current: None }
    }

    /// Games are wanted for an job: a generation, or a round of a match.
    pub fn begin(
        &mut self,
        job: Hash,
        generation: u64,
        network: Option<Hash>,
        numbers: impl IntoIterator<Item = u64>,
    ) {
        let leases = Leases::new(numbers, self.terms);
        self.current = Some(Current { hash: job, generation, network, leases });
    }

    /// No more games are wanted.
    pub fn end(&mut self) {
        self.current = None;
    }

    /// The job that games are wanted for.
    pub fn job(&self) -> Option<Hash> {
        self.current.as_ref().map(|current| current.hash)
    }

    /// Games that are not there yet.
    pub fn missing(&self) -> usize {
        self.current.as_ref().map_or(0, |current| current.leases.missing())
    }

    /// A worker wants games.
    pub fn ask(&mut self, worker: &WorkerName, ask: &Ask, now: Duration) -> Answer {
        if let Some(reason) = self.bans.reason(worker) {
            return Answer::Refused { reason: reason.to_owned() };
        }
        if ask.protocol != PROTOCOL {
            let reason = format!(
                "it speaks protocol {}, the learner {PROTOCOL}: use the same version of selfmate",
                ask.protocol
            );
            return Answer::Refused { reason };
        }
        let Some(seen) = self.seen(worker, now) else {
            return Answer::Wait { milliseconds: LATER_MS };
        };
        seen.member.version = ask.version.chars().take(32).collect();
        seen.member.threads = ask.threads;
        seen.job = ask.job;
        let Some(current) = &mut self.current else {
            return Answer::Wait { milliseconds: LATER_MS };
        };
        current.leases.expire(now);
        if ask.job == Some(current.hash) {
            current.leases.extend(worker, &ask.has, now);
        }
        let room = MAX_HELD.saturating_sub(current.leases.held_by(worker));
        let most = (ask.want as usize).min(MAX_GRANT).min(room);
        let numbers = current.leases.lend(worker, most, now);
        if numbers.is_empty() {
            return Answer::Wait { milliseconds: SOON_MS };
        }
        let job = current.hash;
        let grant = |number| Grant { number, token: self.key.token(worker, &job, number) };
        Answer::Work { job, games: numbers.into_iter().map(grant).collect() }
    }

    /// A worker is alive.
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
        let Some(seen) = self.seen(worker, now) else { return HeartbeatReply { job } };
        seen.member.sent = heartbeat.sent;
        seen.job = heartbeat.job;
        if let Some(current) = &mut self.current {
            if heartbeat.leaving {
                current.leases.release(worker);
            } else if heartbeat.job == Some(current.hash) {
                current.leases.extend(worker, &heartbeat.has, now);
            }
            current.leases.expire(now);
        }
        HeartbeatReply { job }
    }

    /// Gives the games of silent workers to others.
    pub fn expire(&mut self, now: Duration) {
        if let Some(current) = &mut self.current {
            current.leases.expire(now);
        }
    }

    /// True when nothing is taken from a worker.
    pub fn is_banned(&self, worker: &WorkerName) -> bool {
        self.bans.reason(worker).is_some()
    }

    /// A game came in and is good. False when it was there before.
    pub fn take(&mut self, worker: &WorkerName, number: u64, now: Duration) -> bool {
        let is_new = self.current.as_mut().is_some_and(|current| current.leases.finish(number));
        if let Some(seen) = self.seen(worker, now) {
            let count = if is_new { &mut seen.member.games } else { &mut seen.member.duplicates };
            *count += 1;
        }
        is_new
    }

    /// True when no game of a worker was taken since the learner started.
    pub fn is_first(&self, worker: &WorkerName) -> bool {
        self.workers.get(worker).is_none_or(|seen| seen.member.games == 0)
    }

    /// A game is not taken.
    pub fn refuse(&mut self, worker: &WorkerName, kind: &str, now: Duration) {
        if let Some(seen) = self.seen(worker, now) {
            *seen.member.refused.entry(kind.to_owned()).or_default() += 1;
        }
    }

    /// Something came from nobody.
    pub const fn ignore(&mut self) {
        self.strangers += 1;
    }

    /// A game that was there is missing again.
    pub fn reopen(&mut self, number: u64) {
        if let Some(current) = &mut self.current {
            current.leases.reopen(number);
        }
    }

    /// A game was played again; how often that was so for its worker, and how often it diverged.
    pub fn audited(&mut self, worker: &WorkerName, agreement: &Agreement) -> (u64, u64) {
        let Some(seen) = self.workers.get_mut(worker) else { return (0, 0) };
        let member = &mut seen.member;
        member.audited += 1;
        match agreement {
            Agreement::Same => {}
            Agreement::Diverged { .. } => member.diverged += 1,
            Agreement::Different(what) => {
                let kind = Rejection::Audit(what.clone()).kind();
                *member.refused.entry(kind.to_owned()).or_default() += 1;
            }
        }
        (member.audited, member.diverged)
    }

    /// Refuses a worker from now on; false when it was refused before.
    pub fn ban(&mut self, worker: &WorkerName, reason: &str) -> Result<bool, ClusterError> {
        if let Some(current) = &mut self.current {
            current.leases.release(worker);
        }
        self.bans.add(worker, reason)
    }

    /// How it goes.
    pub fn report(&self, now: Duration) -> Report {
        let job = self.job();
        let mut refused: BTreeMap<String, u64> = BTreeMap::new();
        let mut workers = Vec::new();
        for seen in self.workers.values() {
            for (kind, count) in &seen.member.refused {
                *refused.entry(kind.clone()).or_default() += count;
            }
            let held = self
                .current
                .as_ref()
                .map_or(0, |current| current.leases.held_by(&seen.member.name) as u64);
            let seconds = (seen.last - seen.first).as_secs_f64().max(1.0);
            workers.push(Member {
                held,
                games_per_second: seen.member.games as f64 / seconds,
                silent_s: now.saturating_sub(seen.last).as_secs_f64(),
                is_current: job.is_some() && seen.job == job,
                ..seen.member.clone()
            });
        }
        let games = workers.iter().map(|member| member.games).sum();
        let count = workers.len();
        // All of ten thousand would not fit a message: those heard of last.
        workers.sort_by(|a, b| a.silent_s.total_cmp(&b.silent_s));
        workers.truncate(MAX_LISTED);
        workers.sort_by(|a, b| a.name.cmp(&b.name));
        if self.strangers > 0 {
            refused.insert("stranger".to_owned(), self.strangers);
        }
        Report {
            run: self.run.clone(),
            generation: self.current.as_ref().map(|current| current.generation),
            network: self.current.as_ref().and_then(|current| current.network),
            missing: self.missing() as u64,
            games,
            members: count as u64,
            refused,
            waiting: None,
            workers,
            bans: self
                .bans
                .iter()
                .take(MAX_LISTED)
                .map(|(name, why)| (name.clone(), why.to_owned()))
                .collect(),
        }
    }

    /// Remembers that a worker was heard of; `None` when there are too many.
    fn seen(&mut self, worker: &WorkerName, now: Duration) -> Option<&mut Seen> {
        if self.workers.len() >= MAX_WORKERS && !self.workers.contains_key(worker) {
            return None;
        }
        let seen = self.workers.entry(worker.clone()).or_insert_with(|| Seen {
            member: Member {
                name: worker.clone(),
                version: String::new(),
                threads: 0,
                sent: 0,
                games: 0,
                duplicates: 0,
                refused: BTreeMap::new(),
                audited: 0,
                diverged: 0,
                held: 0,
                games_per_second: 0.0,
                silent_s: 0.0,
                is_current: false,
            },
            first: now,
            last: now,
            job: None,
        });
        seen.last = now;
        Some(seen)
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
    fn games_are_lent_counted_once_and_reported() {
        let folder = tempfile::tempdir().unwrap();
        let mut state = state(folder.path());
        let (a, b) = (worker("a"), worker("b"));
        assert_eq!(state.ask(&a, &ask(2), at(0)), Answer::Wait { milliseconds: LATER_MS });
        let job = job::tests::job();
        state.begin(job.hash(), 3, Some(Hash::of(b"network")), 0..3);
        assert_eq!(games(state.ask(&a, &ask(2), at(0))), [0, 1]);
        assert_eq!(games(state.ask(&b, &ask(2), at(0))), [2]);
        assert!(state.is_first(&a));
        assert!(state.take(&a, 0, at(1)) && !state.take(&b, 0, at(1)));
        assert!(!state.is_first(&a) && state.is_first(&b));
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
        // It goes, and its game goes to the other.
        state.heartbeat(&a, &Heartbeat { leaving: true, ..heartbeat }, at(10));
        assert_eq!(games(state.ask(&b, &ask(2), at(10))), [1]);
        state.end();
        assert_eq!(
            state.heartbeat(&b, &Heartbeat::default(), at(11)),
            HeartbeatReply { job: None }
        );
    }

    #[test]
    fn a_refused_worker_loses_its_games_and_gets_no_more() {
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
