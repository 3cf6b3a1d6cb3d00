//! The envelope in which a worker sends a game: the job, the token, and the compressed record.
//!
//! | part | bytes |
//! |---|---|
//! | version, 1 | 1 |
//! | hash of the job | 32 |
//! | token | 32 |
//! | number of the game, little-endian | 8 |
//! | simulations, little-endian | 8 |
//! | record (self-play: as a run stores it; match: JSON), compressed with Zstandard | the rest |
//!
//! A message is a sequence of envelopes, each preceded by its length in four bytes, lowest first.
//! Games that end at about the same time share a message, because each message costs the broker a
//! write to disk. This module checks sizes and tokens; it does not know what a valid game is.

use std::io::Read;

use selfmate_arena::MatchGame;
use selfmate_run::RecordError;
use selfmate_selfplay::FinishedGame;

use crate::hash::Hash;
use crate::key::Key;
use crate::rejection::Rejection;
use crate::subject::WorkerName;

/// In bytes. A game of 200 plies takes about 6,000.
pub const MAX_ENVELOPE: usize = 1 << 18;
/// In bytes: one envelope of maximum size, or several small ones.
pub const MAX_MESSAGE: usize = LENGTH + MAX_ENVELOPE;
/// In bytes, after decompression.
pub const MAX_RECORD: usize = 1 << 19;

/// Bytes of the length before each envelope.
const LENGTH: usize = 4;
const VERSION: u8 = 1;
const HEAD: usize = 1 + 2 * Hash::LENGTH + 8 + 8;
const ZSTD_LEVEL: i32 = 3;
/// 1 MiB, enough for the largest record.
const WINDOW_LOG: u32 = 20;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope {
    pub job: Hash,
    pub token: Hash,
    pub number: u64,
    /// Simulations of all searches of the game, by the worker's own count.
    pub simulations: u64,
    compressed: Vec<u8>,
}

impl Envelope {
    /// For a self-play game.
    pub fn new(job: Hash, token: Hash, played: &FinishedGame) -> Result<Envelope, RecordError> {
        let FinishedGame { record, simulations } = played;
        Ok(Envelope::of_bytes(job, token, record.number, *simulations, &record.encode()?))
    }

    /// For a game of a match.
    pub fn of_match(job: Hash, token: Hash, record: &MatchGame) -> Envelope {
        let bytes = serde_json::to_vec(record).expect("a record is plain data");
        Envelope::of_bytes(job, token, record.game, 0, &bytes)
    }

    /// Decodes an envelope and checks that it has this worker's token and belongs to this job.
    pub fn verify(
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

    /// With any bytes as the record; tests use it to send invalid ones.
    pub fn of_bytes(
        job: Hash,
        token: Hash,
        number: u64,
        simulations: u64,
        record: &[u8],
    ) -> Envelope {
        let compressed =
            zstd::bulk::compress(record, ZSTD_LEVEL).expect("memory can be compressed");
        Envelope { job, token, number, simulations, compressed }
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEAD + self.compressed.len());
        bytes.push(VERSION);
        bytes.extend(self.job.as_bytes());
        bytes.extend(self.token.as_bytes());
        bytes.extend(self.number.to_le_bytes());
        bytes.extend(self.simulations.to_le_bytes());
        bytes.extend(&self.compressed);
        bytes
    }

    /// Does not decompress the record.
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
            compressed: rest.to_vec(),
        })
    }

    /// Decompresses the record, and stops at [`MAX_RECORD`].
    pub fn record(&self) -> Result<Vec<u8>, String> {
        let mut record = Vec::new();
        zstd::Decoder::new(&self.compressed[..])
            .and_then(|mut decoder| {
                // Without this limit, a hundred bytes could allocate a hundred megabytes.
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

/// Appends an envelope to a message. Returns false if there is no room; an empty message has always
/// room.
pub fn append_envelope(message: &mut Vec<u8>, envelope: &[u8]) -> bool {
    let has_room = message.len() + LENGTH + envelope.len() <= MAX_MESSAGE;
    if has_room || message.is_empty() {
        message.extend((envelope.len() as u32).to_le_bytes());
        message.extend(envelope);
        return true;
    }
    false
}

/// Splits a message into its envelopes.
pub fn split_message(message: &[u8]) -> Result<Vec<&[u8]>, Rejection> {
    let incomplete =
        || Rejection::Unasked(format!("{} bytes that are not complete envelopes", message.len()));
    let mut envelopes = Vec::new();
    let mut rest = message;
    while let Some((length, after)) = rest.split_first_chunk::<LENGTH>() {
        let length = u32::from_le_bytes(*length) as usize;
        let (envelope, after) = after.split_at_checked(length).ok_or_else(incomplete)?;
        envelopes.push(envelope);
        rest = after;
    }
    if rest.is_empty() && !envelopes.is_empty() { Ok(envelopes) } else { Err(incomplete()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn envelope(record: &[u8]) -> Envelope {
        Envelope::of_bytes(Hash::of(b"job"), Hash::of(b"token"), 5, 600, record)
    }

    #[test]
    fn an_envelope_survives_a_round_trip_and_truncation_is_an_error() {
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
    fn several_envelopes_share_a_message_and_truncation_is_an_error() {
        let envelopes = [&b"one"[..], b"", b"three"];
        let mut message = Vec::new();
        assert!(envelopes.iter().all(|envelope| append_envelope(&mut message, envelope)));
        assert_eq!(split_message(&message).unwrap(), envelopes);
        // The message cut after its first or second envelope is valid.
        let complete = [7, 11];
        for length in (0..message.len()).filter(|length| !complete.contains(length)) {
            assert!(split_message(&message[..length]).is_err(), "{length}");
        }
        assert!(split_message(&[255; 8]).is_err());
        let mut message = Vec::new();
        assert!(
            append_envelope(&mut message, &vec![0; MAX_ENVELOPE])
                && !append_envelope(&mut message, b"more")
        );
        assert_eq!(message.len(), MAX_MESSAGE);
    }

    #[test]
    fn a_decompression_bomb_is_rejected_without_filling_the_memory() {
        let bomb = envelope(&vec![0; 1 << 26]);
        assert!(bomb.encode().len() < MAX_ENVELOPE, "the bomb is small enough to be sent");
        assert!(bomb.record().unwrap_err().contains("too much memory"));
        // With a small window, decompression stops at the largest record.
        let large = envelope(&vec![0; MAX_RECORD + 1]);
        assert!(large.record().unwrap_err().contains("decompresses to more than"));
    }
}
