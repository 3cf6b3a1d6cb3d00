//! All integration tests of this crate as one binary, which is faster to build than one binary for each file.

mod env;
mod epd;
mod exact;
mod game;
mod perft;
mod pgn;
mod polyglot;
mod syzygy;
