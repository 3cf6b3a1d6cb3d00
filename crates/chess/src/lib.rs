//! The rules of chess as a library: games and their outcomes, notation, the environment.
//!
//! Move generation comes from [`shakmaty`]. This crate adds games with history, readers and
//! writers that report what is wrong and where, reset/step environments, tablebases and seeded
//! randomness. It contains no search and no learning.

pub mod env;
pub mod epd;
pub mod fen;
pub mod game;
pub mod material;
pub mod notation;
pub mod outcome;
pub mod perft;
pub mod pgn;
pub mod polyglot;
pub mod seed;
pub mod tablebase;

pub use game::{Game, IllegalMove};
pub use outcome::{DrawRules, Outcome, Reason, Rules};
pub use seed::{Rng, Seed};
pub use shakmaty::{
    Bitboard, Board, CastlingMode, CastlingSide, Chess, Color, Move, MoveList, Piece, Position,
    Role, Square,
};
