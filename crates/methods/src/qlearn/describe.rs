//! A table described as text: its size and its best opening moves.

use std::fmt::Write as _;

use selfmate_chess::{Chess, Position, notation};

use super::state::State;
use super::table::Table;

/// How many first moves to show, and how many plies of the line that follows.
const WIDTH: usize = 5;
const PLIES: usize = 6;

/// For [`crate::table::Description`].
pub(super) fn lines(bytes: &[u8]) -> Result<Vec<String>, String> {
    let table = Table::decode(bytes).map_err(|error| error.to_string())?;
    Ok(describe(&table, &Chess::default()))
}

/// Lines of text: counts, then the best first moves with the lines that follow from them.
pub fn describe(table: &Table, start: &Chess) -> Vec<String> {
    let mut lines = vec![format!(
        "{} states, {} moves tried, {:.0} % of the memory, {} forgotten",
        table.states(),
        table.pairs(),
        100.0 * table.fullness(),
        table.forgotten()
    )];
    for known in moves(table, start).into_iter().take(WIDTH) {
        let mut text = format!("{:+.3}  {:>9} times  ", known.value, known.count);
        let mut position = start.clone();
        let mut next = Some(known);
        for _ in 0..PLIES {
            let Some(known) = next else { break };
            write!(text, "{} ", notation::san(&position, known.played)).expect("text has room");
            position.play_unchecked(known.played);
            next = moves(table, &position).into_iter().next();
        }
        lines.push(text.trim_end().to_owned());
    }
    lines
}

struct Known {
    played: selfmate_chess::Move,
    value: f32,
    count: u32,
}

/// The moves in the table, best first.
fn moves(table: &Table, position: &Chess) -> Vec<Known> {
    let state = State::of(position);
    let known = |&played: &selfmate_chess::Move| {
        let (value, count) = table.get(state.pair(played))?;
        Some(Known { played, value, count })
    };
    let mut moves: Vec<Known> = position.legal_moves().iter().filter_map(known).collect();
    moves.sort_by(|a, b| b.value.total_cmp(&a.value).then(b.count.cmp(&a.count)));
    moves
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::qlearn::table::LearningRate;

    #[test]
    fn the_best_opening_comes_first() {
        let start = Chess::default();
        let state = State::of(&start);
        let mut table = Table::new(1);
        for (san, target) in [("e4", 0.5), ("d4", 1.0), ("a4", -1.0)] {
            let m = notation::parse_san(&start, san).unwrap();
            table.learn(state.key, state.pair(m), target, LearningRate::REPLACE);
        }
        let lines = describe(&table, &start);
        assert!(lines[0].starts_with("1 states, 3 moves tried"), "{}", lines[0]);
        let sans: Vec<&str> =
            lines[1..].iter().filter_map(|l| l.split_whitespace().last()).collect();
        assert_eq!(sans, ["d4", "e4", "a4"]);
    }
}
