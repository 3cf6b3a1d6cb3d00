//! The board as the network sees it beside what is true: all men but one stand, that one is put
//! on every square.

use std::sync::Arc;

use selfmate_arena::svg::{HeatBoard, heat_svg};
use selfmate_chess::tablebase::{Verdict, position};
use selfmate_chess::{Chess, Color, Game, Move, Piece, Position, Role, Square};
use selfmate_nn::mlp::Network;
use serde::Serialize;

use super::lab::Lab;
use super::thinker::{NetworkEvaluator, Priors};

/// Where men stand: `Kc3,Rd4`, Black's in small letters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement(Vec<(Piece, Square)>);

/// A placement that makes no picture.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlacementError {
    /// Not a list of men and squares.
    #[error("'{0}': expected men and squares such as Kc3,Rd4, Black's in small letters")]
    Text(String),
    /// Two men on one square.
    #[error("'{text}': two men on {square}: expected a square for each")]
    Shared {
        /// The placement.
        text: String,
        /// The square.
        square: Square,
    },
    /// Other men than those of the ending but one.
    #[error("'{text}': expected all men of {ending} but one")]
    Men {
        /// The placement.
        text: String,
        /// The ending.
        ending: String,
    },
    /// Other men than those of the ending.
    #[error("'{text}': expected all men of {ending}")]
    All {
        /// The placement.
        text: String,
        /// The ending.
        ending: String,
    },
    /// Men who cannot stand so.
    #[error(
        "'{0}': no position, because kings touch, a pawn is on its first or last rank, or the side \
         that moved is in check"
    )]
    Position(String),
}

/// Values from the side to move, for each square of the man who is moved around.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Heat {
    /// The man.
    pub man: char,
    /// What the network thinks.
    pub learned: Vec<Option<f64>>,
    /// What is true.
    pub truth: Vec<Option<f64>>,
    /// Plies to mate; `None` for draws and where there is no position.
    pub plies: Vec<Option<u8>>,
    /// The mean distance between the two.
    pub error: f64,
    #[serde(skip)]
    men: Vec<(Piece, Square)>,
    #[serde(skip)]
    turn: Color,
}

impl std::str::FromStr for Placement {
    type Err = PlacementError;

    fn from_str(text: &str) -> Result<Placement, PlacementError> {
        let man = |part: &str| {
            let mut letters = part.trim().chars();
            let piece = Piece::from_char(letters.next()?)?;
            Some((piece, letters.as_str().parse::<Square>().ok()?))
        };
        let men: Option<Vec<(Piece, Square)>> = text.split(',').map(man).collect();
        let men = men.ok_or_else(|| PlacementError::Text(text.to_owned()))?;
        let is_taken = |(index, (_, square)): &(usize, &(Piece, Square))| {
            men[..*index].iter().any(|(_, other)| other == square)
        };
        match men.iter().enumerate().find(is_taken) {
            Some((_, &(_, square))) => {
                Err(PlacementError::Shared { text: text.to_owned(), square })
            }
            None => Ok(Placement(men)),
        }
    }
}

impl std::fmt::Display for Placement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let men = self.0.iter().map(|(man, square)| format!("{}{square}", man.char()));
        f.write_str(&men.collect::<Vec<_>>().join(","))
    }
}

impl Heat {
    /// Asks the network and the table about every square.
    pub fn new(
        lab: &Lab,
        network: &Arc<Network>,
        discount: f64,
        placement: &Placement,
        turn: Color,
    ) -> Result<Heat, PlacementError> {
        let wrong = || PlacementError::Men {
            text: placement.to_string(),
            ending: lab.material().to_string(),
        };
        let mut left = lab.material().men().to_vec();
        for (man, _) in &placement.0 {
            let place = left.iter().position(|other| other == man).ok_or_else(wrong)?;
            left.remove(place);
        }
        let [man] = left[..] else { return Err(wrong()) };
        let men: Vec<Piece> = placement.0.iter().map(|(man, _)| *man).chain([man]).collect();
        let mut evaluator = NetworkEvaluator::new(Arc::clone(network), Priors::Uniform);
        let mut heat = Heat {
            man: man.char(),
            learned: Vec::new(),
            truth: Vec::new(),
            plies: Vec::new(),
            error: 0.0,
            men: placement.0.clone(),
            turn,
        };
        for square in Square::ALL {
            let squares: Vec<Square> =
                placement.0.iter().map(|(_, square)| *square).chain([square]).collect();
            let found = position(&men, &squares, turn)
                .filter(|found| found.board().occupied().count() == men.len());
            let known = found.map(|found| {
                let verdict = lab.verdict(&found);
                (f64::from(evaluator.value(&Game::from_position(found))), verdict)
            });
            heat.learned.push(known.map(|(learned, _)| learned));
            heat.truth.push(known.map(|(_, verdict)| Lab::value(verdict, discount)));
            heat.plies.push(known.and_then(|(_, verdict): (_, Verdict)| verdict.plies()));
        }
        let pairs = heat.learned.iter().flatten().zip(heat.truth.iter().flatten());
        let errors: Vec<f64> = pairs.map(|(learned, truth)| (learned - truth).abs()).collect();
        heat.error = errors.iter().sum::<f64>() / errors.len().max(1) as f64;
        Ok(heat)
    }

    /// The weaker king on every square, White's men in the middle, White to move.
    pub fn usual(lab: &Lab, network: &Arc<Network>, discount: f64) -> Heat {
        let man = lab.material().men()[2];
        let men = [(Role::King.of(Color::White), Square::E3), (man, Square::D4)];
        let placement = Placement(men.to_vec());
        Heat::new(lab, network, discount, &placement, Color::White)
            .expect("these are all men of the ending but one")
    }

    /// Both boards as a picture.
    pub fn svg(&self, title: &str) -> String {
        let side = if self.turn == Color::White { "White" } else { "Black" };
        let board =
            |title: String, values: &[Option<f64>]| HeatBoard { title, values: values.to_vec() };
        let boards = [
            board(format!("learned: {} everywhere, {side} to move", self.man), &self.learned),
            board("true".to_owned(), &self.truth),
        ];
        let men: Vec<(usize, char)> =
            self.men.iter().map(|(man, square)| (usize::from(*square), symbol(*man))).collect();
        heat_svg(title, &boards, &men)
    }
}

/// A position with what the network thinks of it and its moves, beside the truth.
#[derive(Clone, Debug)]
pub struct Insight {
    /// The position.
    pub position: Chess,
    /// What the network expects for the side to move.
    pub learned: f64,
    /// What is true.
    pub verdict: Verdict,
    /// Its moves, best first; none when the game is over.
    pub moves: Vec<JudgedMove>,
}

/// A move and what is thought of it, for the side that makes it.
#[derive(Clone, Copy, Debug)]
pub struct JudgedMove {
    /// The move.
    pub played: Move,
    /// What the network expects of the position after it, a ply further from the end; the result
    /// where the game is over.
    pub learned: f64,
    /// What is true.
    pub verdict: Verdict,
    /// No other move is better.
    pub is_best: bool,
}

impl Insight {
    /// Looks at a position in which all men of the ending stand.
    pub fn new(
        lab: &Lab,
        network: &Arc<Network>,
        discount: f64,
        placement: &Placement,
        turn: Color,
    ) -> Result<Insight, PlacementError> {
        let (men, squares): (Vec<Piece>, Vec<Square>) = placement.0.iter().copied().unzip();
        let sorted = |men: &[Piece]| {
            let mut letters: Vec<char> = men.iter().map(|man| man.char()).collect();
            letters.sort_unstable();
            letters
        };
        if sorted(&men) != sorted(lab.material().men()) {
            let (text, ending) = (placement.to_string(), lab.material().to_string());
            return Err(PlacementError::All { text, ending });
        }
        let position = position(&men, &squares, turn)
            .filter(|found| found.board().occupied().count() == men.len())
            .ok_or_else(|| PlacementError::Position(placement.to_string()))?;
        let mut evaluator = NetworkEvaluator::new(Arc::clone(network), Priors::Uniform);
        let game = Game::from_position(position.clone());
        let all = if game.outcome().is_some() { Vec::new() } else { lab.moves(&position) };
        let best = all.first().map(|(_, verdict)| verdict.rank());
        let mut judge = |(played, verdict): &(Move, Verdict)| {
            let mut after = game.clone();
            after.play_unchecked(*played);
            let learned = match after.outcome() {
                Some(outcome) => outcome.points(turn) * 2.0 - 1.0,
                None => -f64::from(evaluator.value(&after)),
            };
            let is_best = Some(verdict.rank()) == best;
            JudgedMove { played: *played, learned: discount * learned, verdict: *verdict, is_best }
        };
        let moves = all.iter().map(&mut judge).collect();
        let learned = f64::from(evaluator.value(&game));
        Ok(Insight { verdict: lab.verdict(&position), position, learned, moves })
    }
}

fn symbol(man: Piece) -> char {
    let white = ['♙', '♘', '♗', '♖', '♕', '♔'];
    let black = ['♟', '♞', '♝', '♜', '♛', '♚'];
    let kind = man.role as usize - 1;
    man.color.fold_wb(white[kind], black[kind])
}

#[cfg(test)]
mod tests {
    use selfmate_chess::Seed;
    use selfmate_nn::mlp::MlpConfig;

    use super::super::lab::EndingName;
    use super::*;

    #[test]
    fn boards_show_every_square_that_makes_a_position() {
        let lab = Lab::new(EndingName::Krk).unwrap();
        let shape = MlpConfig { first: 8, second: 8 };
        let network = Arc::new(Network::random(shape, Seed::new(1)).unwrap());
        let heat = |text: &str, turn| Heat::new(&lab, &network, 0.5, &text.parse().unwrap(), turn);
        // Mate in one with the rook anywhere on the files a to f that is not in the way.
        let rook = heat("Kg6,kg8", Color::White).unwrap();
        assert_eq!((rook.man, rook.plies[0], rook.truth[0]), ('R', Some(1), Some(0.5)));
        // A rook that gives check with White to move is no position; nor one on a king.
        assert_eq!((rook.plies[56], rook.learned[56]), (None, None));
        assert_eq!(rook.learned[46], None);
        let known = rook.learned.iter().flatten().count();
        assert_eq!(known, rook.truth.iter().flatten().count());
        assert!(known > 40 && rook.error > 0.0);
        let svg = rook.svg("KRK");
        assert!(svg.contains('♔') && svg.contains('♚') && svg.contains("White to move"));
        let errors =
            ["Kg6", "Kg6,Kg8", "Kg6,Qa1", "Kg6,Ra1,kb8"].map(|text| heat(text, Color::White));
        assert!(errors.iter().all(Result::is_err));
        for text in ["", "Kz9", "Xa1", "K"] {
            assert!(text.parse::<Placement>().is_err(), "{text}");
        }
    }

    #[test]
    fn two_men_on_one_square_are_refused() {
        for text in ["Ke3,Re3", "Kg6,kg8,Rg8", "Ke3, ke3"] {
            let error = text.parse::<Placement>().unwrap_err().to_string();
            let square = &text[text.len() - 2..];
            assert_eq!(error, format!("'{text}': two men on {square}: expected a square for each"));
        }
        assert!("Ke3,Re4".parse::<Placement>().is_ok());
    }

    #[test]
    fn a_position_has_its_moves_the_best_first() {
        let lab = Lab::new(EndingName::Krk).unwrap();
        let shape = MlpConfig { first: 8, second: 8 };
        let network = Arc::new(Network::random(shape, Seed::new(1)).unwrap());
        let look =
            |text: &str, turn| Insight::new(&lab, &network, 0.5, &text.parse().unwrap(), turn);
        let mate = look("Kg6,kg8,Ra1", Color::White).unwrap();
        assert_eq!(mate.verdict, Verdict::Win(1));
        let first = mate.moves[0];
        assert_eq!((first.played.to(), first.verdict), (Square::A8, Verdict::Win(1)));
        // Mate is on the board, so that nothing is left to be learned.
        assert_eq!((first.learned, first.is_best), (0.5, true));
        assert!(mate.moves[1..].iter().all(|other| !other.is_best));
        assert!(mate.moves.iter().all(|other| other.learned.abs() <= 0.5));
        // Taking the rook is a draw and the only good move.
        let draw = look("Ka1,ke4,Re5", Color::Black).unwrap();
        assert_eq!((draw.verdict, draw.moves[0].learned), (Verdict::Draw, 0.0));
        assert_eq!(draw.moves.iter().filter(|other| other.is_best).count(), 1);
        let over = look("Kg6,kg8,Ra8", Color::Black).unwrap();
        assert_eq!((over.verdict, over.moves.len()), (Verdict::Loss(0), 0));
        for (text, turn) in [
            ("Kg6,kg8", Color::White),
            ("Kg6,kg8,Qa1", Color::White),
            ("Kg6,kg7,Ra1", Color::White),
            ("Kg6,kg8,Ra8", Color::White),
        ] {
            assert!(look(text, turn).is_err(), "{text}");
        }
    }
}
