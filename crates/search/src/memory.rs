//! Large allocations: memory limits, allocation failures as errors, and large pages.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU32;

/// A large allocation that is impossible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MemoryError {
    /// More than this process can ever have.
    #[error(
        "{megabytes} MB of memory for {purpose}: this process can use at most {limit_mb} MB; choose a smaller size"
    )]
    TooLarge {
        purpose: &'static str,
        megabytes: usize,
        /// See [`limit_mb`].
        limit_mb: usize,
    },
    #[error(
        "{megabytes} MB of memory for {purpose}: the system refused the allocation; choose a smaller size"
    )]
    Refused { purpose: &'static str, megabytes: usize },
}

/// Rejects more memory than the machine has. Systems with overcommit (Linux) would grant it and
/// kill the process when it is used.
pub fn check_limit(megabytes: usize, purpose: &'static str) -> Result<(), MemoryError> {
    let limit_mb = limit_mb();
    if megabytes > limit_mb {
        return Err(MemoryError::TooLarge { purpose, megabytes, limit_mb });
    }
    Ok(())
}

/// Allocates this much memory and frees it at once, to check that many small allocations of about
/// this size in total will succeed.
pub fn check_room(bytes: usize, purpose: &'static str) -> Result<(), MemoryError> {
    check_rooms(1, bytes, purpose)
}

/// Like [`check_room`] for several allocations of this size. A system with overcommit may grant
/// them although it refuses all of them in one piece.
pub fn check_rooms(count: usize, bytes: usize, purpose: &'static str) -> Result<(), MemoryError> {
    let mut rooms: Vec<Vec<u8>> = Vec::new();
    for _ in 0..count {
        let mut room = Vec::new();
        let reserved = room.try_reserve_exact(bytes);
        // Otherwise the compiler may remove the unused allocation.
        std::hint::black_box(&room);
        if reserved.is_err() {
            let megabytes = count.saturating_mul(bytes.div_ceil(1 << 20));
            return Err(MemoryError::Refused { purpose, megabytes });
        }
        rooms.push(room);
    }
    Ok(())
}

/// The memory limit of this process in megabytes: the machine's memory, or less when the process or
/// its control group has a limit.
pub fn limit_mb() -> usize {
    let machine = machine_kb().map_or(FALLBACK_MB, |kilobytes| kilobytes >> 10);
    let limits = [process_mb(), group_mb()];
    limits.into_iter().flatten().fold(machine, usize::min).max(1)
}

/// Used when the system does not report its memory.
const FALLBACK_MB: usize = 65_536;

fn machine_kb() -> Option<usize> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    total.trim().trim_end_matches("kB").trim().parse().ok()
}

/// The process limit (`ulimit -v`).
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

/// The limit of the process's control group, as set for a container.
fn group_mb() -> Option<usize> {
    let files = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    let limits = files.iter().filter_map(|file| std::fs::read_to_string(file).ok());
    limits.filter_map(|text| group_limit_mb(&text)).min()
}

/// The limit in a control group file; `None` when there is none.
fn group_limit_mb(text: &str) -> Option<usize> {
    let bytes: u64 = text.trim().parse().ok()?;
    usize::try_from(bytes >> 20).ok()
}

/// A type for which all-zero bytes are a valid value, and which needs no drop.
///
/// # Safety
///
/// A value whose bytes are all zero must be valid.
pub(crate) unsafe trait Zeroed {}

// SAFETY: an atomic integer has the same bit validity as the integer.
unsafe impl Zeroed for AtomicU32 {}

/// A zeroed slice with the alignment of its type. The system provides the memory when it is first
/// touched, so a large slice costs nothing by itself.
pub(crate) struct ZeroedSlice<T> {
    items: NonNull<T>,
    count: usize,
    /// The whole allocation: the items, with extra bytes to align them.
    allocation: NonNull<u8>,
    layout: Layout,
}

/// Allocators return zeroed memory of this alignment directly from the system. For larger
/// alignments they write the zeros themselves, which touches all of it.
const CHEAP_ALIGNMENT: usize = 16;

impl<T: Zeroed> ZeroedSlice<T> {
    /// In large pages, if it fills some. `None` when there is not enough memory.
    pub(crate) fn new(count: usize) -> Option<ZeroedSlice<T>> {
        const { assert!(size_of::<T>() > 0 && !std::mem::needs_drop::<T>()) };
        let slack = if align_of::<T>() > CHEAP_ALIGNMENT { align_of::<T>() } else { 0 };
        let bytes = count.max(1).checked_mul(size_of::<T>())?.checked_add(slack)?;
        let alignment = align_of::<T>().min(CHEAP_ALIGNMENT);
        let layout = Layout::from_size_align(bytes, alignment).ok()?;
        // SAFETY: the layout's size is not zero, as there is at least one item.
        let allocation = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        let offset =
            allocation.addr().get().next_multiple_of(align_of::<T>()) - allocation.addr().get();
        // SAFETY: the slack is at least as large as the offset, which is 0 without slack.
        let items: NonNull<T> = unsafe { allocation.add(offset) }.cast();
        // SAFETY: memory that we own for this many items, without other references yet.
        ask_for_large_pages::<T>(unsafe {
            std::slice::from_raw_parts_mut(items.as_ptr().cast(), count)
        });
        Some(ZeroedSlice { items, count, allocation, layout })
    }
}

impl<T> Deref for ZeroedSlice<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: this many items are allocated and aligned, and zero is a valid value of them.
        unsafe { std::slice::from_raw_parts(self.items.as_ptr(), self.count) }
    }
}

impl<T> DerefMut for ZeroedSlice<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and `&mut self` excludes other references.
        unsafe { std::slice::from_raw_parts_mut(self.items.as_ptr(), self.count) }
    }
}

impl<T> Drop for ZeroedSlice<T> {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout; no references are left.
        unsafe { dealloc(self.allocation.as_ptr(), self.layout) }
    }
}

// SAFETY: it owns its items, as a box does.
unsafe impl<T: Send> Send for ZeroedSlice<T> {}
// SAFETY: a shared slice gives out only shared references to its items.
unsafe impl<T: Sync> Sync for ZeroedSlice<T> {}

/// Requests large pages for the parts of the memory that fill them. With 4 KiB pages, a good part
/// of the time is spent on page table lookups. Call it before the memory is first touched; if the
/// system declines, small pages are used.
pub fn ask_for_large_pages<T>(items: &mut [std::mem::MaybeUninit<T>]) {
    #[cfg(target_os = "linux")]
    {
        use rustix::mm::{Advice, madvise};
        let range = items.as_mut_ptr_range();
        let start = range.start.addr().next_multiple_of(LARGE_PAGE);
        let length = range.end.addr().saturating_sub(start) / LARGE_PAGE * LARGE_PAGE;
        if length > 0 {
            let start = range.start.with_addr(start).cast();
            // SAFETY: whole pages within memory that we own; the advice does not change the
            // contents.
            let _ = unsafe { madvise(start, length, Advice::LinuxHugepage) };
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = items;
}

/// The size of a large page in bytes.
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
            let mut lines = ZeroedSlice::<Line>::new(count).unwrap();
            assert_eq!(lines.len(), count);
            assert!(lines.as_ptr().addr().is_multiple_of(64));
            assert!(lines.iter().all(|line| line.0 == [0; 64]));
            lines.iter_mut().for_each(|line| line.0 = [7; 64]);
            assert!(lines.iter().all(|line| line.0 == [7; 64]));
        }
    }

    #[test]
    fn control_group_limits_are_parsed() {
        assert_eq!(group_limit_mb("max\n"), None);
        assert_eq!(group_limit_mb("536870912\n"), Some(512));
        // The value for "no limit" in version 1 of control groups.
        let none = group_limit_mb("9223372036854771712\n").unwrap();
        assert!(none > limit_mb());
        assert!(group_mb().is_none_or(|limit| limit_mb() <= limit.max(1)));
    }

    #[test]
    fn impossible_allocations_are_errors() {
        for count in [usize::MAX, usize::MAX / 64, (isize::MAX as usize) / 128] {
            assert!(ZeroedSlice::<Line>::new(count).is_none(), "{count}");
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
