//! Search results of a player, for tables, arrows and bars.

use selfmate_chess::Game;
use selfmate_search::player::{Score, SearchInfo};
use selfmate_search::{Choice, Wdl};
use serde::Serialize;
use utoipa::ToSchema;

use super::position::{MoveView, move_views};

/// A score in centipawns or moves to mate, for the side to move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct ScoreView {
    /// Centipawns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cp: Option<i32>,
    /// Moves to mate; negative when the side to move is mated.
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

/// One line of a search.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct SearchInfoView {
    /// `info`.
    pub kind: &'static str,
    /// Rank among the best lines, from 1; each report starts with 1.
    pub rank: usize,
    /// The moves, at least one.
    pub line: Vec<MoveView>,
    /// For the side to move; `null` for a move without visits.
    pub score: Option<ScoreView>,
    /// Expected result for the side to move, from -1 to 1; `null` when `score` is `null`.
    pub value: Option<f32>,
    /// Probabilities of win, draw and loss for the side to move, if the player has them.
    pub wdl: Option<[f32; 3]>,
    /// Visits of the first move, for tree searches.
    pub visits: Option<u32>,
    /// Prior of the first move, for tree searches.
    pub prior: Option<f32>,
    /// Depth in plies.
    pub depth: u32,
    /// Simulations (tree search) or nodes (alpha-beta, other engines) so far.
    pub nodes: u64,
    /// Milliseconds so far.
    pub ms: u64,
}

impl SearchInfoView {
    pub fn new(game: &Game, info: &SearchInfo) -> SearchInfoView {
        // A move without visits has no meaningful score.
        let is_known = info.visits != Some(0);
        let value = || info.wdl.map_or_else(|| value_of(info.score), Wdl::value);
        SearchInfoView {
            kind: "info",
            rank: info.rank,
            line: move_views(game.position(), &info.line),
            score: is_known.then(|| info.score.into()),
            value: is_known.then(value),
            wdl: info.wdl.filter(|_| is_known).map(|wdl| [wdl.win, wdl.draw, wdl.loss]),
            visits: info.visits,
            prior: info.prior,
            depth: info.depth,
            nodes: info.nodes,
            ms: u64::try_from(info.elapsed.as_millis()).unwrap_or(u64::MAX),
        }
    }
}

/// The chosen move of a player.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ChoiceView {
    /// `choice`.
    pub kind: &'static str,
    /// The move.
    pub played: MoveView,
    /// The expected line, starting with this move.
    pub line: Vec<MoveView>,
    /// For the side to move; `null` for players without an evaluation.
    pub score: Option<ScoreView>,
    /// Expected result for the side to move, from -1 to 1.
    pub value: Option<f32>,
    /// Probabilities of win, draw and loss for the side to move.
    pub wdl: Option<[f32; 3]>,
    /// Depth in plies.
    pub depth: Option<u32>,
    /// Simulations (tree search) or nodes (alpha-beta, other engines).
    pub nodes: Option<u64>,
    /// Search time in milliseconds.
    pub ms: u64,
    /// Why an older checkpoint than the newest was used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

impl ChoiceView {
    pub fn new(game: &Game, choice: &Choice, ms: u64) -> ChoiceView {
        let score = choice.score.or_else(|| choice.wdl.map(|wdl| Score::from_value(wdl.value())));
        ChoiceView {
            kind: "choice",
            played: MoveView::new(game.position(), choice.played),
            line: move_views(game.position(), &choice.line),
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

/// The expected result of a score: the inverse of [`Score::from_value`].
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
    fn value_of_is_the_inverse_of_from_value() {
        for value in [-0.9, -0.3, 0.0, 0.2, 0.75] {
            assert!((value_of(Score::from_value(value)) - value).abs() < 0.01, "{value}");
        }
        assert_eq!(value_of(Score::Mate(-2)), -1.0);
        assert!(value_of(Score::Centipawns(i32::MAX)).abs() <= 1.01);
    }
}
