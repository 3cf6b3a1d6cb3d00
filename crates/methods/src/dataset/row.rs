//! One position in the export formats.

use selfmate_chess::env::board_tensor;
use selfmate_chess::{Color, Game, Outcome, Position, fen, notation};
use selfmate_encode::Planes;
use serde::{Serialize, Serializer};

/// The encoding of the column `board`: the board tensor of the environment.
pub const BOARD: Planes = Planes::Planes12;
/// Rank 1 to 8, file a to h, piece P N B R Q K p n b r q k; the last varies fastest.
pub const BOARD_SHAPE: [usize; 3] = [8, 8, 12];

/// Columns that are written on request, because they are large and follow from the position.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extras {
    /// The values of [`BOARD`].
    pub board: bool,
    /// The legal moves in UCI notation.
    pub legal: bool,
}

/// A position of a game. As JSON, columns that the games do not have are left out.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    pub game: u64,
    /// From 0.
    pub ply: u32,
    pub fen: String,
    /// In UCI notation; `None` at the end of a game that was resigned.
    #[serde(rename = "move")]
    pub played: Option<String>,
    /// The side to move.
    pub player: &'static str,
    /// 1, 0 or -1 for the side to move; `None` for a game without a result.
    pub outcome: Option<i8>,
    /// As in PGN.
    pub result: &'static str,
    pub reason: String,
    /// Whether the move belongs to the opening, so that the player did not choose it.
    #[serde(rename = "opening", skip_serializing_if = "Option::is_none")]
    pub is_opening: Option<bool>,
    #[serde(flatten)]
    pub search: Option<SearchColumns>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub board: Option<Vec<u8>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub legal: Option<Vec<String>>,
}

/// The result of a recorded search.
#[derive(Clone, Debug, Serialize)]
pub struct SearchColumns {
    /// For the side to move, from -1 to 1.
    pub value: f32,
    pub draw: f32,
    /// Moves and their shares, without those that are 0.
    #[serde(serialize_with = "as_map")]
    pub policy: Vec<(String, f32)>,
}

/// How a game ended.
#[derive(Clone, Debug)]
pub struct GameEnd {
    pub winner: Option<Color>,
    /// False if the game was neither won nor drawn, such as a truncated one.
    pub has_result: bool,
    /// A word such as `checkmate`, as in other files.
    pub reason: String,
}

impl GameEnd {
    fn outcome(&self, side: Color) -> Option<i8> {
        let won = |winner| if winner == side { 1 } else { -1 };
        self.has_result.then(|| self.winner.map_or(0, won))
    }

    pub fn result(&self) -> &'static str {
        match (self.has_result, self.winner) {
            (false, _) => "*",
            (true, None) => "1/2-1/2",
            (true, Some(Color::White)) => "1-0",
            (true, Some(Color::Black)) => "0-1",
        }
    }
}

impl From<Outcome> for GameEnd {
    fn from(outcome: Outcome) -> GameEnd {
        GameEnd {
            winner: outcome.winner,
            has_result: !outcome.is_truncated(),
            reason: word(outcome.reason),
        }
    }
}

impl Row {
    /// The current position of game number `number`, without the columns of one kind of games.
    pub fn new(
        number: u64,
        game: &Game,
        played: Option<String>,
        end: &GameEnd,
        extras: Extras,
    ) -> Row {
        let position = game.position();
        let legal = || game.legal_moves().iter().map(|&m| notation::uci(position, m)).collect();
        Row {
            game: number,
            ply: game.ply() as u32,
            fen: fen::to_fen(position),
            played,
            player: if game.turn() == Color::White { "white" } else { "black" },
            outcome: end.outcome(game.turn()),
            result: end.result(),
            reason: end.reason.clone(),
            is_opening: None,
            search: None,
            board: extras.board.then(|| board_tensor(position.board()).as_flattened().concat()),
            legal: extras.legal.then(legal),
        }
    }
}

/// The name of a unit variant in files.
pub fn word(variant: impl Serialize) -> String {
    let value = serde_json::to_value(variant).unwrap_or_default();
    value.as_str().expect("a unit variant is written as a text").to_owned()
}

fn as_map<S: Serializer>(policy: &[(String, f32)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(policy.iter().map(|(uci, share)| (uci, share)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_board_is_the_encoding_that_the_constants_name() {
        let game = fen::parse_game("8/8/8/8/8/4k3/8/R3K3 b - - 0 1").unwrap();
        let end = GameEnd { winner: Some(Color::White), has_result: true, reason: "x".to_owned() };
        let row = Row::new(3, &game, None, &end, Extras { board: true, legal: true });
        let board: Vec<f32> = row.board.unwrap().into_iter().map(f32::from).collect();
        assert_eq!(board, BOARD.encoded(&game));
        assert_eq!(board.len(), BOARD_SHAPE.iter().product::<usize>());
        // e3 is rank 2, file 4 when counted from 0; k is the last piece.
        assert_eq!(board[(2 * 8 + 4) * 12 + 11], 1.0);
        assert_eq!(row.legal.unwrap(), ["e3d3", "e3f3", "e3d4", "e3e4", "e3f4"]);
        assert_eq!((row.player, row.outcome, row.result), ("black", Some(-1), "1-0"));
    }
}
