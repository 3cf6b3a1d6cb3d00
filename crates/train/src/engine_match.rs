//! Games between two players with different weights, mostly alpha-beta engines, for `evolve` and
//! `tune`.
//!
//! Games come in pairs from the same opening with colours swapped. They are limited by nodes, never
//! by time, so the same engines always play the same games.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rayon::prelude::*;
use selfmate_arena::adjudicate::{Adjudication, DrawRule, ResignRule, ResignSides};
use selfmate_arena::game::{PlayedGame, Side, play_game};
use selfmate_arena::players::AlphaBetaPlayer;
use selfmate_arena::{GameSettings, MatchError, Opening, OpeningSource, Openings, Tuning};
use selfmate_chess::Seed;
use selfmate_search::Player;
use selfmate_search::player::Limit;
use selfmate_selfplay::CancelToken;
use serde::{Deserialize, Serialize};

use crate::error::TrainingError;

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EngineMatchConfig {
    /// Nodes per move; not used with `game_nodes`.
    pub nodes: u64,
    /// Nodes of each side for a whole game, divided by its time manager; 0 for `nodes` per move. Only
    /// then do games depend on the constants of the time manager.
    pub game_nodes: u64,
    /// The size of an engine's transposition table.
    pub hash_mb: usize,
    /// A game ends as a win when both sides have seen a score of at least this many centipawns for
    /// three moves each; 0 for never.
    pub resign_centipawns: u32,
    /// A game ends as a draw when both sides have seen a score within this many centipawns for six
    /// moves each, from move 30 on; 0 for never.
    pub draw_centipawns: u32,
    /// A game is truncated after this many plies.
    pub max_plies: u32,
}

impl Default for EngineMatchConfig {
    fn default() -> EngineMatchConfig {
        EngineMatchConfig {
            nodes: 1500,
            game_nodes: 0,
            hash_mb: 1,
            resign_centipawns: 600,
            draw_centipawns: 10,
            max_plies: 200,
        }
    }
}

/// Weights that can play the games of a match.
pub trait MatchWeights: Sync {
    /// # Panics
    ///
    /// When there is no memory for the player's table.
    fn player(&self, name: &str, config: &EngineMatchConfig) -> Box<dyn Player>;
}

impl MatchWeights for Tuning {
    fn player(&self, name: &str, config: &EngineMatchConfig) -> Box<dyn Player> {
        let engine = self.engine(config.hash_mb).unwrap_or_else(|error| panic!("{error}"));
        let player = |own| AlphaBetaPlayer::new(name, engine, own);
        Box::new(match config.game_nodes {
            0 => player(Limit { nodes: Some(config.nodes), ..Limit::default() }),
            nodes => player(Limit::default()).with_game_nodes(nodes),
        })
    }
}

impl EngineMatchConfig {
    /// As settings of a match.
    pub fn settings(&self) -> GameSettings {
        let draw = (self.draw_centipawns > 0).then_some(DrawRule {
            move_number: 30,
            move_count: 6,
            score: self.draw_centipawns,
        });
        let resign = (self.resign_centipawns > 0).then_some(ResignRule {
            move_count: 3,
            score: self.resign_centipawns,
            sides: ResignSides::Both,
        });
        let max_plies = Some(self.max_plies);
        let adjudication = Adjudication { draw, resign, max_plies, ..Adjudication::default() };
        GameSettings { adjudication, ..GameSettings::default() }
    }

    /// Plays one game; `None` when it was stopped.
    pub fn play<W: MatchWeights>(
        &self,
        white: &W,
        black: &W,
        opening: &Opening,
        stop: &Arc<AtomicBool>,
    ) -> Option<PlayedGame> {
        let mut white = white.player("white", self);
        let mut black = black.player("black", self);
        play_game(white.as_mut(), black.as_mut(), opening, &self.settings(), None, stop)
    }

    /// The points of `a` in a game against `b`, and the nodes of both.
    fn points<W: MatchWeights>(
        &self,
        a: &W,
        b: &W,
        opening: &Opening,
        a_plays: Side,
        stop: &Arc<AtomicBool>,
    ) -> Option<(f64, u64)> {
        let (white, black) = if a_plays == Side::White { (a, b) } else { (b, a) };
        let game = self.play(white, black, opening, stop)?;
        let points = game.white_points();
        let nodes = game.evals.iter().filter_map(|eval| eval.nodes).sum();
        Some((if a_plays == Side::White { points } else { 1.0 - points }, nodes))
    }

    /// The score of `a` in a pair of games from each opening, against the opponents in turn, and
    /// the nodes of all games; `None` when there was no time.
    pub fn share<W: MatchWeights>(
        &self,
        a: &W,
        opponents: &[W],
        openings: &[Opening],
        cancel: CancelToken<'_>,
    ) -> Option<(f64, u64)> {
        let stop = cancel.flag();
        let game = |number: usize| {
            if cancel.is_cancelled() {
                return None;
            }
            let (pair, side) = (number / 2, [Side::White, Side::Black][number % 2]);
            self.points(a, &opponents[pair % opponents.len()], &openings[pair], side, &stop)
        };
        let games: Option<Vec<(f64, u64)>> =
            (0..2 * openings.len()).into_par_iter().map(game).collect();
        games.map(|games| {
            let points: f64 = games.iter().map(|(points, _)| points).sum();
            (points / games.len() as f64, games.iter().map(|(_, nodes)| nodes).sum())
        })
    }
}

/// Openings from the built-in set, in an order that depends on the seed.
pub fn openings(count: usize, seed: Seed) -> Result<Vec<Opening>, TrainingError> {
    let openings = Openings::load(&OpeningSource::BuiltIn, seed).map_err(MatchError::from)?;
    Ok(openings.take(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn games_are_deterministic_and_the_better_engine_wins() {
        let config = EngineMatchConfig { nodes: 200, ..EngineMatchConfig::default() };
        let stop = Arc::new(AtomicBool::new(false));
        let good = Tuning::default();
        let mut bad = Tuning::plain();
        bad.evaluation.piece_value.mg = [10, 1, 1, 1, 1];
        bad.evaluation.piece_value.eg = [10, 1, 1, 1, 1];
        let openings = openings(4, Seed::new(1)).unwrap();
        let mut points = 0.0;
        for opening in &openings {
            for side in [Side::White, Side::Black] {
                let result = config.points(&good, &bad, opening, side, &stop).unwrap();
                assert_eq!(config.points(&good, &bad, opening, side, &stop), Some(result));
                points += result.0;
            }
        }
        assert!(points >= 6.0, "{points}");
    }
}
