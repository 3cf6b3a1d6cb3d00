//! Speed of the residual network, and the agreement of its integer and float versions, on positions
//! of random games.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use selfmate_chess::env::ActionSpace;
use selfmate_chess::{Game, Seed};
use selfmate_encode::MoveSpace;
use selfmate_search::mcts::{SearchParams, SearchSlot};
use selfmate_search::{Evaluation, Evaluator, Leaf, Server, ServerParams, Wdl};

use super::batch::Batch;
use super::config::{Config, MOVES};
use super::evaluator::NetworkEvaluator;
use super::network::Network;
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
                batch.push(&planes, &policy, value).expect("valid moves and probabilities");
            }
            game.play_unchecked(m);
        }
    }
    batch
}

/// Positions per second evaluated by a session, in batches of `size`.
pub fn inference(session: &mut Session, positions: &Batch, size: usize, time: Duration) -> f64 {
    let mut outputs = Outputs::default();
    let batches: Vec<&[f32]> =
        positions.planes().chunks_exact(size * positions.planes_each()).collect();
    per_second(time, size, |turn| {
        session.run(batches[turn % batches.len()], &mut outputs);
        black_box(&outputs);
    })
}

/// Positions per second evaluated by a server with `threads` evaluators, for searches that run on
/// their own threads and each wait for one position at a time.
pub fn served(network: &Network, searches: usize, threads: usize, time: Duration) -> f64 {
    let count = Arc::new(AtomicU64::new(0));
    let evaluator = || -> Box<dyn Evaluator> {
        let evaluator = NetworkEvaluator::new(network);
        Box::new(Counted { evaluator, count: Arc::clone(&count) })
    };
    let batch = searches.div_ceil(threads);
    let params = ServerParams { batch, max_wait: Duration::from_millis(2) };
    let (_server, client) = Server::start((0..threads).map(|_| evaluator()).collect(), params);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for number in 0..searches as u64 {
            let (mut client, is_over) = (client.clone(), &is_over);
            scope.spawn(move || {
                let seed = Seed::new(number);
                let (mut rng, mut game) = (seed.rng(), Game::new());
                let params = SearchParams { memory_mb: 16, ..SearchParams::alphazero() };
                let mut slot = SearchSlot::new(params, &client).expect("a small tree");
                while !is_over.load(Ordering::Relaxed) {
                    match rng.choose(&game.legal_moves()) {
                        Some(&m) if game.outcome().is_none() => game.play_unchecked(m),
                        _ => game = Game::new(),
                    }
                    slot.start(&game, 64, seed.index(game.ply() as u64));
                    slot.run(&mut client, is_over);
                }
            });
        }
        std::thread::sleep(time / 4);
        let (start, before) = (Instant::now(), count.load(Ordering::Relaxed));
        std::thread::sleep(time);
        let evaluated = count.load(Ordering::Relaxed) - before;
        let seconds = start.elapsed().as_secs_f64();
        is_over.store(true, Ordering::Relaxed);
        evaluated as f64 / seconds
    })
}

/// Counts the leaves that it evaluates.
struct Counted {
    evaluator: NetworkEvaluator,
    count: Arc<AtomicU64>,
}

impl Evaluator for Counted {
    fn evaluate(&mut self, leaves: &[Leaf], evaluations: &mut [Evaluation]) {
        self.evaluator.evaluate(leaves, evaluations);
        self.count.fetch_add(leaves.len() as u64, Ordering::Relaxed);
    }

    fn history(&self) -> usize {
        self.evaluator.history()
    }
}

/// How closely the outputs of two networks agree.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Agreement {
    pub positions: usize,
    /// The share of positions where the same legal move has the highest logit.
    pub top_move: f64,
    /// The mean absolute difference of the values.
    pub value_distance: f64,
}

/// Compares two networks of the same shape on the same positions.
pub fn agreement(one: &mut Session, other: &mut Session, positions: &Batch) -> Agreement {
    let (mut first, mut second) = (Outputs::default(), Outputs::default());
    one.run(positions.planes(), &mut first);
    other.run(positions.planes(), &mut second);
    let count = positions.len();
    let (mut same, mut distance) = (0, 0.0);
    for index in 0..count {
        let logits = index * MOVES..(index + 1) * MOVES;
        let top = |outputs: &Outputs| {
            let logits = &outputs.policy[logits.clone()];
            let moves = positions.moves(index).iter().map(|&(number, _)| usize::from(number));
            moves.max_by(|&a, &b| logits[a].total_cmp(&logits[b]))
        };
        same += usize::from(top(&first) == top(&second));
        distance += f64::from((first.wdl(index).value() - second.wdl(index).value()).abs());
    }
    let share = |sum: f64| sum / count.max(1) as f64;
    Agreement { positions: count, top_move: share(same as f64), value_distance: share(distance) }
}

/// Positions per second of training.
pub fn training(trainer: &mut Trainer, batch: &Batch, time: Duration) -> Result<f64, TrainError> {
    let mut failure = None;
    let speed = per_second(time, batch.len(), |_| {
        failure = trainer.step(batch, 1e-3).err().or(failure.take());
    });
    failure.map_or(Ok(speed), Err)
}

/// The speed of the median call, so that occasional interruptions by other programs do not count.
/// The first two calls warm up the caches.
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
