//! `selfmate demo network`: shows the layers of a residual network and one forward pass.

use std::io::{self, Write};

use anyhow::{anyhow, bail};
use selfmate_chess::env::ActionSpace;
use selfmate_chess::notation::san;
use selfmate_chess::{Chess, Game, Seed};
use selfmate_encode::MoveSpace;
use selfmate_methods::players;
use selfmate_nn::Model;
use selfmate_nn::residual::{Config, Network, Outputs, Session, ValueHead, Weights};
use selfmate_search::math::softmax;

use crate::command::fen_argument;
use crate::output::thousands;
use crate::runs;

#[derive(clap::Args)]
pub struct Args {
    /// A run or network file [default: random weights of the given shape]
    network: Option<String>,
    /// The shape: blocks x filters
    #[arg(long, default_value = "5x64", value_parser = shape, conflicts_with = "network")]
    shape: Config,
    /// The position to evaluate
    #[arg(long, value_parser = fen_argument, default_value = "startpos")]
    fen: Chess,
}

/// Parses a shape such as `15x192`.
fn shape(text: &str) -> Result<Config, String> {
    let parts = text.split_once('x').and_then(|(blocks, filters)| {
        Some((blocks.parse::<usize>().ok()?, filters.parse::<usize>().ok()?))
    });
    let (blocks, filters) = parts.ok_or("expected BLOCKSxFILTERS, such as 15x192")?;
    let config = Config { blocks, filters, ..Config::toy() };
    config.check().map_err(|error| error.to_string())?;
    Ok(config)
}

pub fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    let weights = match &args.network {
        None => Weights::random(args.shape, Seed::new(1))?,
        Some(text) => match players::model(text, runs::folder(), &|passed| runs::warn(passed)) {
            Ok(Model::Residual(weights)) => weights,
            Ok(Model::Sparse(_) | Model::Mlp(_) | Model::Conv(_)) => {
                bail!("network '{text}' is not a residual network")
            }
            Err(error) => return Err(anyhow!("network '{text}': {error}")),
        },
    };
    layers(&weights, out)?;
    forward(&weights, &args.fen, out)?;
    Ok(())
}

fn layers(weights: &Weights, out: &mut dyn Write) -> io::Result<()> {
    let config = weights.config();
    let count = |prefix: &str| -> u64 {
        let trained = weights.tensors().filter(|tensor| tensor.trained);
        let own = trained.filter(|tensor| tensor.name.starts_with(prefix));
        own.map(|tensor| tensor.values.len() as u64).sum()
    };
    let Config { planes, blocks, filters, squeeze, .. } = config;
    writeln!(
        out,
        "A residual network of {blocks} blocks and {filters} filters, {} parameters.\n",
        thousands(config.parameters() as u64)
    )?;
    let mut layer = |name: &str, shape: String, weights: u64, what: &str| {
        writeln!(out, "  {name:12} {shape:>14} {:>12}  {what}", thousands(weights))
    };
    layer(
        "input",
        format!("{planes} x 8 x 8"),
        0,
        "planes: pieces of the last 8 positions, rights, clocks",
    )?;
    layer(
        "stem",
        format!("{filters} x 8 x 8"),
        count("stem."),
        "3x3 convolution, batch norm, relu",
    )?;
    let gate = if squeeze > 0 { ", squeeze and excite" } else { "" };
    let what = format!("twice (3x3 convolution, batch norm){gate}, plus the input, relu");
    layer("each block", format!("{filters} x 8 x 8"), count("blocks.0."), &what)?;
    layer("all blocks", String::new(), count("blocks."), "")?;
    layer(
        "policy",
        "4672".into(),
        count("policy."),
        "1x1 convolution to 2 planes, one logit per move",
    )?;
    let (outputs, what) = match config.value {
        ValueHead::Scalar => ("1", "tanh"),
        ValueHead::Wdl => ("3", "win, draw and loss"),
    };
    let what = format!("1x1 convolution to 1 plane, {} units, {what}", config.value_hidden);
    layer("value", outputs.into(), count("value."), &what)
}

fn forward(weights: &Weights, position: &Chess, out: &mut dyn Write) -> io::Result<()> {
    let game = Game::from_position(position.clone());
    let planes = weights.config().encoding().encoded(&game);
    let on = planes.iter().filter(|value| **value != 0.0).count();
    let mut outputs = Outputs::default();
    Session::new(&Network::new(weights)).run(&planes, &mut outputs);
    let legal = game.legal_moves();
    let mut priors: Vec<f32> = legal
        .iter()
        .filter_map(|&m| MoveSpace::Az4672.index(position, m))
        .map(|index| outputs.policy[index])
        .collect();
    softmax(&mut priors, 1.0);
    let wdl = outputs.wdl(0);
    writeln!(
        out,
        "\n{}\n\n\
         {on} of {} inputs are not 0. The value head gives {:+.3} for the side to move (win {:.0} %,\n\
         draw {:.0} %, loss {:.0} %). The policy head gives 4672 logits; those of the {} legal moves\n\
         become probabilities, the others are ignored:\n",
        selfmate_chess::fen::to_fen(position),
        planes.len(),
        wdl.value(),
        100.0 * wdl.win,
        100.0 * wdl.draw,
        100.0 * wdl.loss,
        legal.len()
    )?;
    let mut moves: Vec<(f32, String)> =
        priors.into_iter().zip(&legal).map(|(prior, &m)| (prior, san(position, m))).collect();
    moves.sort_by(|a, b| b.0.total_cmp(&a.0));
    for (prior, name) in moves.iter().take(8) {
        let bar = "#".repeat((60.0 * prior) as usize);
        writeln!(out, "  {name:7} {:5.1} %  {bar}", 100.0 * prior)?;
    }
    Ok(())
}
