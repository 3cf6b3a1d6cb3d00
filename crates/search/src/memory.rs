//! Large memory: how much there may be, asking for it so that a refusal is an error, large pages.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU32;

/// Memory that is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MemoryError {
    /// More than the machine can ever give.
    #[error(
        "{megabytes} MB of memory for {purpose}: this process can have at most {limit_mb} MB; ask for less"
    )]
    TooLarge {
        /// What it is for.
        purpose: &'static str,
        /// What was asked for.
        megabytes: usize,
        /// What there is; see [`limit_mb`].
        limit_mb: usize,
    },
    /// The system has refused.
    #[error("{megabytes} MB of memory for {purpose}: the system has none to give; ask for less")]
    Refused {
        /// What it is for.
        purpose: &'static str,
        /// What was asked for.
        megabytes: usize,
    },
}

/// Refuses more memory than the machine has. Systems that promise memory before they have it (Linux
/// does) would grant it, and end the process when it is used.
pub fn check_limit(megabytes: usize, purpose: &'static str) -> Result<(), MemoryError> {
    let limit_mb = limit_mb();
    if megabytes > limit_mb {
        return Err(MemoryError::TooLarge { purpose, megabytes, limit_mb });
    }
    Ok(())
}

/// Asks for memory and gives it back at once: what is built from many small parts of about this
/// size in all can then be built.
pub fn check_room(bytes: usize, purpose: &'static str) -> Result<(), MemoryError> {
    check_rooms(1, bytes, purpose)
}

/// The same for several parts of this size. A system that promises more than it has may grant them
/// although it refuses all of them in one piece.
pub fn check_rooms(count: usize, bytes: usize, purpose: &'static str) -> Result<(), MemoryError> {
    let mut rooms: Vec<Vec<u8>> = Vec::new();
    for _ in 0..count {
        let mut room = Vec::new();
        let reserved = room.try_reserve_exact(bytes);
        // A compiler may leave out memory that nobody looks at, and take it for granted.
        std::hint::black_box(&room);
        if reserved.is_err() {
            let megabytes = count.saturating_mul(bytes.div_ceil(1 << 20));
            return Err(MemoryError::Refused { purpose, megabytes });
        }
        rooms.push(room);
    }
    Ok(())
}

/// The most megabytes that this process can have: the machine's memory, or less where the system
/// limits the process or its control group.
pub fn limit_mb() -> usize {
    let machine = machine_kb().map_or(FALLBACK_MB, |kilobytes| kilobytes >> 10);
    let limits = [process_mb(), group_mb()];
    limits.into_iter().flatten().fold(machine, usize::min).max(1)
}

/// Where the system does not say how much memory there is.
const FALLBACK_MB: usize = 65_536;

/// The machine's memory.
fn machine_kb() -> Option<usize> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    total.trim().trim_end_matches("kB").trim().parse().ok()
}

/// What the system allows this process (`ulimit -v`).
fn process_mb() -> Option<usize> {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{Resource, getrlimit};
        let bytes = getrlimit(Resource::As).current?;
        usize::try_from(bytes >> 20).ok()
    }
    #[cfg(not(target_os = "linux"))]
    None
}

/// What the system allows the control group of this process, as in a container.
fn group_mb() -> Option<usize> {
    let files = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    let limits = files.iter().filter_map(|file| std::fs::read_to_string(file).ok());
    limits.filter_map(|text| group_limit_mb(&text)).min()
}

/// The megabytes that the file of a control group says; `None` when there is no limit.
fn group_limit_mb(text: &str) -> Option<usize> {
    let bytes: u64 = text.trim().parse().ok()?;
    usize::try_from(bytes >> 20).ok()
}

/// A type for which zero bytes are a value, and which needs no drop.
///
/// # Safety
///
/// A value whose bytes are all zero must be valid.
pub(crate) unsafe trait Zeroed {}

// SAFETY: an atomic integer has the same bit validity as the integer.
unsafe impl Zeroed for AtomicU32 {}

/// A slice of zero bytes, aligned as its type asks. The system provides its memory as it is first
/// touched, so a large one costs nothing by itself.
pub(crate) struct ZeroedSlice<T> {
    items: NonNull<T>,
    count: usize,
    /// What was allocated: the items, with room to align them.
    allocation: NonNull<u8>,
    layout: Layout,
}

/// Allocators give memory with this alignment already zeroed by the system. For a larger one they
/// write the zeros themselves, which touches all of it.
const CHEAP_ALIGNMENT: usize = 16;

impl<T: Zeroed> ZeroedSlice<T> {
    /// So many items; `None` when there is no such memory.
    pub(crate) fn new(count: usize, pages: Pages) -> Option<ZeroedSlice<T>> {
        const { assert!(size_of::<T>() > 0 && !std::mem::needs_drop::<T>()) };
        let slack = if align_of::<T>() > CHEAP_ALIGNMENT { align_of::<T>() } else { 0 };
        let bytes = count.max(1).checked_mul(size_of::<T>())?.checked_add(slack)?;
        let alignment = align_of::<T>().min(CHEAP_ALIGNMENT);
        let layout = Layout::from_size_align(bytes, alignment).ok()?;
        // SAFETY: the layout has a size, as there is at least one item.
        let allocation = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        let offset =
            allocation.addr().get().next_multiple_of(align_of::<T>()) - allocation.addr().get();
        // SAFETY: the slack is at least as large as the offset, which is 0 where there is none.
        let items: NonNull<T> = unsafe { allocation.add(offset) }.cast();
        if pages == Pages::Large {
            // SAFETY: memory of our own for so many items, which nobody else has yet.
            ask_for_large_pages::<T>(unsafe {
                std::slice::from_raw_parts_mut(items.as_ptr().cast(), count)
            });
        }
        Some(ZeroedSlice { items, count, allocation, layout })
    }
}

impl<T> Deref for ZeroedSlice<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: so many items are allocated and aligned, and zero is a value of them.
        unsafe { std::slice::from_raw_parts(self.items.as_ptr(), self.count) }
    }
}

impl<T> DerefMut for ZeroedSlice<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and nobody else has a reference.
        unsafe { std::slice::from_raw_parts_mut(self.items.as_ptr(), self.count) }
    }
}

impl<T> Drop for ZeroedSlice<T> {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout; nobody has a reference any more.
        unsafe { dealloc(self.allocation.as_ptr(), self.layout) }
    }
}

// SAFETY: it owns its items, as a box does.
unsafe impl<T: Send> Send for ZeroedSlice<T> {}
// SAFETY: shared, it gives out shared references to its items alone.
unsafe impl<T: Sync> Sync for ZeroedSlice<T> {}

/// How large the pages of some memory should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pages {
    /// As the system likes.
    Usual,
    /// Large where whole ones fit.
    Large,
}

/// Asks the system for large pages where whole ones fit: with pages of 4 KiB a good part of the
/// time goes into finding them. To be asked before the memory is first touched; where the system
/// declines, small pages do.
pub fn ask_for_large_pages<T>(items: &mut [std::mem::MaybeUninit<T>]) {
    #[cfg(target_os = "linux")]
    {
        use rustix::mm::{Advice, madvise};
        let range = items.as_mut_ptr_range();
        let start = range.start.addr().next_multiple_of(LARGE_PAGE);
        let length = range.end.addr().saturating_sub(start) / LARGE_PAGE * LARGE_PAGE;
        if length > 0 {
            let start = range.start.with_addr(start).cast();
            // SAFETY: whole pages within memory that we own; the advice changes no content.
            let _ = unsafe { madvise(start, length, Advice::LinuxHugepage) };
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = items;
}

/// Bytes of a large page.
pub const LARGE_PAGE: usize = 2 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(align(64))]
    struct Line([u8; 64]);

    // SAFETY: bytes.
    unsafe impl Zeroed for Line {}

    #[test]
    fn slices_are_zero_aligned_and_writable() {
        for count in [0, 1, 3, 70_000] {
            let mut lines = ZeroedSlice::<Line>::new(count, Pages::Large).unwrap();
            assert_eq!(lines.len(), count);
            assert!(lines.as_ptr().addr().is_multiple_of(64));
            assert!(lines.iter().all(|line| line.0 == [0; 64]));
            lines.iter_mut().for_each(|line| line.0 = [7; 64]);
            assert!(lines.iter().all(|line| line.0 == [7; 64]));
        }
    }

    #[test]
    fn a_control_group_may_have_a_limit() {
        assert_eq!(group_limit_mb("max\n"), None);
        assert_eq!(group_limit_mb("536870912\n"), Some(512));
        // As version 1 says that there is none.
        let none = group_limit_mb("9223372036854771712\n").unwrap();
        assert!(none > limit_mb());
        assert!(group_mb().is_none_or(|limit| limit_mb() <= limit.max(1)));
    }

    #[test]
    fn memory_that_is_not_there_is_refused() {
        for count in [usize::MAX, usize::MAX / 64, (isize::MAX as usize) / 128] {
            assert!(ZeroedSlice::<Line>::new(count, Pages::Usual).is_none(), "{count}");
        }
        assert!(check_limit(limit_mb(), "a test").is_ok());
        let error = check_limit(limit_mb() + 1, "a test").unwrap_err();
        assert!(matches!(error, MemoryError::TooLarge { .. }), "{error}");
        assert!(check_room(1 << 20, "a test").is_ok());
        assert!(check_rooms(3, 1 << 20, "a test").is_ok());
        let error = check_rooms(3, isize::MAX as usize, "a test").unwrap_err();
        assert!(matches!(error, MemoryError::Refused { .. }), "{error}");
        let error = check_room(isize::MAX as usize, "a test").unwrap_err();
        assert!(matches!(error, MemoryError::Refused { .. }), "{error}");
    }
}
