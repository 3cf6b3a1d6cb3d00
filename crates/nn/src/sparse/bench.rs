//! Speed of the parts of the network on positions of random games. For `selfmate bench`.

use std::hint::black_box;
use std::time::{Duration, Instant};

use selfmate_chess::{Game, Seed};
use selfmate_encode::sparse::{MoveRows, Threats};
use selfmate_search::{Evaluation, Evaluator, Leaf, Need, Wdl};

use super::sample::Sample;
use super::trainer::{TrainError, Trainer};

/// Leaves of random games, all with legal moves.
pub fn leaves(count: usize, seed: Seed, need: Need) -> Vec<Leaf> {
    let mut leaves = Vec::with_capacity(count);
    for number in 0.. {
        let mut rng = seed.index(number).rng();
        let mut game = Game::new();
        for ply in 0..120 {
            if leaves.len() == count {
                return leaves;
            }
            let legal = game.legal_moves();
            if game.outcome().is_some() {
                break;
            }
            let Some(&m) = rng.choose(&legal) else { break };
            if ply % 7 == 3 {
                let game = Game::from_position(game.position().clone());
                leaves.push(Leaf { game, legal, need });
            }
            game.play_unchecked(m);
        }
    }
    leaves
}

/// Samples with random targets, for timing only.
pub fn samples(count: usize, seed: Seed) -> Vec<Sample> {
    let mut rng = seed.derive("targets").rng();
    let sample = |leaf: Leaf| {
        let mut policy: Vec<f32> = leaf.legal.iter().map(|_| rng.unit() as f32).collect();
        let sum: f32 = policy.iter().sum();
        policy.iter_mut().for_each(|p| *p /= sum.max(f32::MIN_POSITIVE));
        let wdl = Wdl::new(rng.unit() as f32 * 2.0 - 1.0, 0.2);
        Sample::new(&leaf.game, &leaf.legal, &policy, wdl)
            .expect("one probability for each legal move")
    };
    leaves(count, seed, Need::Both).into_iter().map(sample).collect()
}

/// Evaluations per second, one at a time as in a search.
pub fn evaluations(evaluator: &mut dyn Evaluator, leaves: &[Leaf], time: Duration) -> f64 {
    let mut evaluations = [Evaluation::default()];
    per_second(time, leaves.chunks(CHUNK), <[Leaf]>::len, |leaves| {
        for leaf in leaves {
            evaluator.evaluate(std::slice::from_ref(leaf), &mut evaluations);
            black_box(&evaluations);
        }
    })
}

/// Feature extractions per second.
pub fn features(leaves: &[Leaf], time: Duration) -> f64 {
    per_second(time, leaves.chunks(CHUNK), <[Leaf]>::len, |leaves| {
        for leaf in leaves {
            black_box(Threats::of(leaf.game.position()).features());
        }
    })
}

/// Positions per second whose legal moves are mapped to rows.
pub fn move_rows(leaves: &[Leaf], time: Duration) -> f64 {
    per_second(time, leaves.chunks(CHUNK), <[Leaf]>::len, |leaves| {
        for leaf in leaves {
            let threats = Threats::of(leaf.game.position());
            let rows = MoveRows::of(&threats);
            for &m in &leaf.legal {
                black_box(rows.key(m));
            }
        }
    })
}

/// Positions per second of training.
pub fn training(
    trainer: &mut Trainer,
    samples: &[Sample],
    batch: usize,
    time: Duration,
) -> Result<f64, TrainError> {
    let batches: Vec<Vec<&Sample>> =
        samples.chunks_exact(batch).map(|chunk| chunk.iter().collect()).collect();
    let mut failure = None;
    let speed = per_second(
        time,
        batches.iter(),
        |_| batch,
        |batch| {
            failure = trainer.train(batch, 1e-3).err().or(failure.take());
        },
    );
    failure.map_or(Ok(speed), Err)
}

/// Leaves that are timed together.
const CHUNK: usize = 100;

/// The speed of the median chunk, so that occasional interruptions by other programs do not count.
fn per_second<T: Copy>(
    time: Duration,
    chunks: impl Iterator<Item = T> + Clone,
    items: impl Fn(T) -> usize,
    mut run: impl FnMut(T),
) -> f64 {
    let mut seconds = Vec::new();
    let start = Instant::now();
    while start.elapsed() < time {
        for chunk in chunks.clone() {
            let start = Instant::now();
            run(chunk);
            seconds.push(start.elapsed().as_secs_f64() / items(chunk) as f64);
        }
    }
    // The first round warms up the caches.
    let mut seconds = seconds.split_off(seconds.len().min(chunks.count()) / 2);
    seconds.sort_by(f64::total_cmp);
    seconds.get(seconds.len() / 2).map_or(0.0, |median| 1.0 / median)
}
