//! Journals and chunks: a kill or damage loses whole games only.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

use selfmate_chess::{Game, Outcome, Reason, Seed};
use selfmate_run::{GameRecord, PositionRecord, Run};

/// A game of random moves with a search result at every second position.
fn game(number: u64, plies: usize) -> GameRecord {
    let mut rng = Seed::new(number).rng();
    let mut game = Game::new();
    let mut positions = Vec::new();
    while game.outcome().is_none() && game.ply() < plies {
        let legal = game.legal_moves();
        if game.ply().is_multiple_of(2) {
            let weights: Vec<f64> = legal.iter().map(|_| rng.gamma(0.5) + 1e-9).collect();
            let sum: f64 = weights.iter().sum();
            positions.push(PositionRecord {
                ply: game.ply() as u16,
                value: rng.unit() as f32,
                draw: rng.unit() as f32,
                policy: weights.iter().map(|weight| (weight / sum) as f32).collect(),
            });
        }
        game.play(*rng.choose(&legal).unwrap()).unwrap();
    }
    let cut = Outcome { winner: None, reason: Reason::Truncated };
    let outcome = game.outcome().unwrap_or(cut);
    let moves = game.moves().collect();
    GameRecord { number, network: 3, start: None, moves, outcome, positions }
}

fn games(numbers: &[u64], plies: usize) -> Vec<GameRecord> {
    numbers.iter().map(|&number| game(number, plies)).collect()
}

fn rounded(games: &[GameRecord]) -> Vec<GameRecord> {
    games.iter().cloned().map(GameRecord::rounded).collect()
}

/// Plays a generation into a journal and seals it. Returns the bytes of the chunk.
fn seal(folder: &Path, games: &[GameRecord]) -> Vec<u8> {
    let mut run = Run::open(folder).unwrap();
    let (mut journal, mut all) = run.journal(1).unwrap();
    for game in games {
        if all.iter().all(|other| other.number != game.number) {
            journal.append(game).unwrap();
            all.push(game.clone());
        }
    }
    journal.seal(&run, &all).unwrap();
    assert!(!folder.join("games/00000001.open").exists());
    fs::read(folder.join("games/00000001.games")).unwrap()
}

#[test]
fn the_same_games_give_the_same_bytes_in_any_order_and_after_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let expected = seal(&folder.path().join("a"), &games(&[1, 2, 3, 4, 5], 60));
    assert_eq!(seal(&folder.path().join("b"), &games(&[4, 1, 5, 3, 2], 60)), expected);
    // Killed after three games, one of them truncated.
    let killed = folder.path().join("c");
    let mut run = Run::open(&killed).unwrap();
    let (mut journal, _) = run.journal(1).unwrap();
    for game in games(&[5, 2, 4], 60) {
        journal.append(&game).unwrap();
    }
    drop((run, journal));
    let path = killed.join("games/00000001.open");
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() - 3]).unwrap();
    assert_eq!(seal(&killed, &games(&[4, 3, 2, 1, 5], 60)), expected);
    let run = Run::open(&killed).unwrap();
    assert_eq!(run.chunks().unwrap(), [1]);
    assert_eq!(run.read_chunk(1).unwrap(), rounded(&games(&[1, 2, 3, 4, 5], 60)));
}

#[test]
fn a_journal_truncated_at_any_byte_keeps_its_complete_games() {
    let folder = tempfile::tempdir().unwrap();
    let mut run = Run::open(folder.path()).unwrap();
    let games = games(&[7, 3, 5], 8);
    let path = folder.path().join("games/00000001.open");
    let mut ends = vec![0];
    let (mut journal, _) = run.journal(1).unwrap();
    for game in &games {
        journal.append(game).unwrap();
        ends.push(fs::metadata(&path).unwrap().len() as usize);
    }
    let whole = fs::read(&path).unwrap();
    for length in 0..=whole.len() {
        fs::write(&path, &whole[..length]).unwrap();
        let (mut journal, found) = run.journal(1).unwrap();
        let kept = ends.iter().filter(|&&end| end <= length).count() - 1;
        let mut expected = rounded(&games[..kept]);
        expected.sort_by_key(|game| game.number);
        assert_eq!(found, expected, "{length} bytes");
        // Appending the rest gives the same file as without truncation.
        for game in &games[kept..] {
            journal.append(game).unwrap();
        }
        assert_eq!(fs::read(&path).unwrap(), whole, "{length} bytes");
    }
}

#[test]
fn damage_ends_a_journal_and_the_last_of_equal_numbers_counts() {
    let folder = tempfile::tempdir().unwrap();
    let mut run = Run::open(folder.path()).unwrap();
    let (mut journal, _) = run.journal(1).unwrap();
    let newer = GameRecord { network: 4, ..game(3, 6) };
    for game in [&game(3, 6), &game(8, 6), &newer] {
        journal.append(game).unwrap();
    }
    let (mut journal, found) = run.journal(1).unwrap();
    assert_eq!(found, rounded(&[newer, game(8, 6)]));
    let path = folder.path().join("games/00000001.open");
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&path, &bytes).unwrap();
    assert_eq!(run.journal(1).unwrap().1, rounded(&[game(3, 6)]));
    journal.clear().unwrap();
    assert!(run.journal(1).unwrap().1.is_empty());
}

#[test]
fn replaced_games_do_not_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let mut run = Run::open(folder.path()).unwrap();
    let (mut journal, _) = run.journal(1).unwrap();
    for game in games(&[1, 2, 3], 12) {
        journal.append(&game).unwrap();
    }
    journal.replace(&games(&[1, 3], 12)).unwrap();
    journal.append(&game(4, 12)).unwrap();
    journal.sync().unwrap();
    let (journal, found) = run.journal(1).unwrap();
    assert_eq!(found, rounded(&games(&[1, 3, 4], 12)));
    journal.seal(&run, &found).unwrap();
    run.replace_chunk(1, &games(&[1, 4], 12)).unwrap();
    assert_eq!(run.read_chunk(1).unwrap(), rounded(&games(&[1, 4], 12)));
}

#[test]
fn flipped_bits_and_truncations_of_a_chunk_are_detected() {
    let folder = tempfile::tempdir().unwrap();
    let whole = seal(folder.path(), &games(&[1, 2, 3], 40));
    let path = folder.path().join("games/00000001.games");
    let mut run = Run::open(folder.path()).unwrap();
    let refused = |what: &str| {
        let error = run.read_chunk(1).unwrap_err().to_string();
        assert!(error.contains("00000001.games: "), "{what}: {error}");
    };
    let mut file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    let mut put = |place: usize, byte: u8| {
        file.seek(SeekFrom::Start(place as u64)).unwrap();
        file.write_all(&[byte]).unwrap();
    };
    for bit in 0..8 * whole.len() {
        put(bit / 8, whole[bit / 8] ^ 1 << (bit % 8));
        refused(&format!("bit {bit}"));
        put(bit / 8, whole[bit / 8]);
    }
    assert_eq!(run.read_chunk(1).unwrap().len(), 3);
    put(whole.len(), 0);
    refused("one byte more");
    for length in (0..whole.len()).rev() {
        file.set_len(length as u64).unwrap();
        refused(&format!("{length} bytes"));
    }
    let aside = run.set_aside(1).unwrap();
    assert_eq!(aside, folder.path().join("games/00000001.damaged"));
    assert!(run.chunks().unwrap().is_empty());
    run.remove_chunk(1).unwrap();
}

#[test]
fn a_journal_whose_chunk_exists_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    seal(folder.path(), &games(&[1], 10));
    let left = folder.path().join("games/00000001.open");
    let other = folder.path().join("games/00000002.open");
    fs::write(&left, "x").unwrap();
    fs::write(&other, "").unwrap();
    let _run = Run::open(folder.path()).unwrap();
    assert!(!left.exists() && other.exists());
}

#[test]
fn an_invalid_game_is_rejected_and_the_journal_stays_usable() {
    let folder = tempfile::tempdir().unwrap();
    let mut run = Run::open(folder.path()).unwrap();
    let (mut journal, _) = run.journal(2).unwrap();
    let mut bad = game(6, 10);
    bad.positions[1].value = 1.5;
    let error = journal.append(&bad).unwrap_err().to_string();
    assert!(error.contains("00000002.open: game 6, ply 2: the value is 1.5"), "{error}");
    journal.append(&game(7, 10)).unwrap();
    assert_eq!(run.journal(2).unwrap().1.len(), 1);
}

#[test]
fn stored_games_are_small() {
    let folder = tempfile::tempdir().unwrap();
    let games = games(&(0..200).collect::<Vec<_>>(), 160);
    let positions: usize = games.iter().map(|game| game.positions.len()).sum();
    let packed = seal(folder.path(), &games).len() as f64 / positions as f64;
    let plain: usize = games.iter().map(|game| game.encode().unwrap().len()).sum();
    let plain = plain as f64 / positions as f64;
    // Random policies are the hardest to compress.
    println!("{plain:.1} bytes per position, {packed:.1} compressed");
    assert!(plain < 60.0 && packed < plain);
}
