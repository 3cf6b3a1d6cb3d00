//! Reads openings, test suites and games from EPD and PGN files, plain or zipped.

use std::fs::File;
use std::io::{BufRead, BufReader, Cursor, Read};
use std::path::Path;

use selfmate_chess::{Game, epd, pgn};

use super::{Opening, OpeningError};
use selfmate_run::bounded_file::{self, Bounded, too_large};

/// The most that is read or unpacked, so that no file or archive can fill the memory.
const MAX_BYTES: u64 = 512 << 20;

/// Reads all positions of a file. Positions where the game is over are left out.
pub(super) fn read(path: &Path, plies: Option<u32>) -> Result<Vec<Opening>, OpeningError> {
    let (input, kind) = open(path)?;
    let mut openings: Vec<Opening> = match kind {
        Kind::Pgn => {
            let games = pgn::Reader::new(input);
            let opening = |game: Result<pgn::PgnGame, pgn::PgnError>| {
                let read = game.map_err(|error| content(path, &error))?;
                let mut game = Game::from_position(read.game.start().clone());
                let kept = plies.map_or(usize::MAX, |plies| plies as usize);
                read.game.moves().take(kept).for_each(|m| game.play_unchecked(m));
                Ok(Opening { game, name: read.get("Opening").map(str::to_owned) })
            };
            games.map(opening).collect::<Result<_, _>>()?
        }
        Kind::Epd => {
            let opening = |epd: epd::Epd| Opening {
                game: Game::from_position(epd.position().clone()),
                name: epd.id().map(str::to_owned),
            };
            read_lines(path, input)?.into_iter().map(opening).collect()
        }
    };
    openings.retain(|opening| opening.game.outcome().is_none());
    if openings.is_empty() {
        return Err(OpeningError::Empty { path: path.to_owned() });
    }
    Ok(openings)
}

/// Reads the positions of a test suite with their expected moves.
pub(crate) fn read_suite(path: &Path) -> Result<Vec<epd::Epd>, OpeningError> {
    let lines = read_lines(path, open(path)?.0)?;
    if lines.is_empty() {
        return Err(OpeningError::Empty { path: path.to_owned() });
    }
    Ok(lines)
}

pub(crate) fn read_pgn_games(path: &Path) -> Result<Vec<Game>, OpeningError> {
    let game = |game: Result<pgn::PgnGame, pgn::PgnError>| {
        game.map(|game| game.game).map_err(|error| content(path, &error))
    };
    pgn::Reader::new(open(path)?.0).map(game).collect()
}

enum Kind {
    Epd,
    Pgn,
}

/// Opens a file, or the first suitable file of an archive, and determines its kind.
fn open(path: &Path) -> Result<(Box<dyn BufRead>, Kind), OpeningError> {
    let io = |error| OpeningError::Io { path: path.to_owned(), error };
    let is_zip = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("zip"));
    let (mut input, name): (Box<dyn BufRead>, String) = if is_zip {
        let (name, content) = unpack(path, File::open(path).map_err(io)?)?;
        (Box::new(Cursor::new(content)), name)
    } else {
        let file = bounded_file::open(path, MAX_BYTES).map_err(io)?;
        (Box::new(BufReader::new(file)), path.to_string_lossy().into_owned())
    };
    // A PGN file starts with a tag, an EPD line with a board.
    let is_pgn = match name.to_ascii_lowercase() {
        name if name.ends_with(".pgn") => true,
        name if name.ends_with(".epd") || name.ends_with(".fen") => false,
        _ => input.fill_buf().map_err(io)?.trim_ascii_start().starts_with(b"["),
    };
    Ok((input, if is_pgn { Kind::Pgn } else { Kind::Epd }))
}

fn read_lines(path: &Path, input: Box<dyn BufRead>) -> Result<Vec<epd::Epd>, OpeningError> {
    epd::read_epd(input).map(|line| line.map_err(|error| content(path, &error))).collect()
}

fn content(path: &Path, error: &dyn std::fmt::Display) -> OpeningError {
    OpeningError::Content { path: path.to_owned(), reason: error.to_string() }
}

/// The name and content of the first EPD or PGN file of an archive.
fn unpack(path: &Path, file: File) -> Result<(String, Vec<u8>), OpeningError> {
    let archive = |reason: String| OpeningError::Archive { path: path.to_owned(), reason };
    let mut zip = zip::ZipArchive::new(BufReader::new(file))
        .map_err(|error| archive(format!("not a zip archive: {error}")))?;
    let is_opening = |name: &&str| {
        let name = name.to_ascii_lowercase();
        [".epd", ".pgn", ".fen"].iter().any(|ending| name.ends_with(ending))
    };
    let name = zip.file_names().find(is_opening).map(str::to_owned);
    let name =
        name.ok_or_else(|| archive("the archive contains no .epd or .pgn file".to_owned()))?;
    let entry = zip.by_name(&name).map_err(|error| archive(format!("{name}: {error}")))?;
    let wrong = |error| archive(format!("{name}: {error}"));
    // The size in an archive's header may be wrong, so the reader is bounded too.
    if entry.size() > MAX_BYTES {
        return Err(wrong(too_large(MAX_BYTES)));
    }
    let mut unpacked = Vec::new();
    Bounded::new(entry, MAX_BYTES).read_to_end(&mut unpacked).map_err(wrong)?;
    Ok((name, unpacked))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use selfmate_chess::Seed;

    use super::super::{OpeningSource, Openings};

    const EPD: &str = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - id \"start\";\n\
        rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - \n\
        7k/6Q1/6K1/8/8/8/8/8 b - - \n";
    const PGN: &str = "[Event \"a\"]\n[Opening \"Ruy Lopez\"]\n\n1. e4 e5 2. Nf3 Nc6 3. Bb5 *\n\n\
        [Event \"b\"]\n\n1. d4 d5 *\n";

    fn load(name: &str, content: &[u8], plies: Option<u32>) -> Result<Openings, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        let source = OpeningSource::File { path, plies };
        Openings::load(&source, Seed::new(1))
            .map_err(|error| error.to_string().replace(&folder.path().display().to_string(), "DIR"))
    }

    fn zipped(name: &str, content: &str) -> Vec<u8> {
        let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
        let deflated = zip::write::SimpleFileOptions::default()
            .compression_method(zip::CompressionMethod::Deflated);
        zip.start_file(name, deflated).unwrap();
        zip.write_all(content.as_bytes()).unwrap();
        zip.finish().unwrap().into_inner()
    }

    #[test]
    fn files_are_read_plain_and_zipped() {
        // The third position is already mate.
        assert_eq!(load("a.epd", EPD.as_bytes(), None).unwrap().len(), 2);
        assert_eq!(load("a.zip", &zipped("a.epd", EPD), None).unwrap().len(), 2);
        let pgn = load("a.pgn", PGN.as_bytes(), None).unwrap();
        assert_eq!(pgn.len(), 2);
        assert!(pgn.take(2).iter().any(|opening| opening.game.ply() == 5));
        let short = load("book.pgn.zip", &zipped("sub/a.PGN", PGN), Some(3)).unwrap();
        assert!(short.take(2).iter().any(|opening| opening.game.ply() == 3));
        let named = short.take(2).into_iter().find_map(|opening| opening.name);
        assert_eq!(named.as_deref(), Some("Ruy Lopez"));
    }

    #[test]
    fn endless_and_oversized_files_are_rejected() {
        let folder = tempfile::tempdir().unwrap();
        let large = folder.path().join("large.epd");
        std::fs::File::create(&large).unwrap().set_len(super::MAX_BYTES + 1).unwrap();
        for (path, reason) in [
            (large, "more than 512 MB"),
            ("/dev/zero".into(), "a line is longer than 64 MB: expected a text file"),
        ] {
            if !path.exists() {
                continue;
            }
            let error = super::read_suite(&path).map(drop).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
            let source = OpeningSource::File { path, plies: None };
            let error = Openings::load(&source, Seed::new(1)).map(drop).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }

    #[test]
    fn an_archive_with_an_oversized_entry_is_not_unpacked() {
        // The size is stored twice, in the local header and in the central directory.
        let mut bomb = zipped("a.epd", EPD);
        let size = (EPD.len() as u32).to_le_bytes();
        let places: Vec<usize> =
            (0..bomb.len() - 4).filter(|&at| bomb[at..at + 4] == size).collect();
        assert!(!places.is_empty());
        for at in places {
            bomb[at..at + 4].copy_from_slice(&1_500_000_000_u32.to_le_bytes());
        }
        let error = load("a.zip", &bomb, None).unwrap_err();
        assert_eq!(
            error,
            "openings DIR/a.zip: a.epd: more than 512 MB, which is the most that is read"
        );
    }

    #[test]
    fn errors_name_the_file_and_the_problem() {
        let message = |name: &str, content: &[u8]| load(name, content, None).unwrap_err();
        assert_eq!(
            message("a.epd", b"\n"),
            "openings DIR/a.epd: the file has no position to play from: expected EPD lines or PGN games"
        );
        let bad = message("a.epd", b"8/8/8/8 w - -\n");
        assert!(bad.starts_with("openings DIR/a.epd: line 1: bad FEN"), "{bad}");
        let bad = message("a.pgn", b"[Event \"x\"]\n\n1. e5 *\n");
        assert!(bad.starts_with("openings DIR/a.pgn: game 1, line 3: "), "{bad}");
        let bad = message("a.zip", b"not a zip");
        assert!(bad.starts_with("openings DIR/a.zip: not a zip archive"), "{bad}");
        let bad = message("a.zip", &zipped("readme.txt", "hello"));
        assert_eq!(bad, "openings DIR/a.zip: the archive contains no .epd or .pgn file");
        let missing = OpeningSource::File { path: "/no/such.epd".into(), plies: None };
        let error = Openings::load(&missing, Seed::new(1)).unwrap_err().to_string();
        assert!(error.starts_with("openings /no/such.epd: No such file"), "{error}");
    }
}
