//! A [`GameSource`] whose games are played by workers. It works for every learner from self-play.
//!
//! Games are validated, written to the learner's own disk, and then acknowledged. A share of them is
//! audited before the generation ends. The games are the same as from threads of this process, so a
//! run can switch between both at any time. This module does not know how learning works.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use selfmate_nn::Model;
use selfmate_run::GameRecord;
use selfmate_selfplay::{
    Completion, FinishedGame, GameSink, GameSource, Generation, SelfPlayError, evaluators,
};

use crate::audit::Exactness;
use crate::auditor::Auditor;
use crate::ban::Bans;
use crate::broker::{Access, Storage};
use crate::collector::{Collector, GameKeeper};
use crate::coordinator::{Announcement, Caller, Coordinator, Setup};
use crate::envelope::Envelope;
use crate::error::ClusterError;
use crate::hash::Hash;
use crate::job::{GenerationJob, Job, Task};
use crate::key::Key;
use crate::lease::Terms;
use crate::provenance::Provenance;
use crate::rejection::Rejection;
use crate::subject::WorkerName;
use crate::validation::validate;

#[derive(Clone, Debug)]
pub struct Options {
    pub access: Access,
    pub storage: Storage,
    /// Name of the run.
    pub run: String,
    /// Folder of the run.
    pub folder: PathBuf,
    /// Threads for audits.
    pub threads: usize,
    /// From 0 to 1.
    pub audit_share: f64,
    pub terms: Terms,
}

pub struct Cluster {
    options: Options,
    coordinator: Coordinator,
    provenance: Provenance,
    /// The part of `invalid` that [`GameSource::take_invalid`] has not returned yet.
    invalid_new: BTreeSet<u64>,
    /// Games of earlier generations whose stored copy is from a banned worker.
    invalid: BTreeSet<u64>,
}

impl From<ClusterError> for SelfPlayError {
    fn from(error: ClusterError) -> SelfPlayError {
        SelfPlayError::Source(Box::new(error))
    }
}

impl Cluster {
    pub fn open(options: Options) -> Result<Cluster, ClusterError> {
        let folder = options.folder.join("cluster");
        fs::create_dir_all(&folder).map_err(ClusterError::io(&folder))?;
        let key = Key::open(&folder.join("key"))?;
        let bans = Bans::open(&folder.join("bans.jsonl"))?;
        let provenance = Provenance::new(&folder);
        // The process may have been killed between a ban and the removal of the games.
        let invalid = provenance.games_of(&bans.workers())?;
        let coordinator = Coordinator::open(Setup {
            access: options.access.clone(),
            storage: options.storage,
            name: options.run.clone(),
            key,
            bans,
            terms: options.terms,
        })?;
        Ok(Cluster { options, coordinator, provenance, invalid_new: invalid.clone(), invalid })
    }
}

impl GameSource for Cluster {
    fn play(
        &mut self,
        job: &selfmate_selfplay::GenerationJob<'_>,
        sink: &mut GameSink<'_>,
    ) -> Result<Completion, SelfPlayError> {
        let bytes: Arc<[u8]> = (job.model_file)()?.into();
        // Decoded from the file, as workers do it, so that audits use the same numbers.
        let (model, _) =
            Model::decode(&bytes).map_err(|error| ClusterError::Network(error.to_string()))?;
        let network = Hash::of(&bytes);
        let document = Job::new(Task::Generation(GenerationJob {
            run: self.options.run.clone(),
            seed: job.run_seed,
            generation: job.index,
            step: job.generation.network,
            simulations: job.generation.simulations,
            network,
            selfplay: job.generation.config.clone(),
        }));
        let mut senders = self.provenance.open(job.index)?;
        let text = document.to_json();
        let job_hash = Hash::of(text.as_bytes());
        let announcement = Announcement {
            job: job_hash,
            generation: job.index,
            network: Some(network),
            objects: vec![(network, bytes), (job_hash, text.into_bytes().into())],
            numbers: job.numbers.clone(),
        };
        let Cluster { options, coordinator, provenance, invalid_new, invalid } = self;
        let mut keeper =
            GenerationKeeper { sink, generation: job.generation, provenance, invalid_new, invalid };
        if !coordinator.begin(announcement, &mut keeper) {
            return Ok(Completion::Incomplete);
        }
        let auditor = Auditor::of_generation(
            options.threads,
            job.generation,
            evaluators(&model),
            Exactness::of(&model),
        );
        let stored: Vec<GameRecord> = keeper.sink.games().to_vec();
        let mut collector =
            Collector::new(coordinator, job_hash, &mut keeper, auditor, options.audit_share);
        let collect = || -> Result<bool, ClusterError> {
            for record in stored {
                let hash = Hash::of(&record.encode()?);
                let sender = senders.remove(&record.number);
                collector.resume(sender, FinishedGame { record, simulations: 0 }, hash)?;
            }
            collector.run()
        };
        let is_complete = collect();
        self.coordinator.end();
        Ok(if is_complete? { Completion::Complete } else { Completion::Incomplete })
    }

    fn take_invalid(&mut self) -> BTreeSet<u64> {
        std::mem::take(&mut self.invalid_new)
    }

    fn is_invalid(&self, number: u64) -> bool {
        self.invalid.contains(&number)
    }
}

/// Keeps the games of a generation in the run's journal, and their senders in [`Provenance`].
struct GenerationKeeper<'a, 's> {
    sink: &'a mut GameSink<'s>,
    generation: &'a Generation,
    provenance: &'a mut Provenance,
    invalid_new: &'a mut BTreeSet<u64>,
    invalid: &'a mut BTreeSet<u64>,
}

impl Caller for GenerationKeeper<'_, '_> {
    fn should_continue(&mut self) -> bool {
        self.sink.should_continue()
    }

    fn note(&mut self, text: &str) {
        self.sink.note(text);
    }
}

impl GameKeeper for GenerationKeeper<'_, '_> {
    type Game = FinishedGame;

    fn validate(&mut self, envelope: &Envelope) -> Result<(FinishedGame, Hash), Rejection> {
        validate(envelope, self.generation)
    }

    fn keep(&mut self, worker: &WorkerName, game: FinishedGame) -> Result<(), ClusterError> {
        let number = game.record.number;
        self.provenance.add(number, worker);
        self.invalid.remove(&number);
        Ok(self.sink.add(game)?)
    }

    fn kept(&self, number: u64) -> Option<FinishedGame> {
        let found = self.sink.games().iter().find(|record| record.number == number);
        found.map(|record| FinishedGame { record: record.clone(), simulations: 0 })
    }

    fn sync(&mut self) -> Result<(), ClusterError> {
        // The senders first: a stored game without its sender could not be removed after a ban.
        self.provenance.sync()?;
        Ok(self.sink.sync()?)
    }

    fn remove(&mut self, numbers: &BTreeSet<u64>) -> Result<(), ClusterError> {
        Ok(self.sink.remove(numbers)?)
    }

    fn banned(
        &mut self,
        worker: &WorkerName,
        _: &Rejection,
        numbers: &BTreeSet<u64>,
    ) -> Result<String, ClusterError> {
        self.provenance.sync()?;
        let games = self.provenance.games_of(&BTreeSet::from([worker.clone()]))?;
        let earlier: Vec<u64> = games.difference(numbers).copied().collect();
        self.invalid_new.extend(&earlier);
        self.invalid.extend(&earlier);
        Ok(format!(", {} of earlier generations are removed", earlier.len()))
    }
}
