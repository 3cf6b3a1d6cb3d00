//! Leases: which worker plays which game, and until when. A pure state machine; the caller passes
//! the time.
//!
//! A worker extends its leases by listing the games that it holds. A game that its worker has not
//! listed for [`Terms::lease`] is free again, for any worker: the process may have died, or the
//! answer that lent the game may have been lost. When no game is free, games that have been lent for
//! longest are lent to a further worker, one more for every [`Terms::relend_after`], so that a slow
//! worker does not delay the job. The first copy that arrives counts; all copies must be equal.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::subject::WorkerName;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// A lease ends when its worker has not listed the game for this long.
    pub lease: Duration,
    /// A game may be lent to one more worker each time that this much time has passed.
    pub relend_after: Duration,
}

impl Default for Terms {
    fn default() -> Terms {
        Terms { lease: Duration::from_secs(20), relend_after: Duration::from_secs(8) }
    }
}

/// The games of a job that have not arrived.
#[derive(Clone, Debug)]
pub struct Leases {
    terms: Terms,
    free: BTreeSet<u64>,
    lent: BTreeMap<u64, Lent>,
    /// The games of `lent` by the time they were lent, oldest first.
    ages: BTreeSet<(Duration, u64)>,
    /// The games of `lent` by worker.
    by_worker: BTreeMap<WorkerName, BTreeSet<u64>>,
    /// No lease ends before this time.
    next_expiry: Duration,
}

#[derive(Clone, Debug)]
struct Lent {
    /// When it was first lent, since it was last free.
    since: Duration,
    leases: Vec<Lease>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Lease {
    worker: WorkerName,
    until: Duration,
}

/// Workers that may hold the same game.
const MAX_COPIES: usize = 16;

impl Leases {
    pub fn new(numbers: impl IntoIterator<Item = u64>, terms: Terms) -> Leases {
        Leases {
            terms,
            free: numbers.into_iter().collect(),
            lent: BTreeMap::new(),
            ages: BTreeSet::new(),
            by_worker: BTreeMap::new(),
            next_expiry: Duration::MAX,
        }
    }

    /// Lends up to `most` games.
    pub fn lend(&mut self, worker: &WorkerName, most: usize, now: Duration) -> Vec<u64> {
        let mut numbers: Vec<u64> = self.free.iter().copied().take(most).collect();
        for number in &numbers {
            self.free.remove(number);
        }
        if numbers.is_empty() {
            numbers = self.overdue(worker, most, now);
        }
        let until = now + self.terms.lease;
        self.next_expiry = self.next_expiry.min(until);
        for &number in &numbers {
            let lent = self.lent.entry(number).or_insert_with(|| {
                self.ages.insert((now, number));
                Lent { since: now, leases: Vec::new() }
            });
            lent.leases.push(Lease { worker: worker.clone(), until });
        }
        if !numbers.is_empty() {
            self.by_worker.entry(worker.clone()).or_default().extend(&numbers);
        }
        numbers
    }

    /// Games that other workers have held for long, oldest first.
    fn overdue(&self, worker: &WorkerName, most: usize, now: Duration) -> Vec<u64> {
        let is_due = |(since, number): &(Duration, u64)| {
            self.lent.get(number).is_some_and(|Lent { leases, .. }| {
                let copies = u32::try_from(leases.len()).unwrap_or(u32::MAX);
                leases.len() < MAX_COPIES
                    && *since + self.terms.relend_after.saturating_mul(copies) <= now
                    && leases.iter().all(|lease| lease.worker != *worker)
            })
        };
        self.ages
            .iter()
            // Games lent later than this are not due, even with a single copy.
            .take_while(|(since, _)| *since + self.terms.relend_after <= now)
            .filter(|age| is_due(age))
            .map(|(_, number)| *number)
            .take(most)
            .collect()
    }

    /// Extends the leases of the games that a worker lists. Its other leases run on: those games may
    /// have been sent and be in transit.
    pub fn extend(&mut self, worker: &WorkerName, games: &[u64], now: Duration) {
        let until = now + self.terms.lease;
        for number in games {
            let leases = self.lent.get_mut(number).map(|lent| &mut lent.leases);
            for lease in leases.into_iter().flatten() {
                if lease.worker == *worker {
                    lease.until = until;
                }
            }
        }
    }

    /// Marks a game as arrived. Returns false if it was not missing.
    pub fn finish(&mut self, number: u64) -> bool {
        let Some(Lent { since, leases }) = self.lent.remove(&number) else {
            return self.free.remove(&number);
        };
        self.ages.remove(&(since, number));
        for lease in leases {
            self.remove_from_worker(&lease.worker, number);
        }
        true
    }

    /// Marks an arrived game as missing again.
    pub fn reopen(&mut self, number: u64) {
        if !self.lent.contains_key(&number) {
            self.free.insert(number);
        }
    }

    /// Ends all leases of a worker.
    pub fn release(&mut self, worker: &WorkerName) {
        for number in self.by_worker.get(worker).cloned().unwrap_or_default() {
            self.end(worker, number);
        }
    }

    /// Ends the leases whose time is up. Returns their number.
    pub fn expire(&mut self, now: Duration) -> usize {
        if now < self.next_expiry {
            return 0;
        }
        let all =
            || self.lent.iter().flat_map(|(&n, lent)| lent.leases.iter().map(move |l| (n, l)));
        let expired: Vec<(u64, WorkerName)> = all()
            .filter(|(_, lease)| lease.until <= now)
            .map(|(number, lease)| (number, lease.worker.clone()))
            .collect();
        // Extending a lease only moves its end later, so this stays a lower bound.
        let remaining = all().filter(|(_, lease)| lease.until > now).map(|(_, lease)| lease.until);
        self.next_expiry = remaining.min().unwrap_or(Duration::MAX);
        for (number, worker) in &expired {
            self.end(worker, *number);
        }
        expired.len()
    }

    fn end(&mut self, worker: &WorkerName, number: u64) {
        self.remove_from_worker(worker, number);
        let Some(lent) = self.lent.get_mut(&number) else { return };
        lent.leases.retain(|lease| lease.worker != *worker);
        if lent.leases.is_empty() {
            self.ages.remove(&(lent.since, number));
            self.lent.remove(&number);
            self.free.insert(number);
        }
    }

    fn remove_from_worker(&mut self, worker: &WorkerName, number: u64) {
        if let Some(games) = self.by_worker.get_mut(worker) {
            games.remove(&number);
            if games.is_empty() {
                self.by_worker.remove(worker);
            }
        }
    }

    /// The number of games that have not arrived.
    pub fn missing(&self) -> usize {
        self.free.len() + self.lent.len()
    }

    /// The number of games that a worker holds.
    pub fn held_by(&self, worker: &WorkerName) -> usize {
        self.by_worker.get(worker).map_or(0, BTreeSet::len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worker(name: &str) -> WorkerName {
        WorkerName::new(name).unwrap()
    }

    const fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn leases() -> Leases {
        Leases::new(10..14, Terms { lease: at(20), relend_after: at(8) })
    }

    #[test]
    fn games_are_lent_once_in_order() {
        let (mut leases, a, b) = (leases(), worker("a"), worker("b"));
        assert_eq!(leases.lend(&a, 3, at(0)), [10, 11, 12]);
        assert_eq!(leases.lend(&b, 3, at(0)), [13]);
        assert!(leases.lend(&b, 3, at(1)).is_empty());
        assert_eq!((leases.held_by(&a), leases.held_by(&b), leases.missing()), (3, 1, 4));
        assert!(leases.finish(11) && !leases.finish(11) && !leases.finish(99));
        assert_eq!(leases.missing(), 3);
    }

    #[test]
    fn the_games_of_a_silent_worker_go_to_others_and_heartbeats_extend_leases() {
        let (mut leases, a, b) = (leases(), worker("a"), worker("b"));
        leases.lend(&a, 2, at(0));
        leases.lend(&b, 2, at(0));
        leases.extend(&b, &[12, 13, 99], at(10));
        assert_eq!(leases.expire(at(19)), 0);
        assert_eq!(leases.expire(at(20)), 2);
        assert_eq!(leases.lend(&b, 9, at(20)), [10, 11]);
        assert_eq!((leases.held_by(&a), leases.held_by(&b)), (0, 4));
        // A game that the silent worker had sent still counts, once.
        assert!(leases.finish(10) && !leases.finish(10));
    }

    #[test]
    fn a_game_of_a_slow_worker_is_lent_to_others_but_not_to_the_same_worker() {
        let (mut leases, a, b, c) = (leases(), worker("a"), worker("b"), worker("c"));
        leases.lend(&a, 4, at(0));
        assert!(leases.lend(&b, 1, at(7)).is_empty());
        assert_eq!(leases.lend(&b, 1, at(8)), [10]);
        assert!(leases.lend(&a, 4, at(9)).is_empty());
        assert_eq!(leases.lend(&c, 4, at(9)), [11, 12, 13]);
        assert_eq!(leases.missing(), 4);
        // After two workers that never deliver, a third gets the game.
        let d = worker("d");
        assert!(leases.clone().lend(&d, 1, at(15)).is_empty());
        assert_eq!(leases.clone().lend(&d, 1, at(16)), [10]);
        // The first copy counts; the other lease ends with it.
        assert!(leases.finish(10));
        assert_eq!((leases.held_by(&a), leases.held_by(&b)), (3, 0));
        leases.release(&a);
        assert_eq!(leases.held_by(&c), 3);
        leases.release(&c);
        assert_eq!(leases.lend(&b, 9, at(9)), [11, 12, 13]);
    }

    #[test]
    fn games_whose_answer_was_lost_are_lent_again_even_to_the_same_worker() {
        let (mut leases, a) = (leases(), worker("a"));
        assert_eq!(leases.lend(&a, 2, at(0)), [10, 11]);
        // The answer with 10 and 11 was lost, so the worker asks again.
        assert_eq!(leases.lend(&a, 2, at(5)), [12, 13]);
        for second in 6..20 {
            leases.extend(&a, &[12, 13], at(second));
            assert_eq!(leases.expire(at(second)), 0);
        }
        assert_eq!(leases.expire(at(20)), 2);
        assert_eq!(leases.lend(&a, 9, at(20)), [10, 11]);
    }

    #[test]
    fn a_reopened_game_is_missing_again() {
        let (mut leases, a) = (leases(), worker("a"));
        leases.lend(&a, 4, at(0));
        assert!(leases.finish(12));
        leases.reopen(12);
        leases.reopen(13);
        assert_eq!((leases.missing(), leases.held_by(&a)), (4, 3));
        assert_eq!(leases.lend(&a, 4, at(1)), [12]);
    }

    #[test]
    fn every_game_arrives_exactly_once_in_any_order_of_events() {
        let workers = ["a", "b", "c"].map(worker);
        let terms = Terms { lease: at(5), relend_after: at(2) };
        let mut rng = selfmate_chess::Seed::new(4).rng();
        let mut leases = Leases::new(0..200, terms);
        let mut held: [Vec<u64>; 3] = Default::default();
        let mut arrived = BTreeSet::new();
        let mut second = 0;
        while leases.missing() > 0 {
            second += 1;
            assert!(second < 100_000, "stuck with {} missing", leases.missing());
            let index = rng.below(3);
            let worker = &workers[index];
            match rng.below(6) {
                0 | 1 => {
                    let most = 1 + rng.below(8);
                    held[index].extend(leases.lend(worker, most, at(second)));
                }
                2 | 3 => {
                    if let Some(number) = held[index].pop() {
                        assert_eq!(leases.finish(number), arrived.insert(number));
                    }
                }
                4 => leases.extend(worker, &held[index], at(second)),
                // Killed: the worker has lost its games.
                _ => held[index].clear(),
            }
            leases.expire(at(second));
            // The indices agree with the leases.
            let total: usize = leases.lent.values().map(|lent| lent.leases.len()).sum();
            let by_worker: usize = workers.iter().map(|worker| leases.held_by(worker)).sum();
            assert_eq!((by_worker, leases.ages.len()), (total, leases.lent.len()));
        }
        assert_eq!(arrived.len(), 200);
    }
}
