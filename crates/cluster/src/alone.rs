//! A run that goes on without the workers it had.
//!
//! What they sent for the generation that was being played is not looked at to its end: it is on
//! disk, but what was to be played again may not have been. There is nobody to go on with that, so
//! these games are played here. Whole generations were looked at before they were sealed.

use std::collections::BTreeSet;
use std::path::Path;

use selfmate_learn::selfplay::{Harvest, Source, Threads, Tray, Work};
use selfmate_learn::{LearnError, endgame};

use crate::ban::Bans;
use crate::error::ClusterError;
use crate::provenance::Provenance;

/// Threads of this process, for a run that had workers.
pub struct Alone {
    threads: Threads,
    provenance: Provenance,
    purge: BTreeSet<u64>,
    bad: BTreeSet<u64>,
}

impl Alone {
    /// For the run in this folder; `None` when it never had workers.
    pub fn open(folder: &Path, threads: usize) -> Result<Option<Alone>, ClusterError> {
        let folder = folder.join("cluster");
        if !folder.exists() {
            return Ok(None);
        }
        let provenance = Provenance::new(&folder);
        let bans = Bans::open(&folder.join("refused.jsonl"))?;
        let bad = provenance.games_of(&bans.workers())?;
        Ok(Some(Alone { threads: Threads(threads), provenance, purge: bad.clone(), bad }))
    }
}

impl Source for Alone {
    fn play(&mut self, work: &Work<'_>, tray: &mut Tray<'_>) -> Result<Harvest, LearnError> {
        let sent = self.provenance.known(work.index)?;
        let theirs: BTreeSet<u64> = tray
            .games()
            .iter()
            .map(|game| game.number)
            .filter(|number| sent.contains_key(number))
            .collect();
        let mut numbers = work.numbers.clone();
        if !theirs.is_empty() {
            let count = theirs.len();
            tray.note(&format!("{count} games that workers had sent are played again here"));
            tray.take_back(&theirs)?;
            numbers.extend(&theirs);
            numbers.sort_unstable();
        }
        // From now on they are nobody's.
        self.provenance.forget(work.index)?;
        self.bad.retain(|number| !numbers.contains(number));
        self.threads.play(&Work { numbers, ..*work }, tray)
    }

    fn play_endings(
        &mut self,
        work: &endgame::Work<'_>,
        note: &mut dyn FnMut(&str),
    ) -> Result<Option<Vec<endgame::Log>>, LearnError> {
        self.provenance.forget(work.round)?;
        self.threads.play_endings(work, note)
    }

    fn purge(&mut self) -> BTreeSet<u64> {
        std::mem::take(&mut self.purge)
    }

    fn is_bad(&self, number: u64) -> bool {
        self.bad.contains(&number)
    }
}
