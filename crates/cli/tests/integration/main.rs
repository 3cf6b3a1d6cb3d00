//! All integration tests of this crate as one binary, which is faster to build than one binary for each file.

mod arena;
mod book;
mod cli;
mod cluster;
mod damage;
mod endgame;
mod limits;
mod runs;
mod serve;
mod tables;
mod train;
mod wrong_command_lines;
