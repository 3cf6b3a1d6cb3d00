//! Who uses which row: the positions of a part, sorted by row, in their own order within one.

use crate::sparse::sample::Sample;

/// For each row the positions that use it, and which entry of their list it was.
#[derive(Default)]
pub(super) struct Index {
    starts: Vec<u32>,
    users: Vec<u32>,
    entries: Vec<u32>,
}

impl Index {
    /// Sorts by counting: two passes over the lists.
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
        // Entry row + 1 is where the row is written next: in the end, where the next row starts.
        for (user, sample) in part.iter().enumerate() {
            for &row in list(sample) {
                let place = &mut self.starts[usize::from(row) + 1];
                self.users[*place as usize] = user as u32;
                self.entries[*place as usize] = entry;
                *place += 1;
                entry += 1;
            }
        }
    }

    /// The positions that use a row, in order.
    pub fn users(&self, row: usize) -> &[u32] {
        &self.users[self.starts[row] as usize..self.starts[row + 1] as usize]
    }

    /// The place of each use among all entries of all lists.
    pub fn entries(&self, row: usize) -> &[u32] {
        &self.entries[self.starts[row] as usize..self.starts[row + 1] as usize]
    }
}
