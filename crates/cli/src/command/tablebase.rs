//! `selfmate tablebase`: what tablebases know of a position.

use std::io::{self, Write};
use std::sync::Arc;

use anyhow::bail;
use selfmate_chess::notation::{san, uci};
use selfmate_chess::tablebase::{FiftyMoveRule, Syzygy, Tablebase, Tables};
use selfmate_chess::{Chess, Game, Position};
use serde::Serialize;

use super::fen_argument;
use crate::output::Output;
use crate::tables::TablesArgs;

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Look a position up: who wins, how far the next capture or pawn move is, which moves keep it
    Probe(Probe),
}

#[derive(clap::Args)]
struct Probe {
    /// The position
    #[arg(long, value_parser = fen_argument)]
    fen: Chess,
    #[command(flatten)]
    tables: TablesArgs,
}

#[derive(Serialize)]
struct Report {
    fen: String,
    /// 1, 0 or -1 for the side to move, with the fifty-move rule; `null` where a ply of rounding
    /// decides.
    wdl: Option<i32>,
    /// Plies to mate; Syzygy tables do not know it.
    dtm: Option<u32>,
    /// Plies to the next capture, pawn move or mate, negative for the side that loses.
    dtz: Option<i32>,
    /// The true distance may be one ply longer.
    dtz_is_rounded: bool,
    /// In words: a cursed win is one but for the fifty-move rule.
    result: Option<String>,
    /// In UCI; `null` when there is no legal move.
    best: Option<String>,
    /// Best first; empty when not all of them are known.
    moves: Vec<MoveReport>,
}

#[derive(Serialize)]
struct MoveReport {
    #[serde(rename = "move")]
    uci: String,
    san: String,
    /// For the side that makes the move.
    wdl: i32,
    dtz: Option<i32>,
    result: String,
}

pub fn run(args: &Args, output: &Output) -> anyhow::Result<()> {
    let Command::Probe(args) = &args.command;
    let tables = args.tables.open()?;
    let position = &args.fen;
    if !position.castles().is_empty() {
        bail!("--fen: tablebases know no positions with castling rights");
    }
    let men = position.board().occupied().count();
    if men > tables.max_men() {
        bail!(
            "--fen: a position of {men} men: the tables know those of up to {}",
            tables.max_men()
        );
    }
    let report = probe(tables, position)?;
    output.report(&report, print)
}

fn probe(tables: Syzygy, position: &Chess) -> anyhow::Result<Report> {
    let result = tables.probe_result(position)?;
    let dtz = tables.probe_dtz(position)?;
    if result.is_none() && dtz.is_none() {
        bail!("--fen: no table has this position: its own, or one it leads to, is missing");
    }
    let rule = FiftyMoveRule::Obeyed;
    let game = Game::from_position(position.clone());
    let ranking = Tables::new(Arc::new(tables)).rank_moves(&game, &game.legal_moves());
    let ranked = ranking.map_or(Vec::new(), |ranking| ranking.moves);
    Ok(Report {
        fen: selfmate_chess::fen::to_fen(position),
        wdl: result.map(|result| result.points(rule)),
        dtm: None,
        dtz: dtz.map(|dtz| dtz.plies),
        dtz_is_rounded: dtz.is_some_and(|dtz| dtz.is_rounded),
        result: result.map(|result| result.to_string()),
        best: ranked.first().map(|best| uci(position, best.played)),
        moves: ranked
            .iter()
            .map(|ranked| MoveReport {
                uci: uci(position, ranked.played),
                san: san(position, ranked.played),
                wdl: ranked.result.points(rule),
                dtz: ranked.dtz,
                result: ranked.result.to_string(),
            })
            .collect(),
    })
}

fn print(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}", report.fen)?;
    let unclear = "a ply of rounding decides whether it comes within fifty moves";
    let plies = |dtz: Option<i32>| dtz.map_or(String::new(), |dtz| format!("{dtz:>5}"));
    write!(out, "{}", report.result.as_deref().unwrap_or(unclear))?;
    match report.dtz {
        Some(0) | None => writeln!(out)?,
        Some(dtz) => {
            let about = if report.dtz_is_rounded { " or one more" } else { "" };
            let plies = dtz.unsigned_abs();
            writeln!(out, ", {plies}{about} plies to the next capture, pawn move or mate")?;
        }
    }
    if !report.moves.is_empty() {
        writeln!(out, "\n{:8}{:>13}  dtz", "move", "result")?;
    }
    for m in &report.moves {
        writeln!(out, "{:8}{:>13}{}", m.san, m.result, plies(m.dtz))?;
    }
    Ok(())
}
