//! The games of a run for the export, one group per generation.

use selfmate_chess::notation;
use selfmate_chess::pgn::PgnGame;
use selfmate_run::{GameRecord, RecordError, RunReader};

use super::DatasetError;
use super::row::{Extras, GameEnd, Row, SearchColumns};

pub fn pgn(run: &RunReader, chunk: u64) -> Result<Vec<PgnGame>, DatasetError> {
    let pgn = |record: &GameRecord| {
        let mut pgn = PgnGame::new(record.replay(|_, _, _| ())?);
        pgn.result = record.outcome.into();
        pgn.set("Event", run.name());
        pgn.set("Round", record.number.to_string());
        Ok(pgn)
    };
    run.read_chunk(chunk)?.iter().map(pgn).collect()
}

pub fn rows(run: &RunReader, chunk: u64, extras: Extras) -> Result<Vec<Vec<Row>>, DatasetError> {
    let games = run.read_chunk(chunk)?;
    Ok(games.iter().map(|record| rows_of(record, extras)).collect::<Result<_, RecordError>>()?)
}

fn rows_of(record: &GameRecord, extras: Extras) -> Result<Vec<Row>, RecordError> {
    let end = GameEnd::from(record.outcome);
    let mut rows = Vec::new();
    record.replay(|game, legal, recorded| {
        let uci = |m| notation::uci(game.position(), m);
        let played = record.moves.get(usize::from(recorded.ply)).map(|&m| uci(m));
        let shares = legal.iter().zip(&recorded.policy).filter(|(_, share)| **share > 0.0);
        let search = SearchColumns {
            value: recorded.value,
            draw: recorded.draw,
            policy: shares.map(|(&m, &share)| (uci(m), share)).collect(),
        };
        let row = Row::new(record.number, game, played, &end, extras);
        rows.push(Row { search: Some(search), ..row });
    })?;
    Ok(rows)
}
