//! The replay buffer: the positions of the latest generations, as samples.

use std::collections::VecDeque;

use rayon::prelude::*;
use selfmate_chess::Rng;
use selfmate_run::{GameRecord, RecordError};

use crate::model::TrainableModel;
use crate::targets::Targets;

/// The samples that batches are drawn from, one list per generation.
///
/// ```
/// use selfmate_chess::Seed;
/// use selfmate_train::ReplayBuffer;
///
/// let mut replay = ReplayBuffer::default();
/// replay.push(vec!["a", "b", "c"]);
/// replay.push(vec!["d", "e"]);
/// // The newest generation fills a capacity of two, so the oldest one is removed.
/// replay.trim(2);
/// assert_eq!((replay.generations(), replay.len()), (1, 2));
///
/// // Batches are drawn with replacement and depend only on the seed.
/// let batch = replay.draw(32, &mut Seed::new(1).rng());
/// assert_eq!(batch.len(), 32);
/// assert!(batch.contains(&&"d") && batch.contains(&&"e") && !batch.contains(&&"a"));
/// assert_eq!(batch, replay.draw(32, &mut Seed::new(1).rng()));
/// ```
#[derive(Debug)]
pub struct ReplayBuffer<S> {
    generations: VecDeque<Vec<S>>,
    positions: usize,
}

impl<S> Default for ReplayBuffer<S> {
    fn default() -> ReplayBuffer<S> {
        ReplayBuffer { generations: VecDeque::new(), positions: 0 }
    }
}

impl<S> ReplayBuffer<S> {
    /// Adds a generation.
    pub fn push(&mut self, samples: Vec<S>) {
        self.positions += samples.len();
        self.generations.push_back(samples);
    }

    /// Removes the oldest generations that are not needed for this capacity. The newest one stays.
    pub fn trim(&mut self, capacity: usize) {
        while let Some(oldest) = self.generations.front()
            && self.generations.len() > 1
            && self.positions - oldest.len() >= capacity
        {
            self.positions -= oldest.len();
            self.generations.pop_front();
        }
    }

    /// The number of positions.
    pub fn len(&self) -> usize {
        self.positions
    }

    pub fn generations(&self) -> usize {
        self.generations.len()
    }

    pub fn is_empty(&self) -> bool {
        self.positions == 0
    }

    /// Draws a batch uniformly, with replacement; empty when the buffer is.
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
                let index = rng.below(self.positions);
                let generation = ends.partition_point(|&end| end <= index);
                let samples = &self.generations[generation];
                &samples[index + samples.len() - ends[generation]]
            })
            .collect()
    }
}

/// The samples of games, in the order of the games.
pub fn samples<M: TrainableModel>(
    games: &[GameRecord],
    targets: Targets,
) -> Result<Vec<M::Sample>, RecordError> {
    let games: Result<Vec<Vec<M::Sample>>, RecordError> =
        games.par_iter().map(|record| M::samples(record, targets)).collect();
    Ok(games?.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use selfmate_chess::Seed;

    use super::*;

    #[test]
    fn the_oldest_generations_are_removed_and_all_others_are_drawn_from() {
        let mut replay = ReplayBuffer::default();
        let all: Vec<usize> = (0..60).collect();
        for chunk in all.chunks(10) {
            replay.push(chunk.to_vec());
        }
        replay.trim(25);
        assert_eq!(replay.len(), 30);
        let drawn = replay.draw(2000, &mut Seed::new(2).rng());
        for sample in &all {
            assert_eq!(drawn.contains(&sample), *sample >= 30, "{sample}");
        }
        replay.trim(0);
        assert_eq!(replay.len(), 10, "the newest generation stays");
    }
}
