//! The sealed games of one generation: a header, a hash over everything, compressed records.
//!
//! The bytes depend on the games alone, not on the order in which they ended. The hash is checked
//! first, then what is left is still not believed: sizes are bounded, every record has its own
//! checksum, every move is checked.

use std::io::Read;
use std::path::Path;

use crate::error::RunError;
use crate::frame::{self, Frames};
use crate::game::GameRecord;

const MAGIC: &[u8; 8] = b"SMGAMES1";
/// Magic, generation, number of games, size of the records.
const HEAD: usize = 32;
const HASH: usize = 32;
/// The records of a chunk take at most this much, compressed or not.
const MAX_RECORDS: u64 = 1 << 30;
/// Higher levels gain a percent or two and cost several times as much.
const LEVEL: i32 = 3;

/// Games as the bytes of a chunk; `path` is for errors.
pub fn encode(path: &Path, generation: u64, games: &[GameRecord]) -> Result<Vec<u8>, RunError> {
    let mut order: Vec<&GameRecord> = games.iter().collect();
    order.sort_by_key(|game| game.number);
    if let Some(pair) = order.windows(2).find(|pair| pair[0].number == pair[1].number) {
        let what = format!("game {} twice: expected each once", pair[0].number);
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

/// The games of a chunk, or what is wrong with its bytes.
pub fn decode(generation: u64, bytes: &[u8]) -> Result<Vec<GameRecord>, String> {
    let Some((head, rest)) = bytes.split_at_checked(HEAD) else {
        return Err(format!("{} bytes: expected at least {}", bytes.len(), HEAD + HASH));
    };
    let Some((stored, packed)) = rest.split_at_checked(HASH) else {
        return Err(format!("{} bytes: expected at least {}", bytes.len(), HEAD + HASH));
    };
    if &head[..8] != MAGIC {
        return Err("the first bytes are not those of a chunk of games".into());
    }
    if hash(head, packed) != stored {
        return Err("the bytes do not match their hash".into());
    }
    let number = |place: usize| {
        u64::from_le_bytes(head[place..place + 8].try_into().expect("eight bytes of the header"))
    };
    let (told, count, size) = (number(8), number(16), number(24));
    if told != generation {
        return Err(format!("holds generation {told}: expected {generation}"));
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

/// Never gives more than one byte above `size`, whatever the compressed bytes say.
fn unpack(packed: &[u8], size: u64) -> Result<Vec<u8>, String> {
    let mut records = Vec::new();
    zstd::Decoder::new(packed)
        .and_then(|decoder| decoder.take(size + 1).read_to_end(&mut records))
        .map_err(|error| format!("cannot be decompressed: {error}"))?;
    if records.len() as u64 == size {
        Ok(records)
    } else {
        Err(format!("decompresses to another size than {size} bytes"))
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

    /// A chunk whose hash is right and whose header may lie.
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
    fn games_come_back_sorted_whatever_their_order() {
        let path = Path::new("5.games");
        let bytes = encode(path, 5, &[game(2), game(9), game(4)]).unwrap();
        assert_eq!(encode(path, 5, &[game(9), game(4), game(2)]).unwrap(), bytes);
        assert_eq!(decode(5, &bytes).unwrap(), [game(2), game(4), game(9)]);
        assert_eq!(decode(6, &bytes).unwrap_err(), "holds generation 5: expected 6");
        assert!(decode(5, &encode(path, 5, &[]).unwrap()).unwrap().is_empty());
        let error = encode(path, 5, &[game(2), game(2)]).unwrap_err();
        assert_eq!(error.to_string(), "5.games: game 2 twice: expected each once");
    }

    #[test]
    fn headers_that_lie_are_found_out() {
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
