//! A sequence of records: length, checksum, bytes.

/// Larger than any game: 65,535 plies with a policy at each take less.
pub const MAX_FRAME: usize = 1 << 24;
const HEAD: usize = 8;

/// Appends a record.
///
/// # Panics
///
/// Panics if the record is empty or longer than [`MAX_FRAME`].
pub fn push(out: &mut Vec<u8>, record: &[u8]) {
    assert!(!record.is_empty() && record.len() <= MAX_FRAME, "{} bytes", record.len());
    out.extend((record.len() as u32).to_le_bytes());
    out.extend(crc32c::crc32c(record).to_le_bytes());
    out.extend(record);
}

/// Iterates over records. Ends after the first truncated or damaged one.
pub struct Frames<'a> {
    bytes: &'a [u8],
    place: usize,
    is_broken: bool,
}

impl<'a> Frames<'a> {
    pub fn new(bytes: &'a [u8]) -> Frames<'a> {
        Frames { bytes, place: 0, is_broken: false }
    }

    /// The end of the valid records so far.
    pub fn place(&self) -> usize {
        self.place
    }

    fn read(&self) -> Result<&'a [u8], String> {
        let rest = &self.bytes[self.place..];
        let fault = |what: &str| format!("the record at byte {} {what}", self.place);
        let Some((head, rest)) = rest.split_first_chunk::<HEAD>() else {
            return Err(fault("is truncated"));
        };
        let [a, b, c, d, crc @ ..] = *head;
        let length = u32::from_le_bytes([a, b, c, d]) as usize;
        // A power cut may leave zeros at the end of a file, which must not be read as empty records.
        if length == 0 || length > MAX_FRAME {
            return Err(fault(&format!("has {length} bytes: expected 1 to {MAX_FRAME}")));
        }
        let record = rest.get(..length).ok_or_else(|| fault("is truncated"))?;
        if crc32c::crc32c(record) != u32::from_le_bytes(crc) {
            return Err(fault("does not match its checksum"));
        }
        Ok(record)
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = Result<&'a [u8], String>;

    fn next(&mut self) -> Option<Result<&'a [u8], String>> {
        if self.is_broken || self.place == self.bytes.len() {
            return None;
        }
        let record = self.read();
        match &record {
            Ok(record) => self.place += HEAD + record.len(),
            Err(_) => self.is_broken = true,
        }
        Some(record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_records_are_read_and_the_first_bad_one_ends_the_iteration() {
        let mut bytes = Vec::new();
        push(&mut bytes, b"one");
        push(&mut bytes, b"three");
        let end = bytes.len();
        bytes.extend([0; 64]);
        let mut frames = Frames::new(&bytes);
        assert_eq!(frames.next(), Some(Ok(&b"one"[..])));
        assert_eq!(frames.next(), Some(Ok(&b"three"[..])));
        let fault = frames.next().unwrap().unwrap_err();
        assert!(fault.contains(&format!("byte {end} has 0 bytes")), "{fault}");
        assert_eq!((frames.next(), frames.place()), (None, end));
        bytes[9] ^= 1;
        let fault = Frames::new(&bytes).next().unwrap().unwrap_err();
        assert!(fault.contains("byte 0 does not match its checksum"), "{fault}");
    }
}
