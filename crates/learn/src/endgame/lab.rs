//! An ending with the truth at hand: positions drawn from all of it, what each comes to, and
//! defenders.

use std::sync::Arc;

use selfmate_chess::tablebase::{Exact, ExactError, Material, Verdict, position};
use selfmate_chess::{Chess, Color, Game, Move, MoveList, Position, Rng, Square};
use serde::{Deserialize, Serialize};

/// The endings that have a lab, by the names of their learners. White has the pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndingName {
    /// King and rook against king.
    Krk,
    /// King and queen against king.
    Kqk,
    /// King and pawn against king.
    Kpk,
}

impl EndingName {
    /// All of them.
    pub const ALL: [EndingName; 3] = [EndingName::Krk, EndingName::Kqk, EndingName::Kpk];

    /// As the command line names it.
    pub fn name(self) -> &'static str {
        match self {
            EndingName::Krk => "krk",
            EndingName::Kqk => "kqk",
            EndingName::Kpk => "kpk",
        }
    }

    /// The ending with this name.
    pub fn by_name(name: &str) -> Option<EndingName> {
        EndingName::ALL.into_iter().find(|ending| ending.name() == name)
    }

    /// Its pieces: White's king, Black's king, White's other piece.
    pub fn material(self) -> Material {
        self.name().parse().expect("the names are those of endings")
    }
}

/// Who defends against the learner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Defender {
    /// The longest resistance.
    Perfect,
    /// Any move.
    Random,
    /// Takes what it can, else walks to the middle of the board.
    Heuristic,
}

impl Defender {
    /// All of them.
    pub const ALL: [Defender; 3] = [Defender::Perfect, Defender::Random, Defender::Heuristic];

    /// One word for it.
    pub fn name(self) -> &'static str {
        match self {
            Defender::Perfect => "perfect",
            Defender::Random => "random",
            Defender::Heuristic => "heuristic",
        }
    }
}

/// An ending and the truth about it.
#[derive(Clone)]
pub struct Lab {
    ending: EndingName,
    material: Material,
    exact: Arc<Exact>,
}

impl Lab {
    /// Solves an ending.
    pub fn new(ending: EndingName) -> Result<Lab, ExactError> {
        let exact = Arc::new(Exact::new());
        let material = ending.material();
        exact.ending(&material)?;
        Ok(Lab { ending, material, exact })
    }

    /// The ending.
    pub fn ending(&self) -> EndingName {
        self.ending
    }

    /// The pieces: White's king, Black's king, White's other piece.
    pub fn material(&self) -> &Material {
        &self.material
    }

    /// What a position of the ending, or one that follows from it, comes to.
    pub fn verdict(&self, position: &Chess) -> Verdict {
        self.exact.verdict(position).expect("what an ending leads to can be solved")
    }

    /// The moves of a position, the best first.
    pub fn moves(&self, position: &Chess) -> Vec<(Move, Verdict)> {
        self.exact.moves(position).expect("what an ending leads to can be solved")
    }

    /// What a verdict is worth when every ply makes a win worth less.
    pub fn value(verdict: Verdict, discount: f64) -> f64 {
        let worth = verdict.plies().map_or(0.0, |plies| discount.powi(i32::from(plies)));
        worth * f64::from(verdict.points())
    }

    /// Any position of the ending that is not over, each as likely as any other.
    pub fn draw(&self, rng: &mut Rng) -> Game {
        loop {
            let turn = Color::from_white(rng.chance(0.5));
            let game = self.place(turn, rng).map(Game::from_position);
            if let Some(game) = game.filter(|game| game.outcome().is_none()) {
                return game;
            }
        }
    }

    /// Any position that White, to move, wins.
    pub fn draw_won(&self, rng: &mut Rng) -> Game {
        loop {
            let found = self.place(Color::White, rng);
            let is_won = |position: &Chess| matches!(self.verdict(position), Verdict::Win(_));
            if let Some(position) = found.filter(is_won) {
                return Game::from_position(position);
            }
        }
    }

    /// The pieces on random squares; `None` when that is no position.
    fn place(&self, turn: Color, rng: &mut Rng) -> Option<Chess> {
        let pieces = self.material.pieces();
        let squares: Vec<Square> =
            pieces.iter().map(|_| Square::new(rng.below(64) as u32)).collect();
        let placed = position(pieces, &squares, turn)?;
        // Pieces on one square leave fewer on the board.
        (placed.board().occupied().count() == pieces.len()).then_some(placed)
    }

    /// A defender's move; there is one.
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
                let taste = |m: &Move| (m.capture().is_some(), -from_middle(m.to()));
                let best = legal.iter().map(taste).max();
                legal.iter().copied().filter(|m| Some(taste(m)) == best).collect()
            }
        };
        *rng.choose(&best).expect("whoever is to move in a game that goes on has a move")
    }
}

/// How far a square is from the middle of the board.
fn from_middle(square: Square) -> i32 {
    let away = |line: i32| (2 * line - 7).abs();
    away(i32::from(square.file())) + away(i32::from(square.rank()))
}

#[cfg(test)]
mod tests {
    use selfmate_chess::Seed;
    use selfmate_chess::fen::parse_fen;

    use super::*;

    #[test]
    fn starts_are_of_the_ending_and_won_when_they_should_be() {
        let mut rng = Seed::new(1).rng();
        for ending in EndingName::ALL {
            let lab = Lab::new(ending).unwrap();
            let mut turns = [0; 2];
            for _ in 0..200 {
                let game = lab.draw(&mut rng);
                assert_eq!(game.position().board().occupied().count(), 3);
                assert!(game.outcome().is_none());
                turns[usize::from(game.turn().is_black())] += 1;
                let won = lab.draw_won(&mut rng);
                assert!(matches!(lab.verdict(won.position()), Verdict::Win(_)));
            }
            assert!(turns.iter().all(|count| *count > 60), "{turns:?}");
        }
    }

    #[test]
    fn defenders_do_what_they_are_named_after() {
        let lab = Lab::new(EndingName::Krk).unwrap();
        let mut rng = Seed::new(2).rng();
        // The rook hangs: all but the random one take it.
        let position = parse_fen("8/8/8/3kR3/8/8/8/4K3 b - - 0 1").unwrap();
        for defender in [Defender::Perfect, Defender::Heuristic] {
            let played = lab.defend(defender, &position, &position.legal_moves(), &mut rng);
            assert!(played.is_capture(), "{defender:?}");
        }
        for _ in 0..100 {
            let game = lab.draw(&mut rng);
            if game.turn() == Color::White {
                continue;
            }
            let legal = game.legal_moves();
            let played = lab.defend(Defender::Perfect, game.position(), &legal, &mut rng);
            let mut after = game.position().clone();
            after.play_unchecked(played);
            let reached = lab.verdict(&after).a_move_before();
            assert_eq!(reached, lab.verdict(game.position()));
        }
    }

    #[test]
    fn a_win_is_worth_less_the_further_away_it_is() {
        assert_eq!(Lab::value(Verdict::Win(3), 0.5), 0.125);
        assert_eq!(Lab::value(Verdict::Loss(2), 0.5), -0.25);
        assert_eq!(Lab::value(Verdict::Loss(0), 0.5), -1.0);
        assert_eq!(Lab::value(Verdict::Draw, 0.5), 0.0);
    }
}
