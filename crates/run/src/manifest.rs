//! The MANIFEST of a checkpoint: the hash and size of each file, and a hash of the manifest itself.
//!
//! ```text
//! selfmate checkpoint 1
//! step 1200
//! file 3b1f…e0 1048576 model.safetensors
//! dropped optimiser.safetensors
//! manifest 77c0…a2
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use blake3::Hash;

pub const NAME: &str = "MANIFEST";
const FIRST: &str = "selfmate checkpoint 1";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// The number of batches trained on.
    pub step: u64,
    pub files: BTreeMap<String, Entry>,
    /// Files that were removed later. After a kill they may still exist.
    pub dropped: BTreeSet<String>,
}

/// A file as it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// BLAKE3 hash of the bytes.
    pub hash: Hash,
    /// In bytes.
    pub size: u64,
}

impl Entry {
    pub fn of(bytes: &[u8]) -> Entry {
        Entry { hash: blake3::hash(bytes), size: bytes.len() as u64 }
    }

    /// Compares bytes with this entry; the error states the difference.
    pub fn check(&self, bytes: &[u8]) -> Result<(), String> {
        if bytes.len() as u64 != self.size {
            return Err(format!("{} bytes: expected {}", bytes.len(), self.size));
        }
        if blake3::hash(bytes) != self.hash {
            return Err("does not match its hash in MANIFEST".into());
        }
        Ok(())
    }
}

impl Manifest {
    pub fn to_text(&self) -> String {
        let mut text = format!("{FIRST}\nstep {}\n", self.step);
        // Writing to a String cannot fail.
        for (name, Entry { hash, size }) in &self.files {
            let _ = writeln!(text, "file {hash} {size} {name}");
        }
        for name in &self.dropped {
            let _ = writeln!(text, "dropped {name}");
        }
        let hash = blake3::hash(text.as_bytes());
        let _ = writeln!(text, "manifest {hash}");
        text
    }

    /// Parses the text, or returns what is wrong with it.
    pub fn parse(bytes: &[u8]) -> Result<Manifest, String> {
        let text = str::from_utf8(bytes).map_err(|_| "is not valid UTF-8")?;
        let mut lines = text.lines();
        if lines.next() != Some(FIRST) {
            return Err(format!("expected '{FIRST}' in line 1"));
        }
        let mut manifest = Manifest { step: 0, files: BTreeMap::new(), dropped: BTreeSet::new() };
        for (index, line) in lines.enumerate() {
            let bad = || format!("line {} cannot be read", index + 2);
            let (key, rest) = line.split_once(' ').ok_or_else(bad)?;
            match key {
                "step" => manifest.step = rest.parse().map_err(|_| bad())?,
                "file" => {
                    let mut words = rest.splitn(3, ' ');
                    let mut word = || words.next().ok_or_else(bad);
                    let hash = Hash::from_hex(word()?).map_err(|_| bad())?;
                    let size = word()?.parse().map_err(|_| bad())?;
                    let name = word()?;
                    check_name(name)?;
                    manifest.files.insert(name.to_owned(), Entry { hash, size });
                }
                "dropped" => {
                    check_name(rest)?;
                    manifest.dropped.insert(rest.to_owned());
                }
                "manifest" => {}
                _ => return Err(bad()),
            }
        }
        // The hash covers the text, and there is only one text for each manifest.
        if manifest.to_text() == text {
            Ok(manifest)
        } else {
            Err("does not match its hash".into())
        }
    }
}

/// Rejects names that lead out of the folder or that we use ourselves.
pub fn check_name(name: &str) -> Result<(), String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let is_ours = name == NAME || name.ends_with(".partial");
    if name.is_empty() || name.starts_with('.') || is_ours || !name.chars().all(fits) {
        return Err(format!("bad file name '{name}': expected letters, digits, '.', '_' and '-'"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Manifest {
        let files = [("model.safetensors", &b"weights"[..]), ("state.toml", b"")];
        let files = files.map(|(name, bytes)| (name.to_owned(), Entry::of(bytes)));
        Manifest { step: 12, files: files.into(), dropped: ["optimiser".to_owned()].into() }
    }

    #[test]
    fn every_flipped_bit_and_every_truncation_is_detected() {
        let text = manifest().to_text();
        assert_eq!(Manifest::parse(text.as_bytes()), Ok(manifest()));
        for bit in 0..8 * text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(Manifest::parse(&bytes).is_err(), "bit {bit}");
        }
        for length in 0..text.len() {
            assert!(Manifest::parse(&text.as_bytes()[..length]).is_err(), "{length} bytes");
        }
    }

    #[test]
    fn names_that_lead_out_of_the_folder_are_rejected() {
        for name in ["", ".", "..", "../x", "a/b", "a b", "MANIFEST", "é", "x.partial"] {
            assert!(check_name(name).is_err(), "{name}");
        }
        assert!(check_name("model-2_b.safetensors").is_ok());
    }
}
