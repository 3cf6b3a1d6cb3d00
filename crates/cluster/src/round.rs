//! The games of an order that are needed all together and have no journal: those of a match and of
//! a round of an ending. What is lost with this process is played again.

use std::collections::BTreeMap;

use async_nats::jetstream::{AckKind, Message};

use crate::audit::{Agreement, parts_too_often};
use crate::auditor::{Auditor, Numbered};
use crate::centre::{Centre, Waiting};
use crate::error::ClusterError;
use crate::hash::Hash;
use crate::parcel::Parcel;
use crate::refusal::Refusal;
use crate::subject::WorkerName;

/// What games are for.
pub trait Purpose {
    /// A game.
    type Game: Numbered + Clone + Send + 'static;

    /// Looks at a game that was asked for.
    fn judge(&mut self, parcel: &Parcel) -> Result<Self::Game, Refusal>;

    /// True when two games of one number are the same.
    fn is_same(&self, one: &Self::Game, other: &Self::Game) -> bool;

    /// Remembers who sent a game, once [`Purpose::settle`] is called.
    fn keep(&mut self, _number: u64, _worker: &WorkerName) {}

    /// Waits until the disk has what was to be remembered; then games are acknowledged.
    fn settle(&mut self) -> Result<(), ClusterError> {
        Ok(())
    }

    /// Nothing is taken from a worker any more; what follows from that for earlier rounds, in words.
    fn refuse(&mut self, worker: &WorkerName, refusal: &Refusal) -> Result<String, ClusterError>;
}

/// Games by number, with who sent them.
pub type Games<T> = BTreeMap<u64, (WorkerName, T)>;

/// The games of an order while they come in.
pub struct Round<'a, P: Purpose> {
    centre: &'a mut Centre,
    order: Hash,
    purpose: &'a mut P,
    auditor: Auditor<P::Game>,
    audit_share: f64,
    accepted: Games<P::Game>,
    acknowledge: Vec<(Message, AckKind)>,
}

impl<'a, P: Purpose> Round<'a, P> {
    /// Nothing has come in yet.
    pub fn new(
        centre: &'a mut Centre,
        order: Hash,
        purpose: &'a mut P,
        auditor: Auditor<P::Game>,
        audit_share: f64,
    ) -> Round<'a, P> {
        let (accepted, acknowledge) = (BTreeMap::new(), Vec::new());
        Round { centre, order, purpose, auditor, audit_share, accepted, acknowledge }
    }

    /// Until all games are there and audited; `None` when there was no time for that.
    pub fn run(
        mut self,
        waiting: &mut dyn Waiting,
    ) -> Result<Option<Games<P::Game>>, ClusterError> {
        loop {
            for message in self.centre.receive() {
                self.take(message, waiting)?;
            }
            self.purpose.settle()?;
            self.centre.acknowledge(std::mem::take(&mut self.acknowledge));
            for finding in self.auditor.findings() {
                let mut office = self.centre.host.office();
                let (audited, parted) = office.audited(&finding.worker, &finding.agreement);
                drop(office);
                let what = match finding.agreement {
                    Agreement::Parted { .. } if parts_too_often(parted, audited) => {
                        format!("{parted} of {audited} games part from what they should be")
                    }
                    Agreement::Same | Agreement::Parted { .. } => continue,
                    Agreement::Different(what) => format!("game {}: {what}", finding.number),
                };
                self.ban(&finding.worker, &Refusal::Audit(what), waiting)?;
            }
            let now = self.centre.host.now();
            self.centre.host.office().expire(now);
            if self.centre.host.office().missing() == 0 && self.auditor.pending()? == 0 {
                return Ok(Some(self.accepted));
            }
            if !waiting.goes_on() {
                return Ok(None);
            }
        }
    }

    fn take(&mut self, message: Message, waiting: &mut dyn Waiting) -> Result<(), ClusterError> {
        let Some((worker, parcels)) = self.centre.parcels(&message) else {
            self.acknowledge.push((message, AckKind::Term));
            return Ok(());
        };
        for parcel in parcels {
            // One of them may show what is to be thought of the rest.
            if !self.centre.host.office().is_banned(&worker) {
                self.take_parcel(&worker, parcel, waiting)?;
            }
        }
        self.acknowledge.push((message, AckKind::Ack));
        Ok(())
    }

    fn take_parcel(
        &mut self,
        worker: &WorkerName,
        parcel: &[u8],
        waiting: &mut dyn Waiting,
    ) -> Result<(), ClusterError> {
        let now = self.centre.host.now();
        let parcel = Parcel::asked(parcel, &self.centre.key, worker, &self.order);
        let game = match parcel.and_then(|parcel| self.purpose.judge(&parcel)) {
            Ok(game) => game,
            Err(refusal) => {
                self.centre.host.office().refuse(worker, refusal.kind(), now);
                let is_proof = refusal.is_proof();
                return if is_proof { self.ban(worker, &refusal, waiting) } else { Ok(()) };
            }
        };
        let is_first = self.centre.host.office().is_first(worker);
        let number = game.number();
        let is_new = self.centre.host.office().take(worker, number, now);
        match self.accepted.get(&number) {
            None if is_new => {
                let key = &self.centre.key;
                // The first game of a worker shows whether its machine computes as ours does.
                if is_first || key.is_audited(worker, &self.order, number, self.audit_share) {
                    self.auditor.add(worker.clone(), game.clone());
                }
                self.purpose.keep(number, worker);
                self.accepted.insert(number, (worker.clone(), game));
            }
            // Both cannot be right.
            Some((other, stored)) if !self.purpose.is_same(&game, stored) => {
                self.auditor.add(other.clone(), stored.clone());
                self.auditor.add(worker.clone(), game);
            }
            _ => {}
        }
        Ok(())
    }

    /// Takes nothing from a worker any more; its games of this round go to others.
    fn ban(
        &mut self,
        worker: &WorkerName,
        refusal: &Refusal,
        waiting: &mut dyn Waiting,
    ) -> Result<(), ClusterError> {
        if !self.centre.host.office().ban(worker, &refusal.to_string())? {
            return Ok(());
        }
        self.auditor.forget(worker);
        let games = self.accepted.extract_if(.., |_, (sender, _)| sender == worker);
        let numbers: Vec<u64> = games.map(|(number, _)| number).collect();
        for &number in &numbers {
            self.centre.host.office().reopen(number);
        }
        let earlier = self.purpose.refuse(worker, refusal)?;
        let count = numbers.len();
        waiting.note(&format!(
            "worker {worker} is refused: {refusal}; {count} of its games are played again{earlier}"
        ));
        Ok(())
    }
}
