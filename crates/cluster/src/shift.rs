//! The games of one generation while they come in: each is judged, kept, acknowledged once the disk
//! has it, and played again if it is chosen.

use std::collections::{BTreeMap, BTreeSet};

use async_nats::jetstream::{AckKind, Message};
use selfmate_learn::LearnError;
use selfmate_learn::selfplay::{Harvest, Tray};
use selfmate_run::GameRecord;

use crate::audit::{Agreement, parts_too_often};
use crate::auditor::{Auditor, Finding};
use crate::hash::Hash;
use crate::intake::Intake;
use crate::refusal::Refusal;
use crate::source::Cluster;
use crate::subject::WorkerName;

/// The games of one generation while they come in.
pub struct Shift<'a> {
    cluster: &'a mut Cluster,
    order: Hash,
    intake: Intake,
    auditor: Auditor<GameRecord>,
    /// Who sent each game that is on the tray, where that is known, and its hash.
    accepted: BTreeMap<u64, (Option<WorkerName>, Hash)>,
    /// What is to be said of messages once the disk has what they brought.
    acknowledge: Vec<(Message, AckKind)>,
}

impl<'a> Shift<'a> {
    /// Nothing has come in yet.
    pub fn new(
        cluster: &'a mut Cluster,
        order: Hash,
        intake: Intake,
        auditor: Auditor<GameRecord>,
    ) -> Shift<'a> {
        let (accepted, acknowledge) = (BTreeMap::new(), Vec::new());
        Shift { cluster, order, intake, auditor, accepted, acknowledge }
    }

    /// Until all games are there and audited, or there is no more time. `known` says who sent what
    /// is there already.
    pub fn run(
        mut self,
        known: BTreeMap<u64, WorkerName>,
        tray: &mut Tray<'_>,
    ) -> Result<Harvest, LearnError> {
        self.look_back(known, tray)?;
        loop {
            for message in self.cluster.centre.receive() {
                self.take(message, tray)?;
                if !tray.goes_on() {
                    // The rest is not acknowledged, and comes again.
                    break;
                }
            }
            self.settle(tray)?;
            for finding in self.auditor.findings() {
                self.weigh(&finding, tray)?;
            }
            let now = self.cluster.centre.host.now();
            self.cluster.centre.host.office().expire(now);
            let missing = self.cluster.centre.host.office().missing();
            if missing == 0 && self.auditor.pending()? == 0 {
                return Ok(Harvest::Ripe);
            }
            if !tray.goes_on() {
                // What is not audited yet is audited when the run goes on.
                return Ok(Harvest::Unripe);
            }
        }
    }

    /// Takes up what was there before a restart: who sent it, and what was to be audited.
    fn look_back(
        &mut self,
        mut known: BTreeMap<u64, WorkerName>,
        tray: &mut Tray<'_>,
    ) -> Result<(), LearnError> {
        let mut banned = BTreeSet::new();
        for record in tray.games() {
            let worker = known.remove(&record.number);
            self.accepted.insert(record.number, (worker.clone(), Hash::of(&record.encode()?)));
            let Some(worker) = worker else { continue };
            if self.cluster.centre.host.office().is_banned(&worker) {
                banned.insert(worker);
            } else if self.is_chosen(&worker, record.number) {
                self.auditor.add(worker, record.clone());
            }
        }
        for worker in banned {
            self.take_back(&worker, tray)?;
        }
        Ok(())
    }

    fn is_chosen(&self, worker: &WorkerName, number: u64) -> bool {
        let share = self.cluster.options.audit_share;
        self.cluster.centre.key.is_audited(worker, &self.order, number, share)
    }

    /// Looks at a message; what is good of it goes on the tray.
    fn take(&mut self, message: Message, tray: &mut Tray<'_>) -> Result<(), LearnError> {
        let Some((worker, parcels)) = self.cluster.centre.parcels(&message) else {
            self.acknowledge.push((message, AckKind::Term));
            return Ok(());
        };
        for parcel in parcels {
            // One of them may show what is to be thought of the rest.
            if !self.cluster.centre.host.office().is_banned(&worker) {
                self.take_parcel(&worker, parcel, tray)?;
            }
        }
        self.acknowledge.push((message, AckKind::Ack));
        Ok(())
    }

    fn take_parcel(
        &mut self,
        worker: &WorkerName,
        parcel: &[u8],
        tray: &mut Tray<'_>,
    ) -> Result<(), LearnError> {
        let now = self.cluster.centre.host.now();
        let delivery = match self.intake.judge(worker, parcel) {
            Ok(delivery) => delivery,
            Err(refusal) => {
                self.cluster.centre.host.office().refuse(worker, refusal.kind(), now);
                return if refusal.is_proof() { self.ban(worker, &refusal, tray) } else { Ok(()) };
            }
        };
        let record = &delivery.played.record;
        let number = record.number;
        let is_first = self.cluster.centre.host.office().is_first(worker);
        if let Some((other, hash)) = self.accepted.get(&number) {
            self.cluster.centre.host.office().take(worker, number, now);
            // Both cannot be right.
            if *hash != delivery.hash {
                let stored = tray.games().iter().find(|game| game.number == number);
                if let (Some(other), Some(stored)) = (other.clone(), stored) {
                    self.auditor.add(other, stored.clone());
                }
                self.auditor.add(worker.clone(), record.clone());
            }
        } else if self.cluster.centre.host.office().take(worker, number, now) {
            // The first game of a worker shows whether its machine computes as ours does.
            if is_first || self.is_chosen(worker, number) {
                self.auditor.add(worker.clone(), record.clone());
            }
            self.cluster.provenance.add(number, worker);
            self.cluster.bad.remove(&number);
            self.accepted.insert(number, (Some(worker.clone()), delivery.hash));
            tray.add(delivery.played)?;
        }
        Ok(())
    }

    /// Waits until the disk has everything, then says so to the broker.
    fn settle(&mut self, tray: &mut Tray<'_>) -> Result<(), LearnError> {
        if self.acknowledge.is_empty() {
            return Ok(());
        }
        // First who, then what: a game without its sender could not be found again.
        self.cluster.provenance.sync()?;
        tray.sync()?;
        self.cluster.centre.acknowledge(std::mem::take(&mut self.acknowledge));
        Ok(())
    }

    /// What playing a game again has shown.
    fn weigh(&mut self, finding: &Finding, tray: &mut Tray<'_>) -> Result<(), LearnError> {
        let Finding { worker, number, agreement } = finding;
        let (audited, parted) = self.cluster.centre.host.office().audited(worker, agreement);
        let what = match agreement {
            Agreement::Same => return Ok(()),
            Agreement::Parted { .. } if parts_too_often(parted, audited) => {
                format!("{parted} of {audited} games part from what they should be")
            }
            Agreement::Parted { .. } => return Ok(()),
            Agreement::Different(what) => format!("game {number}: {what}"),
        };
        self.ban(worker, &Refusal::Audit(what), tray)
    }

    /// Takes nothing from a worker any more, and takes back what there is of it.
    fn ban(
        &mut self,
        worker: &WorkerName,
        refusal: &Refusal,
        tray: &mut Tray<'_>,
    ) -> Result<(), LearnError> {
        if !self.cluster.centre.host.office().ban(worker, &refusal.to_string())? {
            return Ok(());
        }
        // Its games of earlier generations; those of this one are taken back here and now.
        self.cluster.provenance.sync()?;
        let games = self.cluster.provenance.games_of(&BTreeSet::from([worker.clone()]))?;
        let earlier: Vec<u64> =
            games.iter().copied().filter(|game| !self.accepted.contains_key(game)).collect();
        self.cluster.purge.extend(&earlier);
        self.cluster.bad.extend(&earlier);
        self.auditor.forget(worker);
        let count = self.take_back(worker, tray)?;
        let earlier = games.len().saturating_sub(count);
        tray.note(&format!(
            "worker {worker} is refused: {refusal}; {count} of its games are played again, \
             {earlier} of earlier generations are removed"
        ));
        Ok(())
    }

    /// Takes a worker's games of this generation back; how many.
    fn take_back(&mut self, worker: &WorkerName, tray: &mut Tray<'_>) -> Result<usize, LearnError> {
        let is_theirs = |(number, (sender, _)): (&u64, &(Option<WorkerName>, Hash))| {
            (sender.as_ref() == Some(worker)).then_some(*number)
        };
        let numbers: BTreeSet<u64> = self.accepted.iter().filter_map(is_theirs).collect();
        if numbers.is_empty() {
            return Ok(0);
        }
        tray.take_back(&numbers)?;
        for &number in &numbers {
            self.accepted.remove(&number);
            self.cluster.centre.host.office().reopen(number);
        }
        Ok(numbers.len())
    }
}
