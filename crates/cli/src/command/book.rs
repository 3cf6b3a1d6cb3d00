//! `selfmate book`: makes opening books from games and shows their content.

use std::fs::File;
use std::io::{self, BufReader, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use selfmate_arena::game::Termination;
use selfmate_arena::store::RecordStore;
use selfmate_arena::{BookRules, LearnedBook, MatchGame, PolyglotBook};
use selfmate_chess::pgn::{PgnResult, Reader};
use selfmate_chess::{Chess, Position, notation};
use serde::Serialize;

use super::fen_argument;
use crate::file;
use crate::number;
use crate::output::Output;
use crate::runs;

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Make a book from games: PGN files, stored matches, or run:NAME
    Build(Build),
    /// Show the lines of a book from a position
    Show(Show),
    /// Show the book moves of a position
    Probe(Probe),
    /// Merge books; the weights of the same move are added
    Merge(Merge),
}

#[derive(clap::Args)]
struct Build {
    /// PGN files, files of stored matches (.games), or run:NAME for all matches of a run
    #[arg(required = true)]
    games: Vec<String>,
    /// The Polyglot file to write; a readable text is written to the same name with .txt
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Plies used from each game
    #[arg(long, default_value_t = BookRules::default().plies, value_parser = clap::value_parser!(u32).range(1..))]
    plies: u32,
    /// Minimum number of games with a move
    #[arg(long, default_value_t = BookRules::default().min_games, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    min_games: u32,
    /// How much less than the best move of its position a move may score
    #[arg(long, default_value_t = BookRules::default().tolerance, value_name = "SHARE", value_parser = number::share)]
    tolerance: f64,
}

#[derive(clap::Args)]
struct Show {
    /// A Polyglot book
    book: PathBuf,
    /// The position to start from
    #[arg(long, default_value = "startpos", value_parser = fen_argument)]
    fen: Chess,
    /// Plies to show
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..))]
    plies: u32,
    /// Moves to show per position
    #[arg(long, default_value_t = NonZeroUsize::new(4).expect("not zero"))]
    width: NonZeroUsize,
}

#[derive(clap::Args)]
struct Probe {
    /// A Polyglot book
    book: PathBuf,
    /// The position
    #[arg(default_value = "startpos", value_parser = fen_argument)]
    fen: Chess,
}

#[derive(clap::Args)]
struct Merge {
    /// Polyglot books
    #[arg(required = true, num_args = 2..)]
    books: Vec<PathBuf>,
    /// The file to write
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

#[derive(Serialize)]
struct Written {
    file: String,
    games: Option<u64>,
    positions: usize,
    moves: usize,
}

#[derive(Serialize)]
struct BookMove {
    san: String,
    uci: String,
    weight: u16,
    /// The share of the position's total weight.
    share: f64,
}

/// A book move with its continuations.
#[derive(Serialize)]
struct Line {
    #[serde(flatten)]
    book_move: BookMove,
    then: Vec<Line>,
}

/// Printed for a position that is not in a book.
const NO_MOVE: &str = "no book move in this position";

pub fn run(args: &Args, output: &Output) -> anyhow::Result<()> {
    match &args.command {
        Command::Build(args) => build(args, output),
        Command::Show(args) => {
            let book = PolyglotBook::read(&args.book)?;
            let lines = lines(&book, &args.fen, args.plies, args.width.get());
            output.report(&lines, |lines, out| match lines.is_empty() {
                true => writeln!(out, "{NO_MOVE}"),
                false => write_lines(lines, 0, out),
            })
        }
        Command::Probe(args) => {
            let moves = moves(&PolyglotBook::read(&args.book)?, &args.fen);
            output.report(&moves, |moves, out| {
                if moves.is_empty() {
                    return writeln!(out, "{NO_MOVE}");
                }
                for m in moves {
                    writeln!(out, "{:7} {:5} {:5.1} %", m.san, m.weight, 100.0 * m.share)?;
                }
                Ok(())
            })
        }
        Command::Merge(args) => {
            let mut merged = PolyglotBook::default();
            for path in &args.books {
                merged = merged.merged(&PolyglotBook::read(path)?);
            }
            merged.write(&args.output)?;
            report(&args.output, None, &merged, output)
        }
    }
}

fn build(args: &Build, output: &Output) -> anyhow::Result<()> {
    let rules =
        BookRules { plies: args.plies, min_games: args.min_games, tolerance: args.tolerance };
    let text = args.output.with_extension("txt");
    ensure!(
        text != args.output,
        "--output {}: expected another extension than .txt, which is used for the readable text",
        text.display()
    );
    for source in &args.games {
        let is_written =
            [&args.output, &text].into_iter().any(|path| file::is_same(path, Path::new(source)));
        ensure!(!is_written, "--output {}: {source} would be overwritten", args.output.display());
    }
    let mut book = LearnedBook::new(rules);
    let mut games = 0;
    for source in &args.games {
        games += match source.strip_prefix("run:") {
            Some(name) => add_run(name, &mut book)?,
            None if source.ends_with(".games") => add_match(Path::new(source), &mut book)?,
            None => add_pgn(Path::new(source), &mut book)?,
        };
    }
    let polyglot = book.polyglot();
    if polyglot.is_empty() {
        bail!("{games} games are too few for a book: expected more games, or --min-games 1");
    }
    polyglot.write(&args.output)?;
    file::write(&text, book.to_text().as_bytes())?;
    report(&args.output, Some(games), &polyglot, output)
}

/// Adds all stored matches of a run.
fn add_run(name: &str, book: &mut LearnedBook) -> anyhow::Result<u64> {
    let folder = runs::find(name)?.matches_path();
    let entries =
        std::fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|path| path.extension().is_some_and(|end| end == "games"));
    files.sort();
    files.iter().map(|file| add_match(file, book)).sum()
}

fn add_match(path: &Path, book: &mut LearnedBook) -> anyhow::Result<u64> {
    let stored = RecordStore::read::<MatchGame>(path)?;
    let mut records = stored.map_or(Vec::new(), |(_, records)| records);
    // The result of a truncated game is unknown.
    records.retain(|record| record.played.termination != Termination::Truncated);
    for record in &records {
        let game = record.played.replay().with_context(|| format!("{}", path.display()))?;
        book.add(&game, record.played.white_points());
    }
    Ok(records.len() as u64)
}

fn add_pgn(path: &Path, book: &mut LearnedBook) -> anyhow::Result<u64> {
    let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut games = 0;
    for game in Reader::new(BufReader::new(file)) {
        let game = game.with_context(|| format!("{}", path.display()))?;
        let points = match game.result {
            PgnResult::White => 1.0,
            PgnResult::Black => 0.0,
            PgnResult::Draw => 0.5,
            PgnResult::Unknown => continue,
        };
        book.add(&game.game, points);
        games += 1;
    }
    Ok(games)
}

fn report(
    path: &Path,
    games: Option<u64>,
    book: &PolyglotBook,
    output: &Output,
) -> anyhow::Result<()> {
    let written = Written {
        file: path.display().to_string(),
        games,
        positions: book.positions(),
        moves: book.len(),
    };
    output.report(&written, |written, out| {
        let games = written.games.map_or(String::new(), |games| format!(" from {games} games"));
        writeln!(
            out,
            "{}: {} moves of {} positions{games}",
            written.file, written.moves, written.positions
        )
    })
}

fn moves(book: &PolyglotBook, position: &Chess) -> Vec<BookMove> {
    let mut found = book.moves(position);
    found.sort_by_key(|(_, weight)| std::cmp::Reverse(*weight));
    let total: f64 = found.iter().map(|(_, weight)| f64::from(*weight)).sum();
    found
        .into_iter()
        .map(|(m, weight)| BookMove {
            san: notation::san(position, m),
            uci: notation::uci(position, m),
            weight,
            share: f64::from(weight) / total.max(1.0),
        })
        .collect()
}

/// The book moves of a position with their continuations.
fn lines(book: &PolyglotBook, position: &Chess, plies: u32, width: usize) -> Vec<Line> {
    if plies == 0 {
        return Vec::new();
    }
    let line = |book_move: BookMove| {
        let mut after = position.clone();
        let then = match notation::parse_uci(position, &book_move.uci) {
            Ok(played) => {
                after.play_unchecked(played);
                lines(book, &after, plies - 1, width)
            }
            Err(_) => Vec::new(),
        };
        Line { book_move, then }
    };
    moves(book, position).into_iter().take(width).map(line).collect()
}

/// Writes lines, indented below the move they follow.
fn write_lines(lines: &[Line], indent: usize, out: &mut dyn Write) -> io::Result<()> {
    for Line { book_move, then } in lines {
        let share = 100.0 * book_move.share;
        writeln!(out, "{:indent$}{:7} {share:5.1} %", "", book_move.san)?;
        write_lines(then, indent + 2, out)?;
    }
    Ok(())
}
