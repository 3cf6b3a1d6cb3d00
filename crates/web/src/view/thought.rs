//! What a player thinks, for tables, arrows and bars.

use selfmate_chess::Game;
use selfmate_search::player::{Score, SearchInfo};
use selfmate_search::{Choice, Wdl};
use serde::Serialize;
use utoipa::ToSchema;

use super::position::{MoveView, written};

/// A judgement in centipawns or moves to mate, for the side to move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct ScoreView {
    /// Hundredths of a pawn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cp: Option<i32>,
    /// Moves until mate; negative when the side to move is mated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mate: Option<i32>,
}

impl From<Score> for ScoreView {
    fn from(score: Score) -> ScoreView {
        match score {
            Score::Centipawns(value) => ScoreView { cp: Some(value), mate: None },
            Score::Mate(moves) => ScoreView { cp: None, mate: Some(moves) },
        }
    }
}

/// One of the lines a player looks at.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ThoughtView {
    /// `thought`.
    pub kind: &'static str,
    /// Its place among the best, from 1: a new round begins with 1.
    pub rank: usize,
    /// The moves, at least one.
    pub line: Vec<MoveView>,
    /// For the side to move; `null` for a move that the search has not visited.
    pub score: Option<ScoreView>,
    /// Expected result for the side to move, from -1 to 1; `null` where `score` is.
    pub value: Option<f32>,
    /// Chances of the side to move to win, draw and lose, if the player thinks in those.
    pub wdl: Option<[f32; 3]>,
    /// SimulationStats through the first move, for tree searches.
    pub visits: Option<u32>,
    /// The first move's prior, for tree searches.
    pub prior: Option<f32>,
    /// Plies.
    pub depth: u32,
    /// Simulations or nodes so far.
    pub nodes: u64,
    /// Milliseconds so far.
    pub ms: u64,
}

impl ThoughtView {
    pub fn new(game: &Game, thought: &SearchInfo) -> ThoughtView {
        // Of a move without a visit nothing is known, whatever number stands there.
        let is_known = thought.visits != Some(0);
        let value = || thought.wdl.map_or_else(|| value_of(thought.score), Wdl::value);
        ThoughtView {
            kind: "thought",
            rank: thought.rank,
            line: written(game.position(), &thought.line),
            score: is_known.then(|| thought.score.into()),
            value: is_known.then(value),
            wdl: thought.wdl.filter(|_| is_known).map(|wdl| [wdl.win, wdl.draw, wdl.loss]),
            visits: thought.visits,
            prior: thought.prior,
            depth: thought.depth,
            nodes: thought.nodes,
            ms: u64::try_from(thought.elapsed.as_millis()).unwrap_or(u64::MAX),
        }
    }
}

/// The move a player has picked.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ChoiceView {
    /// `choice`.
    pub kind: &'static str,
    /// The move.
    pub played: MoveView,
    /// The line it expects, this move first.
    pub line: Vec<MoveView>,
    /// For the side to move; `null` for players without an opinion.
    pub score: Option<ScoreView>,
    /// Expected result for the side to move, from -1 to 1.
    pub value: Option<f32>,
    /// Chances of the side to move.
    pub wdl: Option<[f32; 3]>,
    /// Plies.
    pub depth: Option<u32>,
    /// Simulations or nodes.
    pub nodes: Option<u64>,
    /// Milliseconds.
    pub ms: u64,
    /// Why it is not the newest of its run that has played.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

impl ChoiceView {
    pub fn new(game: &Game, choice: &Choice, ms: u64) -> ChoiceView {
        let score = choice.score.or_else(|| choice.wdl.map(|wdl| Score::from_value(wdl.value())));
        ChoiceView {
            kind: "choice",
            played: MoveView::new(game.position(), choice.played),
            line: written(game.position(), &choice.line),
            score: score.map(ScoreView::from),
            value: choice.wdl.map(Wdl::value).or(choice.score.map(value_of)),
            wdl: choice.wdl.map(|wdl| [wdl.win, wdl.draw, wdl.loss]),
            depth: choice.depth,
            nodes: choice.nodes,
            ms,
            warning: None,
        }
    }
}

/// An expected result for a score: the inverse of [`Score::from_value`].
pub(super) fn value_of(score: Score) -> f32 {
    match score {
        Score::Centipawns(value) => ((f64::from(value) / 90.0).atan() / 1.563_754) as f32,
        Score::Mate(moves) if moves > 0 => 1.0,
        Score::Mate(_) => -1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_score_and_its_value_are_the_same_opinion() {
        for value in [-0.9, -0.3, 0.0, 0.2, 0.75] {
            assert!((value_of(Score::from_value(value)) - value).abs() < 0.01, "{value}");
        }
        assert_eq!(value_of(Score::Mate(-2)), -1.0);
        assert!(value_of(Score::Centipawns(i32::MAX)).abs() <= 1.01);
    }
}
