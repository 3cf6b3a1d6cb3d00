//! The sealed games of one generation: a header, a hash of everything, compressed records.
//!
//! The bytes depend only on the games, not on the order in which they ended. The reader checks the
//! hash first, but does not trust the contents either: sizes are bounded, every record has its own
//! checksum, and every move must be legal.

use std::io::Read;
use std::path::Path;

use crate::error::RunError;
use crate::frame::{self, Frames};
use crate::game::GameRecord;

const MAGIC: &[u8; 8] = b"SMGAMES1";
/// Magic number, generation, number of games, uncompressed size of the records.
const HEAD: usize = 32;
const HASH: usize = 32;
/// The largest size of a chunk's records, compressed or not.
const MAX_RECORDS: u64 = 1 << 30;
/// Higher levels save one or two percent and take several times as long.
const LEVEL: i32 = 3;

/// Encodes games as a chunk. `path` is for errors only.
pub fn encode(path: &Path, generation: u64, games: &[GameRecord]) -> Result<Vec<u8>, RunError> {
    let mut order: Vec<&GameRecord> = games.iter().collect();
    order.sort_by_key(|game| game.number);
    if let Some(pair) = order.windows(2).find(|pair| pair[0].number == pair[1].number) {
        let what = format!("game {} occurs twice: expected unique game numbers", pair[0].number);
        return Err(RunError::refused(path, what));
    }
    let mut records = Vec::new();
    for game in &order {
        let record = game.encode();
        let record = record.map_err(|error| RunError::Game { path: path.to_owned(), error })?;
        frame::push(&mut records, &record);
        if records.len() as u64 > MAX_RECORDS {
            let what = format!("more than {MAX_RECORDS} bytes of games: expected fewer games");
            return Err(RunError::refused(path, what));
        }
    }
    let packed = zstd::bulk::compress(&records, LEVEL).map_err(RunError::io(path))?;
    let mut bytes = Vec::with_capacity(HEAD + HASH + packed.len());
    bytes.extend(MAGIC);
    bytes.extend(generation.to_le_bytes());
    bytes.extend((order.len() as u64).to_le_bytes());
    bytes.extend((records.len() as u64).to_le_bytes());
    let hash = hash(&bytes, &packed);
    bytes.extend(hash);
    bytes.extend(packed);
    Ok(bytes)
}

/// Decodes the games of a chunk, or returns what is wrong with it.
pub fn decode(generation: u64, bytes: &[u8]) -> Result<Vec<GameRecord>, String> {
    let Some((head, rest)) = bytes.split_at_checked(HEAD) else {
        return Err(format!("{} bytes: expected at least {}", bytes.len(), HEAD + HASH));
    };
    let Some((stored, packed)) = rest.split_at_checked(HASH) else {
        return Err(format!("{} bytes: expected at least {}", bytes.len(), HEAD + HASH));
    };
    if &head[..8] != MAGIC {
        return Err("it does not start with the signature of a chunk of games".into());
    }
    if hash(head, packed) != stored {
        return Err("the bytes do not match their hash".into());
    }
    let number = |place: usize| {
        u64::from_le_bytes(head[place..place + 8].try_into().expect("eight bytes of the header"))
    };
    let (stored, count, size) = (number(8), number(16), number(24));
    if stored != generation {
        return Err(format!("contains generation {stored}: expected {generation}"));
    }
    if size > MAX_RECORDS {
        return Err(format!("{size} bytes of games: expected at most {MAX_RECORDS}"));
    }
    let records = unpack(packed, size)?;
    let mut games: Vec<GameRecord> = Vec::new();
    for record in Frames::new(&records) {
        let game = GameRecord::decode(record?).map_err(|error| error.to_string())?;
        if let Some(last) = games.last().filter(|last| last.number >= game.number) {
            return Err(format!("game {} after game {}", game.number, last.number));
        }
        games.push(game);
    }
    if games.len() as u64 != count {
        return Err(format!("{} games: expected {count}", games.len()));
    }
    Ok(games)
}

/// Returns at most one byte more than `size`, whatever the compressed data contains.
fn unpack(packed: &[u8], size: u64) -> Result<Vec<u8>, String> {
    let mut records = Vec::new();
    zstd::Decoder::new(packed)
        .and_then(|decoder| decoder.take(size + 1).read_to_end(&mut records))
        .map_err(|error| format!("cannot be decompressed: {error}"))?;
    if records.len() as u64 == size {
        Ok(records)
    } else {
        Err(format!("does not decompress to {size} bytes"))
    }
}

fn hash(head: &[u8], packed: &[u8]) -> [u8; HASH] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(head).update(packed);
    hasher.finalize().into()
}

#[cfg(test)]
mod tests {
    use selfmate_chess::{Outcome, Reason};

    use super::*;

    fn game(number: u64) -> GameRecord {
        let outcome = Outcome { winner: None, reason: Reason::Adjudication };
        GameRecord { number, network: 1, start: None, moves: vec![], outcome, positions: vec![] }
    }

    /// A chunk with a valid hash and a header of the caller's choice.
    fn forged(count: u64, size: u64, records: &[u8]) -> Vec<u8> {
        let packed = zstd::bulk::compress(records, LEVEL).unwrap();
        let mut bytes = MAGIC.to_vec();
        bytes.extend([5, count, size].into_iter().flat_map(u64::to_le_bytes));
        let hash = hash(&bytes, &packed);
        bytes.extend(hash);
        bytes.extend(packed);
        bytes
    }

    #[test]
    fn games_are_read_back_sorted_by_number() {
        let path = Path::new("5.games");
        let bytes = encode(path, 5, &[game(2), game(9), game(4)]).unwrap();
        assert_eq!(encode(path, 5, &[game(9), game(4), game(2)]).unwrap(), bytes);
        assert_eq!(decode(5, &bytes).unwrap(), [game(2), game(4), game(9)]);
        assert_eq!(decode(6, &bytes).unwrap_err(), "contains generation 5: expected 6");
        assert!(decode(5, &encode(path, 5, &[]).unwrap()).unwrap().is_empty());
        let error = encode(path, 5, &[game(2), game(2)]).unwrap_err();
        assert_eq!(error.to_string(), "5.games: game 2 occurs twice: expected unique game numbers");
    }

    #[test]
    fn false_headers_are_detected() {
        let mut records = Vec::new();
        for number in [1, 2] {
            frame::push(&mut records, &game(number).encode().unwrap());
        }
        let size = records.len() as u64;
        assert_eq!(decode(5, &forged(2, size, &records)).unwrap().len(), 2);
        assert_eq!(decode(5, &forged(3, size, &records)).unwrap_err(), "2 games: expected 3");
        let bomb = vec![0; 1 << 24];
        for (count, size, records) in [
            (2, size - 1, &records),
            (2, size + 1, &records),
            (2, u64::MAX, &records),
            (2, 9, &bomb),
        ] {
            assert!(decode(5, &forged(count, size, records)).is_err(), "{count} {size}");
        }
        let mut backward = Vec::new();
        for number in [2, 1] {
            frame::push(&mut backward, &game(number).encode().unwrap());
        }
        assert_eq!(decode(5, &forged(2, size, &backward)).unwrap_err(), "game 1 after game 2");
    }
}
