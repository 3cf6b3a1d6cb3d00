//! The replay window: the positions of the latest generations, as samples.

use std::collections::VecDeque;

use rayon::prelude::*;
use selfmate_chess::{Reason, Rng};
use selfmate_run::{GameRecord, PositionRecord, RecordError};
use selfmate_search::Wdl;

use super::student::Student;

/// The positions that batches are drawn from.
#[derive(Debug)]
pub struct Window<S> {
    generations: VecDeque<Vec<S>>,
    positions: usize,
}

/// How games become value targets.
#[derive(Clone, Copy, Debug)]
pub struct Targets {
    /// The weight of the result; the rest is the position's own search.
    pub result_weight: f32,
    /// What a result is worth a ply further away.
    pub discount: f32,
}

impl<S> Default for Window<S> {
    fn default() -> Window<S> {
        Window { generations: VecDeque::new(), positions: 0 }
    }
}

impl<S> Window<S> {
    /// Adds a generation.
    pub fn push(&mut self, samples: Vec<S>) {
        self.positions += samples.len();
        self.generations.push_back(samples);
    }

    /// Forgets the oldest generations that are not needed for so many positions.
    pub fn trim(&mut self, positions: usize) {
        while let Some(oldest) = self.generations.front()
            && self.generations.len() > 1
            && self.positions - oldest.len() >= positions
        {
            self.positions -= oldest.len();
            self.generations.pop_front();
        }
    }

    /// Positions in the window.
    pub fn len(&self) -> usize {
        self.positions
    }

    /// Generations in the window.
    pub fn generations(&self) -> usize {
        self.generations.len()
    }

    /// True when there is nothing to learn from.
    pub fn is_empty(&self) -> bool {
        self.positions == 0
    }

    /// Draws a batch; empty when the window is.
    pub fn draw(&self, size: usize, rng: &mut Rng) -> Vec<&S> {
        if self.is_empty() {
            return Vec::new();
        }
        // The end of each generation among all positions.
        let mut end = 0;
        let ends: Vec<usize> = self
            .generations
            .iter()
            .map(|samples| {
                end += samples.len();
                end
            })
            .collect();
        (0..size)
            .map(|_| {
                let place = rng.below(self.positions);
                let generation = ends.partition_point(|&end| end <= place);
                let samples = &self.generations[generation];
                &samples[place + samples.len() - ends[generation]]
            })
            .collect()
    }
}

/// The samples of games, in the games' order.
pub fn samples<S: Student>(
    games: &[GameRecord],
    targets: Targets,
) -> Result<Vec<S::Sample>, RecordError> {
    let games: Result<Vec<Vec<S::Sample>>, RecordError> =
        games.par_iter().map(|record| S::samples(record, targets)).collect();
    Ok(games?.into_iter().flatten().collect())
}

impl Targets {
    /// What a network should say of the judged positions of a game, each for its side to move.
    ///
    /// Nobody knows how a game that was cut off would have ended: there the search's view is all.
    pub fn wdls(&self, record: &GameRecord) -> Vec<Wdl> {
        let outcome = record.outcome;
        // A game that was given up was as good as won, no better.
        let worth = match outcome.reason {
            Reason::Adjudication => record.positions.last().map_or(1.0, |last| last.value.abs()),
            _ => 1.0,
        };
        let weight = if outcome.is_truncated() { 0.0 } else { self.result_weight };
        let target = |judged: &PositionRecord| {
            let ply = usize::from(judged.ply);
            let result = Wdl::of_outcome(outcome, record.turn(ply));
            let worth = worth * self.discount.powi((record.moves.len() - ply) as i32);
            let (win, loss) = (result.win * worth, result.loss * worth);
            let seen = Wdl::new(judged.value, judged.draw);
            let mix = |result: f32, seen: f32| weight * result + (1.0 - weight) * seen;
            Wdl {
                win: mix(win, seen.win),
                draw: mix(1.0 - win - loss, seen.draw),
                loss: mix(loss, seen.loss),
            }
        };
        record.positions.iter().map(target).collect()
    }
}

#[cfg(test)]
mod tests {
    use selfmate_chess::{Color, Game, Outcome, Seed};
    use selfmate_nn::sparse::bench;

    use super::*;

    #[test]
    fn a_window_forgets_whole_generations_and_draws_from_all_it_keeps() {
        let mut window = Window::default();
        let all = bench::samples(60, Seed::new(1));
        for chunk in all.chunks(10) {
            window.push(chunk.to_vec());
        }
        window.trim(25);
        assert_eq!(window.len(), 30);
        let drawn = window.draw(2000, &mut Seed::new(2).rng());
        for (index, sample) in all.iter().enumerate() {
            let is_there = drawn.contains(&sample);
            assert_eq!(is_there, index >= 30, "{index}");
        }
        window.trim(0);
        assert_eq!(window.len(), 10, "the newest generation stays");
    }

    #[test]
    fn targets_mix_result_and_search_and_trust_no_cap() {
        let judged = PositionRecord { ply: 3, value: 0.5, draw: 0.25, policy: Vec::new() };
        let mut game = Game::new();
        for _ in 0..5 {
            game.play_unchecked(game.legal_moves()[0]);
        }
        let record = |winner, reason| GameRecord {
            number: 0,
            network: 0,
            start: None,
            moves: game.moves().collect(),
            outcome: Outcome { winner, reason },
            positions: vec![judged.clone()],
        };
        let targets = Targets { result_weight: 0.5, discount: 0.5 };
        let value = |record: &GameRecord| targets.wdls(record)[0].value();
        // Black to move, two plies before the end: a quarter of a loss, where the search says half
        // a win.
        let won = record(Some(Color::White), Reason::Checkmate);
        assert!((value(&won) - (0.5 * -0.25 + 0.5 * 0.5)).abs() < 1e-6);
        let given_up = record(Some(Color::White), Reason::Adjudication);
        assert!((value(&given_up) - (0.5 * -0.125 + 0.5 * 0.5)).abs() < 1e-6);
        let wdl = targets.wdls(&won)[0];
        assert!((wdl.win + wdl.draw + wdl.loss - 1.0).abs() < 1e-6);
        let capped = record(None, Reason::Truncated);
        assert_eq!(targets.wdls(&capped), [Wdl::new(0.5, 0.25)]);
    }
}
