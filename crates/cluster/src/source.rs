//! Games from many machines, as a source of games for any learner from self-play.
//!
//! What comes in is checked, written to the learner's own disk, and only then acknowledged. Part of
//! it is played again before the generation is over. The learner itself does not know the
//! difference, and a run may change between this and the threads of one process at any time.

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
use crate::coordinator::{Announcement, Coordinator, Setup, Waiting};
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

/// How a learner uses a cluster.
#[derive(Clone, Debug)]
pub struct Options {
    /// How to reach the broker.
    pub access: Access,
    /// How games are kept there.
    pub storage: Storage,
    /// The name of the run.
    pub run: String,
    /// The folder of the run.
    pub folder: PathBuf,
    /// Threads for playing games again.
    pub threads: usize,
    /// The share of games that are played again.
    pub audit_share: f64,
    /// How long games are lent.
    pub terms: Terms,
}

/// Games from many machines.
pub struct Cluster {
    options: Options,
    coordinator: Coordinator,
    provenance: Provenance,
    /// Games of earlier generations that must go.
    /// Since they were last asked for.
    invalid_new: BTreeSet<u64>,
    /// Games whose stored copy is a refused worker's.
    invalid: BTreeSet<u64>,
}

impl From<ClusterError> for SelfPlayError {
    fn from(error: ClusterError) -> SelfPlayError {
        SelfPlayError::Source(Box::new(error))
    }
}

impl Cluster {
    /// Connects and starts to answer workers.
    pub fn open(options: Options) -> Result<Cluster, ClusterError> {
        let folder = options.folder.join("cluster");
        fs::create_dir_all(&folder).map_err(ClusterError::io(&folder))?;
        let key = Key::open(&folder.join("key"))?;
        let bans = Bans::open(&folder.join("bans.jsonl"))?;
        let provenance = Provenance::new(&folder);
        // A kill may have come between the rejection and the removal.
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
        // As workers get it: what they play is what is recomputed here.
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
        let hash = Hash::of(text.as_bytes());
        let announcement = Announcement {
            job: hash,
            generation: job.index,
            network: Some(network),
            objects: vec![(network, bytes), (hash, text.into_bytes().into())],
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
            Collector::new(coordinator, hash, &mut keeper, auditor, options.audit_share);
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

/// Keeps the games of a generation in the run's journal, and who sent them.
struct GenerationKeeper<'a, 's> {
    sink: &'a mut GameSink<'s>,
    generation: &'a Generation,
    provenance: &'a mut Provenance,
    invalid_new: &'a mut BTreeSet<u64>,
    invalid: &'a mut BTreeSet<u64>,
}

impl Waiting for GenerationKeeper<'_, '_> {
    fn goes_on(&mut self) -> bool {
        self.sink.goes_on()
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
        // First who, then what: a game without its sender could not be found again.
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
