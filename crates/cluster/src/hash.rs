//! Identifies jobs and networks by their content. Bytes that are fetched by their hash are the bytes
//! that were published, even if the store in between cannot be trusted.

use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A BLAKE3 hash, written as 64 hexadecimal digits. Comparison takes constant time, so tokens cannot
/// be guessed byte by byte.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Hash(blake3::Hash);

impl Hash {
    /// In bytes.
    pub const LENGTH: usize = blake3::OUT_LEN;

    pub fn of(bytes: &[u8]) -> Hash {
        Hash(blake3::hash(bytes))
    }

    /// A hash that cannot be computed without the key.
    pub fn keyed(key: &[u8; 32], bytes: &[u8]) -> Hash {
        Hash(blake3::keyed_hash(key, bytes))
    }

    pub const fn from_bytes(bytes: [u8; Hash::LENGTH]) -> Hash {
        Hash(blake3::Hash::from_bytes(bytes))
    }

    pub const fn as_bytes(&self) -> &[u8; Hash::LENGTH] {
        self.0.as_bytes()
    }

    /// The first twelve digits, for messages.
    pub fn short(&self) -> String {
        self.0.to_hex()[..12].to_owned()
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.to_hex())
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hash({})", self.short())
    }
}

impl Serialize for Hash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Hash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Hash, D::Error> {
        let text = String::deserialize(deserializer)?;
        let hash = blake3::Hash::from_hex(&text);
        hash.map(Hash).map_err(|_| D::Error::custom("expected a hash of 64 hexadecimal digits"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_survives_a_round_trip_through_text() {
        let hash = Hash::of(b"selfmate");
        let text = serde_json::to_string(&hash).unwrap();
        assert_eq!(text.len(), 66);
        assert_eq!(serde_json::from_str::<Hash>(&text).unwrap(), hash);
        assert!(serde_json::from_str::<Hash>("\"12\"").is_err());
        assert!(hash.to_string().starts_with(&hash.short()));
        assert_ne!(Hash::keyed(&[1; 32], b"a"), Hash::keyed(&[2; 32], b"a"));
    }
}
