//! Compares learning settings on one stored data set, by the loss on games held out:
//! `cargo run --release -p selfmate-learn --example offline -- RUN_FOLDER PASSES [KEY=VALUE]...`,
//! with the keys of a run's `run.toml`, such as `network.hidden=512`.

use std::path::Path;
use std::time::Instant;

use rayon::prelude::*;
use selfmate_chess::Seed;
use selfmate_learn::Settings;
use selfmate_learn::selfplay::{Ramp, Targets, samples};
use selfmate_learn::zero::{Zero, ZeroConfig};
use selfmate_nn::sparse::{Sample, Trainer, Weights, evaluate};
use selfmate_run::{GameRecord, RunReader};
use selfmate_search::math::softmax;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, passes, settings @ ..] = &arguments[..] else {
        return Err("expected RUN_FOLDER PASSES [KEY=VALUE]...".into());
    };
    let passes: f64 = passes.parse()?;
    let Settings::Zero(config) = Settings::Zero(ZeroConfig::default()).set(settings)? else {
        unreachable!("settings stay those of their learner");
    };
    let run = RunReader::new(Path::new(folder));
    // The first games were played at random; what matters is the level of the last.
    let chunks = run.chunks()?;
    let mut games: Vec<GameRecord> = Vec::new();
    for &chunk in &chunks[chunks.len() / 4..] {
        games.extend(run.read_chunk(chunk)?);
    }
    let held_out = games.split_off(games.len() - games.len() / 20);
    let discount = config.selfplay.discount;
    let weight = config.learning.result_weight.to as f32;
    let train = samples::<Zero>(&games, Targets { result_weight: weight, discount })?;
    let test = samples::<Zero>(&held_out, Targets { result_weight: 1.0, discount })?;
    println!("{} positions to learn from, {} held out; {settings:?}", train.len(), test.len());

    let threads = std::thread::available_parallelism()?.get();
    let weights = Weights::random(config.network, Seed::new(1))?;
    let mut trainer = Trainer::new(weights, config.learning.trainer, threads)?;
    let batch = config.learning.batch;
    let steps = (train.len() as f64 * passes / batch as f64) as u64;
    let rate = Ramp { begin: 0.5, end: 1.0, ..config.learning.rate };
    let started = Instant::now();
    for step in 0..steps {
        let mut rng = Seed::new(2).index(step).rng();
        let batch: Vec<&Sample> = (0..batch).map(|_| &train[rng.below(train.len())]).collect();
        trainer.train(&batch, rate.at(step as f64 / steps as f64) as f32)?;
        if (step + 1) % steps.div_ceil(4) == 0 || step + 1 == steps {
            let [value, policy] = losses(trainer.average(), &test);
            let seconds = started.elapsed().as_secs_f64();
            println!("step {:6}  {seconds:5.0} s  value {value:.4}  policy {policy:.4}", step + 1);
        }
    }
    Ok(())
}

/// Mean cross entropy of results and of policy targets.
fn losses(weights: &Weights, samples: &[Sample]) -> [f64; 2] {
    let of_sample = |sample: &Sample| {
        let mut output = evaluate(weights, sample);
        softmax(&mut output.logits, 1.0);
        let wdl = [output.wdl.win, output.wdl.draw, output.wdl.loss];
        let sum: f32 = sample.shares().iter().map(|&share| f32::from(share)).sum();
        let policy: Vec<f32> =
            sample.shares().iter().map(|&share| f32::from(share) / sum.max(1.0)).collect();
        [entropy(&sample.wdl(), &wdl), entropy(&policy, &output.logits)]
    };
    let sums = samples.par_iter().map(of_sample);
    let sum = sums.reduce(|| [0.0; 2], |a, b| [a[0] + b[0], a[1] + b[1]]);
    sum.map(|sum| sum / samples.len() as f64)
}

fn entropy(target: &[f32], output: &[f32]) -> f64 {
    let term = |(&t, &o): (&f32, &f32)| -f64::from(t) * f64::from(o.max(1e-9)).ln();
    target.iter().zip(output).map(term).sum()
}
