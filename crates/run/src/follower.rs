//! Follows the metrics of a run while another process writes them. Reads only what is new.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::mem;

use crate::error::{Damage, RunError};
use crate::metric::{self, Record};
use crate::reader::RunReader;

/// Reads the metrics of a run incrementally.
#[derive(Debug)]
pub struct Follower {
    reader: RunReader,
    /// The number of bytes read.
    place: u64,
    lines: usize,
    /// The line read last. If it is no longer at the same place, a resume has rewritten the file.
    last: Vec<u8>,
    /// Earlier records are obsolete, and the caller does not know yet.
    restarted: bool,
}

/// What was added since the last call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MetricsUpdate {
    /// The file was rewritten: records returned earlier are obsolete.
    pub restarted: bool,
    pub records: Vec<Record>,
    /// Lines that cannot be parsed.
    pub damages: Vec<Damage>,
}

impl Follower {
    /// Starts at the first record.
    pub fn new(reader: RunReader) -> Follower {
        Follower { reader, place: 0, lines: 0, last: Vec::new(), restarted: false }
    }

    pub fn reader(&self) -> &RunReader {
        &self.reader
    }

    /// Reads what was added since the last call. An unfinished line is left for the next call.
    pub fn read(&mut self) -> Result<MetricsUpdate, RunError> {
        let path = self.reader.metrics_path();
        let mut file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.start_over();
                return Ok(MetricsUpdate {
                    restarted: mem::take(&mut self.restarted),
                    ..MetricsUpdate::default()
                });
            }
            Err(error) => return Err(RunError::Io { path, error }),
        };
        if self.place > 0 && !self.has_last(&mut file).map_err(RunError::io(&path))? {
            self.start_over();
        }
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(self.place)).map_err(RunError::io(&path))?;
        file.read_to_end(&mut bytes).map_err(RunError::io(&path))?;
        let whole = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |last| last + 1);
        let (mut records, mut damages) = (Vec::new(), Vec::new());
        let mut last: &[u8] = &[];
        for line in bytes[..whole].split_inclusive(|&byte| byte == b'\n') {
            self.lines += 1;
            match metric::parse(line) {
                Ok(record) => records.push(record),
                Err(what) => damages.push(metric::unreadable(&path, self.lines, &what)),
            }
            last = line;
        }
        if !last.is_empty() {
            self.last = last.to_vec();
        }
        self.place += whole as u64;
        Ok(MetricsUpdate { restarted: mem::take(&mut self.restarted), records, damages })
    }

    /// Whether the line read last is still at the same place.
    fn has_last(&self, file: &mut File) -> io::Result<bool> {
        let mut found = vec![0; self.last.len()];
        file.seek(SeekFrom::Start(self.place - self.last.len() as u64))?;
        match file.read_exact(&mut found) {
            Ok(()) => Ok(found == self.last),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Reads from the first record again. The next update reports it.
    fn start_over(&mut self) {
        self.restarted |= self.place > 0;
        (self.place, self.lines) = (0, 0);
        self.last.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::io::Write;

    use super::*;
    use crate::metric::Progress;
    use crate::writer::Run;

    fn progress(generation: u64) -> Record {
        Record::Progress(Progress { generation, ..Progress::default() })
    }

    #[test]
    fn only_new_records_are_returned_and_a_rewind_starts_over() {
        let folder = tempfile::tempdir().unwrap();
        let mut run = Run::open(folder.path()).unwrap();
        let mut follower = Follower::new(RunReader::new(folder.path()));
        assert_eq!(follower.read().unwrap(), MetricsUpdate::default());
        for generation in 1..=3 {
            run.append_metric(&progress(generation)).unwrap();
        }
        assert_eq!(follower.read().unwrap().records, [progress(1), progress(2), progress(3)]);
        assert_eq!(follower.read().unwrap(), MetricsUpdate::default());
        run.append_metric(&progress(4)).unwrap();
        assert_eq!(follower.read().unwrap().records, [progress(4)]);
        run.rewind_metrics(2).unwrap();
        let news = follower.read().unwrap();
        assert_eq!((news.restarted, news.records), (true, vec![progress(1), progress(2)]));
    }

    #[test]
    fn unfinished_lines_wait_and_bad_lines_are_reported() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("metrics.jsonl");
        let mut file = OpenOptions::new().append(true).create(true).open(&path).unwrap();
        let mut follower = Follower::new(RunReader::new(folder.path()));
        let line = serde_json::to_string(&progress(1)).unwrap();
        file.write_all(&line.as_bytes()[..9]).unwrap();
        assert_eq!(follower.read().unwrap(), MetricsUpdate::default());
        file.write_all(&line.as_bytes()[9..]).unwrap();
        file.write_all(b"\n").unwrap();
        assert_eq!(follower.read().unwrap().records, [progress(1)]);
        file.write_all(b"nonsense\n").unwrap();
        let news = follower.read().unwrap();
        let text = news.damages[0].to_string();
        assert!(text.contains("metrics.jsonl: line 2 cannot be read: "), "{text}");
        file.write_all(line.as_bytes()).unwrap();
        file.write_all(b"\n").unwrap();
        let news = follower.read().unwrap();
        assert_eq!((news.records, news.damages), (vec![progress(1)], vec![]));
    }
    #[test]
    fn a_rewritten_file_is_reported_even_if_it_is_longer_or_damaged() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("metrics.jsonl");
        let write = |generations: &[u64], rest: &str| {
            let lines = generations
                .iter()
                .map(|&generation| serde_json::to_string(&progress(generation)).unwrap() + "\n");
            // Overwritten in place: only the contents show the difference.
            std::fs::write(&path, lines.collect::<String>() + rest).unwrap();
        };
        let mut follower = Follower::new(RunReader::new(folder.path()));
        write(&[1, 2, 3], "");
        assert_eq!(follower.read().unwrap().records.len(), 3);
        write(&[1, 2, 4, 5], "");
        let news = follower.read().unwrap();
        let all = vec![progress(1), progress(2), progress(4), progress(5)];
        assert_eq!((news.restarted, news.records), (true, all));
        write(&[1, 6], "nonsense\n");
        let news = follower.read().unwrap();
        assert_eq!((news.restarted, news.records.len(), news.damages.len()), (true, 2, 1));
        assert_eq!(follower.read().unwrap(), MetricsUpdate::default());
        write(&[1, 6, 7], "");
        let news = follower.read().unwrap();
        assert_eq!((news.restarted, news.records.len()), (true, 3));
        assert_eq!(follower.read().unwrap(), MetricsUpdate::default());
    }
}
