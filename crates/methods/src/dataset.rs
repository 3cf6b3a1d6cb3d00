//! Exports games as PGN, or position by position as JSON lines or Parquet.

#[cfg(feature = "parquet")]
mod parquet;
mod row;
mod run;
mod selfplay;

pub use row::{BOARD, BOARD_SHAPE, Extras};
pub use selfplay::SelfPlayGames;

use std::io::{self, Write};

use selfmate_chess::pgn::{PgnGame, write_pgn};
use selfmate_run::{RecordError, RunError, RunReader};

use row::Row;

pub type Output<'a> = dyn Write + Send + 'a;

/// The games to export.
#[derive(Clone, Copy)]
pub enum Games<'a> {
    /// The sealed games of a run. Their positions are those whose searches were recorded.
    Run(&'a RunReader),
    /// Games of a player against itself, with every position.
    SelfPlay(&'a SelfPlayGames),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Pgn,
    /// One position per line.
    JsonLines,
    /// One position per row, one row group per group of games. Needs the feature `parquet`.
    Parquet,
}

#[derive(Debug, thiserror::Error)]
pub enum DatasetError {
    #[error(transparent)]
    Run(#[from] RunError),
    /// A game has an illegal move.
    #[error(transparent)]
    Game(#[from] RecordError),
    #[error("cannot write the games: {0}")]
    Io(#[from] io::Error),
    #[error("cannot write Parquet: this binary was built without the feature `parquet`")]
    NoParquet,
    #[cfg(feature = "parquet")]
    #[error("cannot write the games as Parquet: {0}")]
    Parquet(#[from] ::parquet::errors::ParquetError),
}

impl Format {
    /// Fails if this build does not have the format.
    pub const fn check(self) -> Result<(), DatasetError> {
        match self {
            Format::Parquet if !cfg!(feature = "parquet") => Err(DatasetError::NoParquet),
            _ => Ok(()),
        }
    }
}

impl Games<'_> {
    /// Writes all games and returns their number. PGN has no columns and ignores `extras`.
    pub fn write(
        self,
        format: Format,
        extras: Extras,
        out: &mut Output<'_>,
    ) -> Result<u64, DatasetError> {
        match format {
            Format::Pgn => self.write_pgn(out),
            Format::JsonLines => self.write_json_lines(extras, out),
            #[cfg(feature = "parquet")]
            Format::Parquet => self.write_parquet(extras, out),
            #[cfg(not(feature = "parquet"))]
            Format::Parquet => Err(DatasetError::NoParquet),
        }
    }

    fn write_pgn(self, mut out: &mut Output<'_>) -> Result<u64, DatasetError> {
        let mut count = 0;
        for group in self.groups()? {
            for game in self.pgn(group)? {
                write_pgn(&mut out, &game)?;
                count += 1;
            }
        }
        Ok(count)
    }

    fn write_json_lines(self, extras: Extras, out: &mut Output<'_>) -> Result<u64, DatasetError> {
        let mut count = 0;
        for group in self.groups()? {
            for rows in self.rows(group, extras)? {
                for row in rows {
                    serde_json::to_writer(&mut *out, &row).map_err(io::Error::from)?;
                    out.write_all(b"\n")?;
                }
                count += 1;
            }
        }
        Ok(count)
    }

    /// Numbers of groups of games. One group fits into memory.
    fn groups(self) -> Result<Vec<u64>, DatasetError> {
        match self {
            Games::Run(run) => Ok(run.chunks()?),
            Games::SelfPlay(games) => Ok((0..games.groups()).collect()),
        }
    }

    fn pgn(self, group: u64) -> Result<Vec<PgnGame>, DatasetError> {
        match self {
            Games::Run(run) => run::pgn(run, group),
            Games::SelfPlay(games) => games.pgn(group),
        }
    }

    /// The positions of each game of a group.
    fn rows(self, group: u64, extras: Extras) -> Result<Vec<Vec<Row>>, DatasetError> {
        match self {
            Games::Run(run) => run::rows(run, group, extras),
            Games::SelfPlay(games) => games.rows(group, extras),
        }
    }
}

#[cfg(test)]
mod tests {
    use selfmate_arena::MatchGame;
    use selfmate_arena::game::{PlayedGame, Side, Termination};
    use selfmate_chess::pgn::{PgnResult, Reader};
    use selfmate_chess::{Color, Game, Outcome, Reason, notation};
    use selfmate_run::{GameRecord, PositionRecord, Run};
    use serde_json::{Value, json};

    use super::*;

    const MATE: [&str; 4] = ["f2f3", "e7e5", "g2g4", "d8h4"];

    fn record(number: u64) -> GameRecord {
        let mut game = Game::new();
        for uci in MATE {
            game.play(notation::parse_uci(game.position(), uci).unwrap()).unwrap();
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

    /// A game that Black wins, one that is truncated and one that an engine's fault ended.
    pub(super) fn self_play() -> SelfPlayGames {
        let game = |game, plies: usize, winner, termination| MatchGame {
            game,
            a_plays: Side::White,
            played: PlayedGame {
                fen: None,
                opening: None,
                opening_plies: 2,
                moves: MATE[..plies].iter().map(|&uci| uci.to_owned()).collect(),
                evals: Vec::new(),
                winner,
                termination,
                detail: None,
            },
        };
        let games = vec![
            game(0, 4, Some(Side::Black), Termination::Rules(Reason::Checkmate)),
            game(1, 3, None, Termination::Truncated),
            game(4, 3, Some(Side::White), Termination::Fault),
        ];
        SelfPlayGames { player: "greedy".to_owned(), limit: "-".to_owned(), games }
    }

    fn pgn(games: Games<'_>) -> Vec<PgnGame> {
        let mut text = Vec::new();
        let count = games.write(Format::Pgn, Extras::default(), &mut text).unwrap();
        let read: Vec<PgnGame> = Reader::new(&text[..]).map(Result::unwrap).collect();
        assert_eq!(count, read.len() as u64);
        read
    }

    fn lines(games: Games<'_>, extras: Extras) -> Vec<Value> {
        let mut text = Vec::new();
        games.write(Format::JsonLines, extras, &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn games_and_positions_of_a_run_are_exported() {
        let folder = tempfile::tempdir().unwrap();
        let run = run(folder.path());
        let games = pgn(Games::Run(&run));
        assert_eq!((games.len(), games[3].result, games[3].game.ply()), (4, PgnResult::Black, 4));
        let lines = lines(Games::Run(&run), Extras::default());
        assert_eq!(lines.len(), 4);
        let first = &lines[0];
        assert_eq!((&first["move"], &first["outcome"]), (&json!("g2g4"), &json!(-1)));
        assert_eq!((&first["result"], &first["reason"]), (&json!("0-1"), &json!("checkmate")));
        assert_eq!(first["policy"].as_object().unwrap().len(), 1);
        assert!(first.get("board").is_none() && first.get("opening").is_none());
    }

    #[test]
    fn a_game_without_a_result_has_no_outcome() {
        let games = self_play();
        let read = pgn(Games::SelfPlay(&games));
        let results: Vec<PgnResult> = read.iter().map(|game| game.result).collect();
        assert_eq!(results, [PgnResult::Black, PgnResult::Unknown, PgnResult::Unknown]);
        assert_eq!((read[2].get("Round"), read[2].get("White")), (Some("4"), Some("greedy")));
        let lines = lines(Games::SelfPlay(&games), Extras { board: false, legal: true });
        let outcomes: Vec<Value> = lines.iter().map(|line| line["outcome"].clone()).collect();
        assert_eq!(json!(outcomes[..4]), json!([-1, 1, -1, 1]));
        assert_eq!(outcomes[4..], vec![Value::Null; 6]);
        let reasons: Vec<&Value> = lines.iter().map(|line| &line["reason"]).collect();
        assert_eq!((reasons[4], reasons[9]), (&json!("truncated"), &json!("fault")));
        assert_eq!((&lines[9]["game"], &lines[9]["ply"]), (&json!(4), &json!(2)));
        assert_eq!(lines[0]["legal"].as_array().unwrap().len(), 20);
        assert!(lines[0].get("value").is_none());
    }

    #[test]
    fn parquet_is_refused_by_builds_without_it() {
        assert_eq!(Format::Parquet.check().is_ok(), cfg!(feature = "parquet"));
        assert!(Format::Pgn.check().is_ok() && Format::JsonLines.check().is_ok());
    }
}
