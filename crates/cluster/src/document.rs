//! What workers are asked to do: one of three documents, told apart by what they say.

use crate::ending::EndingOrder;
use crate::fixture::Fixture;
use crate::order::{Order, OrderError, table};

/// What workers are asked to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Document {
    /// Games of a generation.
    Generation(Order),
    /// Games of a round of an ending.
    Round(EndingOrder),
    /// Games of a match.
    Match(Fixture),
}

impl Document {
    /// Reads a document from an untrusted place.
    pub fn parse(bytes: &[u8]) -> Result<Document, OrderError> {
        // No TOML begins like JSON.
        if bytes.first() == Some(&b'{') {
            return Fixture::parse(bytes).map(Document::Match);
        }
        let table = table(bytes)?;
        if table.contains_key("endgame") {
            EndingOrder::from_table(table).map(Document::Round)
        } else {
            Order::from_table(table).map(Document::Generation)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ending, order};

    #[test]
    fn documents_are_told_apart() {
        let order = order::tests::order();
        let parsed = Document::parse(order.to_toml().as_bytes()).unwrap();
        assert_eq!(parsed, Document::Generation(order));
        let order = ending::tests::order();
        let parsed = Document::parse(order.to_toml().as_bytes()).unwrap();
        assert_eq!(parsed, Document::Round(order));
        assert!(Document::parse(b"{}").unwrap_err().to_string().contains("protocol 0"));
        assert!(Document::parse(b"").is_err());
    }
}
