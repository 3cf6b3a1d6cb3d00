//! The value targets of a game.

use selfmate_chess::Reason;
use selfmate_run::{GameRecord, PositionRecord};
use selfmate_search::{Wdl, flip_value};

use crate::config::LearningConfig;

/// How games become value targets.
#[derive(Clone, Copy, Debug)]
pub struct Targets {
    /// The weight of the result; the rest is the value of searches.
    pub result_weight: f32,
    /// The factor by which a value shrinks per ply.
    pub discount: f32,
    /// The λ of λ-returns over the following searches; without it, the value of the position's own
    /// search counts.
    pub lambda: Option<f32>,
}

impl Targets {
    pub fn new<T>(learning: &LearningConfig<T>, result_weight: f64, discount: f64) -> Targets {
        let lambda = learning.lambda.map(|lambda| lambda as f32);
        Targets { result_weight: result_weight as f32, discount: discount as f32, lambda }
    }

    /// The targets of the recorded positions of a game, each for its side to move.
    ///
    /// A truncated game has no result: only the searches count there.
    pub fn wdls(&self, record: &GameRecord) -> Vec<Wdl> {
        let outcome = record.outcome;
        // A resigned game was almost certainly won; it counts as much as the last search value.
        let worth = match outcome.reason {
            Reason::Adjudication => record.positions.last().map_or(1.0, |last| last.value.abs()),
            _ => 1.0,
        };
        let returns = self.lambda.map(|lambda| self.lambda_returns(record, lambda));
        let target = |(index, position): (usize, &PositionRecord)| {
            let ply = usize::from(position.ply);
            let searched = match &returns {
                Some(returns) => Wdl::new(returns[index], 1.0 - returns[index].abs()),
                None => Wdl::new(position.value, position.draw),
            };
            let Some(result) = Wdl::of_outcome(outcome, record.turn(ply)) else { return searched };
            let worth = worth * self.discount.powi((record.moves.len() - ply) as i32);
            let (win, loss) = (result.win * worth, result.loss * worth);
            let weight = self.result_weight;
            let mix = |result: f32, searched: f32| weight * result + (1.0 - weight) * searched;
            Wdl {
                win: mix(win, searched.win),
                draw: mix(1.0 - win - loss, searched.draw),
                loss: mix(loss, searched.loss),
            }
        };
        record.positions.iter().enumerate().map(target).collect()
    }

    /// λ-returns: the target of a position is the next position's, from the other side and
    /// discounted. The next one's is mixed from its search (1 - λ) and its own target (λ). The end
    /// of a game counts as its result; a truncated game ends with its last search.
    fn lambda_returns(&self, record: &GameRecord, lambda: f32) -> Vec<f32> {
        let mut returns = vec![0.0; record.positions.len()];
        let mut next: Option<(u16, f32)> = None;
        for (index, position) in record.positions.iter().enumerate().rev() {
            let (ply, value) = next.unwrap_or_else(|| {
                let end = record.moves.len();
                match Wdl::of_outcome(record.outcome, record.turn(end)) {
                    Some(result) => (end as u16, result.value()),
                    None => (position.ply, position.value),
                }
            });
            returns[index] = self.for_earlier_ply(value, ply - position.ply);
            next = Some((position.ply, (1.0 - lambda) * position.value + lambda * returns[index]));
        }
        returns
    }

    /// A value for the side to move this many plies earlier.
    fn for_earlier_ply(&self, value: f32, plies: u16) -> f32 {
        let earlier = if plies.is_multiple_of(2) { value } else { flip_value(value) };
        self.discount.powi(i32::from(plies)) * earlier
    }
}

#[cfg(test)]
mod tests {
    use selfmate_chess::{Color, Game, Outcome};

    use super::*;

    /// A game of five plies with these recorded positions.
    fn record(winner: Option<Color>, reason: Reason, positions: &[PositionRecord]) -> GameRecord {
        let mut game = Game::new();
        for _ in 0..5 {
            game.play_unchecked(game.legal_moves()[0]);
        }
        GameRecord {
            number: 0,
            network: 0,
            start: None,
            moves: game.moves().collect(),
            outcome: Outcome { winner, reason },
            positions: positions.to_vec(),
        }
    }

    fn position(ply: u16, value: f32) -> PositionRecord {
        PositionRecord { ply, value, draw: 0.25, policy: Vec::new() }
    }

    #[test]
    fn targets_mix_result_and_search_and_a_truncated_game_has_no_result() {
        let positions = [position(3, 0.5)];
        let targets = Targets { result_weight: 0.5, discount: 0.5, lambda: None };
        let value = |record: &GameRecord| targets.wdls(record)[0].value();
        // Black to move, two plies before the end: a quarter of a loss; the value of the search is
        // 0.5.
        let won = record(Some(Color::White), Reason::Checkmate, &positions);
        assert!((value(&won) - (0.5 * -0.25 + 0.5 * 0.5)).abs() < 1e-6);
        let resigned = record(Some(Color::White), Reason::Adjudication, &positions);
        assert!((value(&resigned) - (0.5 * -0.125 + 0.5 * 0.5)).abs() < 1e-6);
        let wdl = targets.wdls(&won)[0];
        assert!((wdl.win + wdl.draw + wdl.loss - 1.0).abs() < 1e-6);
        let truncated = record(None, Reason::Truncated, &positions);
        assert_eq!(targets.wdls(&truncated), [Wdl::new(0.5, 0.25)]);
    }

    #[test]
    fn lambda_returns_go_backwards_from_the_end() {
        let positions = [position(3, -0.2), position(4, 0.6)];
        let value = |record: &GameRecord, lambda| {
            let targets = Targets { result_weight: 0.0, discount: 0.5, lambda: Some(lambda) };
            let wdls = targets.wdls(record);
            [wdls[0].value(), wdls[1].value()]
        };
        let close = |got: [f32; 2], expected: [f32; 2]| {
            assert!(got.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-6), "{got:?}");
        };
        // White mates with the last move: half a win for White a ply before.
        let won = record(Some(Color::White), Reason::Checkmate, &positions);
        close(value(&won, 1.0), [-0.25, 0.5]);
        close(value(&won, 0.0), [-0.3, 0.5]);
        close(value(&won, 0.5), [-0.275, 0.5]);
        let truncated = record(None, Reason::Truncated, &positions);
        close(value(&truncated, 1.0), [-0.3, 0.6]);
    }
}
