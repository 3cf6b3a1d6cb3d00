//! `selfmate demo`: explains how the parts work, step by step.

mod network;
mod selfplay;

use std::io::{self, Write};

use selfmate_chess::notation::san;
use selfmate_chess::{Chess, Game, Position, Seed};
use selfmate_search::evaluator::Material;
use selfmate_search::mcts::{Batch, Proof, Search, SearchParams, SearchResult};
use selfmate_search::{Evaluation, Evaluator, Leaf, Need};

use super::fen_argument;

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    topic: Topic,
}

#[derive(clap::Subcommand)]
enum Topic {
    /// Monte Carlo tree search, one simulation at a time
    Mcts {
        /// The position [default: one in which a queen can be won]
        #[arg(long, value_parser = fen_argument, default_value = "r1bqkbnr/ppp2ppp/2np4/4p3/2B1P1Q1/5N2/PPPP1PPP/RNB1K2R b KQkq - 1 4", hide_default_value = true)]
        fen: Chess,
        /// Simulations to show
        #[arg(long, default_value_t = 12, value_parser = clap::value_parser!(u64).range(1..=1000))]
        sims: u64,
    },
    /// A residual network: its layers, its weights and one forward pass
    Network(network::Args),
    /// One game of a network against itself, as in training
    Selfplay(selfplay::Args),
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    match &args.topic {
        Topic::Mcts { fen, sims } => mcts(fen, *sims, &mut io::stdout().lock())?,
        Topic::Network(args) => network::run(args, &mut io::stdout().lock())?,
        Topic::Selfplay(args) => selfplay::run(args, &mut io::stdout().lock())?,
    }
    Ok(())
}

/// A material evaluator that records its requests with the path to each leaf.
#[derive(Default)]
struct RequestRecorder {
    requests: Vec<(Game, Need, f32)>,
}

impl Evaluator for RequestRecorder {
    fn evaluate(&mut self, leaves: &[Leaf], evaluations: &mut [Evaluation]) {
        Material.evaluate(leaves, evaluations);
        for (leaf, evaluation) in leaves.iter().zip(evaluations) {
            self.requests.push((leaf.game.clone(), leaf.need, evaluation.wdl.value()));
        }
    }

    fn history(&self) -> usize {
        usize::MAX
    }
}

fn mcts(position: &Chess, simulations: u64, out: &mut dyn Write) -> io::Result<()> {
    let game = Game::from_position(position.clone());
    let mut recorder = RequestRecorder::default();
    let params = SearchParams { memory_mb: 16, ..SearchParams::default() };
    let mut search = Search::new(params).map_err(io::Error::other)?;
    let mut batch = Batch::new(&recorder);
    search.start(&game, simulations, Seed::new(1));
    writeln!(
        out,
        "Monte Carlo tree search on\n  {}\n\n\
         Every simulation goes down from the root. At each position it takes the move with the\n\
         highest  Q + c P sqrt(N) / (1 + n):  Q is the mean value of the move so far, P its prior\n\
         (how good it looks before any search), n the visits of the move, N the visits of the\n\
         position. The simulation ends at a position without an evaluation. The evaluator (here:\n\
         a count of material) gives it a value, which goes back up and changes sign at every ply.\n",
        selfmate_chess::fen::to_fen(position)
    )?;
    let mut shown = 0;
    loop {
        let before = search.result();
        search.gather(&mut batch, 1);
        batch.evaluate(&mut recorder);
        search.apply(&mut batch);
        for (leaf, need, value) in recorder.requests.drain(..) {
            print_request(&game, &leaf, need, value, out)?;
        }
        let after = search.result();
        if after.simulations > shown {
            shown = after.simulations;
            print_change(position, shown, &before, &after, out)?;
        }
        if batch_is_done(&search, &batch) {
            break;
        }
    }
    conclude(position, &search.result(), out)
}

fn batch_is_done(search: &Search, batch: &Batch) -> bool {
    search.is_solved() || (search.remaining() == 0 && !batch.has_resumed())
}

/// Prints one request to the evaluator.
fn print_request(
    root: &Game,
    leaf: &Game,
    need: Need,
    value: f32,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut position = root.position().clone();
    let mut path = Vec::new();
    for m in leaf.moves() {
        path.push(san(&position, m));
        position.play_unchecked(m);
    }
    let place =
        if path.is_empty() { "the root".into() } else { format!("after {}", path.join(" ")) };
    match need {
        Need::Policy => {
            writeln!(
                out,
                "  {place}: second visit, so its moves get priors and the simulation continues"
            )
        }
        _ => writeln!(out, "  {place}: the evaluator returns {value:+.2} for the side to move"),
    }
}

/// Prints what a simulation changed at the root.
fn print_change(
    position: &Chess,
    number: u64,
    before: &SearchResult,
    after: &SearchResult,
    out: &mut dyn Write,
) -> io::Result<()> {
    for m in &after.moves {
        let old = before.moves.iter().find(|old| old.played == m.played);
        if old.is_none_or(|old| old.visits != m.visits) {
            let proof = match m.proof {
                Proof::Unknown => "",
                Proof::Win(_) => ", proven won",
                Proof::Loss(_) => ", proven lost",
                Proof::Draw => ", a draw",
            };
            writeln!(
                out,
                "simulation {number}: {} has {} visits and Q {:+.3}{proof} (prior {:.1}%)\n",
                san(position, m.played),
                m.visits,
                m.wdl.value(),
                m.prior * 100.0
            )?;
        }
    }
    Ok(())
}

fn conclude(position: &Chess, result: &SearchResult, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "The visits after {} simulations decide:", result.simulations)?;
    for m in result.moves.iter().take(6) {
        let bar = "#".repeat((40.0 * m.visits as f64 / result.simulations.max(1) as f64) as usize);
        let name = san(position, m.played);
        writeln!(out, "  {name:7}{:4}  Q {:+.3}  {bar}", m.visits, m.wdl.value())?;
    }
    match result.best {
        Some(best) => writeln!(out, "The search plays {}.", san(position, best)),
        None => writeln!(out, "There is no legal move."),
    }
}
