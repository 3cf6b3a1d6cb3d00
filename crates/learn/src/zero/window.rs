//! The replay window: the positions of the latest generations, as samples.

use std::collections::VecDeque;

use rayon::prelude::*;
use selfmate_chess::{Color, Game, MoveList, Outcome, Reason, Rng};
use selfmate_nn::sparse::Sample;
use selfmate_run::{GameRecord, Judged, RecordError};
use selfmate_search::Wdl;

/// The positions that batches are drawn from.
#[derive(Debug, Default)]
pub struct Window {
    generations: VecDeque<Vec<Sample>>,
    positions: usize,
}

/// How games become value targets.
#[derive(Clone, Copy, Debug)]
pub struct Targets {
    /// The weight of the result.
    pub result_weight: f32,
    /// What a result is worth a ply further away.
    pub discount: f32,
}

impl Window {
    /// Adds a generation.
    pub fn push(&mut self, samples: Vec<Sample>) {
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
    pub fn draw(&self, size: usize, rng: &mut Rng) -> Vec<&Sample> {
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
pub fn samples(games: &[GameRecord], targets: Targets) -> Result<Vec<Sample>, RecordError> {
    let of_game = |record: &GameRecord| -> Result<Vec<Sample>, RecordError> {
        let mut samples = Vec::with_capacity(record.positions.len());
        let plies = record.moves.len();
        // A game that was given up was as good as won, no better.
        let worth = match record.outcome.reason {
            Reason::Adjudication => record.positions.last().map_or(1.0, |last| last.value.abs()),
            _ => 1.0,
        };
        record.replay(|game: &Game, legal: &MoveList, judged: &Judged| {
            let left = plies - usize::from(judged.ply);
            let worth = worth * targets.discount.powi(left as i32);
            let wdl = target(record.outcome, judged, game.turn(), worth, targets.result_weight);
            let sample = Sample::new(game, legal, &judged.policy, wdl);
            samples.push(sample.expect("a stored game has one share for each legal move"));
        })?;
        Ok(samples)
    };
    let games: Result<Vec<Vec<Sample>>, RecordError> = games.par_iter().map(of_game).collect();
    Ok(games?.into_iter().flatten().collect())
}

/// What a network should say of a position, where a win or loss is worth so much.
///
/// Nobody knows how a game that was cut off would have ended: there the search's view is all.
fn target(outcome: Outcome, judged: &Judged, turn: Color, worth: f32, weight: f32) -> Wdl {
    let seen = Wdl::new(judged.value, judged.draw);
    if outcome.is_truncated() {
        return seen;
    }
    let result = Wdl::of_outcome(outcome, turn);
    let result = Wdl::new(result.value() * worth, 1.0 - result.value().abs() * worth);
    let mix = |result: f32, seen: f32| weight * result + (1.0 - weight) * seen;
    Wdl {
        win: mix(result.win, seen.win),
        draw: mix(result.draw, seen.draw),
        loss: mix(result.loss, seen.loss),
    }
}

#[cfg(test)]
mod tests {
    use selfmate_chess::Seed;
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
        let judged = Judged { ply: 3, value: 0.5, draw: 0.25, policy: Vec::new() };
        let won = Outcome { winner: Some(Color::White), reason: Reason::Checkmate };
        let wdl = target(won, &judged, Color::Black, 0.25, 0.5);
        // The result is a quarter of a loss; the search says half a win.
        assert!((wdl.value() - (0.5 * -0.25 + 0.5 * 0.5)).abs() < 1e-6, "{wdl:?}");
        assert!((wdl.win + wdl.draw + wdl.loss - 1.0).abs() < 1e-6);
        let capped = Outcome { winner: None, reason: Reason::PlyCap };
        assert_eq!(target(capped, &judged, Color::White, 0.25, 0.5), Wdl::new(0.5, 0.25));
    }
}
