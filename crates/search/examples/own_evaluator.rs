//! Tree search with an evaluator of your own.
//!
//! Run it with `cargo run -p selfmate-search --example own_evaluator`.

use std::error::Error;

use selfmate_chess::{Bitboard, Chess, Color, Game, Move, Position, Role, Seed, fen, notation};
use selfmate_search::mcts::{Search, SearchParams, SearchResult, StopCondition, run};
use selfmate_search::{Evaluation, Evaluator, Leaf, Wdl};

/// A position where White has several reasonable moves.
const POSITION: &str = "r1bqkbnr/pppp1ppp/2n5/4p3/2B1P3/5N2/PPPP1PPP/RNBQK2R w KQkq - 2 4";

/// Material decides the value, and captures and central moves get a higher prior.
struct MyEvaluator;

impl Evaluator for MyEvaluator {
    fn evaluate(&mut self, leaves: &[Leaf], evaluations: &mut [Evaluation]) {
        for (leaf, evaluation) in leaves.iter().zip(evaluations) {
            let position = leaf.game.position();
            let turn = position.turn();
            // The value is for the side to move, in [-1, 1].
            let pawns_ahead = material(position, turn) - material(position, !turn);
            let value = (pawns_ahead as f32 / 5.0).tanh();
            evaluation.wdl = Wdl::new(value, 0.5 * (1.0 - value.abs()));
            // One logit per legal move; the search turns them into priors with a softmax.
            evaluation.logits = leaf.legal.iter().map(|&m| logit(m)).collect();
        }
    }
}

fn material(position: &Chess, color: Color) -> i32 {
    let board = position.board();
    let count = |role| (board.by_role(role) & board.by_color(color)).count() as i32;
    count(Role::Pawn)
        + 3 * count(Role::Knight)
        + 3 * count(Role::Bishop)
        + 5 * count(Role::Rook)
        + 9 * count(Role::Queen)
}

fn logit(m: Move) -> f32 {
    let centre = Bitboard::CENTER.contains(m.to());
    f32::from(u8::from(m.is_capture())) + 0.5 * f32::from(u8::from(centre))
}

pub fn search(game: &Game, simulations: u64) -> Result<SearchResult, Box<dyn Error>> {
    // The default is PUCT without noise, as for playing. `SearchParams::gumbel()` is Gumbel
    // AlphaZero, and `SearchParams::alphazero()` adds Dirichlet noise for self-play.
    let params = SearchParams { memory_mb: 64, ..SearchParams::default() };
    let mut search = Search::new(params)?;
    search.start(game, simulations, Seed::new(1));
    run(&mut search, &mut MyEvaluator, &StopCondition::default());
    Ok(search.result())
}

pub fn main() -> Result<(), Box<dyn Error>> {
    let game = fen::parse_game(POSITION)?;
    let result = search(&game, 2000)?;
    println!("{} simulations, value {:+.3}", result.simulations, result.wdl.value());
    println!("visits  prior   value  line");
    for m in result.moves.iter().take(8) {
        let mut position = game.position().clone();
        let mut line = Vec::new();
        for &next in &m.line {
            line.push(notation::san(&position, next));
            position.play_unchecked(next);
        }
        let (value, line) = (m.wdl.value(), line.join(" "));
        println!("{:6}  {:.3}  {value:+.3}  {line}", m.visits, m.prior);
    }
    Ok(())
}
