//! The integer network against floats and across kernels, and whether training works.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use selfmate_chess::{Color, Position, Role, Seed, fen};
use selfmate_nn::sparse::{
    self, Kernel, Network, NetworkStaticEvaluator, Sample, SparseConfig, Trainer, TrainerConfig,
    ValueHead, Weights, WeightsInfo, bench, evaluate,
};
use selfmate_search::alphabeta::StaticEvaluator;
use selfmate_search::{Evaluation, Evaluator, Leaf, Need, Wdl};

fn evaluated(network: &mut Network, leaf: &Leaf) -> Evaluation {
    let mut evaluations = [Evaluation::default()];
    network.evaluate(std::slice::from_ref(leaf), &mut evaluations);
    let [evaluation] = evaluations;
    evaluation
}

fn bits(evaluation: &Evaluation) -> Vec<u32> {
    let Wdl { win, draw, loss } = evaluation.wdl;
    [win, draw, loss].iter().chain(&evaluation.logits).map(|v| v.to_bits()).collect()
}

/// A pawn up wins often, a rook up nearly always; captures are good moves.
fn material_sample(leaf: &Leaf) -> Sample {
    let (board, mover) = (leaf.game.position().board(), leaf.game.turn());
    let worth = [(Role::Pawn, 1.0), (Role::Knight, 3.0), (Role::Bishop, 3.0), (Role::Rook, 5.0)];
    let side = |color: Color| -> f32 {
        let pieces = |role: Role| (board.by_color(color) & board.by_role(role)).count() as f32;
        worth.iter().map(|(role, worth)| pieces(*role) * worth).sum::<f32>()
            + 9.0 * pieces(Role::Queen)
    };
    let balance = side(mover) - side(!mover);
    let value = balance / (balance.abs() + 2.0);
    let shares: Vec<f32> =
        leaf.legal.iter().map(|m| if m.is_capture() { 20.0 } else { 1.0 }).collect();
    let sum: f32 = shares.iter().sum();
    let policy: Vec<f32> = shares.iter().map(|share| share / sum).collect();
    Sample::new(&leaf.game, &leaf.legal, &policy, Wdl::new(value, 0.3)).unwrap()
}

#[test]
fn every_kernel_gives_the_same_bits() {
    for hidden in [64, 256] {
        for value_head in [ValueHead::Wdl, ValueHead::Score] {
            let config = SparseConfig { hidden, value_head, ..SparseConfig::default() };
            let weights = Weights::random(config, Seed::new(1)).unwrap();
            let mut fast = Network::new(&weights);
            let mut plain = Network::with_kernel(&weights, Kernel::Portable);
            for leaf in bench::leaves(1500, Seed::new(2), Need::Both) {
                let ours = evaluated(&mut fast, &leaf);
                assert_eq!(bits(&ours), bits(&evaluated(&mut plain, &leaf)));
                assert_eq!(ours.logits.len(), leaf.legal.len());
                assert!((ours.wdl.win + ours.wdl.draw + ours.wdl.loss - 1.0).abs() < 1e-5);
            }
        }
    }
}

#[test]
fn a_quantised_file_is_half_as_large_and_plays_the_same() {
    let weights = Weights::random(SparseConfig::default(), Seed::new(3)).unwrap();
    let whole = sparse::encode(&weights, WeightsInfo::default()).unwrap();
    let small = sparse::encode_for_play(&weights, WeightsInfo::default()).unwrap();
    assert!(small.len() * 19 < whole.len() * 10, "{} of {}", small.len(), whole.len());
    let (rounded, _) = sparse::decode(&small).unwrap();
    let (mut one, mut other) = (Network::new(&weights), Network::new(&rounded));
    for leaf in bench::leaves(300, Seed::new(2), Need::Both) {
        assert_eq!(bits(&evaluated(&mut one, &leaf)), bits(&evaluated(&mut other, &leaf)));
    }
}

#[test]
fn only_the_requested_outputs_are_computed() {
    let weights = Weights::random(SparseConfig::default(), Seed::new(3)).unwrap();
    let mut network = Network::new(&weights);
    for mut leaf in bench::leaves(50, Seed::new(4), Need::Both) {
        let both = evaluated(&mut network, &leaf);
        leaf.need = Need::Policy;
        let policy = evaluated(&mut network, &leaf);
        assert_eq!(policy.logits, both.logits);
        leaf.need = Need::Value;
        leaf.legal.clear();
        let value = evaluated(&mut network, &leaf);
        assert_eq!(value.wdl, both.wdl);
        assert!(value.logits.is_empty());
    }
}

#[test]
fn weights_depend_only_on_their_seed() {
    let random = |seed| Weights::random(SparseConfig::default(), Seed::new(seed)).unwrap();
    assert!(random(1) == random(1));
    assert!(random(1) != random(2));
    assert_eq!(SparseConfig::default().parameters(), 1_737_963);
    let config = SparseConfig { hidden: 100, ..SparseConfig::default() };
    let error = Weights::random(config, Seed::new(1)).unwrap_err().to_string();
    assert_eq!(error, "hidden is 100: expected a multiple of 64 from 64 to 1024");
}

#[test]
fn a_sample_with_wrong_targets_is_an_error() {
    let leaf = &bench::leaves(1, Seed::new(1), Need::Both)[0];
    let sample = |policy: &[f32]| Sample::new(&leaf.game, &leaf.legal, policy, Wdl::DRAW);
    let error = sample(&[1.0]).unwrap_err().to_string();
    assert!(error.starts_with("1 probabilities for"), "{error}");
    let mut policy = vec![0.0; leaf.legal.len()];
    assert!(sample(&policy).is_ok());
    policy[0] = f32::NAN;
    assert!(sample(&policy).unwrap_err().to_string().contains("NaN"));
}

#[test]
fn training_learns_material_and_integers_agree_with_floats() {
    let config = SparseConfig { hidden: 128, ..SparseConfig::default() };
    let weights = Weights::random(config, Seed::new(10)).unwrap();
    let leaves = bench::leaves(5000, Seed::new(11), Need::Both);
    let samples: Vec<Sample> = leaves.iter().map(material_sample).collect();
    let mut trainer = Trainer::new(weights, TrainerConfig::default(), 2).unwrap();
    let mut order: Vec<&Sample> = samples.iter().collect();
    let mut rng = Seed::new(12).rng();
    let mut history = Vec::new();
    for epoch in 0..12 {
        rng.shuffle(&mut order);
        for batch in order.chunks(250) {
            history.push(trainer.train(batch, if epoch < 9 { 2e-3 } else { 4e-4 }).unwrap());
        }
    }
    let (first, last) = (history[0], history[history.len() - 1]);
    println!("{first:?} to {last:?}");
    assert!(last.value < first.value - 0.1, "{first:?} to {last:?}");
    assert!(last.policy < first.policy - 0.2, "{first:?} to {last:?}");

    // On positions that it was not trained on.
    let mut network = Network::new(trainer.weights());
    let (mut agree, mut furthest, mut wrong_side, mut clear) = (0, 0.0f32, 0, 0);
    let fresh = bench::leaves(1000, Seed::new(13), Need::Both);
    for leaf in &fresh {
        let sample = material_sample(leaf);
        let float = evaluate(trainer.weights(), &sample);
        let integer = evaluated(&mut network, leaf);
        furthest = furthest.max((float.wdl.value() - integer.wdl.value()).abs());
        let top = |logits: &[f32]| {
            (0..logits.len()).max_by(|a, b| logits[*a].total_cmp(&logits[*b])).unwrap()
        };
        agree += usize::from(top(&float.logits) == top(&integer.logits));
        let [win, _, loss] = sample.wdl();
        if (win - loss).abs() > 0.4 {
            clear += 1;
            wrong_side += usize::from((win > loss) != (integer.wdl.value() > 0.0));
        }
    }
    println!("value off by at most {furthest}, top move the same in {agree} of 1000");
    println!("wrong side in {wrong_side} of {clear}");
    // A pawn has a positive value, and a queen a much larger one.
    let mut evaluator = NetworkStaticEvaluator::new(network.clone());
    let mut without = |board: &str| {
        let text = format!("{board} w - - 0 1");
        evaluator.evaluate(&fen::parse_fen(&text).unwrap())
    };
    let level = without("r2qkb1r/pppppppp/8/8/8/8/PPPPPPPP/R2QKB1R");
    let pawn = without("r2qkb1r/pppp1ppp/8/8/8/8/PPPPPPPP/R2QKB1R") - level;
    let queen = without("r3kb1r/pppppppp/8/8/8/8/PPPPPPPP/R2QKB1R") - level;
    println!("a pawn {pawn}, a queen {queen}");
    assert!((20..250).contains(&pawn) && queen > 2 * pawn, "{pawn} {queen}");
    assert!(furthest < 0.01, "{furthest}");
    assert!(agree >= 970, "{agree}");
    assert!(wrong_side * 4 < clear, "{wrong_side} of {clear}");
}

#[test]
fn the_value_without_policy_equals_the_full_evaluation() {
    let weights = Weights::random(SparseConfig::default(), Seed::new(5)).unwrap();
    let mut network = Network::new(&weights);
    for leaf in bench::leaves(200, Seed::new(6), Need::Both) {
        let whole = evaluated(&mut network, &leaf);
        assert_eq!(network.wdl(leaf.game.position()), whole.wdl);
    }
}
