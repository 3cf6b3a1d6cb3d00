//! `selfmate demo selfplay`: one game as training plays them, move by move.

use std::io::Write;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, anyhow};
use selfmate_chess::notation::san;
use selfmate_chess::{Color, Game, Move, MoveList, Seed};
use selfmate_learn::selfplay::{Generation, Root, SelfPlayConfig, SelfPlayer, Targets};
use selfmate_learn::{RunConfig, players};
use selfmate_nn::residual::{self, NetworkEvaluator};
use selfmate_nn::{Model, sparse};
use selfmate_run::{PositionRecord, Record};
use selfmate_search::{Evaluator, Wdl};

use crate::runs;

#[derive(clap::Args)]
pub struct Args {
    /// The network: a run's name, run:NAME@STEP, net:FILE or default
    #[arg(default_value = "default")]
    network: String,
    /// Simulations for a move [default: what the run would take next; 64 without a run]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    sims: Option<u64>,
    /// The game's number: another number, another game
    #[arg(long, default_value_t = 0)]
    game: u64,
}

pub fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    let model =
        players::model(&args.network, runs::folder(), &|passed_over| runs::warn(passed_over))
            .map_err(|error| anyhow!("network '{}': {error}", args.network))?;
    let evaluator: Box<dyn Evaluator> = match &model {
        Model::Sparse(weights) => Box::new(sparse::Network::new(weights)),
        Model::Residual(weights) => {
            Box::new(NetworkEvaluator::new(&residual::Network::new(weights)))
        }
    };
    let Practice { origin, config, result_weight, seed, sims } = Practice::of(&args.network)?;
    let sims = args.sims.unwrap_or(sims);
    writeln!(
        out,
        "A game of self-play with {origin}. It starts with some random moves, so that no two games\n\
         are alike. Then every move is searched with {sims} simulations. {}\n\
         What the network is to learn from the position is the improved policy over all moves, and\n\
         a value: {:.0} % of how the game ended, the rest of what the search said.\n",
        root_text(&config),
        100.0 * result_weight
    )?;
    if config.quick_share > 0.0 {
        writeln!(
            out,
            "{:.0} % of the moves are searched with {} simulations only; nothing is learned from those,\n\
             and they are not shown.\n",
            100.0 * config.quick_share,
            config.quick_sims
        )?;
    }
    config.check_memory(1)?;
    let mut player = SelfPlayer::new(&config, evaluator);
    let generation = Generation { config, seed, sims, network: 0 };
    let mut numbers = std::iter::once(args.game);
    let mut played = None;
    let stop = AtomicBool::new(false);
    player.play(&generation, || numbers.next(), |game| played = Some(game), &stop);
    let played = played.context("a game that nobody stops comes to an end")?;

    let record = &played.record;
    let discount = generation.config.discount;
    let targets = Targets { result_weight: result_weight as f32, discount };
    let mut targets = targets.wdls(record).into_iter();
    let mut lines = Vec::new();
    record.replay(|game: &Game, legal: &MoveList, judged: &PositionRecord| {
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

/// How a network plays against itself, and what is learned from that.
struct Practice {
    /// Whose settings these are.
    origin: String,
    config: SelfPlayConfig,
    /// The weight of the result in the value to learn.
    result_weight: f64,
    /// The seed of all games.
    seed: Seed,
    /// Simulations for a move.
    sims: u64,
}

impl Practice {
    /// As the run would play next that this text names; the usual settings for other networks.
    fn of(text: &str) -> anyhow::Result<Practice> {
        let name = text.strip_prefix("run:").unwrap_or(text);
        let usual = |origin: &str| Practice {
            origin: origin.to_owned(),
            config: SelfPlayConfig::default(),
            result_weight: 0.5,
            seed: Seed::new(1),
            sims: 64,
        };
        if text == "default" || text.starts_with("net:") {
            return Ok(usual("the settings that zero has by default"));
        }
        let (name, step) = match name.split_once('@') {
            Some((name, step)) => (name, step.parse().unwrap_or(u64::MAX)),
            None => (name, u64::MAX),
        };
        let run = runs::find(name)?;
        let toml = run.config()?.unwrap_or_default();
        let RunConfig { seed, mut settings, .. } =
            RunConfig::parse(&toml).with_context(|| format!("run '{name}'"))?;
        let plan = settings.plan_games().map_or(1, |games| *games);
        let Some((config, result_weight)) = settings.selfplay() else {
            let learner = settings.learner();
            return Ok(usual(&format!(
                "the settings that zero has by default, because run '{name}' is one of {learner}, \
                 which does not learn from such games"
            )));
        };
        let games = run.metrics()?.0.into_iter().rev().find_map(|record| match record {
            Record::Progress(progress) if progress.steps <= step => Some(progress.games),
            _ => None,
        });
        let progress = games.unwrap_or(0) as f64 / plan as f64;
        Ok(Practice {
            origin: format!("the settings of run '{name}'"),
            config: config.clone(),
            result_weight: result_weight.at(progress),
            seed: Generation::seed_of_run(seed),
            sims: config.sims.at(progress).round() as u64,
        })
    }
}

/// How the root of a search chooses, in words.
fn root_text(config: &SelfPlayConfig) -> String {
    let plies = config.noisy_plies;
    match config.root {
        Root::Gumbel => format!(
            "A Gumbel root looks at\n{} moves, drawn by their priors with noise in the first {plies} \
             plies, halves their number\nagain and again by what the simulations find, and plays the \
             one that is left.",
            config.candidates
        ),
        Root::Puct => format!(
            "The root chooses by PUCT,\nwith Dirichlet noise on its priors ({:.0} %); in the first \
             {plies} plies the move is drawn by visits,\nlater it is the one with the most.",
            100.0 * config.dirichlet_share
        ),
    }
}

/// A ply in one line.
fn line(
    game: &Game,
    legal: &MoveList,
    judged: &PositionRecord,
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
