//! Trains a tiny sparse network on a few positions and prints the falling loss.
//!
//! Run it with `cargo run -p selfmate-nn --example train_tiny`.

use std::error::Error;

use selfmate_chess::{Seed, fen, notation};
use selfmate_nn::sparse::{Losses, Network, Sample, SparseConfig, Trainer, TrainerConfig, Weights};
use selfmate_search::{Evaluation, Evaluator, Leaf, Need, Wdl};

/// Positions with the move to play and the result for the side to move.
const POSITIONS: [(&str, &str, Wdl); 4] = [
    // A back-rank mate.
    ("6k1/5ppp/8/8/8/8/8/R5K1 w - - 0 1", "a1a8", Wdl::WIN),
    // The queen is hanging.
    ("4k3/8/8/3q4/8/2N5/8/4K3 w - - 0 1", "c3d5", Wdl::WIN),
    // The king stops the pawn.
    ("8/8/4k3/8/4p3/8/4K3/8 w - - 0 1", "e2e3", Wdl::DRAW),
    // White's king leads its pawn to promotion.
    ("4k3/8/4K3/4P3/8/8/8/8 b - - 0 1", "e8d8", Wdl::LOSS),
];

/// Trains for `steps` batches. Returns the losses of all steps and the trained weights.
pub fn train(steps: usize) -> Result<(Vec<Losses>, Weights), Box<dyn Error>> {
    // A sample is a position with a target probability for each legal move and a target result.
    let mut samples = Vec::new();
    for (text, best, wdl) in POSITIONS {
        let game = fen::parse_game(text)?;
        let best = notation::parse_uci(game.position(), best)?;
        let legal = game.legal_moves();
        let policy: Vec<f32> = legal.iter().map(|&m| if m == best { 1.0 } else { 0.0 }).collect();
        samples.push(Sample::new(&game, &legal, &policy, wdl)?);
    }
    let batch: Vec<&Sample> = samples.iter().collect();

    // The smallest shape; weights and training are reproducible from the seed.
    let config = SparseConfig { hidden: 64, value_hidden: 8, ..SparseConfig::default() };
    let weights = Weights::random(config, Seed::new(1))?;
    let mut trainer = Trainer::new(weights, TrainerConfig::default(), 1)?;
    let mut losses = Vec::new();
    for _ in 0..steps {
        losses.push(trainer.train(&batch, 0.003)?);
    }
    // For a long training run, `Trainer::average` plays better than the latest weights.
    Ok((losses, trainer.weights().clone()))
}

pub fn main() -> Result<(), Box<dyn Error>> {
    let (losses, weights) = train(100)?;
    println!("step  policy loss  value loss");
    for (step, loss) in losses.iter().enumerate().step_by(11) {
        println!("{step:4}  {:11.4}  {:10.4}", loss.policy, loss.value);
    }

    // The integer network for play is an evaluator for any search.
    let mut network = Network::new(&weights);
    println!("\nvalue  best move");
    for (text, ..) in POSITIONS {
        let game = fen::parse_game(text)?;
        let leaf = Leaf { legal: game.legal_moves(), game, need: Need::Both };
        let mut evaluations = [Evaluation::default()];
        network.evaluate(std::slice::from_ref(&leaf), &mut evaluations);
        let [Evaluation { wdl, logits }] = evaluations;
        let best = leaf.legal.iter().zip(&logits).max_by(|a, b| a.1.total_cmp(b.1));
        let (&m, _) = best.ok_or("a position without legal moves")?;
        println!("{:+.2}  {}", wdl.value(), notation::san(leaf.game.position(), m));
    }
    Ok(())
}
