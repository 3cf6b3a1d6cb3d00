//! Benchmarks of the endgame learners, with networks of random weights.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use selfmate_chess::env::ActionSpace;
use selfmate_chess::{Game, MoveList, Seed};
use selfmate_encode::{Canonical, MoveSpace, Planes};
use selfmate_methods::endgame::{self, Encoder, Endgame, EndgameConfig};
use selfmate_nn::Device;
use selfmate_search::{Evaluation, Evaluator, Leaf};
use selfmate_selfplay::{Ending, Generation, SelfPlayer};
use selfmate_train::{Hardware, TrainableModel};

use super::{Part, ROOM, per_second};

pub fn default(time: Duration) -> Part {
    selfplay("king and rook, one core", &endgame::default(Ending::Krk), time)
}

pub fn spec(time: Duration) -> Part {
    selfplay("king and rook, preset spec, one core", &endgame::spec(Ending::Krk), time)
}

/// Self-play games of a run that has not learned anything yet.
fn selfplay(label: &'static str, config: &EndgameConfig, time: Duration) -> Part {
    let hardware = Hardware { threads: 1, device: Device::Cpu };
    let trainer = &config.learning.trainer;
    let model = Endgame::new(&config.network, trainer, Seed::new(1), hardware).expect(ROOM);
    let evaluator = || Box::new(model.network().evaluator());
    let (simulations, elapsed) = play(config, evaluator(), time);
    let part = per_second(label, simulations, elapsed, "simulations");
    // Measuring takes time too, so the shares are measured in separate games.
    let seen = Arc::new(Seen::default());
    let timed = Timed { evaluator: evaluator(), seen: Arc::clone(&seen) };
    let (_, whole) = play(config, Box::new(timed), time / 4);
    let leaves = seen.leaves.lock().unwrap_or_else(PoisonError::into_inner);
    let evaluations = seen.evaluations.load(Relaxed) as f64;
    let encoding = encoding_seconds(config.network.encoder, &leaves) * evaluations;
    let evaluated = seen.nanoseconds.load(Relaxed) as f64 / 1e9 / whole.as_secs_f64();
    let encoding = (encoding / whole.as_secs_f64()).min(evaluated);
    let (network, search) = (evaluated - encoding, 1.0 - evaluated);
    let shares = [("search", search), ("network", network), ("encoding", encoding)];
    Part { shares: Some(shares.into()), ..part }
}

/// Plays games for about this time; their simulations and the time they took.
fn play(config: &EndgameConfig, evaluator: Box<dyn Evaluator>, time: Duration) -> (u64, Duration) {
    let selfplay = &config.selfplay;
    let mut player = SelfPlayer::new(selfplay, evaluator);
    let simulations = selfplay.simulations.from as u64;
    let generation =
        Generation { config: selfplay.clone(), seed: Seed::new(1), simulations, network: 0 };
    let (mut simulations, started, mut numbers) = (0, Instant::now(), 0..);
    let next = || numbers.next().filter(|_| started.elapsed() < time);
    let finished = |played: selfmate_selfplay::FinishedGame| simulations += played.simulations;
    player.play(&generation, next, finished, &AtomicBool::new(false));
    (simulations, started.elapsed())
}

/// Seconds to encode one of these positions and its moves.
fn encoding_seconds(encoder: Encoder, leaves: &[(Game, MoveList)]) -> f64 {
    let mut canonical = Canonical::default();
    let mut planes = vec![0.0; Planes::PlanesKrk.size()];
    let started = Instant::now();
    for (game, legal) in leaves {
        match encoder {
            Encoder::Mlp => {
                canonical.encode(game.position(), legal);
                black_box(&canonical);
            }
            Encoder::Cnn | Encoder::Residual => {
                Planes::PlanesKrk.encode(game, &mut planes);
                black_box(&planes);
                for &m in legal {
                    black_box(MoveSpace::FromTo4096.index(game.position(), m));
                }
            }
        }
    }
    started.elapsed().as_secs_f64() / leaves.len().max(1) as f64
}

/// What an evaluator has evaluated.
#[derive(Default)]
struct Seen {
    nanoseconds: AtomicU64,
    evaluations: AtomicU64,
    /// The first positions with their legal moves.
    leaves: Mutex<Vec<(Game, MoveList)>>,
}

/// An evaluator that measures its own time.
struct Timed {
    evaluator: Box<dyn Evaluator>,
    seen: Arc<Seen>,
}

impl Evaluator for Timed {
    fn evaluate(&mut self, leaves: &[Leaf], evaluations: &mut [Evaluation]) {
        const KEPT: usize = 4096;
        let started = Instant::now();
        self.evaluator.evaluate(leaves, evaluations);
        let elapsed = started.elapsed().as_nanos() as u64;
        self.seen.nanoseconds.fetch_add(elapsed, Relaxed);
        self.seen.evaluations.fetch_add(leaves.len() as u64, Relaxed);
        let mut kept = self.seen.leaves.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < KEPT {
            kept.extend(leaves.iter().map(|leaf| (leaf.game.clone(), leaf.legal.clone())));
        }
    }
}
