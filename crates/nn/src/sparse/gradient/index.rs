//! An index from rows to the positions that use them, in the order of the batch.

use crate::sparse::sample::Sample;

/// For each row, the positions that use it and the entry in their list.
#[derive(Default)]
pub(super) struct Index {
    starts: Vec<u32>,
    users: Vec<u32>,
    entries: Vec<u32>,
}

impl Index {
    /// A counting sort: two passes over the lists.
    pub fn build(&mut self, rows: usize, part: &[&Sample], list: fn(&Sample) -> &[u16]) {
        self.starts.clear();
        self.starts.resize(rows + 2, 0);
        let mut len = 0;
        for sample in part {
            for &row in list(sample) {
                self.starts[usize::from(row) + 2] += 1;
                len += 1;
            }
        }
        for row in 2..rows + 2 {
            self.starts[row] += self.starts[row - 1];
        }
        self.users.resize(len, 0);
        self.entries.resize(len, 0);
        let mut entry = 0;
        // Entry row + 1 is the next index to write for the row; in the end it is the start of the
        // next row.
        for (user, sample) in part.iter().enumerate() {
            for &row in list(sample) {
                let next = &mut self.starts[usize::from(row) + 1];
                self.users[*next as usize] = user as u32;
                self.entries[*next as usize] = entry;
                *next += 1;
                entry += 1;
            }
        }
    }

    /// The positions that use a row, in order.
    pub fn users(&self, row: usize) -> &[u32] {
        &self.users[self.starts[row] as usize..self.starts[row + 1] as usize]
    }

    /// The index of each use among all entries of all lists.
    pub fn entries(&self, row: usize) -> &[u32] {
        &self.entries[self.starts[row] as usize..self.starts[row + 1] as usize]
    }
}
