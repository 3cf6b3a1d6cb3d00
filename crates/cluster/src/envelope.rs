//! A game on its way: what it was played for, the right to send it, the packed record.
//!
//! | part | bytes |
//! |---|---|
//! | version, 1 | 1 |
//! | hash of the job | 32 |
//! | token of the grant | 32 |
//! | number of the game, lowest byte first | 8 |
//! | simulations, lowest byte first | 8 |
//! | the record as a run stores it, compressed with Zstandard | the rest |
//!
//! A message is one envelope after the other, each after its length in four bytes, lowest first: what a
//! worker finishes within a moment goes together, because each message costs the broker a write to
//! its disk.

use std::io::Read;

use selfmate_arena::GameRecord;
use selfmate_run::RecordError;
use selfmate_selfplay::FinishedGame;

use crate::hash::Hash;
use crate::key::Key;
use crate::rejection::Rejection;
use crate::subject::WorkerName;

/// No envelope is larger; a game of 200 plies takes about 6,000 bytes.
pub const MAX_ENVELOPE: usize = 1 << 18;
/// No message is larger: an envelope of any size, or several small ones.
pub const MAX_MESSAGE: usize = LENGTH + MAX_ENVELOPE;
/// No record is larger when it is unpacked, whatever its envelope says.
pub const MAX_RECORD: usize = 1 << 19;

/// Bytes of an envelope's length.
const LENGTH: usize = 4;
const VERSION: u8 = 1;
const HEAD: usize = 1 + 2 * Hash::LENGTH + 8 + 8;
const LEVEL: i32 = 3;
/// Enough for the largest record.
const WINDOW_LOG: u32 = 20;

/// A game on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// What it was played for.
    pub job: Hash,
    /// The right to send it.
    pub token: Hash,
    /// The number of the game.
    pub number: u64,
    /// Simulations of all its searches, as the sender says.
    pub simulations: u64,
    packed: Vec<u8>,
}

impl Envelope {
    /// Packs a game.
    pub fn new(job: Hash, token: Hash, played: &FinishedGame) -> Result<Envelope, RecordError> {
        let FinishedGame { record, simulations } = played;
        Ok(Envelope::of_bytes(job, token, record.number, *simulations, &record.encode()?))
    }

    /// Packs a game of a match.
    pub fn of_match(job: Hash, token: Hash, record: &GameRecord) -> Envelope {
        let bytes = serde_json::to_vec(record).expect("a record is plain data");
        Envelope::of_bytes(job, token, record.game, 0, &bytes)
    }

    /// Reads an envelope that must be for this job, asked for from this worker.
    pub fn asked(
        bytes: &[u8],
        key: &Key,
        worker: &WorkerName,
        job: &Hash,
    ) -> Result<Envelope, Rejection> {
        let envelope = Envelope::decode(bytes).map_err(Rejection::Unasked)?;
        if envelope.token != key.token(worker, &envelope.job, envelope.number) {
            let what = format!("game {} without the token of {worker}", envelope.number);
            return Err(Rejection::Unasked(what));
        }
        if envelope.job == *job { Ok(envelope) } else { Err(Rejection::Late) }
    }

    /// Packs any bytes as a record.
    pub fn of_bytes(
        job: Hash,
        token: Hash,
        number: u64,
        simulations: u64,
        record: &[u8],
    ) -> Envelope {
        let packed = zstd::bulk::compress(record, LEVEL).expect("memory can be compressed");
        Envelope { job, token, number, simulations, packed }
    }

    /// The envelope as bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEAD + self.packed.len());
        bytes.push(VERSION);
        bytes.extend(self.job.as_bytes());
        bytes.extend(self.token.as_bytes());
        bytes.extend(self.number.to_le_bytes());
        bytes.extend(self.simulations.to_le_bytes());
        bytes.extend(&self.packed);
        bytes
    }

    /// Reads an envelope without unpacking it.
    pub fn decode(bytes: &[u8]) -> Result<Envelope, String> {
        if bytes.len() > MAX_ENVELOPE {
            return Err(format!("{} bytes: expected at most {MAX_ENVELOPE}", bytes.len()));
        }
        let short = || format!("{} bytes: expected at least {HEAD}", bytes.len());
        let (&version, rest) = bytes.split_first().ok_or_else(short)?;
        if version != VERSION {
            return Err(format!("version {version}: expected {VERSION}"));
        }
        let (job, rest) = rest.split_first_chunk().ok_or_else(short)?;
        let (token, rest) = rest.split_first_chunk().ok_or_else(short)?;
        let (number, rest) = rest.split_first_chunk().ok_or_else(short)?;
        let (simulations, rest) = rest.split_first_chunk().ok_or_else(short)?;
        Ok(Envelope {
            job: Hash::from_bytes(*job),
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

/// Adds an envelope to a message; false when there is no room for it. An empty message takes any.
pub fn load(message: &mut Vec<u8>, envelope: &[u8]) -> bool {
    let is_room = message.len() + LENGTH + envelope.len() <= MAX_MESSAGE;
    if is_room || message.is_empty() {
        message.extend((envelope.len() as u32).to_le_bytes());
        message.extend(envelope);
        return true;
    }
    false
}

/// The envelopes of a message.
pub fn unload(message: &[u8]) -> Result<Vec<&[u8]>, Rejection> {
    let cut =
        || Rejection::Unasked(format!("{} bytes that are not whole envelopes", message.len()));
    let mut envelopes = Vec::new();
    let mut rest = message;
    while let Some((length, after)) = rest.split_first_chunk::<LENGTH>() {
        let length = u32::from_le_bytes(*length) as usize;
        let (envelope, after) = after.split_at_checked(length).ok_or_else(cut)?;
        envelopes.push(envelope);
        rest = after;
    }
    if rest.is_empty() && !envelopes.is_empty() { Ok(envelopes) } else { Err(cut()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn envelope(record: &[u8]) -> Envelope {
        Envelope::of_bytes(Hash::of(b"job"), Hash::of(b"token"), 5, 600, record)
    }

    #[test]
    fn a_parcel_comes_back_and_every_cut_is_noticed() {
        let envelope = envelope(b"some record");
        let bytes = envelope.encode();
        assert_eq!(Envelope::decode(&bytes).unwrap(), envelope);
        assert_eq!(envelope.record().unwrap(), b"some record");
        for length in 0..bytes.len() {
            let cut = Envelope::decode(&bytes[..length]).and_then(|envelope| envelope.record());
            assert!(cut.is_err(), "{length}");
        }
        assert!(Envelope::decode(&vec![1; MAX_ENVELOPE + 1]).unwrap_err().contains("at most"));
        assert!(Envelope::decode(&[2; 200]).unwrap_err().starts_with("version 2"));
    }

    #[test]
    fn parcels_travel_together_and_every_cut_is_noticed() {
        let envelopes = [&b"one"[..], b"", b"three"];
        let mut message = Vec::new();
        assert!(envelopes.iter().all(|envelope| load(&mut message, envelope)));
        assert_eq!(unload(&message).unwrap(), envelopes);
        // A whole first envelope is a message too.
        let whole = [7, 11];
        for length in (0..message.len()).filter(|length| !whole.contains(length)) {
            assert!(unload(&message[..length]).is_err(), "{length}");
        }
        assert!(unload(&[255; 8]).is_err());
        let mut message = Vec::new();
        assert!(load(&mut message, &vec![0; MAX_ENVELOPE]) && !load(&mut message, b"more"));
        assert_eq!(message.len(), MAX_MESSAGE);
    }

    #[test]
    fn a_bomb_does_not_go_off() {
        let bomb = envelope(&vec![0; 1 << 26]);
        assert!(bomb.encode().len() < MAX_ENVELOPE, "small enough to be sent");
        assert!(bomb.record().unwrap_err().contains("too much memory"));
        // One that claims a small window is stopped at the largest record.
        let slow = envelope(&vec![0; MAX_RECORD + 1]);
        assert!(slow.record().unwrap_err().contains("decompresses to more than"));
    }
}
