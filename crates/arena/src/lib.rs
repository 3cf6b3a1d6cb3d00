//! Player specs, matches, ratings and their statistics.
//!
//! The arena knows who can play, lets them play from varied openings, and says what the results
//! mean ([`stats`], [`sprt`]). It knows
//! nothing of training.

pub mod sprt;
pub mod stats;
