//! A run that goes on without the workers it had.
//!
//! What they sent for the generation that was being played is not looked at to its end: it is on
//! disk, but what was to be played again may not have been. There is nobody to go on with that, so
//! these games are played here. Whole generations were looked at before they were sealed.

use std::collections::BTreeSet;
use std::path::Path;

use selfmate_selfplay::{
    Completion, GameSink, GameSource, GenerationJob, LocalThreads, SelfPlayError,
};

use crate::ban::Bans;
use crate::error::ClusterError;
use crate::provenance::Provenance;

/// Threads of this process, for a run that had workers.
pub struct Detached {
    threads: LocalThreads,
    provenance: Provenance,
    invalid_new: BTreeSet<u64>,
    invalid: BTreeSet<u64>,
}

impl Detached {
    /// For the run in this folder; `None` when it never had workers.
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
        let theirs: BTreeSet<u64> = sink
            .games()
            .iter()
            .map(|game| game.number)
            .filter(|number| sent.contains_key(number))
            .collect();
        let mut numbers = job.numbers.clone();
        if !theirs.is_empty() {
            let count = theirs.len();
            sink.note(&format!("{count} games that workers had sent are played again here"));
            sink.remove(&theirs)?;
            numbers.extend(&theirs);
            numbers.sort_unstable();
        }
        // From now on they are nobody's.
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
