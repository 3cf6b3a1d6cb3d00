//! Player specs, matches, ratings and their statistics.
//!
//! The arena knows who can play ([`spec`]), lets them play ([`game`], [`contest`]) from varied
//! [`openings`], and says what the results mean ([`stats`], [`sprt`], [`rating`]). It knows
//! nothing of training.

pub mod sprt;
pub mod stats;
