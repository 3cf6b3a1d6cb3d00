//! Encodes protobuf messages: each field is a number, a wire type and a value.

/// A message under construction; fields are written in the order in which they are added.
#[derive(Clone, Debug, Default)]
pub struct Message {
    bytes: Vec<u8>,
}

/// Wire types.
const VARINT: u64 = 0;
const LENGTH: u64 = 2;

impl Message {
    /// A non-negative integer.
    pub fn integer(&mut self, field: u64, value: i64) {
        self.varint(field << 3 | VARINT);
        self.varint(value as u64);
    }

    /// Bytes with their length.
    pub fn bytes(&mut self, field: u64, value: &[u8]) {
        self.varint(field << 3 | LENGTH);
        self.varint(value.len() as u64);
        self.bytes.extend_from_slice(value);
    }

    pub fn text(&mut self, field: u64, value: &str) {
        self.bytes(field, value.as_bytes());
    }

    /// A nested message.
    pub fn message(&mut self, field: u64, value: &Message) {
        self.bytes(field, &value.bytes);
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Seven bits per byte, lowest first; all bytes but the last have the eighth bit set.
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_follow_the_protobuf_format() {
        let mut message = Message::default();
        message.integer(1, 150);
        message.text(2, "testing");
        let mut outer = Message::default();
        outer.message(3, &message);
        let inner = [0x08, 0x96, 0x01, 0x12, 7, b't', b'e', b's', b't', b'i', b'n', b'g'];
        let mut expected = vec![0x1a, inner.len() as u8];
        expected.extend(inner);
        assert_eq!(outer.into_bytes(), expected);
        let mut large = Message::default();
        large.integer(16, -1);
        assert_eq!(
            large.into_bytes(),
            [0x80, 0x01, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1]
        );
    }
}
