//! Memory that grows in chunks up to a limit, given out from one end.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Items side by side in chunks; shared by threads, cleared all at once.
pub(super) struct Arena<T> {
    chunks: Box<[OnceLock<Box<[T]>>]>,
    /// The first index not given out yet.
    next: AtomicU32,
}

const CHUNK_BITS: u32 = 13;
const CHUNK: u32 = 1 << CHUNK_BITS;

impl<T: Default> Arena<T> {
    /// Room for at least this many items; memory is taken as it is needed.
    pub fn new(items: usize) -> Arena<T> {
        let chunks = items.div_ceil(CHUNK as usize).clamp(1, (u32::MAX / CHUNK) as usize);
        Arena { chunks: (0..chunks).map(|_| OnceLock::new()).collect(), next: AtomicU32::new(0) }
    }

    /// Takes everything back; items keep what was in them.
    pub fn clear(&self) {
        self.next.store(0, Relaxed);
    }

    /// Items given out.
    pub fn len(&self) -> usize {
        self.next.load(Relaxed) as usize
    }

    /// `count` items side by side, so within one chunk; `None` when there is no room.
    pub fn allocate(&self, count: u32) -> Option<u32> {
        debug_assert!(count <= CHUNK);
        let mut next = self.next.load(Relaxed);
        loop {
            let room = CHUNK - next % CHUNK;
            let first = if count <= room { next } else { next + room };
            let chunk = (first >> CHUNK_BITS) as usize;
            if chunk >= self.chunks.len() {
                return None;
            }
            match self.next.compare_exchange_weak(next, first + count, Relaxed, Relaxed) {
                Ok(_) => {
                    self.chunks[chunk].get_or_init(|| (0..CHUNK).map(|_| T::default()).collect());
                    return Some(first);
                }
                Err(changed) => next = changed,
            }
        }
    }

    pub fn get(&self, index: u32) -> &T {
        &self.chunk(index)[(index % CHUNK) as usize]
    }

    pub fn slice(&self, first: u32, count: usize) -> &[T] {
        let start = (first % CHUNK) as usize;
        &self.chunk(first)[start..start + count]
    }

    fn chunk(&self, index: u32) -> &[T] {
        self.chunks[(index >> CHUNK_BITS) as usize].get().expect("an index given out has its chunk")
    }
}
