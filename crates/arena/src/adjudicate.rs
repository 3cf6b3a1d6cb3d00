//! Ends games early when the players' scores agree on the result, with the rules of fastchess and
//! cutechess.

use selfmate_chess::{Color, Game, Position};
use serde::{Deserialize, Serialize};

use crate::game::{MoveEval, Termination};
use crate::tablebase_cache::TablebaseRule;

/// When a game ends before the rules of chess end it. The default never ends a game early.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Adjudication {
    /// Ends a game as drawn when both players have reported an even score for long enough.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub draw: Option<DrawRule>,
    /// Ends a game as lost when a player has reported a lost score for long enough.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resign: Option<ResignRule>,
    /// Ends a game as drawn after this many plies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_plies: Option<u32>,
    /// Ends a game with its tablebase result; [`crate::MatchRun::adjudicator`] does the lookups.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tables: Option<TablebaseRule>,
}

/// A game is drawn when all scores stay within ±`score` for `move_count` moves of each side, from
/// move `move_number` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DrawRule {
    pub move_number: u32,
    pub move_count: u32,
    /// In centipawns.
    pub score: u32,
}

/// A game is lost for the side whose score is `-score` or worse for `move_count` moves in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResignRule {
    pub move_count: u32,
    /// In centipawns.
    pub score: u32,
    pub sides: ResignSides,
}

/// Whose scores must show that a game is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResignSides {
    #[default]
    Loser,
    Both,
}

/// Counts consecutive scores through a game.
#[derive(Clone, Debug)]
pub(crate) struct Adjudicator {
    rules: Adjudication,
    /// Consecutive moves with an even score, by both sides together.
    even: u32,
    /// Consecutive moves of White and Black with a lost score.
    lost: [u32; 2],
    /// Consecutive moves of White and Black with a won score.
    won: [u32; 2],
}

impl Adjudicator {
    pub(crate) fn new(rules: Adjudication) -> Adjudicator {
        Adjudicator { rules, even: 0, lost: [0; 2], won: [0; 2] }
    }

    pub(crate) fn add_score(&mut self, mover: Color, eval: &MoveEval) {
        // A mate counts as more than any centipawn score; a move without a score ends every series.
        let score = match (eval.mate, eval.cp) {
            (Some(moves), _) => Some(if moves > 0 { i32::MAX } else { -i32::MAX }),
            (None, cp) => cp,
        };
        let count = |run: &mut u32, continues: bool| *run = if continues { *run + 1 } else { 0 };
        let side = mover as usize;
        if let Some(rule) = self.rules.draw {
            count(&mut self.even, score.is_some_and(|score| score.unsigned_abs() <= rule.score));
        }
        if let Some(rule) = self.rules.resign {
            let bound = i32::try_from(rule.score).unwrap_or(i32::MAX);
            count(&mut self.lost[side], score.is_some_and(|score| score <= -bound));
            count(&mut self.won[side], score.is_some_and(|score| score >= bound));
        }
    }

    /// The winner and the reason, if a rule ends the game here.
    pub(crate) fn verdict(&self, game: &Game) -> Option<(Option<Color>, Termination)> {
        if let Some(rule) = self.rules.resign {
            for loser in [Color::White, Color::Black] {
                let is_lost = self.lost[loser as usize] >= rule.move_count
                    && (rule.sides == ResignSides::Loser
                        || self.won[!loser as usize] >= rule.move_count);
                if is_lost && rule.move_count > 0 {
                    return Some((Some(!loser), Termination::WinAdjudicated));
                }
            }
        }
        if let Some(rule) = self.rules.draw
            && rule.move_count > 0
            && game.position().fullmoves().get() >= rule.move_number
            && self.even >= 2 * rule.move_count
        {
            return Some((None, Termination::DrawAdjudicated));
        }
        let capped = self.rules.max_plies.is_some_and(|cap| game.ply() >= cap as usize);
        capped.then_some((None, Termination::Truncated))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn centipawns(cp: i32) -> MoveEval {
        MoveEval { cp: Some(cp), ..MoveEval::default() }
    }

    #[test]
    fn a_game_is_lost_after_enough_lost_scores() {
        for sides in [ResignSides::Loser, ResignSides::Both] {
            let resign = Some(ResignRule { move_count: 3, score: 500, sides });
            let mut adjudicator =
                Adjudicator::new(Adjudication { resign, ..Adjudication::default() });
            let game = Game::new();
            for move_number in 1..=3 {
                assert_eq!(adjudicator.verdict(&game), None, "{sides:?} {move_number}");
                adjudicator
                    .add_score(Color::White, &MoveEval { mate: Some(-4), ..MoveEval::default() });
                adjudicator.add_score(
                    Color::Black,
                    &centipawns(if sides == ResignSides::Both { 500 } else { 0 }),
                );
            }
            let verdict = Some((Some(Color::Black), Termination::WinAdjudicated));
            assert_eq!(adjudicator.verdict(&game), verdict, "{sides:?}");
            adjudicator.add_score(Color::White, &centipawns(-499));
            assert_eq!(adjudicator.verdict(&game), None, "one better score restarts the count");
        }
    }

    #[test]
    fn with_sides_both_the_winner_must_report_the_win_too() {
        let resign = Some(ResignRule { move_count: 2, score: 500, sides: ResignSides::Both });
        let mut adjudicator = Adjudicator::new(Adjudication { resign, ..Adjudication::default() });
        for _ in 0..5 {
            adjudicator.add_score(Color::White, &centipawns(-900));
            adjudicator.add_score(Color::Black, &centipawns(400));
        }
        assert_eq!(adjudicator.verdict(&Game::new()), None);
    }

    #[test]
    fn an_even_game_is_drawn_only_from_the_given_move_on() {
        let rule = |move_number| DrawRule { move_number, move_count: 2, score: 10 };
        for (move_number, drawn) in [(1, true), (2, false)] {
            let draw = Some(rule(move_number));
            let mut adjudicator =
                Adjudicator::new(Adjudication { draw, ..Adjudication::default() });
            for (mover, cp) in
                [(Color::Black, 200), (Color::White, 3), (Color::Black, -10), (Color::White, 0)]
            {
                adjudicator.add_score(mover, &centipawns(cp));
            }
            assert_eq!(adjudicator.verdict(&Game::new()), None);
            adjudicator.add_score(Color::Black, &centipawns(10));
            let verdict = drawn.then_some((None, Termination::DrawAdjudicated));
            assert_eq!(adjudicator.verdict(&Game::new()), verdict);
            adjudicator.add_score(Color::White, &MoveEval::default());
            assert_eq!(
                adjudicator.verdict(&Game::new()),
                None,
                "a move without a score ends the series"
            );
        }
    }

    #[test]
    fn the_ply_cap_ends_any_game() {
        let rules = Adjudication { max_plies: Some(0), ..Adjudication::default() };
        let verdict = Adjudicator::new(rules).verdict(&Game::new());
        assert_eq!(verdict, Some((None, Termination::Truncated)));
    }
}
