//! Who plays which game, and until when: a pure state machine, without a clock of its own.
//!
//! Games are lent to workers. A worker keeps what it says it has; what it has not spoken of for a
//! term is lent again, to others or to itself: its process may have died, or the answer that lent the
//! game may have been lost. When no game is left to lend, those that have been out longest are lent
//! once more, the longer the more often, so that slow workers do not keep everybody waiting: whoever
//! is first counts, and all must come out the same anyway.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::subject::WorkerName;

/// How long games are lent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// A game that its worker has not spoken of for so long is lost.
    pub lease: Duration,
    /// Games may be lent once more each time that they have been out for so long.
    pub patience: Duration,
}

impl Default for Terms {
    fn default() -> Terms {
        Terms { lease: Duration::from_secs(20), patience: Duration::from_secs(8) }
    }
}

/// The games of a generation that are not there yet.
#[derive(Clone, Debug)]
pub struct Leases {
    terms: Terms,
    free: BTreeSet<u64>,
    lent: BTreeMap<u64, Lent>,
    /// The games of `lent` by when they were lent, longest first.
    ages: BTreeSet<(Duration, u64)>,
    /// The games of `lent` by who has them.
    hands: BTreeMap<WorkerName, BTreeSet<u64>>,
    /// No lease ends before.
    soonest: Duration,
}

/// A game that is out.
#[derive(Clone, Debug)]
struct Lent {
    /// Since when it has not been free.
    since: Duration,
    leases: Vec<Lease>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Lease {
    worker: WorkerName,
    until: Duration,
}

/// At most so many workers have the same game.
const COPIES: usize = 16;

impl Leases {
    /// Nothing of this is lent yet.
    pub fn new(numbers: impl IntoIterator<Item = u64>, terms: Terms) -> Leases {
        Leases {
            terms,
            free: numbers.into_iter().collect(),
            lent: BTreeMap::new(),
            ages: BTreeSet::new(),
            hands: BTreeMap::new(),
            soonest: Duration::MAX,
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
        self.soonest = self.soonest.min(until);
        for &number in &numbers {
            let lent = self.lent.entry(number).or_insert_with(|| {
                self.ages.insert((now, number));
                Lent { since: now, leases: Vec::new() }
            });
            lent.leases.push(Lease { worker: worker.clone(), until });
        }
        if !numbers.is_empty() {
            self.hands.entry(worker.clone()).or_default().extend(&numbers);
        }
        numbers
    }

    /// Games that others have had for long, longest first.
    fn overdue(&self, worker: &WorkerName, most: usize, now: Duration) -> Vec<u64> {
        let is_due = |(since, number): &(Duration, u64)| {
            self.lent.get(number).is_some_and(|Lent { leases, .. }| {
                let copies = u32::try_from(leases.len()).unwrap_or(u32::MAX);
                leases.len() < COPIES
                    && *since + self.terms.patience.saturating_mul(copies) <= now
                    && leases.iter().all(|lease| lease.worker != *worker)
            })
        };
        self.ages
            .iter()
            // What was lent since then is not due, however few have it.
            .take_while(|(since, _)| *since + self.terms.patience <= now)
            .filter(|age| is_due(age))
            .map(|(_, number)| *number)
            .take(most)
            .collect()
    }

    /// A worker has these games: it keeps them for another term. What it was lent and does not
    /// have may be on its way here.
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

    /// A game is there; false when it was not missing.
    pub fn finish(&mut self, number: u64) -> bool {
        let Some(Lent { since, leases }) = self.lent.remove(&number) else {
            return self.free.remove(&number);
        };
        self.ages.remove(&(since, number));
        for lease in leases {
            self.drop_from(&lease.worker, number);
        }
        true
    }

    /// A game that was there is missing again.
    pub fn reopen(&mut self, number: u64) {
        if !self.lent.contains_key(&number) {
            self.free.insert(number);
        }
    }

    /// A worker goes, or is not wanted any more.
    pub fn release(&mut self, worker: &WorkerName) {
        for number in self.hands.get(worker).cloned().unwrap_or_default() {
            self.end(worker, number);
        }
    }

    /// Takes games back from workers that were not heard of for a term; how many.
    pub fn expire(&mut self, now: Duration) -> usize {
        if now < self.soonest {
            return 0;
        }
        let all =
            || self.lent.iter().flat_map(|(&n, lent)| lent.leases.iter().map(move |l| (n, l)));
        let over: Vec<(u64, WorkerName)> = all()
            .filter(|(_, lease)| lease.until <= now)
            .map(|(number, lease)| (number, lease.worker.clone()))
            .collect();
        // Of those that stay; leases only ever become longer.
        let stay = all().filter(|(_, lease)| lease.until > now).map(|(_, lease)| lease.until);
        self.soonest = stay.min().unwrap_or(Duration::MAX);
        for (number, worker) in &over {
            self.end(worker, *number);
        }
        over.len()
    }

    /// A worker does not have a game any more.
    fn end(&mut self, worker: &WorkerName, number: u64) {
        self.drop_from(worker, number);
        let Some(lent) = self.lent.get_mut(&number) else { return };
        lent.leases.retain(|lease| lease.worker != *worker);
        if lent.leases.is_empty() {
            self.ages.remove(&(lent.since, number));
            self.lent.remove(&number);
            self.free.insert(number);
        }
    }

    fn drop_from(&mut self, worker: &WorkerName, number: u64) {
        if let Some(hand) = self.hands.get_mut(worker) {
            hand.remove(&number);
            if hand.is_empty() {
                self.hands.remove(worker);
            }
        }
    }

    /// Games that are not there yet.
    pub fn missing(&self) -> usize {
        self.free.len() + self.lent.len()
    }

    /// Games that a worker has.
    pub fn held_by(&self, worker: &WorkerName) -> usize {
        self.hands.get(worker).map_or(0, BTreeSet::len)
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
        Leases::new(10..14, Terms { lease: at(20), patience: at(8) })
    }

    #[test]
    fn every_game_is_lent_once_in_order() {
        let (mut leases, a, b) = (leases(), worker("a"), worker("b"));
        assert_eq!(leases.lend(&a, 3, at(0)), [10, 11, 12]);
        assert_eq!(leases.lend(&b, 3, at(0)), [13]);
        assert!(leases.lend(&b, 3, at(1)).is_empty());
        assert_eq!((leases.held_by(&a), leases.held_by(&b), leases.missing()), (3, 1, 4));
        assert!(leases.finish(11) && !leases.finish(11) && !leases.finish(99));
        assert_eq!(leases.missing(), 3);
    }

    #[test]
    fn the_games_of_a_dead_worker_go_to_others_and_a_living_one_keeps_its_own() {
        let (mut leases, a, b) = (leases(), worker("a"), worker("b"));
        leases.lend(&a, 2, at(0));
        leases.lend(&b, 2, at(0));
        leases.extend(&b, &[12, 13, 99], at(10));
        assert_eq!(leases.expire(at(19)), 0);
        assert_eq!(leases.expire(at(20)), 2);
        assert_eq!(leases.lend(&b, 9, at(20)), [10, 11]);
        assert_eq!((leases.held_by(&a), leases.held_by(&b)), (0, 4));
        // What the dead worker had sent before still counts, once.
        assert!(leases.finish(10) && !leases.finish(10));
    }

    #[test]
    fn a_slow_worker_is_overtaken_but_not_by_itself_and_not_twice() {
        let (mut leases, a, b, c) = (leases(), worker("a"), worker("b"), worker("c"));
        leases.lend(&a, 4, at(0));
        assert!(leases.lend(&b, 1, at(7)).is_empty());
        assert_eq!(leases.lend(&b, 1, at(8)), [10]);
        assert!(leases.lend(&a, 4, at(9)).is_empty());
        assert_eq!(leases.lend(&c, 4, at(9)), [11, 12, 13]);
        assert_eq!(leases.missing(), 4);
        // Two that take and never deliver do not stop the run either.
        let d = worker("d");
        assert!(leases.clone().lend(&d, 1, at(15)).is_empty());
        assert_eq!(leases.clone().lend(&d, 1, at(16)), [10]);
        // The first of both copies counts; the other worker's lease goes with it.
        assert!(leases.finish(10));
        assert_eq!((leases.held_by(&a), leases.held_by(&b)), (3, 0));
        leases.release(&a);
        assert_eq!(leases.held_by(&c), 3);
        leases.release(&c);
        assert_eq!(leases.lend(&b, 9, at(9)), [11, 12, 13]);
    }

    #[test]
    fn games_whose_answer_was_lost_are_lent_again_also_to_who_should_have_had_them() {
        let (mut leases, a) = (leases(), worker("a"));
        assert_eq!(leases.lend(&a, 2, at(0)), [10, 11]);
        // It never heard of 10 and 11, and asks on and on.
        assert_eq!(leases.lend(&a, 2, at(5)), [12, 13]);
        for second in 6..20 {
            leases.extend(&a, &[12, 13], at(second));
            assert_eq!(leases.expire(at(second)), 0);
        }
        assert_eq!(leases.expire(at(20)), 2);
        assert_eq!(leases.lend(&a, 9, at(20)), [10, 11]);
    }

    #[test]
    fn a_game_that_is_taken_back_is_missing_again() {
        let (mut leases, a) = (leases(), worker("a"));
        leases.lend(&a, 4, at(0));
        assert!(leases.finish(12));
        leases.reopen(12);
        leases.reopen(13);
        assert_eq!((leases.missing(), leases.held_by(&a)), (4, 3));
        assert_eq!(leases.lend(&a, 4, at(1)), [12]);
    }

    /// Whatever happens, no game is forgotten and none is counted twice.
    #[test]
    fn in_any_order_of_events_every_game_arrives_once() {
        let workers = ["a", "b", "c"].map(worker);
        let terms = Terms { lease: at(5), patience: at(2) };
        let mut rng = selfmate_chess::Seed::new(4).rng();
        let mut leases = Leases::new(0..200, terms);
        let mut hands: [Vec<u64>; 3] = Default::default();
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
                    hands[index].extend(leases.lend(worker, most, at(second)));
                }
                2 | 3 => {
                    if let Some(number) = hands[index].pop() {
                        assert_eq!(leases.finish(number), arrived.insert(number));
                    }
                }
                4 => leases.extend(worker, &hands[index], at(second)),
                // Killed: it knows nothing of its games any more.
                _ => hands[index].clear(),
            }
            leases.expire(at(second));
            // What is looked up agrees with what is lent.
            let out: usize = leases.lent.values().map(|lent| lent.leases.len()).sum();
            let held: usize = workers.iter().map(|worker| leases.held_by(worker)).sum();
            assert_eq!((held, leases.ages.len()), (out, leases.lent.len()));
        }
        assert_eq!(arrived.len(), 200);
    }
}
