//! Names by content: what was fetched by its hash is what was published, whoever stored it between.

use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The BLAKE3 hash of some bytes; written as 64 hexadecimal digits. Comparing two takes the same
/// time wherever they differ.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Hash(blake3::Hash);

impl Hash {
    /// Bytes of a hash.
    pub const LENGTH: usize = blake3::OUT_LEN;

    /// The hash of some bytes.
    pub fn of(bytes: &[u8]) -> Hash {
        Hash(blake3::hash(bytes))
    }

    /// The hash of some bytes under a secret key: nobody else can make it.
    pub fn keyed(key: &[u8; 32], bytes: &[u8]) -> Hash {
        Hash(blake3::keyed_hash(key, bytes))
    }

    /// A hash that came as bytes.
    pub const fn from_bytes(bytes: [u8; Hash::LENGTH]) -> Hash {
        Hash(blake3::Hash::from_bytes(bytes))
    }

    /// Its bytes.
    pub const fn as_bytes(&self) -> &[u8; Hash::LENGTH] {
        self.0.as_bytes()
    }

    /// Its first digits, enough to tell two apart by eye.
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
    fn a_hash_comes_back_from_its_text() {
        let hash = Hash::of(b"selfmate");
        let text = serde_json::to_string(&hash).unwrap();
        assert_eq!(text.len(), 66);
        assert_eq!(serde_json::from_str::<Hash>(&text).unwrap(), hash);
        assert!(serde_json::from_str::<Hash>("\"12\"").is_err());
        assert!(hash.to_string().starts_with(&hash.short()));
        assert_ne!(Hash::keyed(&[1; 32], b"a"), Hash::keyed(&[2; 32], b"a"));
    }
}
