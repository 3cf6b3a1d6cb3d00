//! Ending games that the players agree about, as fastchess and cutechess do.

use selfmate_chess::{Color, Game, Position};
use serde::{Deserialize, Serialize};

use crate::game::{MoveEval, Termination};
use crate::tablebase_cache::TablebaseRule;

/// When a game ends before the rules end it. The default never does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Adjudication {
    /// As drawn, when both players have seen an even game for long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub draw: Option<DrawRule>,
    /// As lost, when a player has seen a lost game for long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resign: Option<ResignRule>,
    /// As drawn, after this many plies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_plies: Option<u32>,
    /// As these tables say; [`crate::MatchRun::adjudicator`] is who asks them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tables: Option<TablebaseRule>,
}

/// A draw: scores within `score` for `move_count` moves of each side, from `move_number` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DrawRule {
    /// Not before this move.
    pub move_number: u32,
    /// For so many moves of each side.
    pub move_count: u32,
    /// Centipawns.
    pub score: u32,
}

/// A loss: a score of `-score` or worse for `move_count` moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResignRule {
    /// For so many moves.
    pub move_count: u32,
    /// Centipawns.
    pub score: u32,
    /// Whose scores count.
    pub sides: ResignSides,
}

/// Who must see that a game is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResignSides {
    /// The loser.
    #[default]
    Loser,
    /// The loser and the winner.
    Both,
}

/// Follows the players' scores through a game.
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

    /// Takes what a player thought of its move.
    pub(crate) fn note(&mut self, mover: Color, thought: &MoveEval) {
        // Mates are beyond all centipawns; a player without a score breaks every series.
        let score = match (thought.mate, thought.cp) {
            (Some(moves), _) => Some(if moves > 0 { i32::MAX } else { -i32::MAX }),
            (None, cp) => cp,
        };
        let count = |run: &mut u32, goes_on: bool| *run = if goes_on { *run + 1 } else { 0 };
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

    /// The end of the game, if the rules ask for it.
    pub(crate) fn verdict(&self, game: &Game) -> Option<(Option<Color>, Termination)> {
        if let Some(rule) = self.rules.resign {
            for loser in [Color::White, Color::Black] {
                let seen = self.lost[loser as usize] >= rule.move_count
                    && (rule.sides == ResignSides::Loser
                        || self.won[!loser as usize] >= rule.move_count);
                if seen && rule.move_count > 0 {
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
    fn a_long_lost_game_is_lost() {
        for sides in [ResignSides::Loser, ResignSides::Both] {
            let resign = Some(ResignRule { move_count: 3, score: 500, sides });
            let mut referee = Adjudicator::new(Adjudication { resign, ..Adjudication::default() });
            let game = Game::new();
            for move_number in 1..=3 {
                assert_eq!(referee.verdict(&game), None, "{sides:?} {move_number}");
                referee.note(Color::White, &MoveEval { mate: Some(-4), ..MoveEval::default() });
                referee.note(
                    Color::Black,
                    &centipawns(if sides == ResignSides::Both { 500 } else { 0 }),
                );
            }
            let verdict = Some((Some(Color::Black), Termination::WinAdjudicated));
            assert_eq!(referee.verdict(&game), verdict, "{sides:?}");
            referee.note(Color::White, &centipawns(-499));
            assert_eq!(referee.verdict(&game), None, "one better score begins anew");
        }
    }

    #[test]
    fn both_must_see_a_win_where_the_rule_says_so() {
        let resign = Some(ResignRule { move_count: 2, score: 500, sides: ResignSides::Both });
        let mut referee = Adjudicator::new(Adjudication { resign, ..Adjudication::default() });
        for _ in 0..5 {
            referee.note(Color::White, &centipawns(-900));
            referee.note(Color::Black, &centipawns(400));
        }
        assert_eq!(referee.verdict(&Game::new()), None);
    }

    #[test]
    fn a_long_even_game_is_drawn_once_it_is_late_enough() {
        let rule = |move_number| DrawRule { move_number, move_count: 2, score: 10 };
        for (move_number, drawn) in [(1, true), (2, false)] {
            let draw = Some(rule(move_number));
            let mut referee = Adjudicator::new(Adjudication { draw, ..Adjudication::default() });
            for (mover, cp) in
                [(Color::Black, 200), (Color::White, 3), (Color::Black, -10), (Color::White, 0)]
            {
                referee.note(mover, &centipawns(cp));
            }
            assert_eq!(referee.verdict(&Game::new()), None);
            referee.note(Color::Black, &centipawns(10));
            let verdict = drawn.then_some((None, Termination::DrawAdjudicated));
            assert_eq!(referee.verdict(&Game::new()), verdict);
            referee.note(Color::White, &MoveEval::default());
            assert_eq!(referee.verdict(&Game::new()), None, "no opinion is not an even one");
        }
    }

    #[test]
    fn the_ply_cap_ends_any_game() {
        let rules = Adjudication { max_plies: Some(0), ..Adjudication::default() };
        let verdict = Adjudicator::new(rules).verdict(&Game::new());
        assert_eq!(verdict, Some((None, Termination::Truncated)));
    }
}
