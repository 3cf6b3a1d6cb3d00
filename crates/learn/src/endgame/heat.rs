//! The board as the network sees it beside what is true: all men but one stand, that one is put
//! on every square.

use std::sync::Arc;

use selfmate_arena::svg::{HeatBoard, heat_svg};
use selfmate_chess::tablebase::{Verdict, position};
use selfmate_chess::{Color, Game, Piece, Position, Role, Square};
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
    /// Other men than those of the ending but one.
    #[error("'{text}': expected all men of {ending} but one")]
    Men {
        /// The placement.
        text: String,
        /// The ending.
        ending: String,
    },
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
        men.map(Placement).ok_or_else(|| PlacementError::Text(text.to_owned()))
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
}
