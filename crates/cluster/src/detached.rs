//! A [`GameSource`] for a run that had workers and continues without a broker.
//!
//! The games of finished generations were audited. Those of the unfinished generation are on disk,
//! but some of their audits may be pending, so they are removed and played again by this process.

use std::collections::BTreeSet;
use std::path::Path;

use selfmate_selfplay::{
    Completion, GameSink, GameSource, GenerationJob, LocalThreads, SelfPlayError,
};

use crate::ban::Bans;
use crate::error::ClusterError;
use crate::provenance::Provenance;

pub struct Detached {
    threads: LocalThreads,
    provenance: Provenance,
    invalid_new: BTreeSet<u64>,
    invalid: BTreeSet<u64>,
}

impl Detached {
    /// `None` if the run in this folder never had workers.
    pub fn open(folder: &Path, threads: usize) -> Result<Option<Detached>, ClusterError> {
        let folder = folder.join("cluster");
        if !folder.exists() {
            return Ok(None);
        }
        let provenance = Provenance::new(&folder);
        let bans = Bans::open(&folder.join("bans.jsonl"))?;
        let invalid = provenance.games_of(&bans.workers())?;
        Ok(Some(Detached {
            threads: LocalThreads(threads),
            provenance,
            invalid_new: invalid.clone(),
            invalid,
        }))
    }
}

impl GameSource for Detached {
    fn play(
        &mut self,
        job: &GenerationJob<'_>,
        sink: &mut GameSink<'_>,
    ) -> Result<Completion, SelfPlayError> {
        let sent = self.provenance.known(job.index)?;
        let from_workers: BTreeSet<u64> = sink
            .games()
            .iter()
            .map(|game| game.number)
            .filter(|number| sent.contains_key(number))
            .collect();
        let mut numbers = job.numbers.clone();
        if !from_workers.is_empty() {
            let count = from_workers.len();
            sink.note(&format!(
                "{count} games sent by workers were not fully audited; they are played again by this \
                 process"
            ));
            sink.remove(&from_workers)?;
            numbers.extend(&from_workers);
            numbers.sort_unstable();
        }
        // The games of this generation are now all ours.
        self.provenance.forget(job.index)?;
        self.invalid.retain(|number| !numbers.contains(number));
        self.threads.play(&GenerationJob { numbers, ..*job }, sink)
    }

    fn take_invalid(&mut self) -> BTreeSet<u64> {
        std::mem::take(&mut self.invalid_new)
    }

    fn is_invalid(&self, number: u64) -> bool {
        self.invalid.contains(&number)
    }
}
