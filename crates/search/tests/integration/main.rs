//! All integration tests of this crate as one binary, which is faster to build than one binary for each file.

mod alphabeta;
mod mcts;
mod shared;
mod tables;
