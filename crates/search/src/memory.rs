//! Large pages, for memory that is read all over.

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
