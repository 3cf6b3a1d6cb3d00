//! The exact values of an ending's positions, random positions of it, and defenders.

use std::sync::Arc;

use selfmate_chess::tablebase::{Exact, ExactError, Material, Verdict};
use selfmate_chess::{Chess, Color, Game, Move, MoveList, Rng, Square};
use selfmate_selfplay::{Ending, random_ending};
use selfmate_train::ConfigError;
use serde::{Deserialize, Serialize};

/// The opponent in evaluations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Defender {
    /// Delays the mate as long as possible.
    Perfect,
    Random,
    /// Captures if possible, otherwise goes to the centre of the board.
    Heuristic,
}

impl Defender {
    pub const ALL: [Defender; 3] = [Defender::Perfect, Defender::Random, Defender::Heuristic];

    pub fn name(self) -> &'static str {
        match self {
            Defender::Perfect => "perfect",
            Defender::Random => "random",
            Defender::Heuristic => "heuristic",
        }
    }
}

/// A solved ending, with its tablebase in memory.
#[derive(Clone)]
pub struct Oracle {
    ending: Ending,
    material: Material,
    exact: Arc<Exact>,
}

impl Oracle {
    pub fn new(ending: Ending) -> Result<Oracle, ExactError> {
        let exact = Arc::new(Exact::new());
        let material = ending.material();
        exact.ending(&material)?;
        Ok(Oracle { ending, material, exact })
    }

    /// Like [`Oracle::new`], with an error of the training.
    pub fn solve(ending: Ending) -> Result<Oracle, ConfigError> {
        Oracle::new(ending).map_err(|error| ConfigError::Parse {
            file: "ending".to_owned(),
            message: error.to_string(),
        })
    }

    pub fn ending(&self) -> Ending {
        self.ending
    }

    /// White's king, Black's king, White's other piece.
    pub fn material(&self) -> &Material {
        &self.material
    }

    /// The exact value of a position of the ending or one that can follow from it.
    pub fn verdict(&self, position: &Chess) -> Verdict {
        self.exact
            .verdict(position)
            .expect("every position that follows from the ending can be solved")
    }

    /// The legal moves with their verdicts, best first.
    pub fn moves(&self, position: &Chess) -> Vec<(Move, Verdict)> {
        self.exact
            .moves(position)
            .expect("every position that follows from the ending can be solved")
    }

    /// The value of a verdict, discounted per ply to mate.
    pub fn value(verdict: Verdict, discount: f64) -> f64 {
        let worth = verdict.plies().map_or(0.0, |plies| discount.powi(i32::from(plies)));
        worth * f64::from(verdict.points())
    }

    /// A random unfinished position of the ending, uniformly distributed.
    pub fn draw(&self, rng: &mut Rng) -> Game {
        loop {
            let turn = Color::from_white(rng.chance(0.5));
            let game = random_ending(&self.material, turn, rng).map(Game::from_position);
            if let Some(game) = game.filter(|game| game.outcome().is_none()) {
                return game;
            }
        }
    }

    /// A random position that White, to move, wins.
    pub fn draw_won(&self, rng: &mut Rng) -> Game {
        loop {
            let found = random_ending(&self.material, Color::White, rng);
            let is_won = |position: &Chess| matches!(self.verdict(position), Verdict::Win(_));
            if let Some(position) = found.filter(is_won) {
                return Game::from_position(position);
            }
        }
    }

    /// A defender's move; `legal` must not be empty.
    pub fn defend(
        &self,
        defender: Defender,
        position: &Chess,
        legal: &MoveList,
        rng: &mut Rng,
    ) -> Move {
        let best: Vec<Move> = match defender {
            Defender::Perfect => {
                let moves = self.moves(position);
                let best = moves.first().map(|(_, verdict)| verdict.rank());
                let is_best = |verdict: Verdict| Some(verdict.rank()) == best;
                moves.iter().filter(|m| is_best(m.1)).map(|m| m.0).collect()
            }
            Defender::Random => legal.to_vec(),
            Defender::Heuristic => {
                let preference = |m: &Move| (m.capture().is_some(), -from_middle(m.to()));
                let best = legal.iter().map(preference).max();
                legal.iter().copied().filter(|m| Some(preference(m)) == best).collect()
            }
        };
        *rng.choose(&best).expect("an unfinished game has a move")
    }
}

/// Twice the distance of a square from the centre of the board.
fn from_middle(square: Square) -> i32 {
    let distance = |line: i32| (2 * line - 7).abs();
    distance(i32::from(square.file())) + distance(i32::from(square.rank()))
}

#[cfg(test)]
mod tests {
    use selfmate_chess::fen::parse_fen;
    use selfmate_chess::{Position, Seed};

    use super::*;

    #[test]
    fn drawn_positions_belong_to_the_ending_and_won_ones_are_won() {
        let mut rng = Seed::new(1).rng();
        for ending in Ending::ALL {
            let oracle = Oracle::new(ending).unwrap();
            let mut turns = [0; 2];
            for _ in 0..200 {
                let game = oracle.draw(&mut rng);
                assert_eq!(game.position().board().occupied().count(), 3);
                assert!(game.outcome().is_none());
                turns[usize::from(game.turn().is_black())] += 1;
                let won = oracle.draw_won(&mut rng);
                assert!(matches!(oracle.verdict(won.position()), Verdict::Win(_)));
            }
            assert!(turns.iter().all(|count| *count > 60), "{turns:?}");
        }
    }

    #[test]
    fn perfect_and_heuristic_defenders_capture_and_the_perfect_one_is_optimal() {
        let oracle = Oracle::new(Ending::Krk).unwrap();
        let mut rng = Seed::new(2).rng();
        // The rook hangs, and these two capture it.
        let position = parse_fen("8/8/8/3kR3/8/8/8/4K3 b - - 0 1").unwrap();
        for defender in [Defender::Perfect, Defender::Heuristic] {
            let played = oracle.defend(defender, &position, &position.legal_moves(), &mut rng);
            assert!(played.is_capture(), "{defender:?}");
        }
        for _ in 0..100 {
            let game = oracle.draw(&mut rng);
            if game.turn() == Color::White {
                continue;
            }
            let legal = game.legal_moves();
            let played = oracle.defend(Defender::Perfect, game.position(), &legal, &mut rng);
            let mut after = game.position().clone();
            after.play_unchecked(played);
            let reached = oracle.verdict(&after).a_move_before();
            assert_eq!(reached, oracle.verdict(game.position()));
        }
    }

    #[test]
    fn values_are_discounted_by_the_plies_to_mate() {
        assert_eq!(Oracle::value(Verdict::Win(3), 0.5), 0.125);
        assert_eq!(Oracle::value(Verdict::Loss(2), 0.5), -0.25);
        assert_eq!(Oracle::value(Verdict::Loss(0), 0.5), -1.0);
        assert_eq!(Oracle::value(Verdict::Draw, 0.5), 0.0);
    }
}
