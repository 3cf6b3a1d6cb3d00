//! Games from PGN files as training games.

use std::fs::File;
use std::io::{self, BufReader};
use std::path::Path;

use selfmate_chess::pgn::{PgnError, PgnFault, PgnGame, PgnResult, Reader};
use selfmate_chess::{Color, Game, Outcome, Reason};
use selfmate_run::{GameRecord, PositionRecord};
use selfmate_selfplay::start_fen;
use selfmate_train::TrainingError;
use serde::{Deserialize, Serialize};

/// Which games of which files to use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PgnConfig {
    pub files: Vec<String>,
    /// The lowest Elo of either player; 0 also accepts games without Elo.
    pub min_elo: u32,
    /// Skip drawn games.
    pub only_decided: bool,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct PgnGames {
    pub games: Vec<GameRecord>,
    /// Games skipped because of their Elo, result or length.
    pub filtered: u64,
    /// Games that cannot be read.
    pub broken: u64,
}

/// Reads at most `most` games that pass the filters; `None` when there was no time.
pub fn read_pgn(
    config: &PgnConfig,
    most: u64,
    is_over: &dyn Fn() -> bool,
) -> Result<Option<PgnGames>, TrainingError> {
    let mut found = PgnGames::default();
    for file in &config.files {
        let path = Path::new(file);
        let unreadable =
            |error: &io::Error| TrainingError::Teacher(format!("{}: {error}", path.display()));
        let input = File::open(path).map_err(|error| unreadable(&error))?;
        for game in Reader::new(BufReader::new(input)) {
            if found.games.len() as u64 >= most {
                return Ok(Some(found));
            }
            if is_over() {
                return Ok(None);
            }
            let game = match game {
                Ok(game) => game,
                Err(PgnError { fault: PgnFault::Io(error), .. }) => return Err(unreadable(&error)),
                // Reading continues after a broken game.
                Err(_) => {
                    found.broken += 1;
                    continue;
                }
            };
            match game_record(config, &game, found.games.len() as u64) {
                Some(record) => found.games.push(record),
                None => found.filtered += 1,
            }
        }
    }
    if found.games.is_empty() {
        let PgnGames { filtered, broken, .. } = found;
        let files = config.files.join(", ");
        let message = format!(
            "{files}: no game to learn from: {filtered} do not pass the filters, {broken} cannot be read"
        );
        return Err(TrainingError::Teacher(message));
    }
    Ok(Some(found))
}

/// The record of a game; `None` when it does not pass the filters.
fn game_record(config: &PgnConfig, game: &PgnGame, number: u64) -> Option<GameRecord> {
    let elo = |tag: &str| game.get(tag).and_then(|text| text.parse::<u32>().ok()).unwrap_or(0);
    if elo("WhiteElo").min(elo("BlackElo")) < config.min_elo {
        return None;
    }
    let winner = match game.result {
        PgnResult::White => Some(Color::White),
        PgnResult::Black => Some(Color::Black),
        PgnResult::Draw => None,
        PgnResult::Unknown => return None,
    };
    let has_valid_length = game.game.ply() > 0 && game.game.ply() < usize::from(u16::MAX);
    if !has_valid_length || (config.only_decided && winner.is_none()) {
        return None;
    }
    let result = Outcome { winner, reason: Reason::Adjudication };
    let mut replayed = Game::from_position(game.game.start().clone());
    let mut positions = Vec::with_capacity(game.game.ply());
    for m in game.game.moves() {
        let legal = replayed.legal_moves();
        let policy = legal.iter().map(|&other| if other == m { 1.0 } else { 0.0 }).collect();
        let value = f32::from(result.reward(replayed.turn()));
        let draw = if winner.is_none() { 1.0 } else { 0.0 };
        positions.push(PositionRecord { ply: replayed.ply() as u16, value, draw, policy });
        replayed.play_unchecked(m);
    }
    let ended = replayed.outcome().filter(|outcome| outcome.winner == winner);
    Some(GameRecord {
        number,
        network: 0,
        start: start_fen(&replayed),
        moves: replayed.moves().collect(),
        outcome: ended.unwrap_or(result),
        positions,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GAMES: &str = "[Event \"a\"]\n[WhiteElo \"2400\"]\n[BlackElo \"2500\"]\n\n1. e4 e5 2. Nf3 1-0\n\n\
        [Event \"b\"]\n[WhiteElo \"1400\"]\n[BlackElo \"2500\"]\n\n1. d4 1/2-1/2\n\n\
        [Event \"c\"]\n\n1. f3 e5 2. g4 Qh4# 0-1\n\n\
        [Event \"d\"]\n\n1. e4 Ke5 0-1\n\n\
        [Event \"e\"]\n\n1. e4 *\n";

    fn games(config: &PgnConfig) -> PgnGames {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("games.pgn");
        std::fs::write(&path, GAMES).unwrap();
        let files = vec![path.display().to_string()];
        let all = read_pgn(&PgnConfig { files, ..config.clone() }, 100, &|| false);
        all.unwrap().unwrap()
    }

    #[test]
    fn games_are_filtered_by_elo_and_result_and_can_be_stored() {
        let all = games(&PgnConfig::default());
        assert_eq!((all.games.len(), all.filtered, all.broken), (3, 1, 1));
        for game in &all.games {
            assert!(GameRecord::decode(&game.encode().unwrap()).is_ok());
        }
        assert_eq!(all.games[2].outcome.reason, Reason::Checkmate);
        // Positions of the winner have value 1, those of the loser -1.
        let values: Vec<f32> =
            all.games[2].positions.iter().map(|position| position.value).collect();
        assert_eq!(values, [-1.0, 1.0, -1.0, 1.0]);
        assert_eq!(games(&PgnConfig { min_elo: 2000, ..PgnConfig::default() }).games.len(), 1);
        assert_eq!(games(&PgnConfig { only_decided: true, ..PgnConfig::default() }).games.len(), 2);
        let error = |file: &str| {
            let config = PgnConfig { files: vec![file.into()], ..PgnConfig::default() };
            read_pgn(&config, 1, &|| false).unwrap_err().to_string()
        };
        assert!(error("nowhere.pgn").contains("nowhere.pgn"));
        let folder = tempfile::tempdir().unwrap();
        let name = folder.path().display().to_string();
        assert!(error(&name).contains(&name) && !error(&name).contains("no game to learn from"));
        let none = folder.path().join("none.pgn");
        std::fs::write(&none, "[Event \"e\"]\n\n1. e4 *\n").unwrap();
        let none = none.display().to_string();
        assert!(error(&none).ends_with("1 do not pass the filters, 0 cannot be read"));
        assert_eq!(
            read_pgn(&PgnConfig { files: vec![none], ..PgnConfig::default() }, 1, &|| true)
                .unwrap(),
            None
        );
    }
}
