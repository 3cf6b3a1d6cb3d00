//! Plays the quantised (integer) network against the same network in floating point, at equal
//! simulations: `cargo run --release -p selfmate-arena --example precision -- FILE [GAMES] [SIMS]`.

use std::path::Path;

use selfmate_arena::players::MctsOptions;
use selfmate_arena::{
    GameSettings, MatchConfig, MatchEvent, MatchLimit, MatchReport, MatchRun, OpeningSource,
    PlayerKind, Registry, run_match,
};
use selfmate_nn::sparse::{self, FloatNetwork, Network};
use selfmate_search::Evaluator;
use selfmate_search::mcts::SearchParams;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(file) = arguments.first() else { return Err("expected FILE [GAMES] [SIMS]".into()) };
    let number = |index: usize, default: u64| {
        arguments.get(index).map_or(Ok(default), |text| text.parse::<u64>())
    };
    let (games, sims) = (number(1, 1000)?, number(2, 200)?);
    let (weights, _) = sparse::load(Path::new(file))?;
    let integers = Network::new(&weights);
    let floats = FloatNetwork::new(weights);
    let mut registry = Registry::empty();
    registry.register(kind("integers", integers));
    registry.register(kind("floats", floats));
    let config = MatchConfig {
        settings: GameSettings { limit: MatchLimit::nodes(sims), ..GameSettings::default() },
        openings: OpeningSource::default(),
        ..MatchConfig::new("integers", "floats", games)
    };
    let concurrency = std::thread::available_parallelism()?.get();
    let run = MatchRun { concurrency, ..MatchRun::default() };
    let report = run_match(&config, &run, &registry, &mut |event| {
        if let MatchEvent::Finished { report, .. } = event {
            eprint!("\r{} games, {} Elo ", report.games, difference(report));
        }
    })?;
    println!(
        "\nintegers against floats, {sims} simulations a move: +{} ={} -{}, {} Elo",
        report.wins,
        report.draws,
        report.losses,
        difference(&report)
    );
    Ok(())
}

fn difference(report: &MatchReport) -> String {
    match (report.elo, report.elo_error) {
        (Some(elo), Some(error)) => format!("{elo:+.1} ± {error:.1}"),
        _ => "unknown".to_owned(),
    }
}

fn kind<E: Evaluator + Clone + Sync + 'static>(name: &'static str, evaluator: E) -> PlayerKind {
    PlayerKind::new(name, "the network", move |options| {
        let evaluator = evaluator.clone();
        let make = move |_| -> Box<dyn Evaluator> { Box::new(evaluator.clone()) };
        let settings = MctsOptions::read(options, SearchParams::default())?;
        Ok(Box::new(settings.player(name, options.seed, make)?))
    })
}
