//! What is true of chess: games and their outcomes, notation, the environment.
//!
//! The rules themselves come from [`shakmaty`]. This crate adds a game with history, readers
//! and writers that name what is wrong, reset/step environments, tablebases and seeded randomness.
//! It knows nothing about learning.

pub mod env;
pub mod epd;
pub mod fen;
pub mod game;
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
