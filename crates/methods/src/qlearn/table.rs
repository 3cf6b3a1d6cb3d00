//! The table: a value for each state and action that was tried, in bounded memory.
//!
//! An entry takes 16 bytes, and four entries make a cache line. The key decides the line of a state
//! or move. A full line replaces the entry with the fewest updates. Entries store the whole key, so
//! different keys are never confused.

/// An entry of a state or of a move in it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Entry {
    key: u64,
    value: f32,
    /// The number of updates; the highest bit marks a state. 0 means an empty entry.
    count: u32,
}

const IS_STATE: u32 = 1 << 31;
const LINE: usize = 4;
const ENTRY: usize = 16;

/// The first bytes of a file, including the format version.
const MAGIC: &[u8; 8] = b"SMQTABL1";

#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    lines: Vec<[Entry; LINE]>,
    states: u64,
    pairs: u64,
    /// Entries that were replaced.
    forgotten: u64,
}

/// The step size of an update.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LearningRate {
    /// The smallest share of the difference to a target that an update adds.
    pub alpha: f32,
    /// The number of imagined zero targets of a new value, at most `1 / alpha - 1`. Without them, a
    /// move that was tried once and won by luck would be the best of its position.
    pub doubt: u32,
}

impl LearningRate {
    /// Sets the value to the target.
    pub const REPLACE: LearningRate = LearningRate { alpha: 1.0, doubt: 0 };
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a table of values: {0}")]
pub struct TableError(String);

impl Table {
    /// An empty table of about this size.
    pub fn new(megabytes: usize) -> Table {
        let lines = (megabytes.max(1) << 20) / (LINE * ENTRY);
        Table {
            lines: vec![[Entry::default(); LINE]; lines.next_power_of_two()],
            states: 0,
            pairs: 0,
            forgotten: 0,
        }
    }

    pub fn states(&self) -> u64 {
        self.states
    }

    /// The number of state-action pairs.
    pub fn pairs(&self) -> u64 {
        self.pairs
    }

    /// The number of entries that were replaced.
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// The share of entries in use.
    pub fn fullness(&self) -> f64 {
        (self.states + self.pairs) as f64 / (self.lines.len() * LINE) as f64
    }

    /// The value of a move and its number of updates.
    pub fn get(&self, pair: u64) -> Option<(f32, u32)> {
        let line = &self.lines[self.line_of(pair)];
        let found = line.iter().find(|entry| entry.key == pair && entry.count > 0);
        found.map(|entry| (entry.value, entry.count & !IS_STATE))
    }

    /// The value of the best of these moves among those in the table; 0 if there are none.
    ///
    /// If moves that were never tried counted as 0, a position could not have a negative value before
    /// all its moves had been tried, and losses would not propagate.
    pub fn best(&self, pairs: &[u64]) -> f32 {
        let values = pairs.iter().filter_map(|&pair| Some(self.get(pair)?.0));
        values.reduce(f32::max).unwrap_or(0.0)
    }

    /// Moves a value towards its target: first the mean of all targets, then with step size
    /// `alpha`.
    pub fn learn(&mut self, state: u64, pair: u64, target: f32, learning_rate: LearningRate) {
        self.entry(state, IS_STATE);
        let entry = self.entry(pair, 0);
        let share =
            learning_rate.alpha.max(1.0 / entry.count.saturating_add(learning_rate.doubt) as f32);
        entry.value += share * (target - entry.value);
    }

    /// The entry with this key, with its counter increased. A new entry replaces the least used one
    /// of a full line.
    fn entry(&mut self, key: u64, kind: u32) -> &mut Entry {
        let line_index = self.line_of(key);
        let line = &mut self.lines[line_index];
        let known = line.iter().position(|entry| entry.key == key && entry.count > 0);
        let index = match known {
            Some(index) => index,
            None => {
                let counts = line.iter().enumerate();
                let least = counts.min_by_key(|(_, entry)| entry.count & !IS_STATE);
                let (index, old) = least.expect("a line has entries");
                if old.count > 0 {
                    self.forgotten += 1;
                    let is_state = old.count & IS_STATE != 0;
                    *(if is_state { &mut self.states } else { &mut self.pairs }) -= 1;
                }
                *(if kind == IS_STATE { &mut self.states } else { &mut self.pairs }) += 1;
                line[index] = Entry { key, value: 0.0, count: kind };
                index
            }
        };
        let entry = &mut line[index];
        // The counter saturates.
        entry.count = (entry.count & !IS_STATE).saturating_add(1).min(!IS_STATE) | kind;
        entry
    }

    fn line_of(&self, key: u64) -> usize {
        // The number of lines is a power of two.
        key as usize & (self.lines.len() - 1)
    }

    /// The file format: a header with the sizes, then the entries in order.
    pub fn encode(&self) -> Vec<u8> {
        let entries = self.states + self.pairs;
        let mut bytes = Vec::with_capacity(32 + entries as usize * ENTRY);
        bytes.extend(MAGIC);
        bytes.extend((self.lines.len() as u64).to_le_bytes());
        bytes.extend(entries.to_le_bytes());
        bytes.extend(self.forgotten.to_le_bytes());
        for entry in self.lines.iter().flatten().filter(|entry| entry.count > 0) {
            bytes.extend(entry.key.to_le_bytes());
            bytes.extend(entry.value.to_le_bytes());
            bytes.extend(entry.count.to_le_bytes());
        }
        bytes
    }

    /// Reads the output of [`Table::encode`].
    pub fn decode(bytes: &[u8]) -> Result<Table, TableError> {
        let wrong = |what: String| Err(TableError(what));
        let Some((head, rest)) = bytes.split_at_checked(32) else {
            return wrong(format!("{} bytes, expected at least 32", bytes.len()));
        };
        let word = |index: usize| {
            u64::from_le_bytes(head[8 * index..][..8].try_into().expect("eight bytes"))
        };
        let (lines, count) = (word(1), word(2));
        if &head[..8] != MAGIC {
            return wrong("unknown file signature".to_owned());
        }
        // More than sixteen gigabytes is not a plausible size.
        if !lines.is_power_of_two() || lines > 1 << 28 || count > lines * LINE as u64 {
            return wrong(format!("{count} entries in {lines} lines"));
        }
        let (entries, left) = rest.as_chunks::<ENTRY>();
        if entries.len() as u64 != count || !left.is_empty() {
            return wrong(format!("{} bytes: expected {count} entries", rest.len()));
        }
        let lines = vec![[Entry::default(); LINE]; lines as usize];
        let mut table = Table { lines, states: 0, pairs: 0, forgotten: word(3) };
        for entry in entries {
            let (key, rest) = entry.split_at(8);
            let (value, count) = rest.split_at(4);
            let key = u64::from_le_bytes(key.try_into().expect("eight bytes"));
            let value = f32::from_le_bytes(value.try_into().expect("four bytes"));
            let count = u32::from_le_bytes(count.try_into().expect("four bytes"));
            let line_index = table.line_of(key);
            let Some(free) = table.lines[line_index].iter_mut().find(|entry| entry.count == 0)
            else {
                return wrong(format!("a fifth entry in line {line_index}"));
            };
            // Written so that NaN is rejected too.
            let is_value = value.abs() <= 1.0;
            if !is_value || count & !IS_STATE == 0 {
                return wrong(format!("an entry with value {value} and count {count}"));
            }
            *free = Entry { key, value, count };
            *(if count & IS_STATE != 0 { &mut table.states } else { &mut table.pairs }) += 1;
        }
        Ok(table)
    }
}

#[cfg(test)]
mod tests {
    use selfmate_chess::Seed;

    use super::*;

    const HALF: LearningRate = LearningRate { alpha: 0.5, doubt: 0 };

    #[test]
    fn doubt_counts_as_earlier_targets_of_zero() {
        let mut table = Table::new(1);
        let learning_rate = LearningRate { alpha: 0.01, doubt: 3 };
        table.learn(1, 5, 1.0, learning_rate);
        assert_eq!(table.get(5), Some((0.25, 1)));
        table.learn(1, 5, 1.0, learning_rate);
        assert_eq!(table.get(5), Some((0.4, 2)));
        table.learn(1, 6, 1.0, LearningRate::REPLACE);
        assert_eq!(table.get(6), Some((1.0, 1)));
    }

    #[test]
    fn values_move_towards_their_targets() {
        let mut table = Table::new(1);
        assert_eq!(table.get(5), None);
        assert_eq!(table.best(&[5, 6]), 0.0);
        table.learn(1, 5, 1.0, HALF);
        table.learn(1, 5, 1.0, HALF);
        table.learn(1, 6, -1.0, HALF);
        // The first two targets count equally, later ones with step size alpha.
        table.learn(1, 5, 0.0, HALF);
        table.learn(1, 5, 1.0, HALF);
        assert_eq!(table.get(5), Some((0.75, 4)));
        assert_eq!(table.best(&[5, 6]), 0.75);
        // A move that was never tried does not hide a loss.
        assert_eq!(table.best(&[6, 7]), -1.0);
        assert_eq!((table.states(), table.pairs()), (1, 2));
    }

    #[test]
    fn a_full_line_replaces_its_least_used_entry() {
        let mut table = Table::new(1);
        let step = table.lines.len() as u64;
        let keys: Vec<u64> = (1..=5).map(|n| n * step).collect();
        for _ in 0..3 {
            table.entry(keys[0], 0);
            table.entry(keys[1], 0);
            table.entry(keys[3], 0);
        }
        table.entry(keys[2], 0);
        table.entry(keys[4], 0);
        assert_eq!(table.get(keys[2]), None);
        assert!([0, 1, 3, 4].iter().all(|&index| table.get(keys[index]).is_some()));
        assert_eq!((table.pairs(), table.forgotten()), (4, 1));
    }

    #[test]
    fn an_encoded_table_round_trips() {
        let mut table = Table::new(1);
        let mut rng = Seed::new(2).rng();
        for _ in 0..100_000 {
            let state = rng.bits() % 20_000;
            table.learn(state, mix(state, rng.below(9)), rng.unit() as f32, HALF);
        }
        let bytes = table.encode();
        // Lines keep their entries but not the positions of empty ones.
        let back = Table::decode(&bytes).unwrap();
        assert_eq!(back.encode(), bytes);
        assert_eq!((back.states(), back.pairs()), (table.states(), table.pairs()));
        assert!(table.fullness() <= 1.0 && table.forgotten() > 0);
    }

    fn mix(state: u64, action: usize) -> u64 {
        Seed::new(state).index(action as u64).rng().bits()
    }

    #[test]
    fn corrupt_bytes_are_an_error() {
        let mut table = Table::new(1);
        table.learn(1, 2, 1.0, HALF);
        let bytes = table.encode();
        assert!(Table::decode(&bytes[..20]).is_err());
        assert!(Table::decode(&bytes[..bytes.len() - 1]).is_err());
        for place in [0, 9, 17, bytes.len() - 5] {
            let mut changed = bytes.clone();
            changed[place] ^= 0xFF;
            assert!(Table::decode(&changed).is_err(), "{place}");
        }
    }
}
