//! What a generation's games are played with, as one document.
//!
//! Its hash names everything that decides a game but the game's number: the run, the config, the
//! network. It is TOML, as a run's config is, because its numbers come back with the same bits.

use selfmate_learn::selfplay::{Generation, SelfPlayConfig};
use serde::{Deserialize, Serialize};

use crate::hash::Hash;

/// The version of everything that learner and worker tell each other. A change of play that a
/// recomputation would notice counts too.
pub const PROTOCOL: u32 = 2;
/// No order is longer.
pub const MAX_ORDER: usize = 1 << 18;

/// What a generation's games are played with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    /// See [`PROTOCOL`].
    pub protocol: u32,
    /// The name of the run.
    pub run: String,
    /// The seed of the run.
    pub seed: u64,
    /// The number of the generation.
    pub generation: u64,
    /// Batches that the network has learned.
    pub step: u64,
    /// Simulations for a move.
    pub sims: u64,
    /// The file of the network.
    pub network: Hash,
    /// How to play.
    pub selfplay: SelfPlayConfig,
}

/// A document that is no order for us.
#[derive(Debug, thiserror::Error)]
pub enum OrderError {
    /// Not text, too long or not what an order says.
    #[error("an order that cannot be read: {0}")]
    Unreadable(String),
    /// Of another version.
    #[error(
        "an order of protocol {got}: expected {PROTOCOL}; learner and worker need the same version of selfmate"
    )]
    Protocol {
        /// Its version.
        got: u32,
    },
    /// A setting that would take too much.
    #[error("an order with {field} = {got}: expected at most {most}")]
    Excess {
        /// The setting.
        field: &'static str,
        /// Its value.
        got: u64,
        /// The most that a worker accepts.
        most: u64,
    },
}

impl Order {
    /// The document.
    pub fn to_toml(&self) -> String {
        to_toml(self)
    }

    /// Reads a document from an untrusted place.
    pub fn parse(bytes: &[u8]) -> Result<Order, OrderError> {
        Order::from_table(table(bytes)?)
    }

    /// Reads a document that has been looked at by [`table`].
    pub(crate) fn from_table(table: toml::Table) -> Result<Order, OrderError> {
        let order: Order =
            table.try_into().map_err(|error| OrderError::Unreadable(error.message().to_owned()))?;
        let (play, mega) = (&order.selfplay, 1_000_000);
        // Nobody's memory or patience is at the mercy of whoever publishes orders.
        check_excess(&[
            ("sims", order.sims, mega),
            ("selfplay.memory_mb", play.memory_mb as u64, 4096),
            ("selfplay.games_at_once", play.games_at_once as u64, 4096),
            ("selfplay.max_plies", play.max_plies.into(), 10_000),
            ("selfplay.opening_plies", play.opening_plies.into(), 10_000),
            ("selfplay.wild_plies", play.wild_plies.into(), 10_000),
            ("selfplay.quick_sims", play.quick_sims.into(), mega),
            ("selfplay.candidates", play.candidates as u64, 1000),
            ("selfplay.endgame_pieces", play.endgame_pieces as u64, 32),
        ])?;
        let memory = play.memory_mb as u64 * play.games_at_once as u64;
        check_excess(&[("selfplay.memory_mb times selfplay.games_at_once", memory, 1 << 14)])?;
        Ok(order)
    }

    /// The name of the document.
    pub fn hash(&self) -> Hash {
        Hash::of(self.to_toml().as_bytes())
    }

    /// What the games share.
    pub fn generation(&self) -> Generation {
        Generation {
            config: self.selfplay.clone(),
            seed: Generation::seed_of_run(self.seed),
            sims: self.sims,
            network: self.step,
        }
    }
}

/// Refuses settings above the most that a worker accepts.
pub(crate) fn check_excess(settings: &[(&'static str, u64, u64)]) -> Result<(), OrderError> {
    match settings.iter().find(|(_, got, most)| got > most) {
        Some(&(field, got, most)) => Err(OrderError::Excess { field, got, most }),
        None => Ok(()),
    }
}

/// The document of an order of this protocol, before it is known what for.
pub(crate) fn table(bytes: &[u8]) -> Result<toml::Table, OrderError> {
    let unreadable = |what: String| OrderError::Unreadable(what);
    if bytes.len() > MAX_ORDER {
        return Err(unreadable(format!("{} bytes: expected {MAX_ORDER}", bytes.len())));
    }
    let text = str::from_utf8(bytes).map_err(|error| unreadable(error.to_string()))?;
    let table: toml::Table =
        text.parse().map_err(|error: toml::de::Error| unreadable(error.message().to_owned()))?;
    // First of all: another version may have other fields.
    let protocol = table.get("protocol").and_then(toml::Value::as_integer).unwrap_or(0);
    if protocol != i64::from(PROTOCOL) {
        return Err(OrderError::Protocol { got: protocol.try_into().unwrap_or(0) });
    }
    if table.values().any(has_no_number) {
        return Err(unreadable("a number that is none".to_owned()));
    }
    Ok(table)
}

/// Writes an order.
pub(crate) fn to_toml<T: Serialize>(order: &T) -> String {
    // By way of a table, whose order of fields is always the same.
    let table = toml::Table::try_from(order);
    let text = table.and_then(|table| toml::to_string(&table));
    text.expect("an order is a table of plain values")
}

/// True when a number is infinite or none at all.
fn has_no_number(value: &toml::Value) -> bool {
    match value {
        toml::Value::Float(number) => !number.is_finite(),
        toml::Value::Table(table) => table.values().any(has_no_number),
        toml::Value::Array(values) => values.iter().any(has_no_number),
        _ => false,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use selfmate_learn::zero::ZeroConfig;

    use super::*;

    pub(crate) fn order() -> Order {
        Order {
            protocol: PROTOCOL,
            run: "first".to_owned(),
            seed: 1,
            generation: 3,
            step: 40,
            sims: 4,
            network: Hash::of(b"a network"),
            selfplay: ZeroConfig::tiny().selfplay,
        }
    }

    #[test]
    fn an_order_comes_back_as_it_was_and_its_hash_names_all_of_it() {
        let order = order();
        assert_eq!(Order::parse(order.to_toml().as_bytes()).unwrap(), order);
        let mut changed = order.clone();
        changed.selfplay.c_puct += 1e-6;
        assert_ne!(changed.hash(), order.hash());
        assert_eq!(Order::parse(changed.to_toml().as_bytes()).unwrap(), changed);
    }

    #[test]
    fn orders_that_make_no_sense_are_refused() {
        let refused = |text: &str| Order::parse(text.as_bytes()).unwrap_err().to_string();
        let good = order().to_toml();
        assert!(refused("nonsense").contains("cannot be read"));
        assert!(refused(&good.replace("protocol = 2", "protocol = 1")).contains("protocol 1"));
        assert!(refused(&format!("extra = 1\n{good}")).contains("extra"));
        let huge = refused(&good.replace("memory_mb = 1", "memory_mb = 1000000"));
        assert_eq!(huge, "an order with selfplay.memory_mb = 1000000: expected at most 4096");
        let several = good.replace("games_at_once = ", "games_at_once = 409");
        let several = several.replace("memory_mb = 1", "memory_mb = 4096");
        assert!(refused(&several).contains("times selfplay.games_at_once"), "{several}");
        assert!(refused(&good.replace("c_puct = ", "c_puct = nan # ")).contains("is none"));
        assert!(refused(&" ".repeat(MAX_ORDER + 1)).contains("bytes"));
    }

    /// A worker of another version is refused for what it was not told; so whoever changes how
    /// games are played raises [`PROTOCOL`] too, and then writes the new hash here.
    #[test]
    fn games_of_this_protocol_are_these() {
        let games = (0..4).map(|number| crate::audit::tests::play(&order().generation(), number));
        let bytes: Vec<u8> = games.flat_map(|played| played.record.encode().unwrap()).collect();
        assert_eq!((PROTOCOL, Hash::of(&bytes).short().as_str()), (2, "bbe01a743ffb"));
    }
}
