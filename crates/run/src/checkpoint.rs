//! Checkpoints: folders of files that are complete or absent.
//!
//! A new checkpoint is built beside its target, with the MANIFEST last, synced to disk and renamed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::atomic_file;
use crate::error::{Damage, RunError, SkippedCheckpoints, there_are};
use crate::manifest::{self, Entry, Manifest};
use crate::reader::RunReader;
use crate::writer::Run;

/// The suffix of a checkpoint while its replacement is moved into place.
const OLD: &str = "old";

/// The verified files of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// The number of batches trained on.
    pub step: u64,
    pub files: BTreeMap<String, Vec<u8>>,
}

/// The newest usable checkpoint, and the damage found in newer ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Latest {
    pub checkpoint: Option<Checkpoint>,
    /// Newest first.
    pub damages: Vec<Damage>,
}

impl Latest {
    /// A warning, if damaged checkpoints were skipped.
    pub fn skipped_checkpoints(&self) -> Option<SkippedCheckpoints> {
        let used = self.checkpoint.as_ref()?.step;
        let damages = self.damages.clone();
        (!damages.is_empty()).then_some(SkippedCheckpoints { damages, used })
    }
}

/// Changes whenever the newest checkpoint changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckpointStamp {
    step: u64,
    files: Vec<(String, u64, Option<SystemTime>)>,
}

/// What is stored under the name of a checkpoint.
enum Found {
    Whole(Checkpoint),
    Damaged(Damage),
    Nothing,
}

impl RunReader {
    /// The steps of all checkpoints, damaged or not, in order.
    pub fn steps(&self) -> Result<Vec<u64>, RunError> {
        let names = atomic_file::names(&self.checkpoints_path())?;
        // Only the names that we write: no leading zeros, no sign.
        let step = |name: &String| name.parse().ok().filter(|step: &u64| step.to_string() == *name);
        let mut steps: Vec<u64> = names.iter().filter_map(step).collect();
        steps.sort_unstable();
        Ok(steps)
    }

    pub fn load_checkpoint(&self, step: u64) -> Result<Checkpoint, RunError> {
        match self.find_checkpoint(step)? {
            Found::Whole(checkpoint) => Ok(checkpoint),
            Found::Damaged(damage) => Err(RunError::Damaged(damage)),
            Found::Nothing => {
                let steps: Vec<String> = self.steps()?.iter().map(u64::to_string).collect();
                let what = format!("no checkpoint of step {step}: {}", there_are(&steps));
                Err(RunError::refused(&self.checkpoints_path(), what))
            }
        }
    }

    /// The newest undamaged checkpoint that has the required files, and the damage found in newer
    /// ones.
    pub fn latest_checkpoint(&self, required: &[&str]) -> Result<Latest, RunError> {
        loop {
            let mut damages = Vec::new();
            let steps = self.steps()?;
            for &step in steps.iter().rev() {
                match self.find_checkpoint(step)? {
                    Found::Whole(checkpoint) => {
                        if required.iter().all(|&name| checkpoint.files.contains_key(name)) {
                            return Ok(Latest { checkpoint: Some(checkpoint), damages });
                        }
                    }
                    Found::Damaged(damage) => damages.push(damage),
                    Found::Nothing => {}
                }
            }
            // A writer may have removed all of them meanwhile and written newer ones.
            if self.steps()? == steps {
                return Ok(Latest { checkpoint: None, damages });
            }
        }
    }

    /// The length and modification time of each file of the newest checkpoint. Readers may cache
    /// what they read as long as the stamp stays equal.
    pub fn checkpoint_stamp(&self) -> Result<CheckpointStamp, RunError> {
        let Some(step) = self.steps()?.pop() else { return Ok(CheckpointStamp::default()) };
        let folder = self.checkpoint_path(step);
        let files = atomic_file::names(&folder)?.into_iter().map(|name| {
            let file = fs::metadata(folder.join(&name)).ok();
            let written = file.as_ref().and_then(|file| file.modified().ok());
            (name, file.map_or(0, |file| file.len()), written)
        });
        Ok(CheckpointStamp { step, files: files.collect() })
    }

    fn checkpoint_path(&self, step: u64) -> PathBuf {
        self.checkpoints_path().join(step.to_string())
    }

    fn find_checkpoint(&self, step: u64) -> Result<Found, RunError> {
        let folder = self.checkpoint_path(step);
        let path = folder.join(manifest::NAME);
        // A writer may replace the checkpoint during the read. In that case read it again.
        loop {
            let Some(text) = atomic_file::read(&path)? else {
                if !folder.is_dir() {
                    return Ok(Found::Nothing);
                }
                if path.exists() {
                    continue;
                }
                return Ok(Found::Damaged(Damage::new(&path, "is missing")));
            };
            let found = read_files(&folder, step, &text)?;
            if matches!(found, Found::Whole(_)) || atomic_file::read(&path)?.as_ref() == Some(&text)
            {
                return Ok(found);
            }
        }
    }
}

fn read_files(folder: &Path, step: u64, text: &[u8]) -> Result<Found, RunError> {
    let damaged =
        |name: &str, what: &str| Ok(Found::Damaged(Damage::new(&folder.join(name), what)));
    let manifest = match Manifest::parse(text) {
        Ok(manifest) if manifest.step == step => manifest,
        Ok(other) => {
            return damaged(
                manifest::NAME,
                &format!("is for step {}: expected {step}", other.step),
            );
        }
        Err(what) => return damaged(manifest::NAME, &what),
    };
    let mut files = BTreeMap::new();
    for (name, entry) in manifest.files {
        let Some(bytes) = atomic_file::read(&folder.join(&name))? else {
            return damaged(&name, "is missing");
        };
        if let Err(what) = entry.check(&bytes) {
            return damaged(&name, &what);
        }
        files.insert(name, bytes);
    }
    Ok(Found::Whole(Checkpoint { step, files }))
}

impl Run {
    /// Writes a checkpoint. Replaces one of the same step.
    pub fn save_checkpoint(&mut self, step: u64, files: &[(&str, &[u8])]) -> Result<(), RunError> {
        self.check_present()?;
        let folder = self.checkpoint_path(step);
        let mut manifest = Manifest { step, files: BTreeMap::new(), dropped: BTreeSet::new() };
        for &(name, bytes) in files {
            manifest::check_name(name).map_err(|what| RunError::refused(&folder, what))?;
            if manifest.files.insert(name.to_owned(), Entry::of(bytes)).is_some() {
                return Err(RunError::refused(&folder, format!("two files named '{name}'")));
            }
        }
        let partial = atomic_file::with_suffix(&folder, atomic_file::PARTIAL);
        atomic_file::remove(&partial)?;
        fs::create_dir(&partial).map_err(RunError::io(&partial))?;
        for &(name, bytes) in files {
            atomic_file::write_synced(&partial.join(name), bytes)?;
        }
        let text = manifest.to_text();
        atomic_file::write_synced(&partial.join(manifest::NAME), text.as_bytes())?;
        atomic_file::sync_folder(&partial)?;
        let old = atomic_file::with_suffix(&folder, OLD);
        if folder.exists() {
            atomic_file::rename(&folder, &old)?;
        }
        atomic_file::rename(&partial, &folder)?;
        atomic_file::remove(&old)
    }

    /// Like [`RunReader::latest_checkpoint`], and renames damaged checkpoints to `STEP.damaged`.
    pub fn recover_checkpoint(&mut self, required: &[&str]) -> Result<Latest, RunError> {
        let found = self.latest_checkpoint(required)?;
        for damage in &found.damages {
            let folder = damage.path.parent().expect("damage is in a file of a checkpoint");
            atomic_file::set_aside(folder)?;
        }
        Ok(found)
    }

    /// Removes files that only a resume needs from an old checkpoint, to save space.
    pub fn thin_checkpoint(&mut self, step: u64, drop: &[&str]) -> Result<(), RunError> {
        let folder = self.checkpoint_path(step);
        let path = folder.join(manifest::NAME);
        let bytes = fs::read(&path).map_err(RunError::io(&path))?;
        let mut manifest =
            Manifest::parse(&bytes).map_err(|what| RunError::damaged(&path, what))?;
        for &name in drop {
            if manifest.files.remove(name).is_some() {
                manifest.dropped.insert(name.to_owned());
            }
        }
        // From here on the files are not part of the checkpoint, removed or not.
        atomic_file::write(&path, manifest.to_text().as_bytes())?;
        remove_dropped(&folder, &manifest)
    }

    pub fn remove_checkpoint(&mut self, step: u64) -> Result<(), RunError> {
        let folder = self.checkpoint_path(step);
        let partial = atomic_file::with_suffix(&folder, atomic_file::PARTIAL);
        atomic_file::remove(&partial)?;
        if folder.exists() {
            atomic_file::rename(&folder, &partial)?;
        }
        atomic_file::remove(&partial)
    }

    /// Completes operations that a kill interrupted.
    pub(crate) fn tidy_checkpoints(&mut self) -> Result<(), RunError> {
        let checkpoints = self.checkpoints_path();
        for name in atomic_file::names(&checkpoints)? {
            let path = checkpoints.join(&name);
            if let Some(step) = name.strip_suffix(".old") {
                // The kill came after or before the new checkpoint was moved into place.
                let place = checkpoints.join(step);
                if place.exists() {
                    atomic_file::remove(&path)?;
                } else {
                    atomic_file::rename(&path, &place)?;
                }
            }
        }
        for step in self.steps()? {
            let folder = self.checkpoint_path(step);
            let path = folder.join(manifest::NAME);
            atomic_file::remove(&atomic_file::with_suffix(&path, atomic_file::PARTIAL))?;
            // A damaged manifest is reported when the checkpoint is read.
            if let Some(Ok(manifest)) =
                atomic_file::read(&path)?.map(|bytes| Manifest::parse(&bytes))
            {
                remove_dropped(&folder, &manifest)?;
            }
        }
        Ok(())
    }
}

fn remove_dropped(folder: &Path, manifest: &Manifest) -> Result<(), RunError> {
    for name in &manifest.dropped {
        atomic_file::remove(&folder.join(name))?;
    }
    Ok(())
}
