//! All integration tests of this crate as one binary, which is faster to build than one binary for
//! each file. What must run alone has a file beside this folder.

mod arena;
mod book;
mod cli;
mod cluster;
mod damage;
mod endgame;
mod limits;
mod runs;
mod selfplay;
mod serve;
mod tables;
mod train;
