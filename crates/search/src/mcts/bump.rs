//! A bump allocator with a fixed capacity.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::memory::{Zeroed, ZeroedSlice};

/// Items can be allocated from several threads and are freed all at once.
pub(super) struct Bump<T> {
    items: ZeroedSlice<T>,
    /// The first index not allocated yet.
    next: AtomicU32,
    /// The most items ever allocated at once.
    touched: AtomicU32,
}

impl<T: Zeroed> Bump<T> {
    /// `None` when there is not enough memory.
    pub fn new(items: usize) -> Option<Bump<T>> {
        let items = ZeroedSlice::new(items.min(u32::MAX as usize))?;
        Some(Bump { items, next: AtomicU32::new(0), touched: AtomicU32::new(0) })
    }

    /// Frees all items; their contents stay.
    pub fn clear(&self) {
        self.touched.fetch_max(self.next.swap(0, Relaxed), Relaxed);
    }

    pub fn len(&self) -> usize {
        self.next.load(Relaxed) as usize
    }

    /// The most items ever allocated: those for which the system had to provide memory.
    pub fn touched(&self) -> usize {
        self.len().max(self.touched.load(Relaxed) as usize)
    }

    /// Allocates `count` consecutive items; `None` when they do not fit.
    pub fn allocate(&self, count: usize) -> Option<u32> {
        let end = |next: u32| {
            let end = next as usize + count;
            (end <= self.items.len()).then_some(end as u32)
        };
        self.next.fetch_update(Relaxed, Relaxed, end).ok()
    }

    pub fn get(&self, index: u32) -> &T {
        &self.items[index as usize]
    }

    /// Prefetches `LINES` cache lines, starting at an item.
    pub fn prefetch<const LINES: usize>(&self, first: u32) {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            let start = (&raw const self.items[first as usize]).cast::<i8>();
            for line in 0..LINES {
                // SAFETY: a prefetch reads nothing and cannot fault.
                unsafe { _mm_prefetch::<_MM_HINT_T0>(start.wrapping_add(64 * line)) };
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = first;
    }

    pub fn address(&self, index: u32) -> usize {
        (&raw const self.items[index as usize]).addr()
    }

    pub fn slice(&self, first: u32, count: usize) -> &[T] {
        &self.items[first as usize..][..count]
    }
}
