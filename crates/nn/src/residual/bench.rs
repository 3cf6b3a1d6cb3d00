//! How fast the residual network is, on positions of random games.

use std::hint::black_box;
use std::time::{Duration, Instant};

use selfmate_chess::env::ActionSpace;
use selfmate_chess::{Game, Seed};
use selfmate_encode::MoveSpace;
use selfmate_search::Wdl;

use super::batch::Batch;
use super::config::Config;
use super::session::{Outputs, Session};
use super::trainer::{TrainError, Trainer};

/// Positions of random games with their history, and random targets.
pub fn positions(config: Config, count: usize, seed: Seed) -> Batch {
    let encoding = config.encoding();
    let mut batch = Batch::new(config);
    let mut planes = vec![0.0; encoding.size()];
    let mut targets = seed.derive("targets").rng();
    for number in 0.. {
        let mut rng = seed.index(number).rng();
        let mut game = Game::new();
        for ply in 0..120 {
            let legal = game.legal_moves();
            if batch.len() == count {
                return batch;
            }
            if game.outcome().is_some() {
                break;
            }
            let Some(&m) = rng.choose(&legal) else { break };
            if ply % 7 == 3 {
                encoding.encode(&game, &mut planes);
                let mut policy: Vec<(u16, f32)> = legal
                    .iter()
                    .filter_map(|&m| MoveSpace::Az4672.index(game.position(), m))
                    .map(|number| (number as u16, 0.05 + targets.unit() as f32))
                    .collect();
                let sum: f32 = policy.iter().map(|(_, share)| share).sum();
                policy.iter_mut().for_each(|(_, share)| *share /= sum);
                let value = [Wdl::WIN, Wdl::DRAW, Wdl::LOSS][targets.below(3)];
                batch.push(&planes, &policy, value).expect("numbered moves that add up");
            }
            game.play_unchecked(m);
        }
    }
    batch
}

/// Positions a second that a session judges, in batches of `size`.
pub fn inference(session: &mut Session, positions: &Batch, size: usize, time: Duration) -> f64 {
    let mut outputs = Outputs::default();
    let batches: Vec<&[f32]> =
        positions.planes().chunks_exact(size * positions.planes_each()).collect();
    per_second(time, size, |turn| {
        session.run(batches[turn % batches.len()], &mut outputs);
        black_box(&outputs);
    })
}

/// Positions a second that a trainer learns from.
pub fn training(trainer: &mut Trainer, batch: &Batch, time: Duration) -> Result<f64, TrainError> {
    let mut failure = None;
    let speed = per_second(time, batch.len(), |_| {
        failure = trainer.step(batch, 1e-3).err().or(failure.take());
    });
    failure.map_or(Ok(speed), Err)
}

/// The speed of the median call, so that other programs that take the processor away now and then
/// do not count. The first two calls fill caches.
fn per_second(time: Duration, items: usize, mut run: impl FnMut(usize)) -> f64 {
    run(0);
    run(1);
    let mut seconds = Vec::new();
    let start = Instant::now();
    while seconds.is_empty() || start.elapsed() < time {
        let start = Instant::now();
        run(seconds.len());
        seconds.push(start.elapsed().as_secs_f64());
    }
    seconds.sort_by(f64::total_cmp);
    items as f64 / seconds[seconds.len() / 2]
}
