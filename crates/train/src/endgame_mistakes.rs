//! Mistakes against exact tables: how often a player throws away a won or drawn ending.
//!
//! The positions have three or four pieces and are the same for every run, so networks of all runs
//! and ages can be compared. Each has moves that keep the result and moves that do not; which they
//! are comes from our own solver (`cargo run --release -p selfmate-train --example
//! endgame_positions` writes the list).

use selfmate_chess::{Game, Move, fen, notation};
use selfmate_search::Player;
use selfmate_search::player::Limit;

const LIST: &str = include_str!("endgame_mistakes/positions.txt");

/// A position and the moves that keep its result.
struct TestPosition {
    game: Game,
    keeping: Vec<Move>,
}

/// The share of the positions in which the player does not keep the result. `None` if `is_stopped`.
pub(crate) fn endgame_mistakes(
    player: &mut dyn Player,
    limit: &Limit,
    is_stopped: &dyn Fn() -> bool,
) -> Option<f64> {
    let positions = positions();
    let mut mistakes = 0;
    for TestPosition { game, keeping } in &positions {
        if is_stopped() {
            return None;
        }
        player.new_game();
        // As in a match, a player that fails to move has made a mistake.
        let keeps = player.choose(game, limit).is_ok_and(|choice| keeping.contains(&choice.played));
        mistakes += u32::from(!keeps);
    }
    Some(f64::from(mistakes) / positions.len() as f64)
}

fn positions() -> Vec<TestPosition> {
    LIST.lines().map(|line| parse(line).expect("a test reads every line")).collect()
}

/// Parses `FEN; MOVES`, with the moves in UCI notation.
fn parse(line: &str) -> Option<TestPosition> {
    let (position, moves) = line.split_once("; ")?;
    let game = fen::parse_game(position).ok()?;
    let moves = moves.split(' ').map(|m| notation::parse_uci(game.position(), m).ok());
    let keeping = moves.collect::<Option<Vec<Move>>>()?;
    Some(TestPosition { game, keeping })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use selfmate_arena::Registry;
    use selfmate_chess::tablebase::{Exact, Material};
    use selfmate_chess::{Position, Seed};

    use super::*;

    #[test]
    fn the_list_says_what_the_exact_tables_say() {
        let exact = Exact::new();
        let mut fens = BTreeSet::new();
        let mut compared = 0;
        for TestPosition { game, keeping } in positions() {
            let text = fen::to_fen(game.position());
            let (position, legal) = (game.position(), game.legal_moves());
            assert!(!keeping.is_empty() && keeping.len() < legal.len(), "{text}");
            assert!(keeping.iter().all(|m| legal.contains(m)), "{text}");
            assert!(fens.insert(text.clone()));
            // Solving the others takes a minute.
            let material = Material::of(position.board()).unwrap();
            let name = if material.is_white_stronger() { material } else { material.swapped() };
            if position.board().occupied().count() > 3 && name.to_string() != "KRKN" {
                continue;
            }
            compared += 1;
            let mut moves = exact.moves(position).unwrap();
            let best = moves[0].1.points();
            moves.retain(|(_, verdict)| verdict.points() == best);
            assert_eq!(moves.len(), keeping.len(), "{text}");
            assert!(moves.iter().all(|(m, _)| keeping.contains(m)), "{text}");
        }
        assert_eq!((fens.len(), compared), (500, 140));
    }

    #[test]
    fn a_deeper_search_makes_fewer_mistakes() {
        let registry = Registry::standard();
        let share = |spec: &str| {
            let spec = registry.parse(spec).unwrap();
            let mut player = registry.build(&spec, Seed::new(1)).unwrap();
            endgame_mistakes(&mut *player, &Limit::default(), &|| false).unwrap()
        };
        let (random, deep) = (share("random"), share("alphabeta:depth=6"));
        assert!(random > 0.3 && deep < 0.6 * random, "{random} {deep}");
        let mut player = registry.build(&registry.parse("random").unwrap(), Seed::new(1)).unwrap();
        assert_eq!(endgame_mistakes(&mut *player, &Limit::default(), &|| true), None);
    }
}
