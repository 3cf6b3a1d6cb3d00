//! All integration tests of this crate as one binary, which is faster to build than one binary for each file.

mod laws;
mod playthrough;
mod threats;
