//! Compares training settings on one stored data set by the loss on held-out games:
//! `cargo run --release -p selfmate-methods --example offline -- zero|alphazero RUN_FOLDER FROM..TO
//! PASSES [KEY=VALUE]...`, with a range of generations of the run and settings as in `run.toml`,
//! such as `network.hidden=512`.

use std::path::Path;
use std::time::Instant;

use rayon::prelude::*;
use selfmate_chess::Seed;
use selfmate_methods::Settings;
use selfmate_methods::alphazero::{AlphaZero, AlphaZeroConfig};
use selfmate_methods::zero::{Zero, ZeroConfig};
use selfmate_nn::Device;
use selfmate_run::{GameRecord, RunReader};
use selfmate_search::math::softmax;
use selfmate_search::{Evaluation, Leaf, Need};
use selfmate_selfplay::{Evaluators, Ramp};
use selfmate_train::{Hardware, SelfPlayLearnerConfig, SelfPlayModel, Targets, samples};

type Error = Box<dyn std::error::Error>;

fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [learner, folder, range, passes, settings @ ..] = &arguments[..] else {
        return Err("expected LEARNER RUN_FOLDER FROM..TO PASSES [KEY=VALUE]...".into());
    };
    let (from, to) = range.split_once("..").ok_or("expected generations as FROM..TO")?;
    let run = RunReader::new(Path::new(folder));
    let mut games: Vec<GameRecord> = Vec::new();
    for generation in from.parse()?..to.parse()? {
        games.extend(run.read_chunk(generation)?);
    }
    let passes: f64 = passes.parse()?;
    println!("{settings:?}");
    let defaults =
        Settings::preset(learner, "default").ok_or("expected zero or alphazero as the learner")?;
    let settings = defaults.set(settings)?;
    if let Some(config) = settings.downcast::<ZeroConfig>() {
        learn::<Zero>(config, games, passes)
    } else if let Some(config) = settings.downcast::<AlphaZeroConfig>() {
        learn::<AlphaZero>(config, games, passes)
    } else {
        Err("expected zero or alphazero as the learner".into())
    }
}

fn learn<M: SelfPlayModel>(
    config: &SelfPlayLearnerConfig<M::Shape, M::Training, M::Evaluation>,
    mut games: Vec<GameRecord>,
    passes: f64,
) -> Result<(), Error> {
    let held_out = games.split_off(games.len() - games.len() / 20);
    let discount = config.selfplay.discount;
    let targets = Targets::new(&config.learning, config.learning.result_weight.to, discount);
    let train = samples::<M>(&games, targets)?;
    println!("{} positions to learn from, {} games held out", train.len(), held_out.len());

    let threads = std::thread::available_parallelism()?.get();
    let hardware = Hardware { threads, device: Device::Cpu };
    let mut model = M::new(&config.network, &config.learning.trainer, Seed::new(1), hardware)?;
    let batch = config.learning.batch;
    let steps = (train.len() as f64 * passes / batch as f64) as u64;
    let rate = Ramp { begin: 0.5, end: 1.0, ..config.learning.rate };
    let started = Instant::now();
    let mut learning_s = 0.0;
    for step in 0..steps {
        let mut rng = Seed::new(2).index(step).rng();
        let batch: Vec<&M::Sample> = (0..batch).map(|_| &train[rng.below(train.len())]).collect();
        let before = started.elapsed().as_secs_f64();
        model.learn(&batch, rate.at(step as f64 / steps as f64) as f32)?;
        learning_s += started.elapsed().as_secs_f64() - before;
        if (step + 1) % steps.div_ceil(4) == 0 || step + 1 == steps {
            let targets = Targets { result_weight: 1.0, discount: discount as f32, lambda: None };
            let [value, policy] = losses(&model.evaluators()?, &held_out, targets)?;
            println!(
                "step {:6} {learning_s:5.0} s  value {value:.4}  policy {policy:.4}",
                step + 1
            );
        }
    }
    Ok(())
}

/// Mean cross entropies of the value and policy targets.
fn losses(
    evaluators: &Evaluators,
    games: &[GameRecord],
    targets: Targets,
) -> Result<[f64; 2], Error> {
    let of_game = |record: &GameRecord| -> Result<[f64; 3], selfmate_run::RecordError> {
        let (mut leaves, mut policies) = (Vec::new(), Vec::new());
        record.replay(|game, legal, recorded| {
            let (game, legal) = (game.clone(), legal.clone());
            leaves.push(Leaf { game, legal, need: Need::Both });
            policies.push(recorded.policy.clone());
        })?;
        let mut evaluations = vec![Evaluation::default(); leaves.len()];
        evaluators().evaluate(&leaves, &mut evaluations);
        let mut sums = [0.0, 0.0, leaves.len() as f64];
        let wdls = targets.wdls(record);
        for ((evaluation, policy), wdl) in evaluations.iter_mut().zip(&policies).zip(wdls) {
            softmax(&mut evaluation.logits, 1.0);
            let predicted = evaluation.wdl;
            let target = [wdl.win, wdl.draw, wdl.loss];
            sums[0] += cross_entropy(&target, &[predicted.win, predicted.draw, predicted.loss]);
            sums[1] += cross_entropy(policy, &evaluation.logits);
        }
        Ok(sums)
    };
    let each: Result<Vec<[f64; 3]>, _> = games.par_iter().map(of_game).collect();
    let [value, policy, count] =
        each?.into_iter().fold([0.0; 3], |a, b| [a[0] + b[0], a[1] + b[1], a[2] + b[2]]);
    Ok([value / count, policy / count])
}

fn cross_entropy(target: &[f32], output: &[f32]) -> f64 {
    let term = |(&t, &o): (&f32, &f32)| -f64::from(t) * f64::from(o.max(1e-9)).ln();
    target.iter().zip(output).map(term).sum()
}
