//! Collects the games of a job. Each game is validated, kept, acknowledged once it is on disk, and
//! replayed if it is chosen for an audit. The [`GameKeeper`] knows what a valid game is and where it
//! is kept; one is for generations, one for matches.
//!
//! The collector is the only place that bans workers; the crate documentation lists the reasons. A
//! ban removes all games of the worker from this job, so that they are lent again.

use std::collections::{BTreeMap, BTreeSet};

use async_nats::jetstream::{AckKind, Message};

use crate::audit::{Agreement, diverges_too_often};
use crate::auditor::{Auditor, Finding, Numbered};
use crate::coordinator::{Caller, Coordinator};
use crate::envelope::Envelope;
use crate::error::ClusterError;
use crate::hash::Hash;
use crate::rejection::Rejection;
use crate::subject::WorkerName;

pub trait GameKeeper: Caller {
    type Game: Numbered + Clone + Send + 'static;

    /// Validates a game whose token was verified. Two copies of a game have the same hash.
    fn validate(&mut self, envelope: &Envelope) -> Result<(Self::Game, Hash), Rejection>;

    fn keep(&mut self, worker: &WorkerName, game: Self::Game) -> Result<(), ClusterError>;

    fn kept(&self, number: u64) -> Option<Self::Game>;

    /// Returns when all games are on disk. They are acknowledged afterwards.
    fn sync(&mut self) -> Result<(), ClusterError>;

    /// Removes games of the current job.
    fn remove(&mut self, numbers: &BTreeSet<u64>) -> Result<(), ClusterError>;

    /// Called after a ban, to handle the worker's games of earlier jobs. `numbers` are the games of the
    /// current job. The returned text is appended to the note to the user.
    fn banned(
        &mut self,
        worker: &WorkerName,
        rejection: &Rejection,
        numbers: &BTreeSet<u64>,
    ) -> Result<String, ClusterError>;
}

pub struct Collector<'a, K: GameKeeper> {
    coordinator: &'a mut Coordinator,
    job: Hash,
    keeper: &'a mut K,
    auditor: Auditor<K::Game>,
    audit_share: f64,
    /// The sender of each kept game, if known, and the hash of the game.
    accepted: BTreeMap<u64, (Option<WorkerName>, Hash)>,
    /// Messages to acknowledge once their games are on disk.
    acknowledge: Vec<(Message, AckKind)>,
}

impl<'a, K: GameKeeper> Collector<'a, K> {
    pub fn new(
        coordinator: &'a mut Coordinator,
        job: Hash,
        keeper: &'a mut K,
        auditor: Auditor<K::Game>,
        audit_share: f64,
    ) -> Collector<'a, K> {
        let (accepted, acknowledge) = (BTreeMap::new(), Vec::new());
        Collector { coordinator, job, keeper, auditor, audit_share, accepted, acknowledge }
    }

    /// Adds a game that was kept before a restart. It is audited again if it is chosen.
    pub fn resume(
        &mut self,
        worker: Option<WorkerName>,
        game: K::Game,
        hash: Hash,
    ) -> Result<(), ClusterError> {
        let number = game.number();
        self.accepted.insert(number, (worker.clone(), hash));
        let Some(worker) = worker else { return Ok(()) };
        if self.coordinator.responder.lock_state().is_banned(&worker) {
            self.remove_games_of(&worker)?;
        } else if self.is_audited(&worker, number) {
            self.auditor.add(worker, game);
        }
        Ok(())
    }

    /// Runs until all games have arrived and are audited. Returns false if the caller stopped before
    /// that; pending audits are then repeated when the job is resumed.
    pub fn run(&mut self) -> Result<bool, ClusterError> {
        loop {
            for message in self.coordinator.receive() {
                self.receive(message)?;
                if !self.keeper.should_continue() {
                    // The other messages are not acknowledged, so they are delivered again.
                    break;
                }
            }
            self.sync_and_acknowledge()?;
            for finding in self.auditor.findings() {
                self.apply_finding(&finding)?;
            }
            let now = self.coordinator.responder.now();
            let mut state = self.coordinator.responder.lock_state();
            state.expire(now);
            let missing = state.missing();
            drop(state);
            if missing == 0 && self.auditor.pending()? == 0 {
                return Ok(true);
            }
            if !self.keeper.should_continue() {
                return Ok(false);
            }
        }
    }

    /// The accepted games and the workers that sent them.
    pub fn senders(&self) -> impl Iterator<Item = (u64, &WorkerName)> {
        self.accepted.iter().filter_map(|(number, (worker, _))| Some((*number, worker.as_ref()?)))
    }

    fn is_audited(&self, worker: &WorkerName, number: u64) -> bool {
        self.coordinator.key.is_audited(worker, &self.job, number, self.audit_share)
    }

    fn receive(&mut self, message: Message) -> Result<(), ClusterError> {
        let Some((worker, envelopes)) = self.coordinator.envelopes(&message) else {
            self.acknowledge.push((message, AckKind::Term));
            return Ok(());
        };
        for envelope in envelopes {
            // An earlier envelope of this message may have led to a ban.
            if !self.coordinator.responder.lock_state().is_banned(&worker) {
                self.receive_envelope(&worker, envelope)?;
            }
        }
        self.acknowledge.push((message, AckKind::Ack));
        Ok(())
    }

    fn receive_envelope(&mut self, worker: &WorkerName, bytes: &[u8]) -> Result<(), ClusterError> {
        let now = self.coordinator.responder.now();
        let envelope = Envelope::verify(bytes, &self.coordinator.key, worker, &self.job);
        let (game, hash) = match envelope.and_then(|envelope| self.keeper.validate(&envelope)) {
            Ok(valid) => valid,
            Err(rejection) => {
                self.coordinator.responder.lock_state().count_rejection(
                    worker,
                    rejection.kind(),
                    now,
                );
                return if rejection.is_proof() { self.ban(worker, &rejection) } else { Ok(()) };
            }
        };
        let number = game.number();
        let mut state = self.coordinator.responder.lock_state();
        let is_new_worker = state.is_new_worker(worker);
        let is_new_game = state.accept(worker, number, now);
        drop(state);
        match self.accepted.get(&number) {
            None if is_new_game => {
                // The first game of a worker is always audited: it shows whether its machine computes
                // the same results as this one.
                if is_new_worker || self.is_audited(worker, number) {
                    self.auditor.add(worker.clone(), game.clone());
                }
                self.accepted.insert(number, (Some(worker.clone()), hash));
                self.keeper.keep(worker, game)?;
            }
            // Two copies differ, so at least one of them is wrong: audit both.
            Some((other, known)) if *known != hash => {
                if let (Some(other), Some(kept)) = (other.clone(), self.keeper.kept(number)) {
                    self.auditor.add(other, kept);
                }
                self.auditor.add(worker.clone(), game);
            }
            _ => {}
        }
        Ok(())
    }

    fn sync_and_acknowledge(&mut self) -> Result<(), ClusterError> {
        if !self.acknowledge.is_empty() {
            self.keeper.sync()?;
            self.coordinator.acknowledge(std::mem::take(&mut self.acknowledge));
        }
        Ok(())
    }

    /// Counts an audit, and bans the worker if the games differ or diverge too often.
    fn apply_finding(&mut self, finding: &Finding) -> Result<(), ClusterError> {
        let Finding { worker, number, agreement } = finding;
        let (audited, diverged) =
            self.coordinator.responder.lock_state().count_audit(worker, agreement);
        let what = match agreement {
            Agreement::Diverged { .. } if diverges_too_often(diverged, audited) => {
                format!("{diverged} of {audited} audited games diverge from their replay")
            }
            Agreement::Same | Agreement::Diverged { .. } => return Ok(()),
            Agreement::Different(what) => format!("game {number}: {what}"),
        };
        self.ban(worker, &Rejection::Audit(what))
    }

    /// Bans a worker and removes its games.
    fn ban(&mut self, worker: &WorkerName, rejection: &Rejection) -> Result<(), ClusterError> {
        if !self.coordinator.responder.lock_state().ban(worker, &rejection.to_string())? {
            return Ok(());
        }
        self.auditor.cancel(worker);
        let numbers: BTreeSet<u64> = self.accepted.keys().copied().collect();
        let earlier = self.keeper.banned(worker, rejection, &numbers)?;
        let count = self.remove_games_of(worker)?;
        self.keeper.note(&format!(
            "worker {worker} is banned: {rejection}; {count} of its games are played again{earlier}"
        ));
        Ok(())
    }

    /// Removes a worker's games of this job. Returns their number.
    fn remove_games_of(&mut self, worker: &WorkerName) -> Result<usize, ClusterError> {
        let sent = self.accepted.extract_if(.., |_, (sender, _)| sender.as_ref() == Some(worker));
        let numbers: BTreeSet<u64> = sent.map(|(number, _)| number).collect();
        if !numbers.is_empty() {
            self.keeper.remove(&numbers)?;
            let mut state = self.coordinator.responder.lock_state();
            numbers.iter().for_each(|&number| state.reopen(number));
        }
        Ok(numbers.len())
    }
}
