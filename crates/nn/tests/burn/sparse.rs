//! The sparse network written with tensors as plainly as possible: features are a matrix of zeros
//! and ones, followed by matrix products that Burn differentiates.

use burn::tensor::activation::log_softmax;
use burn::tensor::{Device, Int, Tensor, TensorData};
use selfmate_chess::Seed;
use selfmate_nn::sparse::{
    Losses, Sample, SparseConfig, Trainer, TrainerConfig, ValueHead, Weights, bench,
};
use selfmate_search::{Need, Wdl};

/// Names, shapes and values of all tensors.
type Named = Vec<(&'static str, Vec<usize>, Vec<f32>)>;

const LOSSES: TrainerConfig = TrainerConfig {
    value_weight: 1.5,
    policy_weight: 0.7,
    beta1: 0.9,
    beta2: 0.999,
    // Large, so that the direction of a step does not depend on derivatives near zero.
    epsilon: 1e-3,
    weight_decay: 0.3,
    clip_norm: 0.1,
    average_rate: 0.005,
    average_every: 8,
};

fn named(weights: &Weights) -> Named {
    let tensors = weights.named().into_iter();
    tensors.map(|(name, shape, values)| (name, shape, values.to_vec())).collect()
}

/// The tensors of a network, all with gradients.
struct Twin {
    input: Tensor<2>,
    input_bias: Tensor<1>,
    value1: Tensor<2>,
    value1_bias: Tensor<1>,
    value2: Tensor<2>,
    value2_bias: Tensor<1>,
    policy: Tensor<2>,
    policy_bias: Tensor<1>,
    table: Tensor<1>,
}

impl Twin {
    fn new(tensors: &Named, device: &Device) -> Twin {
        fn tensor<const D: usize>(tensors: &Named, name: &str, device: &Device) -> Tensor<D> {
            let (_, shape, values) = tensors.iter().find(|tensor| tensor.0 == name).unwrap();
            let data = TensorData::new(values.clone(), shape.clone());
            Tensor::from_data(data, device).require_grad()
        }
        Twin {
            input: tensor(tensors, "input.weight", device),
            input_bias: tensor(tensors, "input.bias", device),
            value1: tensor(tensors, "value1.weight", device),
            value1_bias: tensor(tensors, "value1.bias", device),
            value2: tensor(tensors, "value2.weight", device),
            value2_bias: tensor(tensors, "value2.bias", device),
            policy: tensor(tensors, "policy.weight", device),
            policy_bias: tensor(tensors, "policy.bias", device),
            table: tensor(tensors, "policy.table", device),
        }
    }

    /// The mean losses of value and policy.
    fn losses(&self, samples: &[Sample], head: ValueHead, device: &Device) -> [Tensor<1>; 2] {
        let (batch, [features, hidden]) = (samples.len(), self.input.dims());
        let mut on = vec![0.0f32; batch * features];
        for (row, sample) in on.chunks_exact_mut(features).zip(samples) {
            sample.features().iter().for_each(|&feature| row[usize::from(feature)] += 1.0);
        }
        let on = Tensor::<2>::from_data(TensorData::new(on, [batch, features]), device);
        // [batch, hidden]
        let wide = on.matmul(self.input.clone()) + self.input_bias.clone().unsqueeze();
        let wide = wide.clamp(0.0, 1.0).square();

        // [batch, value_hidden], then [batch, outputs]
        let middle = wide.clone().matmul(self.value1.clone().transpose());
        let middle = (middle + self.value1_bias.clone().unsqueeze()).clamp(0.0, 16.0);
        let logits = middle.matmul(self.value2.clone().transpose());
        let logits = logits + self.value2_bias.clone().unsqueeze();
        let (logits, targets): (_, Vec<f32>) = match head {
            ValueHead::Wdl => (logits, samples.iter().flat_map(Sample::wdl).collect()),
            ValueHead::Score => {
                let score = |sample: &Sample| sample.wdl()[0] + sample.wdl()[1] / 2.0;
                let targets = samples.iter().flat_map(|s| [score(s), 1.0 - score(s)]);
                let zeros = Tensor::zeros([batch, 1], device);
                (Tensor::cat(vec![logits, zeros], 1), targets.collect())
            }
        };
        let value = cross_entropy(logits, targets, device);

        // Legal moves in a rectangle as wide as the longest list; the rest is masked.
        let width = samples.iter().map(Sample::moves).max().unwrap();
        let (mut rows, mut entries) = (vec![0; batch * width], vec![0; batch * width]);
        let (mut mask, mut targets) = (vec![-1e4; batch * width], vec![0.0; batch * width]);
        for (number, sample) in samples.iter().enumerate() {
            let total: f32 = sample.shares().iter().map(|&share| f32::from(share)).sum();
            for m in 0..sample.moves() {
                let place = number * width + m;
                rows[place] = i64::from(sample.rows()[m]);
                entries[place] = i64::from(sample.table()[m]);
                mask[place] = 0.0f32;
                targets[place] = f32::from(sample.shares()[m]) / total.max(1.0);
            }
        }
        let list = |values: Vec<i64>| {
            Tensor::<1, Int>::from_data(TensorData::new(values, [batch * width]), device)
        };
        let (rows, entries) = (list(rows), list(entries));
        // [batch, moves, hidden] times [batch, 1, hidden], summed to [batch, moves]
        let chosen = self.policy.clone().select(0, rows.clone()).reshape([batch, width, hidden]);
        let products = chosen * wide.reshape([batch, 1, hidden]);
        let logits = products.sum_dim(2).reshape([batch, width]);
        let biases =
            self.policy_bias.clone().select(0, rows) + self.table.clone().select(0, entries);
        let mask = Tensor::<2>::from_data(TensorData::new(mask, [batch, width]), device);
        let policy = cross_entropy(logits + biases.reshape([batch, width]) + mask, targets, device);
        [value, policy]
    }

    /// The losses and the gradient of their weighted sum, in the order of `Weights::named`.
    fn gradient(&self, samples: &[Sample], head: ValueHead, device: &Device) -> ([f32; 2], Named) {
        let [value, policy] = self.losses(samples, head, device);
        let losses = [value.clone().into_scalar::<f32>(), policy.clone().into_scalar::<f32>()];
        let total = value * LOSSES.value_weight + policy * LOSSES.policy_weight;
        let gradients = total.backward();
        macro_rules! gradient {
            ($name:literal, $field:ident) => {{
                let gradient = self.$field.grad(&gradients).unwrap();
                let shape = gradient.dims().to_vec();
                ($name, shape, gradient.try_into_vec_as::<f32>().unwrap())
            }};
        }
        let tensors = vec![
            gradient!("input.weight", input),
            gradient!("input.bias", input_bias),
            gradient!("value1.weight", value1),
            gradient!("value1.bias", value1_bias),
            gradient!("value2.weight", value2),
            gradient!("value2.bias", value2_bias),
            gradient!("policy.weight", policy),
            gradient!("policy.bias", policy_bias),
            gradient!("policy.table", table),
        ];
        (losses, tensors)
    }
}

fn cross_entropy(logits: Tensor<2>, targets: Vec<f32>, device: &Device) -> Tensor<1> {
    let dims = logits.dims();
    let targets = Tensor::<2>::from_data(TensorData::new(targets, dims), device);
    (log_softmax(logits, 1) * targets).sum().div_scalar(-(dims[0] as f32))
}

/// A small network that is partly trained, and a batch whose last position trains only the value.
fn trained(value_head: ValueHead) -> (Weights, Vec<Sample>) {
    let config = SparseConfig { hidden: 64, value_hidden: 8, value_head };
    let weights = Weights::random(config, Seed::new(5)).unwrap();
    let mut trainer = Trainer::new(weights, TrainerConfig::default(), 1).unwrap();
    let lessons = bench::samples(200, Seed::new(6));
    let lessons: Vec<&Sample> = lessons.iter().collect();
    for _ in 0..40 {
        trainer.train(&lessons, 1e-2).unwrap();
    }
    let mut samples = bench::samples(40, Seed::new(2));
    let leaf = bench::leaves(41, Seed::new(3), Need::Both).pop().unwrap();
    let nothing = vec![0.0; leaf.legal.len()];
    samples.push(Sample::new(&leaf.game, &leaf.legal, &nothing, Wdl::new(0.4, 0.1)).unwrap());
    (trainer.weights().clone(), samples)
}

/// The largest difference of two lists, and the largest absolute value of the second.
fn compare(ours: &[f32], theirs: &[f32]) -> (f32, f32) {
    assert_eq!(ours.len(), theirs.len());
    let furthest = ours.iter().zip(theirs).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    (furthest, theirs.iter().map(|b| b.abs()).fold(0.0, f32::max))
}

/// Every derivative by every weight, to 1e-5 of the largest of its tensor.
#[test]
fn hand_written_gradients_match_automatic_differentiation() {
    let device = Device::flex().autodiff();
    for head in [ValueHead::Wdl, ValueHead::Score] {
        let (weights, samples) = trained(head);
        let twin = Twin::new(&named(&weights), &device);
        let ([value, policy], theirs) = twin.gradient(&samples, head, &device);

        let trainer = Trainer::new(weights, LOSSES, 2).unwrap();
        let batch: Vec<&Sample> = samples.iter().collect();
        let (losses, gradient) = trainer.gradient(&batch).unwrap();
        let Losses { value: our_value, policy: our_policy, gradient_norm } = losses;
        assert!((our_value - value).abs() < 1e-5, "{our_value} against {value}");
        assert!((our_policy - policy).abs() < 1e-5, "{our_policy} against {policy}");
        let squares =
            theirs.iter().flat_map(|(_, _, values)| values).map(|v| f64::from(*v).powi(2));
        let norm = squares.sum::<f64>().sqrt() as f32;
        assert!((gradient_norm / norm - 1.0).abs() < 1e-5, "{gradient_norm} against {norm}");
        for ((name, shape, ours), (their_name, their_shape, theirs)) in
            named(&gradient).into_iter().zip(theirs)
        {
            assert_eq!((name, &shape), (their_name, &their_shape));
            let (furthest, largest) = compare(&ours, &theirs);
            println!("{head:?} {name}: off by {furthest:e}, largest {largest:e}");
            assert!(largest > 1e-4, "{name} has almost no gradient");
            assert!(furthest < 1e-5 * largest, "{head:?} {name}: {furthest:e} of {largest:e}");
        }
    }
}

/// Four steps of the trainer against Adam in f64 on Burn's gradients: clipping by the length of the
/// whole gradient, decoupled decay, and unused rows unchanged.
#[test]
fn steps_of_the_trainer_match_adam() {
    let (head, learning_rate) = (ValueHead::Wdl, 1e-2);
    let device = Device::flex().autodiff();
    let (weights, samples) = trained(head);
    let start = named(&weights);
    let mut theirs = start.clone();
    let mut trainer = Trainer::new(weights, LOSSES, 1).unwrap();
    let batch: Vec<&Sample> = samples.iter().collect();
    let used = |name: &str, row: usize| match name {
        "input.weight" => samples.iter().any(|s| s.features().contains(&(row as u16))),
        "policy.weight" => samples.iter().any(|s| s.rows().contains(&(row as u16))),
        _ => true,
    };
    let mut moments: Vec<Vec<[f64; 2]>> =
        theirs.iter().map(|(_, _, values)| vec![[0.0; 2]; values.len()]).collect();
    let (beta1, beta2) = (f64::from(LOSSES.beta1), f64::from(LOSSES.beta2));
    for step in 1..=4 {
        let losses = trainer.train(&batch, learning_rate).unwrap();
        assert!(losses.gradient_norm > LOSSES.clip_norm, "the test should clip: {losses:?}");
        let (_, gradient) = Twin::new(&theirs, &device).gradient(&samples, head, &device);
        let squares = gradient.iter().flat_map(|(_, _, g)| g).map(|g| f64::from(*g).powi(2));
        let clip = f64::from(LOSSES.clip_norm) / squares.sum::<f64>().sqrt();
        for (((name, shape, weights), (_, _, gradient)), moments) in
            theirs.iter_mut().zip(&gradient).zip(&mut moments)
        {
            let width = if shape.len() == 2 { shape[1] } else { 1 };
            for (place, (weight, [first, second])) in weights.iter_mut().zip(moments).enumerate() {
                if !used(name, place / width) {
                    continue;
                }
                let gradient = f64::from(gradient[place]) * clip;
                *first = beta1 * *first + (1.0 - beta1) * gradient;
                *second = beta2 * *second + (1.0 - beta2) * gradient * gradient;
                let (mean, square) =
                    (*first / (1.0 - beta1.powi(step)), *second / (1.0 - beta2.powi(step)));
                let rate = f64::from(learning_rate);
                let decayed = f64::from(*weight) * (1.0 - rate * f64::from(LOSSES.weight_decay));
                let moved = decayed - rate * mean / (square.sqrt() + f64::from(LOSSES.epsilon));
                *weight = moved as f32;
            }
        }
    }
    for ((name, _, ours), (theirs, start)) in
        named(trainer.weights()).into_iter().zip(theirs.iter().zip(&start))
    {
        let (furthest, _) = compare(&ours, &theirs.2);
        let (moved, _) = compare(&theirs.2, &start.2);
        println!("{name}: off by {furthest:e} after moving by {moved:e}");
        assert!(moved > 1e-4, "{name} did not move");
        assert!(furthest < 1e-3 * moved, "{name}: {furthest:e} of {moved:e}");
    }
}
