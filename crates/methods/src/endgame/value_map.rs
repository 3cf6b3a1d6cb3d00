//! Values of the network beside those of the tablebase: for every square of one piece, with the
//! other pieces fixed.

use selfmate_arena::svg::{HeatBoard, heat_svg};
use selfmate_chess::tablebase::{Verdict, position};
use selfmate_chess::{Chess, Color, Game, Move, Piece, Position, Role, Square};
use selfmate_search::flip_value;
use serde::Serialize;

use super::network::EndgameNetwork;
use super::oracle::Oracle;

/// Pieces on squares, such as `Kc3,Rd4`; lowercase letters are Black's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement(Vec<(Piece, Square)>);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlacementError {
    #[error("'{0}': expected pieces and squares such as Kc3,Rd4, with lowercase letters for Black")]
    Text(String),
    #[error("'{text}': two pieces on {square}: expected a square for each")]
    Shared { text: String, square: Square },
    /// Not all pieces of the ending but one.
    #[error("'{text}': expected all pieces of {ending} but one")]
    Pieces { text: String, ending: String },
    /// Not all pieces of the ending.
    #[error("'{text}': expected all pieces of {ending}")]
    All { text: String, ending: String },
    #[error(
        "'{0}': not a legal position: kings are adjacent, a pawn is on the first or last rank, or the side \
         that moved is in check"
    )]
    Position(String),
}

/// Values for the side to move, for each square of the moving piece.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ValueMap {
    pub piece: char,
    /// The network's values; `None` where the position is illegal.
    pub learned: Vec<Option<f64>>,
    /// The tablebase's values.
    pub tablebase: Vec<Option<f64>>,
    /// Plies to mate; `None` for draws and illegal positions.
    pub plies: Vec<Option<u8>>,
    /// The mean absolute difference between the two.
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
    pub fn new(
        oracle: &Oracle,
        network: &EndgameNetwork,
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
            let index = left.iter().position(|other| other == piece).ok_or_else(wrong)?;
            left.remove(index);
        }
        let [piece] = left[..] else { return Err(wrong()) };
        let pieces: Vec<Piece> =
            placement.0.iter().map(|(piece, _)| *piece).chain([piece]).collect();
        let mut evaluator = network.evaluator();
        let mut value_map = ValueMap {
            piece: piece.char(),
            learned: Vec::new(),
            tablebase: Vec::new(),
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
            value_map.tablebase.push(known.map(|(_, verdict)| Oracle::value(verdict, discount)));
            value_map.plies.push(known.and_then(|(_, verdict): (_, Verdict)| verdict.plies()));
        }
        let pairs = value_map.learned.iter().flatten().zip(value_map.tablebase.iter().flatten());
        let errors: Vec<f64> =
            pairs.map(|(learned, tablebase)| (learned - tablebase).abs()).collect();
        value_map.error = errors.iter().sum::<f64>() / errors.len().max(1) as f64;
        Ok(value_map)
    }

    /// The black king on every square, White's pieces in the centre, White to move.
    pub fn usual(oracle: &Oracle, network: &EndgameNetwork, discount: f64) -> ValueMap {
        let piece = oracle.material().pieces()[2];
        let pieces = [(Role::King.of(Color::White), Square::E3), (piece, Square::D4)];
        let placement = Placement(pieces.to_vec());
        ValueMap::new(oracle, network, discount, &placement, Color::White)
            .expect("the placement has all pieces of the ending but one")
    }

    /// Both boards as SVG.
    pub fn svg(&self, title: &str) -> String {
        let side = if self.turn == Color::White { "White" } else { "Black" };
        let board =
            |title: String, values: &[Option<f64>]| HeatBoard { title, values: values.to_vec() };
        let boards = [
            board(format!("learned: {} everywhere, {side} to move", self.piece), &self.learned),
            board("tablebase".to_owned(), &self.tablebase),
        ];
        let pieces: Vec<(usize, char)> = self
            .pieces
            .iter()
            .map(|(piece, square)| (usize::from(*square), symbol(*piece)))
            .collect();
        heat_svg(title, &boards, &pieces)
    }
}

/// A position and its moves with the values of the network and of the tablebase.
#[derive(Clone, Debug)]
pub struct PositionDetail {
    pub position: Chess,
    /// The network's value for the side to move.
    pub learned: f64,
    pub verdict: Verdict,
    /// Best first; empty when the game is over.
    pub moves: Vec<MoveDetail>,
}

/// A move with its values for the side that makes it.
#[derive(Clone, Copy, Debug)]
pub struct MoveDetail {
    pub played: Move,
    /// The network's value of the position after the move, discounted by one ply; the result if the
    /// move ends the game.
    pub learned: f64,
    pub verdict: Verdict,
    /// No other move is better.
    pub is_best: bool,
}

impl PositionDetail {
    /// For a placement of all pieces of the ending.
    pub fn new(
        oracle: &Oracle,
        network: &EndgameNetwork,
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
        let mut evaluator = network.evaluator();
        let game = Game::from_position(position.clone());
        let all = if game.outcome().is_some() { Vec::new() } else { oracle.moves(&position) };
        let best = all.first().map(|(_, verdict)| verdict.rank());
        let mut detail = |(played, verdict): &(Move, Verdict)| {
            let mut after = game.clone();
            after.play_unchecked(*played);
            let learned = match after.outcome() {
                Some(outcome) => outcome.points(turn) * 2.0 - 1.0,
                None => f64::from(flip_value(evaluator.value(&after))),
            };
            let is_best = Some(verdict.rank()) == best;
            MoveDetail { played: *played, learned: discount * learned, verdict: *verdict, is_best }
        };
        let moves = all.iter().map(&mut detail).collect();
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
    use selfmate_nn::mlp::{MlpConfig, Network};

    use super::*;
    use selfmate_selfplay::Ending;

    #[test]
    fn a_map_has_values_for_all_legal_squares() {
        let oracle = Oracle::new(Ending::Krk).unwrap();
        let shape = MlpConfig { first: 8, second: 8 };
        let network = Network::random(shape, Seed::new(1)).unwrap();
        let network = EndgameNetwork::Mlp(network.into());
        let value_map =
            |text: &str, turn| ValueMap::new(&oracle, &network, 0.5, &text.parse().unwrap(), turn);
        // Mate in one with the rook on the files a to f, unless it is blocked.
        let rook = value_map("Kg6,kg8", Color::White).unwrap();
        assert_eq!((rook.piece, rook.plies[0], rook.tablebase[0]), ('R', Some(1), Some(0.5)));
        // A rook that gives check with White to move is illegal, and so is one on a king's square.
        assert_eq!((rook.plies[56], rook.learned[56]), (None, None));
        assert_eq!(rook.learned[46], None);
        let known = rook.learned.iter().flatten().count();
        assert_eq!(known, rook.tablebase.iter().flatten().count());
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
    fn two_pieces_on_one_square_are_an_error() {
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
    fn the_moves_of_a_position_are_sorted_best_first() {
        let oracle = Oracle::new(Ending::Krk).unwrap();
        let shape = MlpConfig { first: 8, second: 8 };
        let network = Network::random(shape, Seed::new(1)).unwrap();
        let network = EndgameNetwork::Mlp(network.into());
        let detail = |text: &str, turn| {
            PositionDetail::new(&oracle, &network, 0.5, &text.parse().unwrap(), turn)
        };
        let mate = detail("Kg6,kg8,Ra1", Color::White).unwrap();
        assert_eq!(mate.verdict, Verdict::Win(1));
        let first = mate.moves[0];
        assert_eq!((first.played.to(), first.verdict), (Square::A8, Verdict::Win(1)));
        // The move ends the game, so its value is the discounted result.
        assert_eq!((first.learned, first.is_best), (0.5, true));
        assert!(mate.moves[1..].iter().all(|other| !other.is_best));
        assert!(mate.moves.iter().all(|other| other.learned.abs() <= 0.5));
        // Capturing the rook draws and is the only good move.
        let draw = detail("Ka1,ke4,Re5", Color::Black).unwrap();
        assert_eq!((draw.verdict, draw.moves[0].learned), (Verdict::Draw, 0.0));
        assert_eq!(draw.moves.iter().filter(|other| other.is_best).count(), 1);
        let over = detail("Kg6,kg8,Ra8", Color::Black).unwrap();
        assert_eq!((over.verdict, over.moves.len()), (Verdict::Loss(0), 0));
        for (text, turn) in [
            ("Kg6,kg8", Color::White),
            ("Kg6,kg8,Qa1", Color::White),
            ("Kg6,kg7,Ra1", Color::White),
            ("Kg6,kg8,Ra8", Color::White),
        ] {
            assert!(detail(text, turn).is_err(), "{text}");
        }
    }
}
