//! `selfmate demo selfplay`: one game as training plays them, move by move.

use std::io::Write;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, anyhow};
use selfmate_chess::notation::san;
use selfmate_chess::{Color, Game, Move, MoveList, Seed};
use selfmate_learn::players;
use selfmate_learn::selfplay::{Generation, SelfPlayConfig, SelfPlayer, Targets};
use selfmate_nn::residual::{self, NetworkEvaluator};
use selfmate_nn::{Model, sparse};
use selfmate_run::Judged;
use selfmate_search::{Evaluator, Wdl};

use crate::runs;

#[derive(clap::Args)]
pub struct Args {
    /// The network: a run's name, run:NAME@STEP, net:FILE or default
    #[arg(default_value = "default")]
    network: String,
    /// Simulations for a move
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    sims: u64,
    /// The game's number: another number, another game
    #[arg(long, default_value_t = 0)]
    game: u64,
}

pub fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    let model = players::model(&args.network, runs::folder())
        .map_err(|error| anyhow!("network '{}': {error}", args.network))?;
    let evaluator: Box<dyn Evaluator> = match &model {
        Model::Sparse(weights) => Box::new(sparse::Network::new(weights)),
        Model::Residual(weights) => {
            Box::new(NetworkEvaluator::new(&residual::Network::new(weights)))
        }
    };
    let config = SelfPlayConfig::default();
    writeln!(
        out,
        "A game of self-play. It starts with some random moves, so that no two games are alike.\n\
         Then every move is searched with {} simulations. A Gumbel root looks at {} moves, drawn by\n\
         their priors with noise in the first {} plies, halves their number again and again by what\n\
         the simulations find, and plays the one that is left. What the network is to learn from\n\
         the position is the improved policy over all moves, and a value mixed of what the search\n\
         said and of how the game ended.\n",
        args.sims, config.candidates, config.noisy_plies
    )?;
    let mut player = SelfPlayer::new(&config, evaluator);
    let generation = Generation { config, seed: Seed::new(1), sims: args.sims, network: 0 };
    let mut numbers = std::iter::once(args.game);
    let mut played = None;
    let stop = AtomicBool::new(false);
    player.play(&generation, || numbers.next(), |game| played = Some(game), &stop);
    let played = played.context("a game that nobody stops comes to an end")?;

    let record = &played.record;
    let discount = generation.config.discount;
    let targets = Targets { result_weight: 0.5, discount };
    let mut targets = targets.wdls(record).into_iter();
    let mut lines = Vec::new();
    record.replay(|game: &Game, legal: &MoveList, judged: &Judged| {
        let target = targets.next().map_or(0.0, Wdl::value);
        let played = record.moves.get(game.ply()).copied();
        lines.push(line(game, legal, judged, played, target));
    })?;
    let random = record.positions.first().map_or(0, |first| first.ply);
    writeln!(out, "{random} random plies; then")?;
    writeln!(out, "  move         search says   to learn   best moves of the improved policy")?;
    for line in lines {
        writeln!(out, "{line}")?;
    }
    writeln!(
        out,
        "\n{:?}, {} after {} plies and {} simulations.",
        record.outcome.reason,
        match record.outcome.winner {
            Some(Color::White) => "White won",
            Some(Color::Black) => "Black won",
            None => "nobody won",
        },
        record.moves.len(),
        played.simulations
    )?;
    Ok(())
}

/// A ply in one line.
fn line(
    game: &Game,
    legal: &MoveList,
    judged: &Judged,
    played: Option<Move>,
    target: f32,
) -> String {
    let mut policy: Vec<(f32, String)> = judged
        .policy
        .iter()
        .zip(legal)
        .map(|(&share, &m)| (share, san(game.position(), m)))
        .collect();
    policy.sort_by(|a, b| b.0.total_cmp(&a.0));
    let best: Vec<String> = policy
        .iter()
        .take(3)
        .map(|(share, name)| format!("{name} {:.0} %", 100.0 * share))
        .collect();
    let number = game.ply() / 2 + 1;
    let dots = if game.turn() == Color::White { "." } else { "..." };
    let played = played.map_or("given up".to_owned(), |m| san(game.position(), m));
    let name = format!("{number}{dots}{played}");
    format!("  {name:12} {:+11.2} {target:+10.2}   {}", judged.value, best.join(", "))
}
