//! A game on its way: what it was played for, the right to send it, the packed record.
//!
//! | part | bytes |
//! |---|---|
//! | version, 1 | 1 |
//! | hash of the order | 32 |
//! | token of the grant | 32 |
//! | number of the game, lowest byte first | 8 |
//! | simulations, lowest byte first | 8 |
//! | the record as a run stores it, compressed with Zstandard | the rest |
//!
//! A message is one parcel after the other, each after its length in four bytes, lowest first: what a
//! worker finishes within a moment goes together, because each message costs the broker a write to
//! its disk.

use std::io::Read;

use selfmate_arena::GameRecord;
use selfmate_learn::endgame::Log;
use selfmate_learn::selfplay::Played;
use selfmate_run::RecordError;

use crate::hash::Hash;
use crate::key::Key;
use crate::refusal::Refusal;
use crate::subject::WorkerName;

/// No parcel is larger; a game of 200 plies takes about 6,000 bytes.
pub const MAX_PARCEL: usize = 1 << 18;
/// No message is larger: a parcel of any size, or several small ones.
pub const MAX_MESSAGE: usize = LENGTH + MAX_PARCEL;
/// No record is larger when it is unpacked, whatever its parcel says.
pub const MAX_RECORD: usize = 1 << 19;

/// Bytes of a parcel's length.
const LENGTH: usize = 4;
const VERSION: u8 = 1;
const HEAD: usize = 1 + 2 * Hash::LENGTH + 8 + 8;
const LEVEL: i32 = 3;
/// Enough for the largest record.
const WINDOW_LOG: u32 = 20;

/// A game on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parcel {
    /// What it was played for.
    pub order: Hash,
    /// The right to send it.
    pub token: Hash,
    /// The number of the game.
    pub number: u64,
    /// Simulations of all its searches, as the sender says.
    pub simulations: u64,
    packed: Vec<u8>,
}

impl Parcel {
    /// Packs a game.
    pub fn new(order: Hash, token: Hash, played: &Played) -> Result<Parcel, RecordError> {
        let Played { record, simulations } = played;
        Ok(Parcel::of_bytes(order, token, record.number, *simulations, &record.encode()?))
    }

    /// Packs a game of an ending.
    pub fn of_ending(order: Hash, token: Hash, log: &Log) -> Parcel {
        Parcel::of_bytes(order, token, log.number, log.walks.count, &log.encode())
    }

    /// Packs a game of a match.
    pub fn of_match(order: Hash, token: Hash, record: &GameRecord) -> Parcel {
        let bytes = serde_json::to_vec(record).expect("a record is plain data");
        Parcel::of_bytes(order, token, record.game, 0, &bytes)
    }

    /// Reads a parcel that must be for this order, asked for from this worker.
    pub fn asked(
        bytes: &[u8],
        key: &Key,
        worker: &WorkerName,
        order: &Hash,
    ) -> Result<Parcel, Refusal> {
        let parcel = Parcel::decode(bytes).map_err(Refusal::Unasked)?;
        if parcel.token != key.token(worker, &parcel.order, parcel.number) {
            let what = format!("game {} without the token of {worker}", parcel.number);
            return Err(Refusal::Unasked(what));
        }
        if parcel.order == *order { Ok(parcel) } else { Err(Refusal::Late) }
    }

    /// Packs any bytes as a record.
    pub fn of_bytes(
        order: Hash,
        token: Hash,
        number: u64,
        simulations: u64,
        record: &[u8],
    ) -> Parcel {
        let packed = zstd::bulk::compress(record, LEVEL).expect("memory can be compressed");
        Parcel { order, token, number, simulations, packed }
    }

    /// The parcel as bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEAD + self.packed.len());
        bytes.push(VERSION);
        bytes.extend(self.order.as_bytes());
        bytes.extend(self.token.as_bytes());
        bytes.extend(self.number.to_le_bytes());
        bytes.extend(self.simulations.to_le_bytes());
        bytes.extend(&self.packed);
        bytes
    }

    /// Reads a parcel without unpacking it.
    pub fn decode(bytes: &[u8]) -> Result<Parcel, String> {
        if bytes.len() > MAX_PARCEL {
            return Err(format!("{} bytes: expected at most {MAX_PARCEL}", bytes.len()));
        }
        let short = || format!("{} bytes: expected at least {HEAD}", bytes.len());
        let (&version, rest) = bytes.split_first().ok_or_else(short)?;
        if version != VERSION {
            return Err(format!("version {version}: expected {VERSION}"));
        }
        let (order, rest) = rest.split_first_chunk().ok_or_else(short)?;
        let (token, rest) = rest.split_first_chunk().ok_or_else(short)?;
        let (number, rest) = rest.split_first_chunk().ok_or_else(short)?;
        let (simulations, rest) = rest.split_first_chunk().ok_or_else(short)?;
        Ok(Parcel {
            order: Hash::from_bytes(*order),
            token: Hash::from_bytes(*token),
            number: u64::from_le_bytes(*number),
            simulations: u64::from_le_bytes(*simulations),
            packed: rest.to_vec(),
        })
    }

    /// The record, never more than a byte above the largest.
    pub fn record(&self) -> Result<Vec<u8>, String> {
        let mut record = Vec::new();
        zstd::Decoder::new(&self.packed[..])
            .and_then(|mut decoder| {
                // Or a hundred bytes could ask for a hundred megabytes.
                decoder.window_log_max(WINDOW_LOG)?;
                decoder.take(MAX_RECORD as u64 + 1).read_to_end(&mut record)
            })
            .map_err(|error| format!("cannot be decompressed: {error}"))?;
        if record.len() > MAX_RECORD {
            return Err(format!("decompresses to more than {MAX_RECORD} bytes"));
        }
        Ok(record)
    }
}

/// Adds a parcel to a message; false when there is no room for it. An empty message takes any.
pub fn load(message: &mut Vec<u8>, parcel: &[u8]) -> bool {
    let is_room = message.len() + LENGTH + parcel.len() <= MAX_MESSAGE;
    if is_room || message.is_empty() {
        message.extend((parcel.len() as u32).to_le_bytes());
        message.extend(parcel);
        return true;
    }
    false
}

/// The parcels of a message.
pub fn unload(message: &[u8]) -> Result<Vec<&[u8]>, Refusal> {
    let cut = || Refusal::Unasked(format!("{} bytes that are not whole parcels", message.len()));
    let mut parcels = Vec::new();
    let mut rest = message;
    while let Some((length, after)) = rest.split_first_chunk::<LENGTH>() {
        let length = u32::from_le_bytes(*length) as usize;
        let (parcel, after) = after.split_at_checked(length).ok_or_else(cut)?;
        parcels.push(parcel);
        rest = after;
    }
    if rest.is_empty() && !parcels.is_empty() { Ok(parcels) } else { Err(cut()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parcel(record: &[u8]) -> Parcel {
        Parcel::of_bytes(Hash::of(b"order"), Hash::of(b"token"), 5, 600, record)
    }

    #[test]
    fn a_parcel_comes_back_and_every_cut_is_noticed() {
        let parcel = parcel(b"some record");
        let bytes = parcel.encode();
        assert_eq!(Parcel::decode(&bytes).unwrap(), parcel);
        assert_eq!(parcel.record().unwrap(), b"some record");
        for length in 0..bytes.len() {
            let cut = Parcel::decode(&bytes[..length]).and_then(|parcel| parcel.record());
            assert!(cut.is_err(), "{length}");
        }
        assert!(Parcel::decode(&vec![1; MAX_PARCEL + 1]).unwrap_err().contains("at most"));
        assert!(Parcel::decode(&[2; 200]).unwrap_err().starts_with("version 2"));
    }

    #[test]
    fn parcels_travel_together_and_every_cut_is_noticed() {
        let parcels = [&b"one"[..], b"", b"three"];
        let mut message = Vec::new();
        assert!(parcels.iter().all(|parcel| load(&mut message, parcel)));
        assert_eq!(unload(&message).unwrap(), parcels);
        // A whole first parcel is a message too.
        let whole = [7, 11];
        for length in (0..message.len()).filter(|length| !whole.contains(length)) {
            assert!(unload(&message[..length]).is_err(), "{length}");
        }
        assert!(unload(&[255; 8]).is_err());
        let mut message = Vec::new();
        assert!(load(&mut message, &vec![0; MAX_PARCEL]) && !load(&mut message, b"more"));
        assert_eq!(message.len(), MAX_MESSAGE);
    }

    #[test]
    fn a_bomb_does_not_go_off() {
        let bomb = parcel(&vec![0; 1 << 26]);
        assert!(bomb.encode().len() < MAX_PARCEL, "small enough to be sent");
        assert!(bomb.record().unwrap_err().contains("too much memory"));
        // One that claims a small window is stopped at the largest record.
        let slow = parcel(&vec![0; MAX_RECORD + 1]);
        assert!(slow.record().unwrap_err().contains("decompresses to more than"));
    }
}
