//! `selfmate encode`: prints a position as a network sees it.

use std::collections::BTreeMap;
use std::io::{self, Write};

use anyhow::Context;
use selfmate_chess::env::ActionSpace;
use selfmate_chess::notation::uci;
use selfmate_chess::{Chess, Game, Position};
use selfmate_encode::sparse::{SPARSE768, SPARSE768_VERSION, sparse768};
use selfmate_encode::{MoveSpace, Planes};
use serde::Serialize;

use super::{fen_argument, game_after};
use crate::output::Output;

#[derive(clap::Args)]
pub struct Args {
    /// The position [default: the start position]
    #[arg(long, value_parser = fen_argument, default_value = "startpos", hide_default_value = true)]
    fen: Chess,
    /// planes119, planes13, planes12, planes_krk, sparse768, az4672 or from_to4096
    #[arg(long, default_value = "planes119")]
    encoding: String,
    /// Print the whole map from moves to indices of az4672 or from_to4096 instead
    #[arg(long, value_name = "NAME", conflicts_with_all = ["fen", "encoding", "moves"])]
    mapping: Option<String>,
    /// Moves played from the position, for the history planes (UCI or SAN, separated by commas)
    #[arg(long, value_delimiter = ',')]
    moves: Vec<String>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Report {
    Planes { encoding: &'static str, version: u32, planes: usize, values: Vec<f32> },
    Sparse { encoding: &'static str, version: u32, features: Vec<u16> },
    Moves { encoding: &'static str, version: u32, moves: Vec<IndexedMove> },
}

/// The whole map of a move encoding.
#[derive(Serialize)]
struct Mapping {
    mapping: &'static str,
    version: u32,
    /// The number of indices.
    size: usize,
    /// The index of each move.
    moves: BTreeMap<String, usize>,
}

#[derive(Serialize)]
struct IndexedMove {
    #[serde(rename = "move")]
    uci: String,
    index: Option<usize>,
}

pub fn run(args: &Args, output: &Output) -> anyhow::Result<()> {
    if let Some(name) = &args.mapping {
        let space = MoveSpace::by_name(name).context("--mapping")?;
        let moves = space.uci_indices().into_iter().collect();
        let (version, size) = (space.version(), space.size());
        let mapping = Mapping { mapping: space.name(), version, size, moves };
        return output.report(&mapping, |mapping, out| {
            mapping.moves.iter().try_for_each(|(uci, index)| writeln!(out, "{uci:6}{index}"))
        });
    }
    let game = game_after(&args.fen, &args.moves)?;
    output.report(&report(&args.encoding, &game)?, |report, out| match report {
        Report::Planes { encoding, planes, values, .. } => {
            let kind = Planes::ALL.into_iter().find(|kind| kind.name() == *encoding);
            kind.map_or(Ok(()), |kind| print_planes(kind, *planes, values, out))
        }
        Report::Sparse { features, .. } => {
            features.iter().try_for_each(|feature| writeln!(out, "{feature}"))
        }
        Report::Moves { moves, .. } => moves.iter().try_for_each(|m| match m.index {
            Some(index) => writeln!(out, "{:6}{index}", m.uci),
            None => writeln!(out, "{:6}-", m.uci),
        }),
    })
}

fn report(name: &str, game: &Game) -> anyhow::Result<Report> {
    let position = game.position();
    if let Ok(kind) = Planes::by_name(name) {
        return Ok(Report::Planes {
            encoding: kind.name(),
            version: kind.version(),
            planes: kind.count(),
            values: kind.encoded(game),
        });
    }
    if name == SPARSE768 {
        let mut features = Vec::new();
        sparse768(position, &mut features);
        return Ok(Report::Sparse { encoding: SPARSE768, version: SPARSE768_VERSION, features });
    }
    if let Ok(space) = MoveSpace::by_name(name) {
        let indexed = |&m: &selfmate_chess::Move| IndexedMove {
            uci: uci(position, m),
            index: space.index(position, m),
        };
        return Ok(Report::Moves {
            encoding: space.name(),
            version: space.version(),
            moves: position.legal_moves().iter().map(indexed).collect(),
        });
    }
    let known = Planes::ALL.map(Planes::name).to_vec();
    let spaces = MoveSpace::ALL.map(|space| space.name());
    let known = [known, vec![SPARSE768], spaces.to_vec()].concat();
    anyhow::bail!("unknown encoding '{name}': expected one of {}", known.join(", "))
}

/// Prints planes side by side, six per row, rank 8 on top: `.` for 0, `#` for 1, `-` for -1, `+`
/// for other values.
fn print_planes(kind: Planes, count: usize, values: &[f32], out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{} v{}: {} planes of 8x8, rank 8 on top", kind.name(), kind.version(), count)?;
    for range in kind.ranges() {
        writeln!(out, "\nplanes {}-{}: {}", range.first, range.last, range.meaning)?;
        let planes: Vec<usize> = (range.first..=range.last).collect();
        for row in planes.chunks(6) {
            for rank in (0..8).rev() {
                for plane in row {
                    for file in 0..8 {
                        let value = values[kind.offset(*plane, rank * 8 + file)];
                        write!(out, "{}", cell(value))?;
                    }
                    write!(out, "   ")?;
                }
                writeln!(out)?;
            }
            let fractions = row.iter().map(|&plane| values[kind.offset(plane, 0)]);
            let fractions: Vec<String> = fractions
                .filter(|value| value.fract() != 0.0)
                .map(|value| format!("{value:.3}"))
                .collect();
            if !fractions.is_empty() {
                writeln!(out, "value {}", fractions.join(" "))?;
            }
            writeln!(out)?;
        }
    }
    Ok(())
}

fn cell(value: f32) -> char {
    match value {
        0.0 => '.',
        1.0 => '#',
        -1.0 => '-',
        _ => '+',
    }
}
