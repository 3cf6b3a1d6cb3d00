//! Games of a player against itself for the export.

use selfmate_arena::MatchGame;
use selfmate_arena::game::Termination;
use selfmate_arena::record::Event;
use selfmate_chess::pgn::{PgnGame, PgnResult};
use selfmate_chess::{Game, notation};
use selfmate_run::RecordError;

use super::DatasetError;
use super::row::{Extras, GameEnd, Row, word};

/// Games that are written together. Their positions with all columns take some tens of megabytes.
const GROUP: usize = 256;

/// The finished games of a self-play.
pub struct SelfPlayGames {
    /// The exact spec of the player.
    pub player: String,
    /// For PGN's tag `TimeControl`.
    pub limit: String,
    pub games: Vec<MatchGame>,
}

impl SelfPlayGames {
    pub(super) fn groups(&self) -> u64 {
        self.games.len().div_ceil(GROUP) as u64
    }

    pub(super) fn pgn(&self, group: u64) -> Result<Vec<PgnGame>, DatasetError> {
        // Times would make the file different each time.
        let event = Event {
            name: "selfmate selfplay",
            a: &self.player,
            b: &self.player,
            limit: &self.limit,
            has_times: false,
        };
        let pgn = |record: &MatchGame| {
            let mut pgn = record.pgn(&event).ok_or_else(|| fault(record, "an illegal move"))?;
            pgn.set("Round", record.game.to_string());
            // A match scores games without a result; data to learn from must not.
            if !end(record).has_result {
                pgn.result = PgnResult::Unknown;
            }
            Ok(pgn)
        };
        self.group(group).iter().map(pgn).collect()
    }

    pub(super) fn rows(&self, group: u64, extras: Extras) -> Result<Vec<Vec<Row>>, DatasetError> {
        self.group(group).iter().map(|record| rows(record, extras)).collect()
    }

    fn group(&self, group: u64) -> &[MatchGame] {
        self.games.chunks(GROUP).nth(group as usize).unwrap_or_default()
    }
}

fn rows(record: &MatchGame, extras: Extras) -> Result<Vec<Row>, DatasetError> {
    let played = record.played.replay().map_err(|error| fault(record, &error.to_string()))?;
    let end = end(record);
    let mut game = Game::from_position(played.start().clone());
    let mut rows = Vec::with_capacity(played.ply());
    for m in played.moves() {
        let uci = notation::uci(game.position(), m);
        let row = Row::new(record.game, &game, Some(uci), &end, extras);
        let is_opening = game.ply() < record.played.opening_plies;
        rows.push(Row { is_opening: Some(is_opening), ..row });
        game.play_unchecked(m);
    }
    Ok(rows)
}

fn end(record: &MatchGame) -> GameEnd {
    let termination = record.played.termination;
    // The end by a fault or the clock says nothing about the positions.
    let has_result = !matches!(
        termination,
        Termination::Truncated | Termination::Fault | Termination::TimeForfeit
    );
    GameEnd {
        winner: record.played.winner.map(Into::into),
        has_result,
        reason: match termination {
            Termination::Rules(reason) => word(reason),
            other => word(other),
        },
    }
}

fn fault(record: &MatchGame, what: &str) -> DatasetError {
    RecordError { number: Some(record.game), ply: None, what: what.to_owned() }.into()
}
