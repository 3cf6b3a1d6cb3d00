//! Following the metrics of a run while another process writes them: only what is new is read.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use crate::error::RunError;
use crate::metric::Record;
use crate::reader::RunReader;

/// Reads the metrics of a run piece by piece.
#[derive(Debug)]
pub struct Follower {
    reader: RunReader,
    /// Which file was read; another one has taken its place when a resume went back.
    file: Option<u64>,
    /// Bytes and lines read.
    place: u64,
    lines: usize,
}

/// What was added since the last look.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct News {
    /// The file was written anew: what was read before no longer counts.
    pub restarted: bool,
    /// The records, in order.
    pub records: Vec<Record>,
}

impl Follower {
    /// Follows from the first record on.
    pub fn new(reader: RunReader) -> Follower {
        Follower { reader, file: None, place: 0, lines: 0 }
    }

    /// The run.
    pub fn reader(&self) -> &RunReader {
        &self.reader
    }

    /// What was added since the last call. A line that is not finished waits for the next one.
    pub fn read(&mut self) -> Result<News, RunError> {
        let path = self.reader.metrics_path();
        let mut file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let restarted = self.place > 0;
                (self.file, self.place, self.lines) = (None, 0, 0);
                return Ok(News { restarted, records: Vec::new() });
            }
            Err(error) => return Err(RunError::Io { path, error }),
        };
        let metadata = file.metadata().map_err(RunError::io(&path))?;
        let identity = identity(&metadata);
        let restarted =
            self.place > 0 && (self.file != Some(identity) || metadata.len() < self.place);
        if restarted {
            (self.place, self.lines) = (0, 0);
        }
        self.file = Some(identity);
        let mut bytes = Vec::new();
        if metadata.len() > self.place {
            file.seek(SeekFrom::Start(self.place)).map_err(RunError::io(&path))?;
            file.read_to_end(&mut bytes).map_err(RunError::io(&path))?;
        }
        let whole = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |last| last + 1);
        let mut records = Vec::new();
        for line in bytes[..whole].split_inclusive(|&byte| byte == b'\n') {
            let record = serde_json::from_slice(line).map_err(|error| RunError::Line {
                path: path.clone(),
                line: self.lines + records.len() + 1,
                what: error.to_string(),
            })?;
            records.push(record);
        }
        self.place += whole as u64;
        self.lines += records.len();
        Ok(News { restarted, records })
    }
}

/// A number that another file in the same place does not have.
#[cfg(unix)]
fn identity(metadata: &std::fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(metadata)
}

/// Elsewhere only a shorter file is known to be another.
#[cfg(not(unix))]
fn identity(_: &std::fs::Metadata) -> u64 {
    0
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
    fn only_what_is_new_is_told_and_a_rewind_starts_over() {
        let folder = tempfile::tempdir().unwrap();
        let mut run = Run::open(folder.path()).unwrap();
        let mut follower = Follower::new(RunReader::new(folder.path()));
        assert_eq!(follower.read().unwrap(), News::default());
        for generation in 1..=3 {
            run.append_metric(&progress(generation)).unwrap();
        }
        assert_eq!(follower.read().unwrap().records, [progress(1), progress(2), progress(3)]);
        assert_eq!(follower.read().unwrap(), News::default());
        run.append_metric(&progress(4)).unwrap();
        assert_eq!(follower.read().unwrap().records, [progress(4)]);
        run.rewind_metrics(2).unwrap();
        let news = follower.read().unwrap();
        assert_eq!((news.restarted, news.records), (true, vec![progress(1), progress(2)]));
    }

    #[test]
    fn a_line_waits_until_it_is_whole_and_nonsense_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("metrics.jsonl");
        let mut file = OpenOptions::new().append(true).create(true).open(&path).unwrap();
        let mut follower = Follower::new(RunReader::new(folder.path()));
        let line = serde_json::to_string(&progress(1)).unwrap();
        file.write_all(&line.as_bytes()[..9]).unwrap();
        assert_eq!(follower.read().unwrap(), News::default());
        file.write_all(&line.as_bytes()[9..]).unwrap();
        file.write_all(b"\n").unwrap();
        assert_eq!(follower.read().unwrap().records, [progress(1)]);
        file.write_all(b"nonsense\n").unwrap();
        let error = follower.read().unwrap_err().to_string();
        assert!(error.contains("metrics.jsonl, line 2: "), "{error}");
    }
}
