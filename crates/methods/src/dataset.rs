//! Exports the games of a run: as PGN, or position by position as JSON lines or Parquet.

#[cfg(feature = "parquet")]
mod parquet;

#[cfg(feature = "parquet")]
pub use parquet::write_parquet;

use std::io::{self, Write};

use selfmate_chess::pgn::{PgnGame, PgnResult};
use selfmate_chess::{fen, notation};
use selfmate_run::{GameRecord, RecordError, RunError, RunReader};
use serde_json::{Map, Value, json};

pub type Output<'a> = dyn Write + Send + 'a;

#[derive(Debug, thiserror::Error)]
pub enum DatasetError {
    #[error(transparent)]
    Run(#[from] RunError),
    /// A stored game has an illegal move.
    #[error(transparent)]
    Game(#[from] RecordError),
    #[error("cannot write the games: {0}")]
    Io(#[from] io::Error),
    #[cfg(feature = "parquet")]
    #[error("cannot write the games as Parquet: {0}")]
    Parquet(#[from] ::parquet::errors::ParquetError),
}

/// Writes all sealed games of a run as PGN and returns their number.
pub fn write_games(run: &RunReader, out: &mut Output<'_>) -> Result<u64, DatasetError> {
    for_each_game(run, &mut |record| {
        let game = record.replay(|_, _, _| ())?;
        let mut pgn = PgnGame::new(game);
        pgn.result = match record.outcome.pgn() {
            "1-0" => PgnResult::White,
            "0-1" => PgnResult::Black,
            "1/2-1/2" => PgnResult::Draw,
            _ => PgnResult::Unknown,
        };
        pgn.set("Event", run.name());
        pgn.set("Round", record.number.to_string());
        Ok(writeln!(out, "{pgn}")?)
    })
}

/// Writes all recorded positions of a run as JSON lines and returns the number of games.
///
/// `{"game", "ply", "fen", "move", "value", "draw", "policy": {move: share}, "result"}`: values and
/// results are for the side to move, from -1 to 1; the result of a truncated game is `null`.
pub fn write_positions(run: &RunReader, out: &mut Output<'_>) -> Result<u64, DatasetError> {
    for_each_game(run, &mut |record| {
        for example in examples(record)? {
            writeln!(out, "{}", example.json())?;
        }
        Ok(())
    })
}

/// A recorded position in the export formats.
struct Example {
    game: u64,
    ply: u16,
    fen: String,
    played: Option<String>,
    value: f32,
    draw: f32,
    /// Moves and their shares, without those that are 0.
    policy: Vec<(String, f32)>,
    result: Option<f64>,
}

impl Example {
    fn json(&self) -> Value {
        let policy: Map<String, Value> =
            self.policy.iter().map(|(uci, share)| (uci.clone(), json!(share))).collect();
        json!({
            "game": self.game,
            "ply": self.ply,
            "fen": self.fen,
            "move": self.played,
            "value": self.value,
            "draw": self.draw,
            "policy": policy,
            "result": self.result,
        })
    }
}

fn examples(record: &GameRecord) -> Result<Vec<Example>, RecordError> {
    let mut examples = Vec::new();
    let is_over = !record.outcome.is_truncated();
    record.replay(|game, legal, recorded| {
        let uci = |m| notation::uci(game.position(), m);
        let shares = legal.iter().zip(&recorded.policy).filter(|(_, share)| **share > 0.0);
        examples.push(Example {
            game: record.number,
            ply: recorded.ply,
            fen: fen::to_fen(game.position()),
            played: record.moves.get(usize::from(recorded.ply)).map(|&m| uci(m)),
            value: recorded.value,
            draw: recorded.draw,
            policy: shares.map(|(&m, &share)| (uci(m), share)).collect(),
            result: is_over.then(|| 2.0 * record.outcome.points(game.turn()) - 1.0),
        });
    })?;
    Ok(examples)
}

fn for_each_game(
    run: &RunReader,
    write: &mut dyn FnMut(&GameRecord) -> Result<(), DatasetError>,
) -> Result<u64, DatasetError> {
    let mut games = 0;
    for chunk in run.chunks()? {
        for record in run.read_chunk(chunk)? {
            write(&record)?;
            games += 1;
        }
    }
    Ok(games)
}

#[cfg(test)]
mod tests {
    use selfmate_chess::pgn::Reader;
    use selfmate_chess::{Color, Game, Outcome, Reason};
    use selfmate_run::{PositionRecord, Run};

    use super::*;

    fn record(number: u64) -> GameRecord {
        let mut game = Game::new();
        for san in ["f3", "e5", "g4", "Qh4#"] {
            game.play(notation::parse_san(game.position(), san).unwrap()).unwrap();
        }
        let mut policy = vec![0.0; 19];
        policy[3] = 1.0;
        GameRecord {
            number,
            network: 0,
            start: None,
            moves: game.moves().collect(),
            outcome: Outcome { winner: Some(Color::Black), reason: Reason::Checkmate },
            positions: vec![PositionRecord { ply: 2, value: -0.5, draw: 0.25, policy }],
        }
    }

    /// A run with four games in two chunks.
    pub(super) fn run(folder: &std::path::Path) -> Run {
        let mut run = Run::open(&folder.join("run")).unwrap();
        for chunk in 0..2 {
            let (journal, _) = run.journal(chunk).unwrap();
            journal.seal(&run, &[record(2 * chunk), record(2 * chunk + 1)]).unwrap();
        }
        run
    }

    #[test]
    fn games_and_positions_are_exported() {
        let folder = tempfile::tempdir().unwrap();
        let run = run(folder.path());
        let mut pgn = Vec::new();
        assert_eq!(write_games(&run, &mut pgn).unwrap(), 4);
        let games: Result<Vec<PgnGame>, _> = Reader::new(&pgn[..]).collect();
        let games = games.unwrap();
        assert_eq!((games.len(), games[3].result, games[3].game.ply()), (4, PgnResult::Black, 4));
        let mut lines = Vec::new();
        write_positions(&run, &mut lines).unwrap();
        let text = String::from_utf8(lines).unwrap();
        let first: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
        assert_eq!(text.lines().count(), 4);
        assert_eq!((&first["move"], &first["result"]), (&json!("g2g4"), &json!(-1.0)));
        assert_eq!(first["policy"].as_object().unwrap().len(), 1);
    }
}
