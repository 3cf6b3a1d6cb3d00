//! `selfmate tablebase probe`: looks up a position.

use std::io::{self, Write};
use std::sync::Arc;

use anyhow::bail;
use selfmate_chess::notation::{san, uci};
use selfmate_chess::tablebase::{
    Exact, FiftyMoveRule, RankedMove, Syzygy, TableResult, Tablebase, Tables, Verdict,
};
use selfmate_chess::{Chess, Game, Move, Position};
use serde::Serialize;

use super::super::fen_argument;
use crate::output::Output;
use crate::tables::TablesArgs;

#[derive(clap::Args)]
pub struct Args {
    /// The position
    #[arg(long, value_parser = fen_argument)]
    fen: Chess,
    #[command(flatten)]
    tables: TablesArgs,
}

#[derive(Serialize)]
struct Report {
    fen: String,
    /// 1, 0 or -1 for the side to move, under the fifty-move rule; `null` when it is unknown
    /// whether a win comes in time.
    wdl: Option<i32>,
    /// Plies to mate, negative for the losing side; `null` for draws and for endgames that are not
    /// solved.
    dtm: Option<i32>,
    /// Plies to the next capture, pawn move or mate, negative for the losing side; `null` without
    /// Syzygy tables.
    dtz: Option<i32>,
    /// True when the real distance may be one ply longer.
    dtz_is_rounded: bool,
    /// As text. A cursed win would be a win without the fifty-move rule.
    result: Option<String>,
    /// In UCI notation; `null` when there is no legal move.
    best: Option<String>,
    /// Best first; empty unless all moves are known.
    moves: Vec<MoveReport>,
}

#[derive(Serialize)]
struct MoveReport {
    #[serde(rename = "move")]
    uci: String,
    san: String,
    /// For the side that plays the move.
    wdl: Option<i32>,
    dtm: Option<i32>,
    dtz: Option<i32>,
    result: Option<String>,
}

pub fn run(args: &Args, output: &Output) -> anyhow::Result<()> {
    let position = &args.fen;
    if !position.castles().is_empty() {
        bail!("--fen: tablebases do not contain positions with castling rights");
    }
    let exact = Exact::new();
    let verdict = exact.verdict(position);
    // A solved endgame needs no files.
    let tables = match verdict {
        Some(_) if !args.tables.is_named() => None,
        _ => Some(args.tables.open()?),
    };
    let pieces = position.board().occupied().count();
    if let Some(tables) = tables.as_ref().filter(|tables| pieces > tables.max_pieces()) {
        bail!(
            "--fen: the position has {pieces} pieces: the tables contain positions of up to {}",
            tables.max_pieces()
        );
    }
    let report = match tables {
        Some(tables) => probe(tables, position, &exact)?,
        None => solve(position, &exact),
    };
    output.report(&report, print)
}

/// The result from the tables, with the distance to mate where it can be solved.
fn probe(tables: Syzygy, position: &Chess, exact: &Exact) -> anyhow::Result<Report> {
    let result = tables.probe_result(position)?;
    let dtz = tables.probe_dtz(position)?;
    if result.is_none() && dtz.is_none() {
        bail!(
            "--fen: no table contains this position: its own table or one of its successors is missing"
        );
    }
    let game = Game::from_position(position.clone());
    let ranking = Tables::new(Arc::new(tables)).rank_moves(&game, &game.legal_moves());
    let mut ranked = ranking.map_or(Vec::new(), |ranking| ranking.moves);
    let verdicts = exact.moves(position).unwrap_or_default();
    let verdict =
        |played: Move| verdicts.iter().find(|known| known.0 == played).map(|known| known.1);
    // Among moves of equal rank, the fastest mate and the longest defence come first.
    ranked.sort_by_key(|m: &RankedMove| (-m.rank, -verdict(m.played).map_or(0, Verdict::rank)));
    Ok(Report {
        dtm: exact.verdict(position).and_then(distance),
        dtz: dtz.map(|dtz| dtz.plies),
        dtz_is_rounded: dtz.is_some_and(|dtz| dtz.is_rounded),
        best: ranked.first().map(|best| uci(position, best.played)),
        moves: ranked
            .iter()
            .map(|m| MoveReport::new(position, m.played, Some(m.result), verdict(m.played), m.dtz))
            .collect(),
        ..Report::new(position, result)
    })
}

/// The result without tables, by solving the endgame.
fn solve(position: &Chess, exact: &Exact) -> Report {
    let clock = position.halfmoves();
    let verdict = exact.verdict(position);
    let moves = exact.moves(position).unwrap_or_default();
    Report {
        dtm: verdict.and_then(distance),
        best: moves.first().map(|(played, _)| uci(position, *played)),
        moves: moves
            .iter()
            .map(|(played, verdict)| {
                let clock = if played.is_zeroing() { 0 } else { clock };
                let result = in_time(*verdict, clock);
                MoveReport::new(position, *played, result, Some(*verdict), None)
            })
            .collect(),
        ..Report::new(position, verdict.and_then(|verdict| in_time(verdict, clock)))
    }
}

impl Report {
    fn new(position: &Chess, result: Option<TableResult>) -> Report {
        Report {
            fen: selfmate_chess::fen::to_fen(position),
            wdl: result.map(|result| result.points(FiftyMoveRule::Obeyed)),
            dtm: None,
            dtz: None,
            dtz_is_rounded: false,
            result: result.map(|result| result.to_string()),
            best: None,
            moves: Vec::new(),
        }
    }
}

impl MoveReport {
    fn new(
        position: &Chess,
        played: Move,
        result: Option<TableResult>,
        verdict: Option<Verdict>,
        dtz: Option<i32>,
    ) -> MoveReport {
        MoveReport {
            uci: uci(position, played),
            san: san(position, played),
            wdl: result.map(|result| result.points(FiftyMoveRule::Obeyed)),
            dtm: verdict.and_then(distance),
            dtz,
            result: result.map(|result| result.to_string()),
        }
    }
}

/// Plies to mate, negative for a loss.
fn distance(verdict: Verdict) -> Option<i32> {
    verdict.plies().map(|plies| i32::from(plies) * verdict.points())
}

/// The result under the fifty-move rule. `None` when mate comes later than the rule allows:
/// captures or pawn moves in between may still save the win, which the distance to mate does not
/// show.
fn in_time(verdict: Verdict, clock: u32) -> Option<TableResult> {
    let is_in_time = verdict.plies().is_none_or(|plies| clock + u32::from(plies) <= 100);
    is_in_time.then_some(match verdict {
        Verdict::Loss(_) => TableResult::Loss,
        Verdict::Draw => TableResult::Draw,
        Verdict::Win(_) => TableResult::Win,
    })
}

fn print(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}", report.fen)?;
    let unclear = "unknown whether the win comes within fifty moves";
    write!(out, "{}", report.result.as_deref().unwrap_or(unclear))?;
    if let Some(dtm) = report.dtm {
        write!(out, ", mate in {} plies", dtm.unsigned_abs())?;
    }
    match report.dtz {
        Some(0) | None => writeln!(out)?,
        Some(dtz) => {
            let about = if report.dtz_is_rounded { " or one more" } else { "" };
            let plies = dtz.unsigned_abs();
            writeln!(out, ", {plies}{about} plies to the next capture, pawn move or mate")?;
        }
    }
    if !report.moves.is_empty() {
        writeln!(out, "\n{:8}{:>13}  dtm  dtz", "move", "result")?;
    }
    let plies = |distance: Option<i32>| distance.map_or("-".to_owned(), |plies| plies.to_string());
    for m in &report.moves {
        let result = m.result.as_deref().unwrap_or("?");
        writeln!(out, "{:8}{:>13}{:>5}{:>5}", m.san, result, plies(m.dtm), plies(m.dtz))?;
    }
    Ok(())
}
