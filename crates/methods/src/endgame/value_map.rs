//! The board as the network sees it beside what is true: all pieces but one stand, that one is put
//! on every square.

use std::sync::Arc;

use selfmate_arena::svg::{HeatBoard, heat_svg};
use selfmate_chess::tablebase::{Verdict, position};
use selfmate_chess::{Chess, Color, Game, Move, Piece, Position, Role, Square};
use selfmate_nn::mlp::{Network, NetworkEvaluator};
use serde::Serialize;

use super::oracle::Oracle;

/// Where pieces stand: `Kc3,Rd4`, Black's in small letters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement(Vec<(Piece, Square)>);

/// A placement that makes no picture.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlacementError {
    /// Not a list of pieces and squares.
    #[error("'{0}': expected pieces and squares such as Kc3,Rd4, Black's in small letters")]
    Text(String),
    /// Two pieces on one square.
    #[error("'{text}': two pieces on {square}: expected a square for each")]
    Shared {
        /// The placement.
        text: String,
        /// The square.
        square: Square,
    },
    /// Other pieces than those of the ending but one.
    #[error("'{text}': expected all pieces of {ending} but one")]
    Pieces {
        /// The placement.
        text: String,
        /// The ending.
        ending: String,
    },
    /// Other pieces than those of the ending.
    #[error("'{text}': expected all pieces of {ending}")]
    All {
        /// The placement.
        text: String,
        /// The ending.
        ending: String,
    },
    /// Pieces who cannot stand so.
    #[error(
        "'{0}': no position, because kings touch, a pawn is on its first or last rank, or the side \
         that moved is in check"
    )]
    Position(String),
}

/// Values from the side to move, for each square of the piece who is moved around.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ValueMap {
    /// The piece.
    pub piece: char,
    /// What the network thinks.
    pub learned: Vec<Option<f64>>,
    /// What is true.
    pub truth: Vec<Option<f64>>,
    /// Plies to mate; `None` for draws and where there is no position.
    pub plies: Vec<Option<u8>>,
    /// The mean distance between the two.
    pub error: f64,
    #[serde(skip)]
    pieces: Vec<(Piece, Square)>,
    #[serde(skip)]
    turn: Color,
}

impl std::str::FromStr for Placement {
    type Err = PlacementError;

    fn from_str(text: &str) -> Result<Placement, PlacementError> {
        let piece = |part: &str| {
            let mut letters = part.trim().chars();
            let piece = Piece::from_char(letters.next()?)?;
            Some((piece, letters.as_str().parse::<Square>().ok()?))
        };
        let pieces: Option<Vec<(Piece, Square)>> = text.split(',').map(piece).collect();
        let pieces = pieces.ok_or_else(|| PlacementError::Text(text.to_owned()))?;
        let is_taken = |(index, (_, square)): &(usize, &(Piece, Square))| {
            pieces[..*index].iter().any(|(_, other)| other == square)
        };
        match pieces.iter().enumerate().find(is_taken) {
            Some((_, &(_, square))) => {
                Err(PlacementError::Shared { text: text.to_owned(), square })
            }
            None => Ok(Placement(pieces)),
        }
    }
}

impl std::fmt::Display for Placement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let pieces = self.0.iter().map(|(piece, square)| format!("{}{square}", piece.char()));
        f.write_str(&pieces.collect::<Vec<_>>().join(","))
    }
}

impl ValueMap {
    /// Asks the network and the table about every square.
    pub fn new(
        oracle: &Oracle,
        network: &Arc<Network>,
        discount: f64,
        placement: &Placement,
        turn: Color,
    ) -> Result<ValueMap, PlacementError> {
        let wrong = || PlacementError::Pieces {
            text: placement.to_string(),
            ending: oracle.material().to_string(),
        };
        let mut left = oracle.material().pieces().to_vec();
        for (piece, _) in &placement.0 {
            let place = left.iter().position(|other| other == piece).ok_or_else(wrong)?;
            left.remove(place);
        }
        let [piece] = left[..] else { return Err(wrong()) };
        let pieces: Vec<Piece> =
            placement.0.iter().map(|(piece, _)| *piece).chain([piece]).collect();
        let mut evaluator = NetworkEvaluator::new(Arc::clone(network));
        let mut value_map = ValueMap {
            piece: piece.char(),
            learned: Vec::new(),
            truth: Vec::new(),
            plies: Vec::new(),
            error: 0.0,
            pieces: placement.0.clone(),
            turn,
        };
        for square in Square::ALL {
            let squares: Vec<Square> =
                placement.0.iter().map(|(_, square)| *square).chain([square]).collect();
            let found = position(&pieces, &squares, turn)
                .filter(|found| found.board().occupied().count() == pieces.len());
            let known = found.map(|found| {
                let verdict = oracle.verdict(&found);
                (f64::from(evaluator.value(&Game::from_position(found))), verdict)
            });
            value_map.learned.push(known.map(|(learned, _)| learned));
            value_map.truth.push(known.map(|(_, verdict)| Oracle::value(verdict, discount)));
            value_map.plies.push(known.and_then(|(_, verdict): (_, Verdict)| verdict.plies()));
        }
        let pairs = value_map.learned.iter().flatten().zip(value_map.truth.iter().flatten());
        let errors: Vec<f64> = pairs.map(|(learned, truth)| (learned - truth).abs()).collect();
        value_map.error = errors.iter().sum::<f64>() / errors.len().max(1) as f64;
        Ok(value_map)
    }

    /// The weaker king on every square, White's pieces in the middle, White to move.
    pub fn usual(oracle: &Oracle, network: &Arc<Network>, discount: f64) -> ValueMap {
        let piece = oracle.material().pieces()[2];
        let pieces = [(Role::King.of(Color::White), Square::E3), (piece, Square::D4)];
        let placement = Placement(pieces.to_vec());
        ValueMap::new(oracle, network, discount, &placement, Color::White)
            .expect("these are all pieces of the ending but one")
    }

    /// Both boards as a picture.
    pub fn svg(&self, title: &str) -> String {
        let side = if self.turn == Color::White { "White" } else { "Black" };
        let board =
            |title: String, values: &[Option<f64>]| HeatBoard { title, values: values.to_vec() };
        let boards = [
            board(format!("learned: {} everywhere, {side} to move", self.piece), &self.learned),
            board("true".to_owned(), &self.truth),
        ];
        let pieces: Vec<(usize, char)> = self
            .pieces
            .iter()
            .map(|(piece, square)| (usize::from(*square), symbol(*piece)))
            .collect();
        heat_svg(title, &boards, &pieces)
    }
}

/// A position with what the network thinks of it and its moves, beside the truth.
#[derive(Clone, Debug)]
pub struct PositionDetail {
    /// The position.
    pub position: Chess,
    /// What the network expects for the side to move.
    pub learned: f64,
    /// What is true.
    pub verdict: Verdict,
    /// Its moves, best first; none when the game is over.
    pub moves: Vec<MoveDetail>,
}

/// A move and what is thought of it, for the side that makes it.
#[derive(Clone, Copy, Debug)]
pub struct MoveDetail {
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

impl PositionDetail {
    /// Looks at a position in which all pieces of the ending stand.
    pub fn new(
        oracle: &Oracle,
        network: &Arc<Network>,
        discount: f64,
        placement: &Placement,
        turn: Color,
    ) -> Result<PositionDetail, PlacementError> {
        let (pieces, squares): (Vec<Piece>, Vec<Square>) = placement.0.iter().copied().unzip();
        let sorted = |pieces: &[Piece]| {
            let mut letters: Vec<char> = pieces.iter().map(|piece| piece.char()).collect();
            letters.sort_unstable();
            letters
        };
        if sorted(&pieces) != sorted(oracle.material().pieces()) {
            let (text, ending) = (placement.to_string(), oracle.material().to_string());
            return Err(PlacementError::All { text, ending });
        }
        let position = position(&pieces, &squares, turn)
            .filter(|found| found.board().occupied().count() == pieces.len())
            .ok_or_else(|| PlacementError::Position(placement.to_string()))?;
        let mut evaluator = NetworkEvaluator::new(Arc::clone(network));
        let game = Game::from_position(position.clone());
        let all = if game.outcome().is_some() { Vec::new() } else { oracle.moves(&position) };
        let best = all.first().map(|(_, verdict)| verdict.rank());
        let mut judge = |(played, verdict): &(Move, Verdict)| {
            let mut after = game.clone();
            after.play_unchecked(*played);
            let learned = match after.outcome() {
                Some(outcome) => outcome.points(turn) * 2.0 - 1.0,
                None => -f64::from(evaluator.value(&after)),
            };
            let is_best = Some(verdict.rank()) == best;
            MoveDetail { played: *played, learned: discount * learned, verdict: *verdict, is_best }
        };
        let moves = all.iter().map(&mut judge).collect();
        let learned = f64::from(evaluator.value(&game));
        Ok(PositionDetail { verdict: oracle.verdict(&position), position, learned, moves })
    }
}

fn symbol(piece: Piece) -> char {
    let white = ['♙', '♘', '♗', '♖', '♕', '♔'];
    let black = ['♟', '♞', '♝', '♜', '♛', '♚'];
    let kind = piece.role as usize - 1;
    piece.color.fold_wb(white[kind], black[kind])
}

#[cfg(test)]
mod tests {
    use selfmate_chess::Seed;
    use selfmate_nn::mlp::MlpConfig;

    use super::*;
    use selfmate_selfplay::Ending;

    #[test]
    fn boards_show_every_square_that_makes_a_position() {
        let oracle = Oracle::new(Ending::Krk).unwrap();
        let shape = MlpConfig { first: 8, second: 8 };
        let network = Arc::new(Network::random(shape, Seed::new(1)).unwrap());
        let value_map =
            |text: &str, turn| ValueMap::new(&oracle, &network, 0.5, &text.parse().unwrap(), turn);
        // Mate in one with the rook anywhere on the files a to f that is not in the way.
        let rook = value_map("Kg6,kg8", Color::White).unwrap();
        assert_eq!((rook.piece, rook.plies[0], rook.truth[0]), ('R', Some(1), Some(0.5)));
        // A rook that gives check with White to move is no position; nor one on a king.
        assert_eq!((rook.plies[56], rook.learned[56]), (None, None));
        assert_eq!(rook.learned[46], None);
        let known = rook.learned.iter().flatten().count();
        assert_eq!(known, rook.truth.iter().flatten().count());
        assert!(known > 40 && rook.error > 0.0);
        let svg = rook.svg("KRK");
        assert!(svg.contains('♔') && svg.contains('♚') && svg.contains("White to move"));
        let errors =
            ["Kg6", "Kg6,Kg8", "Kg6,Qa1", "Kg6,Ra1,kb8"].map(|text| value_map(text, Color::White));
        assert!(errors.iter().all(Result::is_err));
        for text in ["", "Kz9", "Xa1", "K"] {
            assert!(text.parse::<Placement>().is_err(), "{text}");
        }
    }

    #[test]
    fn two_pieces_on_one_square_are_refused() {
        for text in ["Ke3,Re3", "Kg6,kg8,Rg8", "Ke3, ke3"] {
            let error = text.parse::<Placement>().unwrap_err().to_string();
            let square = &text[text.len() - 2..];
            assert_eq!(
                error,
                format!("'{text}': two pieces on {square}: expected a square for each")
            );
        }
        assert!("Ke3,Re4".parse::<Placement>().is_ok());
    }

    #[test]
    fn a_position_has_its_moves_the_best_first() {
        let oracle = Oracle::new(Ending::Krk).unwrap();
        let shape = MlpConfig { first: 8, second: 8 };
        let network = Arc::new(Network::random(shape, Seed::new(1)).unwrap());
        let look = |text: &str, turn| {
            PositionDetail::new(&oracle, &network, 0.5, &text.parse().unwrap(), turn)
        };
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
