//! What was played, to learn from: the latest positions with their targets.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use selfmate_chess::Rng;
use selfmate_nn::mlp::{Lesson, Target};
use serde::{Deserialize, Serialize};

/// A position and what its search and its game said about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// The number of its game.
    pub game: u64,
    /// The features that are on.
    pub features: Box<[u16]>,
    /// The numbers of the legal moves that have one.
    pub moves: Box<[u16]>,
    /// The share of each of these moves, adding up to one.
    pub policy: Box<[f32]>,
    /// What the side to move may expect, by the searches that followed.
    pub value: f32,
    /// What it got, discounted like a value; `None` when the game was cut off.
    pub outcome: Option<f32>,
}

impl Sample {
    /// What the network is taught: the value, or as much of the outcome as its weight says.
    pub fn lesson(&self, outcome_weight: f32) -> Lesson {
        let outcome = self.outcome.unwrap_or(self.value);
        Lesson {
            features: self.features.clone(),
            moves: self.moves.clone(),
            target: Target::Policy(self.policy.clone()),
            advantage: 1.0,
            result: (1.0 - outcome_weight) * self.value + outcome_weight * outcome,
        }
    }
}

/// How many samples are kept.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplayConfig {
    /// At least so many.
    pub least: usize,
    /// This share of all there ever were: what was learned first is forgotten first, and later, when
    /// targets change less, more is kept.
    pub share: f64,
    /// At most so many.
    pub most: usize,
}

impl ReplayConfig {
    fn capacity(&self, seen: u64) -> usize {
        ((self.share * seen as f64) as usize).max(self.least).min(self.most).max(1)
    }
}

/// What the bytes of this version begin with; those of the first had no numbers of games.
const VERSION: &[u8] = b"replay 2";

/// The latest samples.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Replay {
    /// Shared, because a round that is given up goes back to what there was before.
    samples: VecDeque<Arc<Sample>>,
    /// How many there ever were.
    seen: u64,
}

impl Replay {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.samples.len()
    }

    /// Adds one and forgets the oldest.
    pub fn push(&mut self, sample: Sample, config: &ReplayConfig) {
        self.samples.push_back(Arc::new(sample));
        self.seen += 1;
        let extra = self.samples.len().saturating_sub(config.capacity(self.seen));
        self.samples.drain(..extra);
    }

    /// Forgets games that turned out not to be what they should be; how many positions.
    pub fn forget(&mut self, games: &BTreeSet<u64>) -> usize {
        let before = self.samples.len();
        self.samples.retain(|sample| !games.contains(&sample.game));
        before - self.samples.len()
    }

    /// Draws so many, each as likely as any other.
    pub fn draw(&self, count: usize, rng: &mut Rng) -> Vec<&Sample> {
        match self.samples.len() {
            0 => Vec::new(),
            all => (0..count).map(|_| &*self.samples[rng.below(all)]).collect(),
        }
    }

    /// All of it as bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = VERSION.to_vec();
        bytes.extend(self.seen.to_le_bytes());
        for sample in &self.samples {
            bytes.extend(sample.game.to_le_bytes());
            // A position has at most 32 pieces and 218 moves.
            bytes.push(sample.features.len() as u8);
            bytes.push(sample.moves.len() as u8);
            let numbers = sample.features.iter().chain(&sample.moves);
            bytes.extend(numbers.flat_map(|number| number.to_le_bytes()));
            let outcome = sample.outcome.unwrap_or(f32::NAN);
            let floats = sample.policy.iter().chain([&sample.value, &outcome]);
            bytes.extend(floats.flat_map(|float| float.to_le_bytes()));
        }
        bytes
    }

    /// From its bytes; what is wrong with them, if they are none.
    pub fn decode(bytes: &[u8]) -> Result<Replay, String> {
        let mut rest = bytes.strip_prefix(VERSION).ok_or("not of this version")?;
        let seen = u64::from_le_bytes(*take::<8>(&mut rest)?);
        let mut samples = VecDeque::new();
        while !rest.is_empty() {
            let game = u64::from_le_bytes(*take(&mut rest)?);
            let [features, moves] = take::<2>(&mut rest)?.map(usize::from);
            let mut sample = Sample {
                game,
                features: list(features, || Ok(u16::from_le_bytes(*take(&mut rest)?)))?,
                moves: list(moves, || Ok(u16::from_le_bytes(*take(&mut rest)?)))?,
                policy: list(moves, || Ok(f32::from_le_bytes(*take(&mut rest)?)))?,
                value: f32::from_le_bytes(*take(&mut rest)?),
                outcome: Some(f32::from_le_bytes(*take(&mut rest)?)),
            };
            // Not a number stands for a game that was cut off.
            sample.outcome = sample.outcome.filter(|outcome| !outcome.is_nan());
            let is_sound = sample.features.iter().all(|feature| *feature < 768)
                && sample.moves.iter().all(|number| *number < 4096)
                && sample.policy.iter().all(|share| (0.0..=1.001).contains(share))
                && (-1.0..=1.0).contains(&sample.value);
            if !is_sound {
                return Err(format!("sample {} makes no sense", samples.len()));
            }
            samples.push_back(Arc::new(sample));
        }
        Ok(Replay { samples, seen })
    }
}

fn list<T>(count: usize, mut next: impl FnMut() -> Result<T, String>) -> Result<Box<[T]>, String> {
    (0..count).map(|_| next()).collect()
}

fn take<'a, const N: usize>(rest: &mut &'a [u8]) -> Result<&'a [u8; N], String> {
    let (first, left) = rest.split_first_chunk::<N>().ok_or("the last sample is cut short")?;
    *rest = left;
    Ok(first)
}

#[cfg(test)]
mod tests {
    use selfmate_chess::Seed;

    use super::*;

    fn sample(number: u16) -> Sample {
        Sample {
            game: u64::from(number) / 2,
            features: [number, 700].into(),
            moves: [5, 9, 4000].into(),
            policy: [0.25, 0.25, 0.5].into(),
            value: -0.5,
            outcome: number.is_multiple_of(2).then_some(f32::from(number) / 100.0),
        }
    }

    #[test]
    fn the_outcome_counts_as_much_as_it_weighs() {
        assert_eq!(sample(50).lesson(0.0).result, -0.5);
        assert_eq!(sample(50).lesson(0.5).result, 0.0);
        assert_eq!(sample(51).lesson(1.0).result, -0.5, "a game that was cut off has none");
    }

    #[test]
    fn the_oldest_are_forgotten_and_the_rest_comes_back() {
        let config = ReplayConfig { least: 5, share: 0.5, most: 8 };
        let mut replay = Replay::default();
        assert!(replay.draw(3, &mut Seed::new(1).rng()).is_empty());
        (0..7).for_each(|number| replay.push(sample(number), &config));
        assert_eq!(replay.len(), 5);
        let drawn = replay.draw(200, &mut Seed::new(1).rng());
        assert!(drawn.iter().all(|sample| sample.features[0] >= 2));
        let bytes = replay.encode();
        assert_eq!(Replay::decode(&bytes).unwrap(), replay);
        assert!(Replay::decode(&bytes[..bytes.len() - 1]).unwrap_err().contains("cut short"));
        assert!(Replay::decode(&[]).is_err());
        let mut damaged = bytes;
        // The high byte of a feature.
        damaged[27] = 0xFF;
        assert!(Replay::decode(&damaged).unwrap_err().contains("sample 0"));
        // Two positions of game 2.
        assert_eq!(replay.clone().forget(&BTreeSet::from([2, 99])), 2);
        // It grows with what there was, up to a point.
        (7..14).for_each(|number| replay.push(sample(number), &config));
        assert_eq!(replay.len(), 7);
        (14..30).for_each(|number| replay.push(sample(number), &config));
        assert_eq!(replay.len(), 8);
    }
}
