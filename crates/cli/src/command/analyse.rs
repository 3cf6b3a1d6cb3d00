//! `selfmate analyse`: shows what a search finds in a position.

use std::io::{self, Write};

use selfmate_chess::notation::{san, uci};
use selfmate_chess::{Chess, Move, Position};
use selfmate_search::player::{Limit, Score, SearchInfo};
use serde::Serialize;

use super::{fen_argument, game_after};
use crate::limit::LimitArgs;
use crate::output::{Output, score_text, wdl_text};
use crate::player::{self, DeviceArgs, with_flags};
use crate::tables::TablesArgs;

#[derive(clap::Args)]
#[command(after_long_help = player::help())]
pub struct Args {
    /// The player, such as rollout or alphabeta:depth=8 [default: the network that ships with selfmate]
    #[arg(default_value = "default", hide_default_value = true)]
    player: String,
    /// The position [default: the start position]
    #[arg(long, value_parser = fen_argument, default_value = "startpos", hide_default_value = true)]
    fen: Chess,
    /// Moves played from the position (UCI or SAN, separated by commas)
    #[arg(long, value_delimiter = ',')]
    moves: Vec<String>,
    /// Maximum number of moves to list
    #[arg(long, default_value_t = 256, hide_default_value = true, value_parser = clap::value_parser!(u16).range(1..=256))]
    lines: u16,
    #[command(flatten)]
    limit: LimitArgs,
    #[command(flatten)]
    device: DeviceArgs,
    #[command(flatten)]
    tables: TablesArgs,
    /// Seed of the player's randomness
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

#[derive(Serialize)]
struct Report {
    player: String,
    fen: String,
    /// In UCI notation; `null` when there is no legal move.
    best: Option<String>,
    /// Win, draw and loss probabilities of the side to move.
    wdl: Option<[f32; 3]>,
    score: Option<String>,
    sims: u64,
    seconds: f64,
    moves: Vec<MoveReport>,
}

#[derive(Serialize)]
struct MoveReport {
    #[serde(rename = "move")]
    uci: String,
    san: String,
    visits: Option<u32>,
    prior: Option<f32>,
    /// Expected result for the side to move, from -1 to 1; `null` for players that only report
    /// centipawns.
    q: Option<f32>,
    score: String,
    /// In UCI notation.
    line: Vec<String>,
    #[serde(skip)]
    san_line: String,
}

pub fn run(args: &Args, output: &Output) -> anyhow::Result<()> {
    let game = game_after(&args.fen, &args.moves)?;
    let text = with_flags(&player::registry(), &args.player, &args.limit, args.device)?;
    let (_, mut player) = player::build(&text, args.seed, &args.tables)?;
    let mut report = Report {
        player: player.name().to_owned(),
        fen: selfmate_chess::fen::to_fen(game.position()),
        best: None,
        wdl: None,
        score: None,
        sims: 0,
        seconds: 0.0,
        moves: Vec::new(),
    };
    if game.legal_moves().is_empty() {
        return output
            .report(&report, |report, out| writeln!(out, "no legal move in {}", report.fen));
    }
    let limit = Limit { lines: usize::from(args.lines), ..args.limit.to_limit() };
    let mut infos: Vec<SearchInfo> = Vec::new();
    let started = std::time::Instant::now();
    let choice = player.choose_observed(&game, &limit, &mut |info| {
        // A new report replaces the last one.
        infos.truncate(info.rank - 1);
        infos.push(info.clone());
    })?;
    report.seconds = started.elapsed().as_secs_f64();
    report.best = Some(uci(game.position(), choice.played));
    report.wdl = choice.wdl.map(|wdl| [wdl.win, wdl.draw, wdl.loss]);
    report.score =
        choice.score.or(choice.wdl.map(|wdl| Score::from_value(wdl.value()))).map(score_text);
    report.sims = choice.nodes.unwrap_or(0);
    report.moves = infos.iter().map(|info| move_report(game.position(), info)).collect();
    output.report(&report, |report, out| {
        writeln!(out, "{}", report.fen)?;
        let chances = choice.wdl.map(|wdl| format!(", {}", wdl_text(wdl))).unwrap_or_default();
        writeln!(
            out,
            "{} plays {}: {}{chances}; {} {} in {:.2} s",
            report.player,
            san(game.position(), choice.played),
            report.score.as_deref().unwrap_or("no evaluation"),
            report.sims,
            if infos.iter().any(|info| info.visits.is_some()) { "simulations" } else { "nodes" },
            report.seconds
        )?;
        print_moves(&report.moves, out)
    })
}

/// A column of the table: name, width and the text for a move, if there is one.
type Column = (&'static str, usize, fn(&MoveReport) -> Option<String>);

const COLUMNS: [Column; 4] = [
    ("visits", 9, |m| m.visits.map(|visits| visits.to_string())),
    ("prior", 8, |m| m.prior.map(|prior| format!("{:.1}%", prior * 100.0))),
    ("q", 8, |m| m.q.map(|q| format!("{q:+.3}"))),
    ("score", 12, |m| Some(m.score.clone())),
];

/// Prints the moves as a table, without empty columns.
fn print_moves(moves: &[MoveReport], out: &mut dyn Write) -> io::Result<()> {
    if moves.is_empty() {
        return Ok(());
    }
    let has = |(_, _, value): &&Column| moves.iter().any(|m| value(m).is_some());
    let columns: Vec<&Column> = COLUMNS.iter().filter(has).collect();
    let names = columns.iter().map(|(name, width, _)| format!("{name:>width$}"));
    writeln!(out, "\n{:8}{}  line", "move", names.collect::<String>())?;
    for m in moves {
        let values = columns.iter().map(|(_, width, value)| {
            format!("{:>width$}", value(m).unwrap_or_else(|| "-".to_owned()))
        });
        writeln!(out, "{:8}{}  {}", m.san, values.collect::<String>(), m.san_line)?;
    }
    Ok(())
}

fn move_report(position: &Chess, info: &SearchInfo) -> MoveReport {
    let first = info.line[0];
    MoveReport {
        uci: uci(position, first),
        san: san(position, first),
        visits: info.visits,
        prior: info.prior,
        q: info.wdl.map(selfmate_search::Wdl::value),
        score: score_text(info.score),
        line: along(position, &info.line, uci),
        san_line: along(position, &info.line, san).join(" "),
    }
}

/// Formats a line of moves, each in its own position.
fn along(position: &Chess, line: &[Move], write: fn(&Chess, Move) -> String) -> Vec<String> {
    let mut position = position.clone();
    line.iter()
        .map(|&m| {
            let text = write(&position, m);
            position.play_unchecked(m);
            text
        })
        .collect()
}
