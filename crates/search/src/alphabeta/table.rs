//! The transposition table.
//!
//! Fixed in size and free of locks. An entry is two words: the data, and the key xored with the
//! data. An entry torn by two writers fails the check and reads as absent (Hyatt & Mann 2002).

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::Relaxed};

use super::score::TABLE_BOUND;
use crate::memory::{MemoryError, Zeroed, ZeroedSlice, check_limit};

/// How a stored score relates to the true one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Bound {
    /// The true score is at most this.
    Upper = 1,
    /// The true score is at least this.
    Lower = 2,
    /// The score is exact for its depth.
    Exact = 3,
}

impl Bound {
    /// True when this bound and score decide a null-window search around `beta`.
    pub(super) fn decides(self, score: i32, beta: i32) -> bool {
        match self {
            Bound::Exact => true,
            Bound::Lower => score >= beta,
            Bound::Upper => score < beta,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// Packed, 0 for none; see [`super::order::pack`].
    pub(super) best: u16,
    pub(super) score: i32,
    pub(super) eval: i32,
    pub(super) depth: i32,
    pub(super) bound: Bound,
}

/// Shared by all search threads.
pub(super) struct Table {
    buckets: ZeroedSlice<Bucket>,
    generation: AtomicU8,
    /// Nothing was stored since the table was created or cleared. Clearing it again would only
    /// touch memory that the system has not provided yet.
    is_blank: AtomicBool,
}

/// One cache line.
#[repr(align(64))]
#[derive(Default)]
struct Bucket([Slot; 4]);

#[derive(Default)]
struct Slot {
    check: AtomicU64,
    data: AtomicU64,
}

// SAFETY: atomic integers, for which zero is a valid value.
unsafe impl Zeroed for Bucket {}

const GENERATIONS: u8 = 64;
const BUCKETS_IN_MB: usize = (1 << 20) / size_of::<Bucket>();

impl Table {
    pub(super) fn new(megabytes: usize) -> Result<Table, MemoryError> {
        let (megabytes, purpose) = (megabytes.max(1), "the transposition table");
        check_limit(megabytes, purpose)?;
        let buckets = ZeroedSlice::new(megabytes * BUCKETS_IN_MB)
            .ok_or(MemoryError::Refused { purpose, megabytes })?;
        Ok(Table { buckets, generation: AtomicU8::new(0), is_blank: AtomicBool::new(true) })
    }

    pub(super) fn clear(&mut self) {
        if !std::mem::replace(self.is_blank.get_mut(), true) {
            self.buckets.fill_with(Bucket::default);
        }
        *self.generation.get_mut() = 0;
    }

    /// Called once for each search: entries of older searches are replaced first.
    pub(super) fn age(&self) {
        let next = (self.generation.load(Relaxed) + 1) % GENERATIONS;
        self.generation.store(next, Relaxed);
        self.is_blank.store(false, Relaxed);
    }

    /// Mates and tablebase wins are stored relative to the position and returned relative to the
    /// root.
    pub(super) fn probe(&self, key: u64, ply: usize) -> Option<Entry> {
        self.bucket(key).0.iter().find_map(|slot| {
            let data = slot.data.load(Relaxed);
            // A written entry has a bound, so its data is never 0.
            if slot.check.load(Relaxed) ^ data != key || data == 0 {
                return None;
            }
            let mut entry = unpack(data);
            entry.score = shift_decided(entry.score, -(ply as i32));
            Some(entry)
        })
    }

    /// Prefetches an entry that will be probed soon. The table is larger than any cache: without
    /// this, a fifth of the search time is spent waiting for it.
    pub(super) fn prefetch(&self, key: u64) {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            let bucket: *const Bucket = self.bucket(key);
            // SAFETY: a prefetch reads nothing; any address is allowed, and this one is valid.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(bucket.cast()) };
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = key;
    }

    pub(super) fn store(&self, key: u64, ply: usize, mut entry: Entry) {
        let generation = self.generation.load(Relaxed);
        let bucket = self.bucket(key);
        let mut victim = &bucket.0[0];
        let mut least = i32::MAX;
        for slot in &bucket.0 {
            let data = slot.data.load(Relaxed);
            if slot.check.load(Relaxed) ^ data == key && data != 0 {
                let old = unpack(data);
                if entry.best == 0 {
                    entry.best = old.best;
                }
                // A shallow bound must not replace a deep entry of the current search.
                if entry.bound != Bound::Exact
                    && age(data, generation) == 0
                    && entry.depth + 4 < old.depth
                {
                    return;
                }
                victim = slot;
                break;
            }
            let worth = if data == 0 {
                i32::MIN
            } else {
                unpack(data).depth - 4 * i32::from(age(data, generation))
            };
            if worth < least {
                least = worth;
                victim = slot;
            }
        }
        entry.score = shift_decided(entry.score, ply as i32);
        let data = pack(entry, generation);
        victim.data.store(data, Relaxed);
        victim.check.store(key ^ data, Relaxed);
    }

    /// Entries of this search in a sample of the table, per thousand.
    pub(super) fn permill_used(&self) -> u32 {
        let generation = self.generation.load(Relaxed);
        let sample = &self.buckets[..self.buckets.len().min(250)];
        let used = sample
            .iter()
            .flat_map(|bucket| &bucket.0)
            .filter(|slot| {
                let data = slot.data.load(Relaxed);
                data != 0 && age(data, generation) == 0
            })
            .count();
        (used * 1000 / (4 * sample.len())) as u32
    }

    fn bucket(&self, key: u64) -> &Bucket {
        &self.buckets[((u128::from(key) * self.buckets.len() as u128) >> 64) as usize]
    }
}

fn shift_decided(score: i32, plies: i32) -> i32 {
    if score >= TABLE_BOUND {
        score + plies
    } else if score <= -TABLE_BOUND {
        score - plies
    } else {
        score
    }
}

/// move 16 | score 16 | eval 16 | depth 8 | generation 6 | bound 2, lowest first.
fn pack(entry: Entry, generation: u8) -> u64 {
    u64::from(entry.best)
        | u64::from(entry.score as i16 as u16) << 16
        | u64::from(entry.eval as i16 as u16) << 32
        | u64::from(entry.depth.clamp(0, 255) as u8) << 48
        | u64::from(generation << 2 | entry.bound as u8) << 56
}

fn unpack(data: u64) -> Entry {
    Entry {
        best: data as u16,
        score: i32::from((data >> 16) as i16),
        eval: i32::from((data >> 32) as i16),
        depth: i32::from((data >> 48) as u8),
        bound: match (data >> 56) & 3 {
            1 => Bound::Upper,
            2 => Bound::Lower,
            _ => Bound::Exact,
        },
    }
}

/// How many searches ago the entry was written.
fn age(data: u64, generation: u8) -> u8 {
    let written = (data >> 58) as u8;
    (generation + GENERATIONS - written) % GENERATIONS
}

#[cfg(test)]
mod tests {
    use super::super::score::MATE;
    use super::*;

    const ENTRY: Entry =
        Entry { best: 0x1234, score: -77, eval: 31, depth: 9, bound: Bound::Lower };

    #[test]
    fn stored_entries_are_found_again() {
        let table = Table::new(1).unwrap();
        table.store(42, 0, ENTRY);
        assert_eq!(table.probe(42, 0), Some(ENTRY));
        assert_eq!(table.probe(43, 0), None);
    }

    #[test]
    fn mate_scores_are_stored_relative_to_the_position() {
        let table = Table::new(1).unwrap();
        let score = MATE - 5;
        table.store(42, 3, Entry { score, ..ENTRY });
        assert_eq!(table.probe(42, 1).map(|entry| entry.score), Some(MATE - 3));
        table.store(44, 3, Entry { score: -score, ..ENTRY });
        assert_eq!(table.probe(44, 5).map(|entry| entry.score), Some(-MATE + 7));
    }

    #[test]
    fn old_entries_are_replaced_first() {
        let table = Table::new(1).unwrap();
        for key in 0..4 {
            table.store(key, 0, Entry { depth: 20, ..ENTRY });
        }
        for _ in 0..6 {
            table.age();
        }
        table.store(1, 0, Entry { depth: 20, ..ENTRY });
        table.store(9, 0, Entry { depth: 1, ..ENTRY });
        assert!(table.probe(9, 0).is_some());
        assert!(table.probe(1, 0).is_some());
    }

    #[test]
    fn a_cleared_table_is_empty() {
        let mut table = Table::new(1).unwrap();
        for _ in 0..2 {
            table.age();
            table.store(42, 0, ENTRY);
            table.clear();
            assert_eq!(table.probe(42, 0), None);
        }
    }

    #[test]
    fn a_table_larger_than_the_machine_is_refused() {
        for megabytes in [usize::MAX, usize::MAX >> 20, 1 << 40] {
            let error = Table::new(megabytes).err().unwrap();
            assert!(matches!(error, MemoryError::TooLarge { .. }), "{error}");
        }
    }

    #[test]
    fn torn_entries_read_as_absent() {
        // Four threads write to the same few buckets; every entry encodes the key it belongs to.
        let table = Table::new(1).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..4u64 {
                let table = &table;
                scope.spawn(move || {
                    for round in 0..50_000u64 {
                        let key = 1 + (round * 7 + thread * 13) % 64;
                        let score = (key * 31 % 1000) as i32;
                        table.store(key, 0, Entry { best: key as u16, score, ..ENTRY });
                        let other = 1 + (round * 11 + thread) % 64;
                        if let Some(entry) = table.probe(other, 0) {
                            assert_eq!(u64::from(entry.best), other);
                            assert_eq!(entry.score, (other * 31 % 1000) as i32);
                        }
                    }
                });
            }
        });
    }
}
