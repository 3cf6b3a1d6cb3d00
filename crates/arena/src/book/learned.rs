//! An opening book learned from games: which moves were played early and how well they scored.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use selfmate_chess::polyglot::polyglot_key;
use selfmate_chess::{Chess, Color, Game, Move, Position, fen, notation};
use serde::{Deserialize, Serialize};

use super::PolyglotBook;

/// How a book is made from games.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BookRules {
    /// Plies used from each game.
    pub plies: u32,
    /// A move needs at least this many games.
    pub min_games: u32,
    /// A move may score at most this much less than the best move of its position.
    pub tolerance: f64,
}

impl Default for BookRules {
    fn default() -> BookRules {
        BookRules { plies: 15, min_games: 2, tolerance: 0.15 }
    }
}

/// Statistics of a move in the games.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Advice {
    pub played: Move,
    pub games: u32,
    /// The mover's share of the points, with one win and one loss added as a prior.
    pub score: f64,
    /// The book's weight relative to other moves of the position; 0 means never played.
    pub weight: u16,
}

#[derive(Clone, Debug)]
pub struct LearnedBook {
    rules: BookRules,
    positions: BTreeMap<u64, (Chess, Vec<Played>)>,
}

#[derive(Clone, Copy, Debug)]
struct Played {
    m: Move,
    games: u32,
    points: f64,
}

impl LearnedBook {
    pub fn new(rules: BookRules) -> LearnedBook {
        LearnedBook { rules, positions: BTreeMap::new() }
    }

    /// Adds the first plies of a game. `white_points` is 1, ½ or 0. Any start position is allowed.
    pub fn add(&mut self, game: &Game, white_points: f64) {
        let mut position = game.start().clone();
        for m in game.moves().take(self.rules.plies as usize) {
            let points =
                if position.turn() == Color::White { white_points } else { 1.0 - white_points };
            let entry = self.positions.entry(polyglot_key(&position));
            let (_, moves) = entry.or_insert_with(|| (position.clone(), Vec::new()));
            match moves.iter_mut().find(|played| played.m == m) {
                Some(played) => {
                    played.games += 1;
                    played.points += points;
                }
                None => moves.push(Played { m, games: 1, points }),
            }
            position.play_unchecked(m);
        }
    }

    pub fn positions(&self) -> usize {
        self.positions.len()
    }

    /// Moves known in a position, the best first; empty when the position is unknown.
    pub fn advice(&self, position: &Chess) -> Vec<Advice> {
        let known = self.positions.get(&polyglot_key(position));
        known.map_or(Vec::new(), |(_, moves)| self.weigh(moves))
    }

    /// The weight grows with the score and with the square root of the number of games. Good moves
    /// that were played rarely keep some weight, so that games stay varied.
    fn weigh(&self, moves: &[Played]) -> Vec<Advice> {
        let score = |played: &Played| (played.points + 1.0) / (f64::from(played.games) + 2.0);
        let is_known = |played: &&Played| played.games >= self.rules.min_games;
        let best = moves.iter().filter(is_known).map(score).fold(0.0, f64::max);
        let worth = |played: &Played| {
            let is_good = is_known(&played) && score(played) >= best - self.rules.tolerance;
            if is_good { f64::from(played.games).sqrt() * score(played).powi(2) } else { 0.0 }
        };
        let most = moves.iter().map(worth).fold(f64::MIN_POSITIVE, f64::max);
        let mut advice: Vec<Advice> = moves
            .iter()
            .map(|played| Advice {
                played: played.m,
                games: played.games,
                score: score(played),
                weight: (1000.0 * (worth(played) / most)).ceil() as u16,
            })
            .collect();
        advice.sort_by(|a, b| b.weight.cmp(&a.weight).then(b.score.total_cmp(&a.score)));
        advice
    }

    /// The book as a Polyglot book; moves without weight are left out.
    pub fn polyglot(&self) -> PolyglotBook {
        let mut book = PolyglotBook::default();
        for (position, moves) in self.positions.values() {
            for advice in self.weigh(moves).into_iter().filter(|advice| advice.weight > 0) {
                book.add(position, advice.played, advice.weight);
            }
        }
        book
    }

    /// The book as text, one position per line, each with its moves, weights, scores and games.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for (position, moves) in self.positions.values() {
            let moves: Vec<String> = self
                .weigh(moves)
                .iter()
                .filter(|advice| advice.weight > 0)
                .map(|advice| {
                    let san = notation::san(position, advice.played);
                    let (weight, games) = (advice.weight, advice.games);
                    format!("{san} {weight} ({:.0} % of {games})", 100.0 * advice.score)
                })
                .collect();
            if !moves.is_empty() {
                writeln!(text, "{}: {}", fen::to_fen(position), moves.join(", "))
                    .expect("writing to a String cannot fail");
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn game(sans: &[&str]) -> Game {
        let mut game = Game::new();
        for san in sans {
            game.play(notation::parse_san(game.position(), san).unwrap()).unwrap();
        }
        game
    }

    fn weights(book: &LearnedBook) -> Vec<(String, u16)> {
        let start = Chess::default();
        let advice = book.advice(&start).into_iter();
        advice.map(|advice| (notation::san(&start, advice.played), advice.weight)).collect()
    }

    #[test]
    fn good_moves_get_more_weight_and_rare_good_moves_keep_some() {
        let mut book = LearnedBook::new(BookRules::default());
        for number in 0..100 {
            book.add(&game(&["e4", "e5"]), if number % 2 == 0 { 1.0 } else { 0.5 });
            book.add(&game(&["f3", "e5"]), 0.0);
        }
        for _ in 0..4 {
            book.add(&game(&["d4", "d5"]), 1.0);
        }
        book.add(&game(&["c4"]), 1.0);
        let weights = weights(&book);
        assert_eq!(weights[0], ("e4".to_owned(), 1000));
        assert!(weights[1].0 == "d4" && (100..500).contains(&weights[1].1), "{weights:?}");
        // Bad moves and moves seen once get no weight.
        assert!(weights[2..].iter().all(|(_, weight)| *weight == 0));
        // Points count for the mover: after 1. f3 Black has always won.
        let after = game(&["f3"]);
        assert!(book.advice(after.position())[0].score > 0.9);
    }

    #[test]
    fn only_the_first_plies_are_kept_and_every_move_is_legal() {
        let rules = BookRules { plies: 3, min_games: 1, ..BookRules::default() };
        let mut book = LearnedBook::new(rules);
        let ruy = game(&["e4", "e5", "Nf3", "Nc6", "Bb5"]);
        book.add(&ruy, 0.5);
        assert_eq!(book.positions(), 3);
        let polyglot = book.polyglot();
        assert_eq!((polyglot.len(), polyglot.positions()), (3, 3));
        let mut position = Chess::default();
        for m in ruy.moves().take(3) {
            assert_eq!(polyglot.moves(&position).iter().map(|(m, _)| *m).collect::<Vec<_>>(), [m]);
            position.play_unchecked(m);
        }
        assert!(polyglot.moves(&position).is_empty());
        let text = book.to_text();
        assert!(text.contains(": e4 1000 (50 % of 1)"), "{text}");
        assert_eq!(text.lines().count(), 3);
    }
}
