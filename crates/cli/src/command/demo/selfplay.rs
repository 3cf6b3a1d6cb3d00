//! `selfmate demo selfplay`: shows one self-play game, move by move.

use std::io::Write;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, anyhow};
use selfmate_chess::notation::san;
use selfmate_chess::{Color, Game, Move, MoveList, Seed};
use selfmate_methods::{RunConfig, players};
use selfmate_run::{PositionRecord, Record};
use selfmate_search::Wdl;
use selfmate_selfplay::{
    Generation, PolicyTargetName, RootRuleName, SelfPlayConfig, SelfPlayer, evaluators,
};
use selfmate_train::Targets;

use crate::runs;

#[derive(clap::Args)]
pub struct Args {
    /// The network: a run's name, run:NAME@STEP, net:FILE or default
    #[arg(default_value = "default")]
    network: String,
    /// Simulations per move [default: what the run would use next; 64 without a run]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    sims: Option<u64>,
    /// Number of the game; each number gives another game
    #[arg(long, default_value_t = 0)]
    game: u64,
}

pub fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    let model = players::model(&args.network, runs::folder(), &|skipped| {
        runs::warn(skipped);
    })
    .map_err(|error| anyhow!("network '{}': {error}", args.network))?;
    let SelfPlaySettings { origin, config, result_weight, seed, sims } =
        SelfPlaySettings::of(&args.network)?;
    let sims = args.sims.unwrap_or(sims);
    writeln!(
        out,
        "A self-play game with {origin}. {}Every move is\n\
         searched with {sims} simulations. {}\n\
         The network is trained towards the {} and towards a value:\n\
         {:.0} % of it is the result of the game, the rest the value of the search.\n",
        opening_text(&config),
        root_text(&config),
        policy_text(&config),
        100.0 * result_weight
    )?;
    if config.fast_share > 0.0 {
        writeln!(
            out,
            "{:.0} % of the moves are searched with only {} simulations; they are not used for training\n\
             and are not shown.\n",
            100.0 * config.fast_share,
            config.fast_simulations
        )?;
    }
    config.check_memory(1)?;
    let mut player = SelfPlayer::new(&config, evaluators(&model)());
    let generation = Generation { config, seed, simulations: sims, network: 0 };
    let mut numbers = std::iter::once(args.game);
    let mut played = None;
    let stop = AtomicBool::new(false);
    player.play(&generation, || numbers.next(), |game| played = Some(game), &stop);
    let played = played.context("a game that is not stopped has an end")?;

    let record = &played.record;
    let discount = generation.config.discount as f32;
    let targets = Targets { result_weight: result_weight as f32, discount, lambda: None };
    let mut targets = targets.wdls(record).into_iter();
    let mut lines = Vec::new();
    record.replay(|game: &Game, legal: &MoveList, recorded: &PositionRecord| {
        let target = targets.next().map_or(0.0, Wdl::value);
        let played = record.moves.get(game.ply()).copied();
        lines.push(line(game, legal, recorded, played, target));
    })?;
    let random = record.positions.first().map_or(0, |first| first.ply);
    writeln!(out, "{random} random plies; then")?;
    writeln!(out, "  move         search value  target     policy target")?;
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
            None => "no winner",
        },
        record.moves.len(),
        played.simulations
    )?;
    Ok(())
}

/// The self-play settings of a network and its training targets.
struct SelfPlaySettings {
    /// Describes where the settings come from.
    origin: String,
    config: SelfPlayConfig,
    /// The weight of the result in the value target.
    result_weight: f64,
    seed: Seed,
    sims: u64,
}

impl SelfPlaySettings {
    /// The settings of the next games of a run; defaults for other networks.
    fn of(text: &str) -> anyhow::Result<SelfPlaySettings> {
        let name = text.strip_prefix("run:").unwrap_or(text);
        let usual = |origin: &str| SelfPlaySettings {
            origin: origin.to_owned(),
            config: SelfPlayConfig::default(),
            result_weight: 0.5,
            seed: Seed::new(1),
            sims: 64,
        };
        if text == "default" || text.starts_with("net:") {
            return Ok(usual("the default settings of zero"));
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
                "the default settings of zero, because run '{name}' is a run of {learner}, \
                 which does not use such games"
            )));
        };
        let games = run.metrics()?.0.into_iter().rev().find_map(|record| match record {
            Record::Progress(progress) if progress.steps <= step => Some(progress.games),
            _ => None,
        });
        let progress = games.unwrap_or(0) as f64 / plan as f64;
        Ok(SelfPlaySettings {
            origin: format!("the settings of run '{name}'"),
            config: config.clone(),
            result_weight: result_weight.at(progress),
            seed: Generation::games_seed(seed),
            sims: config.simulations.at(progress).round() as u64,
        })
    }
}

/// Describes the root rule.
fn opening_text(config: &SelfPlayConfig) -> &'static str {
    match (config.ending, config.opening_plies) {
        (Some(_), _) => "It starts from a random position of the ending.\n",
        (None, 0) => "",
        (None, _) => "It starts with some random moves, so that no two\ngames are alike. ",
    }
}

fn policy_text(config: &SelfPlayConfig) -> &'static str {
    match (config.policy_target, config.root_rule) {
        (PolicyTargetName::Improved, _)
        | (PolicyTargetName::RootRule, RootRuleName::Gumbel | RootRuleName::TopK) => {
            "improved policy over all moves"
        }
        (PolicyTargetName::Visits, _)
        | (PolicyTargetName::RootRule, RootRuleName::Puct | RootRuleName::Greedy) => {
            "shares of the moves in the visits"
        }
    }
}

fn root_text(config: &SelfPlayConfig) -> String {
    let (noise, drawn) = (config.noise_plies, config.temperature_plies);
    match config.root_rule {
        RootRuleName::Gumbel => format!(
            "A Gumbel root takes\n{} moves, drawn by their priors with noise in the first {noise} \
             plies, halves their number\nrepeatedly by the results of simulations, and plays the \
             remaining one.",
            config.candidates
        ),
        RootRuleName::TopK => format!(
            "The root takes\n{} moves, drawn by their priors with noise in the first {noise} plies, \
             and uses PUCT among them.",
            config.candidates
        ),
        RootRuleName::Puct => format!(
            "The root uses PUCT\nwith Dirichlet noise on its priors ({:.0} %). In the first \
             {drawn} plies the move is drawn by visits,\nlater the most visited move is played.",
            100.0 * config.dirichlet_epsilon
        ),
        RootRuleName::Greedy => {
            "The root uses PUCT\nwithout noise and plays the most visited move.".to_owned()
        }
    }
}

/// Formats a ply as one line.
fn line(
    game: &Game,
    legal: &MoveList,
    recorded: &PositionRecord,
    played: Option<Move>,
    target: f32,
) -> String {
    let mut policy: Vec<(f32, String)> = recorded
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
    let played = played.map_or("resigned".to_owned(), |m| san(game.position(), m));
    let name = format!("{number}{dots}{played}");
    format!("  {name:12} {:+11.2} {target:+10.2}   {}", recorded.value, best.join(", "))
}
