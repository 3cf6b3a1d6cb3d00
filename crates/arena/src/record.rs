//! A finished game of a match, as a line of its file and as PGN.

use std::io;
use std::path::Path;

use selfmate_chess::Color;
use selfmate_chess::pgn::{Eval, PgnGame, PgnResult, PovScore, Score, write_pgn};
use selfmate_run::atomic_file;
use serde::{Deserialize, Serialize};

use crate::game::{PlayedGame, Side, Termination};

/// A game of a match between A and B.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MatchGame {
    /// The number, from 0. Games 2n and 2n + 1 are a pair from the same opening.
    pub game: u64,
    /// The colour of A.
    pub a_plays: Side,
    #[serde(flatten)]
    pub played: PlayedGame,
}

impl MatchGame {
    pub fn a_points(&self) -> f64 {
        let white = self.played.white_points();
        if self.a_plays == Side::White { white } else { 1.0 - white }
    }

    /// True when A lost by a fault of its engine or on time.
    pub fn a_failed(&self) -> bool {
        self.failed() && self.a_points() == 0.0
    }

    /// True when B lost by a fault of its engine or on time.
    pub fn b_failed(&self) -> bool {
        self.failed() && self.a_points() == 1.0
    }

    fn failed(&self) -> bool {
        matches!(self.played.termination, Termination::Fault | Termination::TimeForfeit)
    }

    /// The game as PGN; `None` when its moves cannot be replayed.
    pub fn pgn(&self, event: &Event<'_>) -> Option<PgnGame> {
        let mut pgn = PgnGame::new(self.played.replay().ok()?);
        pgn.result = match self.played.winner {
            Some(Side::White) => PgnResult::White,
            Some(Side::Black) => PgnResult::Black,
            None if self.played.termination == Termination::Truncated => PgnResult::Unknown,
            None => PgnResult::Draw,
        };
        let (white, black) = match self.a_plays {
            Side::White => (event.a, event.b),
            Side::Black => (event.b, event.a),
        };
        pgn.set("Event", event.name);
        pgn.set("Round", format!("{}.{}", self.game / 2 + 1, self.game % 2 + 1));
        pgn.set("White", white);
        pgn.set("Black", black);
        if let Some(opening) = &self.played.opening {
            pgn.set("Opening", opening.as_str());
        }
        pgn.set("TimeControl", event.limit);
        pgn.set("Termination", self.played.termination.pgn());
        for (index, eval) in self.played.evals.iter().enumerate() {
            let score = match (eval.mate, eval.cp) {
                (Some(moves), _) => Some(Score::Mate(moves)),
                (None, cp) => cp.map(Score::Centipawns),
            };
            let eval = Eval {
                score: score.map(PovScore::Mover),
                depth: eval.depth,
                time_ms: event.has_times.then_some(eval.ms),
                clock_ms: None,
            };
            let comment = eval.to_string();
            if !comment.is_empty() {
                pgn.note_mut(self.played.opening_plies + index).comment = Some(comment);
            }
        }
        let loser = if self.played.winner == Some(Side::White) { black } else { white };
        let fault = self.played.detail.as_ref().map(|detail| format!("{loser}: {detail}"));
        // PGN has one value for all adjudications; tablebase adjudication is added as a comment.
        let table = match (self.played.termination, self.played.winner) {
            (Termination::Tablebase, Some(Side::White)) => Some("White wins by tablebase"),
            (Termination::Tablebase, Some(Side::Black)) => Some("Black wins by tablebase"),
            (Termination::Tablebase, None) => Some("drawn by tablebase"),
            _ => None,
        };
        if let Some(text) = fault.or(table.map(str::to_owned)) {
            match pgn.game.ply().checked_sub(1) {
                Some(last) => {
                    let note = pgn.note_mut(last);
                    let before = note.comment.take().map(|comment| format!("{comment}, "));
                    note.comment = Some(before.unwrap_or_default() + &text);
                }
                None => pgn.comment = Some(text),
            }
        }
        Some(pgn)
    }
}

/// Tags that all games of a PGN file share.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    pub name: &'a str,
    pub a: &'a str,
    pub b: &'a str,
    /// The value of the `TimeControl` tag.
    pub limit: &'a str,
    /// Whether comments have the time of each move. It differs each time a game is played.
    pub has_times: bool,
}

/// Writes games to a file atomically.
pub fn write_pgn_file<'a>(
    path: &Path,
    event: &Event<'_>,
    records: impl IntoIterator<Item = &'a MatchGame>,
) -> io::Result<()> {
    atomic_file::write_with(path, |out| {
        let mut games = records.into_iter().filter_map(|record| record.pgn(event));
        games.try_for_each(|game| write_pgn(out, &game))
    })
}

impl Termination {
    /// The value of PGN's `Termination` tag.
    pub fn pgn(self) -> &'static str {
        match self {
            Termination::Rules(_) => "normal",
            Termination::TimeForfeit => "time forfeit",
            Termination::Fault => "abandoned",
            Termination::DrawAdjudicated
            | Termination::WinAdjudicated
            | Termination::Tablebase
            | Termination::Truncated => "adjudication",
        }
    }

    /// A short text for tables, such as `threefold repetition`.
    pub fn describe(self) -> String {
        match self {
            Termination::Rules(reason) => reason.to_string(),
            Termination::DrawAdjudicated => "draw adjudicated".to_owned(),
            Termination::WinAdjudicated => "win adjudicated".to_owned(),
            Termination::Tablebase => "tablebase".to_owned(),
            Termination::Truncated => "truncated".to_owned(),
            Termination::TimeForfeit => "time forfeit".to_owned(),
            Termination::Fault => "fault".to_owned(),
        }
    }
}

impl From<Side> for Color {
    fn from(side: Side) -> Color {
        if side == Side::White { Color::White } else { Color::Black }
    }
}
