//! Takes in the games of a job: each is validated, kept, acknowledged once it is on disk, and played
//! again if it is chosen for an audit. Who keeps the games is a [`GameKeeper`]'s affair.

use std::collections::{BTreeMap, BTreeSet};

use async_nats::jetstream::{AckKind, Message};

use crate::audit::{Agreement, diverges_too_often};
use crate::auditor::{Auditor, Finding, Numbered};
use crate::coordinator::{Coordinator, Waiting};
use crate::envelope::Envelope;
use crate::error::ClusterError;
use crate::hash::Hash;
use crate::rejection::Rejection;
use crate::subject::WorkerName;

/// Validates and keeps the games of a job.
pub trait GameKeeper: Waiting {
    type Game: Numbered + Clone + Send + 'static;

    /// Validates a game that was asked for. The hash is the same for two games that are the same.
    fn validate(&mut self, envelope: &Envelope) -> Result<(Self::Game, Hash), Rejection>;

    fn keep(&mut self, worker: &WorkerName, game: Self::Game) -> Result<(), ClusterError>;

    /// A game that is kept.
    fn kept(&self, number: u64) -> Option<Self::Game>;

    /// Waits until everything is on disk; then games are acknowledged.
    fn sync(&mut self) -> Result<(), ClusterError>;

    /// Removes games of this job.
    fn remove(&mut self, numbers: &BTreeSet<u64>) -> Result<(), ClusterError>;

    /// A worker was banned: deals with its games of earlier jobs and says so in a few words. The
    /// numbers are those of this job.
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
    /// Who sent each game that is kept, where that is known, and the hash of the game.
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
        if self.coordinator.responder.state().is_banned(&worker) {
            self.remove_games_of(&worker)?;
        } else if self.is_chosen(&worker, number) {
            self.auditor.add(worker, game);
        }
        Ok(())
    }

    /// Runs until all games are there and audited; false when there was no time for that. What is
    /// not audited yet is audited when the job is resumed.
    pub fn run(&mut self) -> Result<bool, ClusterError> {
        loop {
            for message in self.coordinator.receive() {
                self.take(message)?;
                if !self.keeper.goes_on() {
                    // The rest is not acknowledged, so it is delivered again.
                    break;
                }
            }
            self.settle()?;
            for finding in self.auditor.findings() {
                self.weigh(&finding)?;
            }
            let now = self.coordinator.responder.now();
            let mut state = self.coordinator.responder.state();
            state.expire(now);
            let missing = state.missing();
            drop(state);
            if missing == 0 && self.auditor.pending()? == 0 {
                return Ok(true);
            }
            if !self.keeper.goes_on() {
                return Ok(false);
            }
        }
    }

    /// The workers that sent the accepted games.
    pub fn senders(&self) -> impl Iterator<Item = (u64, &WorkerName)> {
        self.accepted.iter().filter_map(|(number, (worker, _))| Some((*number, worker.as_ref()?)))
    }

    fn is_chosen(&self, worker: &WorkerName, number: u64) -> bool {
        self.coordinator.key.is_audited(worker, &self.job, number, self.audit_share)
    }

    fn take(&mut self, message: Message) -> Result<(), ClusterError> {
        let Some((worker, envelopes)) = self.coordinator.envelopes(&message) else {
            self.acknowledge.push((message, AckKind::Term));
            return Ok(());
        };
        for envelope in envelopes {
            // One of them may get its worker banned.
            if !self.coordinator.responder.state().is_banned(&worker) {
                self.take_envelope(&worker, envelope)?;
            }
        }
        self.acknowledge.push((message, AckKind::Ack));
        Ok(())
    }

    fn take_envelope(&mut self, worker: &WorkerName, bytes: &[u8]) -> Result<(), ClusterError> {
        let now = self.coordinator.responder.now();
        let envelope = Envelope::asked(bytes, &self.coordinator.key, worker, &self.job);
        let (game, hash) = match envelope.and_then(|envelope| self.keeper.validate(&envelope)) {
            Ok(valid) => valid,
            Err(rejection) => {
                self.coordinator.responder.state().refuse(worker, rejection.kind(), now);
                return if rejection.is_proof() { self.ban(worker, &rejection) } else { Ok(()) };
            }
        };
        let number = game.number();
        let mut state = self.coordinator.responder.state();
        let is_first = state.is_first(worker);
        let is_new = state.take(worker, number, now);
        drop(state);
        match self.accepted.get(&number) {
            None if is_new => {
                // The first game of a worker shows whether its machine computes as ours does.
                if is_first || self.is_chosen(worker, number) {
                    self.auditor.add(worker.clone(), game.clone());
                }
                self.accepted.insert(number, (Some(worker.clone()), hash));
                self.keeper.keep(worker, game)?;
            }
            // Both cannot be right.
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

    /// Waits until everything is on disk, then acknowledges it.
    fn settle(&mut self) -> Result<(), ClusterError> {
        if !self.acknowledge.is_empty() {
            self.keeper.sync()?;
            self.coordinator.acknowledge(std::mem::take(&mut self.acknowledge));
        }
        Ok(())
    }

    /// What an audit has shown.
    fn weigh(&mut self, finding: &Finding) -> Result<(), ClusterError> {
        let Finding { worker, number, agreement } = finding;
        let (audited, diverged) = self.coordinator.responder.state().audited(worker, agreement);
        let what = match agreement {
            Agreement::Diverged { .. } if diverges_too_often(diverged, audited) => {
                format!("{diverged} of {audited} games diverge from what they should be")
            }
            Agreement::Same | Agreement::Diverged { .. } => return Ok(()),
            Agreement::Different(what) => format!("game {number}: {what}"),
        };
        self.ban(worker, &Rejection::Audit(what))
    }

    /// Accepts nothing from a worker any more, and removes its games.
    fn ban(&mut self, worker: &WorkerName, rejection: &Rejection) -> Result<(), ClusterError> {
        if !self.coordinator.responder.state().ban(worker, &rejection.to_string())? {
            return Ok(());
        }
        self.auditor.forget(worker);
        let numbers: BTreeSet<u64> = self.accepted.keys().copied().collect();
        let earlier = self.keeper.banned(worker, rejection, &numbers)?;
        let count = self.remove_games_of(worker)?;
        self.keeper.note(&format!(
            "worker {worker} is refused: {rejection}; {count} of its games are played again{earlier}"
        ));
        Ok(())
    }

    /// Removes a worker's games of this job; how many.
    fn remove_games_of(&mut self, worker: &WorkerName) -> Result<usize, ClusterError> {
        let sent = self.accepted.extract_if(.., |_, (sender, _)| sender.as_ref() == Some(worker));
        let numbers: BTreeSet<u64> = sent.map(|(number, _)| number).collect();
        if !numbers.is_empty() {
            self.keeper.remove(&numbers)?;
            let mut state = self.coordinator.responder.state();
            numbers.iter().for_each(|&number| state.reopen(number));
        }
        Ok(numbers.len())
    }
}
