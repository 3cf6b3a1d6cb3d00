//! Games from many machines, as a source of games for any learner from self-play.
//!
//! What comes in is checked, written to the learner's own disk, and only then acknowledged. Part of
//! it is played again before the generation is over. The learner itself does not know the
//! difference, and a run may change between this and the threads of one process at any time.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use selfmate_learn::selfplay::{Harvest, Source, Tray, Work, evaluators};
use selfmate_learn::{LearnError, endgame};
use selfmate_nn::Model;

use crate::audit::Exactness;
use crate::auditor::Auditor;
use crate::ban::Bans;
use crate::broker::{Access, Storage};
use crate::centre::{Call, Centre, Setup, Waiting};
use crate::ending;
use crate::error::ClusterError;
use crate::hash::Hash;
use crate::intake::Intake;
use crate::key::Key;
use crate::lease::Terms;
use crate::order::{Order, PROTOCOL};
use crate::provenance::Provenance;
use crate::shift::Shift;

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
    pub(crate) options: Options,
    pub(crate) centre: Centre,
    pub(crate) provenance: Provenance,
    /// Games of earlier generations that must go.
    pub(crate) purge: BTreeSet<u64>,
    /// Games whose stored copy is a refused worker's.
    pub(crate) bad: BTreeSet<u64>,
}

impl From<ClusterError> for LearnError {
    fn from(error: ClusterError) -> LearnError {
        LearnError::Source(Box::new(error))
    }
}

impl Cluster {
    /// Connects and starts to answer workers.
    pub fn open(options: Options) -> Result<Cluster, ClusterError> {
        let folder = options.folder.join("cluster");
        fs::create_dir_all(&folder).map_err(ClusterError::io(&folder))?;
        let key = Key::open(&folder.join("key"))?;
        let bans = Bans::open(&folder.join("refused.jsonl"))?;
        let provenance = Provenance::new(&folder);
        // A kill may have come between the refusal and the removal.
        let bad = provenance.games_of(&bans.workers())?;
        let centre = Centre::open(Setup {
            access: options.access.clone(),
            storage: options.storage,
            name: options.run.clone(),
            key,
            bans,
            terms: options.terms,
        })?;
        Ok(Cluster { options, centre, provenance, purge: bad.clone(), bad })
    }
}

impl Waiting for Tray<'_> {
    fn goes_on(&mut self) -> bool {
        Tray::goes_on(self)
    }

    fn note(&mut self, text: &str) {
        Tray::note(self, text);
    }
}

impl Source for Cluster {
    fn play(&mut self, work: &Work<'_>, tray: &mut Tray<'_>) -> Result<Harvest, LearnError> {
        let bytes: Arc<[u8]> = (work.model)()?.into();
        // As workers get it: what they play is what is played again here.
        let (model, _) = Model::decode(&bytes)?;
        let order = Order {
            protocol: PROTOCOL,
            run: self.options.run.clone(),
            seed: work.seed,
            generation: work.index,
            step: work.generation.network,
            sims: work.generation.sims,
            network: Hash::of(&bytes),
            selfplay: work.generation.config.clone(),
        };
        let known = self.provenance.open(work.index)?;
        let text = order.to_toml();
        let hash = Hash::of(text.as_bytes());
        let call = Call {
            order: hash,
            generation: work.index,
            network: Some(order.network),
            objects: vec![(order.network, bytes), (hash, text.into_bytes().into())],
            numbers: work.numbers.clone(),
        };
        if !self.centre.begin(call, tray) {
            return Ok(Harvest::Unripe);
        }
        let exactness = Exactness::of(&model);
        let intake = Intake::new(self.centre.key.clone(), hash, work.generation.clone());
        let auditor = Auditor::of_generation(
            self.options.threads,
            work.generation,
            evaluators(&model),
            exactness,
        );
        let outcome = Shift::new(self, hash, intake, auditor).run(known, tray);
        self.centre.end();
        outcome
    }

    fn play_endings(
        &mut self,
        work: &endgame::Work<'_>,
        note: &mut dyn FnMut(&str),
    ) -> Result<Option<Vec<endgame::Log>>, LearnError> {
        ending::play(self, work, note)
    }

    fn purge(&mut self) -> BTreeSet<u64> {
        std::mem::take(&mut self.purge)
    }

    fn is_bad(&self, number: u64) -> bool {
        self.bad.contains(&number)
    }
}
