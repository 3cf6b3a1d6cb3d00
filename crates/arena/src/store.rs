//! A file of finished games that survives a kill at any moment.
//!
//! One JSON document per line: first a header with the settings, then one record for each finished
//! game. Lines are only appended, so at most the last line can be incomplete; it is dropped. The
//! writer holds a lock. Games are added only under the same header, except for its part [`ASKED`],
//! which is informative.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use selfmate_run::bounded_file::{self, Bounded};

/// The part of a header that may differ when a file is resumed: the specs as the user wrote them.
pub const ASKED: &str = "asked";

/// The largest file that is read: about ten million games of a kilobyte each.
const MAX_BYTES: u64 = 8 << 30;
/// The longest header that is read. Without a limit, a device such as /dev/zero would fill the memory.
const MAX_HEADER: u64 = 1 << 20;

/// An open file of records, locked against other writers.
#[derive(Debug)]
pub struct RecordStore {
    file: File,
    path: PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("{}: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
    #[error("{}: another process is writing to it", path.display())]
    Locked { path: PathBuf },
    /// The file was started with other settings.
    #[error(
        "{}: was started with {key} {stored}, not {wanted}: use the same settings, or another file",
        path.display()
    )]
    Different { path: PathBuf, key: String, stored: String, wanted: String },
    /// A complete line is not valid JSON.
    #[error("{}, line {line}: {reason}", path.display())]
    Damaged {
        path: PathBuf,
        /// From 1.
        line: usize,
        reason: String,
    },
}

impl RecordStore {
    /// Opens a file, or creates it with this header, and reads its records.
    pub fn open<R: DeserializeOwned>(
        path: &Path,
        header: &impl Serialize,
    ) -> Result<(RecordStore, Vec<R>), StoreError> {
        let io = |error| StoreError::Io { path: path.to_owned(), error };
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder).map_err(io)?;
        }
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(io)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(StoreError::Locked { path: path.to_owned() });
            }
            Err(TryLockError::Error(error)) => return Err(io(error)),
        }
        let mut bytes = Vec::new();
        Bounded::new(&mut file, MAX_BYTES).read_to_end(&mut bytes).map_err(io)?;
        let whole = whole_lines(&bytes);
        // The file is not changed before it is clear that it is a file of games.
        let found = parse(path, whole)?;
        match &found {
            Some((stored, _)) => RecordStore::compare(path, stored, &as_value(header))?,
            None if as_value(header).to_string().as_bytes().starts_with(&bytes) => {}
            None => {
                let reason = "this is not a file of games".to_owned();
                return Err(StoreError::Damaged { path: path.to_owned(), line: 1, reason });
            }
        }
        file.set_len(whole.len() as u64).map_err(io)?;
        file.seek(SeekFrom::End(0)).map_err(io)?;
        let mut store = RecordStore { file, path: path.to_owned() };
        match found {
            Some((_, records)) => Ok((store, records)),
            None => {
                store.append(header)?;
                Ok((store, Vec::new()))
            }
        }
    }

    /// Reads the header and the records without a lock; `None` when the header is missing or
    /// incomplete.
    pub fn read<R: DeserializeOwned>(path: &Path) -> Result<Option<(Value, Vec<R>)>, StoreError> {
        let bytes = bounded_file::read(path, MAX_BYTES)
            .map_err(|error| StoreError::Io { path: path.to_owned(), error })?;
        parse(path, whole_lines(&bytes))
    }

    /// Reads only the header; `None` when there is no file or no complete header.
    pub fn header(path: &Path) -> Result<Option<Value>, StoreError> {
        let io = |error| StoreError::Io { path: path.to_owned(), error };
        let file = match File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file.map_err(io)?,
        };
        let mut line = Vec::new();
        BufReader::new(file).take(MAX_HEADER).read_until(b'\n', &mut line).map_err(io)?;
        if line.len() as u64 == MAX_HEADER {
            let reason = "this is not a file of games".to_owned();
            return Err(StoreError::Damaged { path: path.to_owned(), line: 1, reason });
        }
        let found = parse::<Value>(path, whole_lines(&line))?;
        Ok(found.map(|(header, _)| header))
    }

    /// Compares the header of a file with the wanted one. The error names the first difference.
    pub fn compare(path: &Path, stored: &Value, wanted: &Value) -> Result<(), StoreError> {
        // Files of another format differ in many ways, but the format is the reason.
        let format = difference("format", &stored["format"], &wanted["format"]);
        match format.or_else(|| difference("", stored, wanted)) {
            None => Ok(()),
            Some((key, stored, wanted)) => {
                Err(StoreError::Different { path: path.to_owned(), key, stored, wanted })
            }
        }
    }

    /// Appends a record. It is in the file when this returns.
    pub fn append(&mut self, record: &impl Serialize) -> Result<(), StoreError> {
        let mut line = as_value(record).to_string();
        line.push('\n');
        self.file.write_all(line.as_bytes()).map_err(|error| self.io(error))
    }

    /// Flushes the records to disk, so that they survive a power failure.
    pub fn sync(&mut self) -> Result<(), StoreError> {
        self.file.sync_data().map_err(|error| self.io(error))
    }

    fn io(&self, error: io::Error) -> StoreError {
        StoreError::Io { path: self.path.clone(), error }
    }
}

impl Drop for RecordStore {
    fn drop(&mut self) {
        // Without this, a child process that is being started would keep the lock after the file is
        // closed.
        let _ = self.file.unlock();
    }
}

/// Drops the incomplete line after the last line feed, which a killed writer left.
fn whole_lines(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |last| last + 1);
    &bytes[..end]
}

fn parse<R: DeserializeOwned>(
    path: &Path,
    bytes: &[u8],
) -> Result<Option<(Value, Vec<R>)>, StoreError> {
    let damaged = |index: usize, error: serde_json::Error| StoreError::Damaged {
        path: path.to_owned(),
        line: index + 1,
        reason: error.to_string(),
    };
    let mut lines = bytes.split_inclusive(|&byte| byte == b'\n').enumerate();
    let Some((_, header)) = lines.next() else { return Ok(None) };
    let header = serde_json::from_slice(header).map_err(|error| damaged(0, error))?;
    let record =
        |(index, line)| serde_json::from_slice::<R>(line).map_err(|error| damaged(index, error));
    Ok(Some((header, lines.map(record).collect::<Result<_, _>>()?)))
}

fn as_value(record: &impl Serialize) -> Value {
    serde_json::to_value(record).expect("records are plain data with text keys")
}

/// The first difference of two headers: its key and both values as text.
fn difference(key: &str, stored: &Value, wanted: &Value) -> Option<(String, String, String)> {
    if let (Value::Object(a), Value::Object(b)) = (stored, wanted) {
        let keys = a.keys().chain(b.keys().filter(|name| !a.contains_key(*name)));
        let mut compared = keys.filter(|name| !key.is_empty() || *name != ASKED);
        return compared.find_map(|name| {
            let inner = if key.is_empty() { name.clone() } else { format!("{key}.{name}") };
            let part = |values: &serde_json::Map<String, Value>| {
                values.get(name).cloned().unwrap_or(Value::Null)
            };
            difference(&inner, &part(a), &part(b))
        });
    }
    (stored != wanted).then(|| (key.to_owned(), stored.to_string(), wanted.to_string()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_file_of_another_program_is_rejected_and_not_changed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.json");
        for text in ["{\"no\": \"line feed\"}", "binary\n\u{1}rest", "{\"other\": 1}\nrest"] {
            std::fs::write(&path, text).unwrap();
            assert!(RecordStore::open::<Value>(&path, &json!({"format": "ours"})).is_err());
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
    }

    #[test]
    fn a_file_truncated_at_any_byte_keeps_its_complete_records() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("records.jsonl");
        let header = json!({"format": 1, "limit": {"nodes": 5}});
        let record = |n: u32| json!({"game": n, "text": "é\n"});
        let (mut store, none) = RecordStore::open::<Value>(&path, &header).unwrap();
        assert!(none.is_empty());
        for n in 0..3 {
            store.append(&record(n)).unwrap();
        }
        drop(store);
        let whole = std::fs::read(&path).unwrap();
        for length in 0..=whole.len() {
            std::fs::write(&path, &whole[..length]).unwrap();
            let feeds = whole[..length].iter().filter(|&&byte| byte == b'\n').count();
            let (mut store, records) = RecordStore::open::<Value>(&path, &header).unwrap();
            let kept = feeds.saturating_sub(1);
            assert_eq!(records.len(), kept, "{length} bytes");
            // Resuming gives the same file as without the truncation.
            for n in kept..3 {
                store.append(&record(n as u32)).unwrap();
            }
            drop(store);
            assert_eq!(std::fs::read(&path).unwrap(), whole, "{length} bytes");
        }
    }

    #[test]
    fn the_error_for_another_header_names_the_difference() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.jsonl");
        drop(RecordStore::open::<Value>(&path, &json!({"a": "x", "limit": {"nodes": 5}})).unwrap());
        let other = json!({"a": "x", "limit": {"nodes": 6}});
        let error = RecordStore::open::<Value>(&path, &other).unwrap_err().to_string();
        let expected = "was started with limit.nodes 5, not 6: use the same settings";
        assert!(error.contains(expected), "{error}");
        let error = RecordStore::open::<Value>(&path, &json!({"a": "x"})).unwrap_err().to_string();
        assert!(error.contains("limit {\"nodes\":5}, not null"), "{error}");
        let newer = json!({"a": "y", "format": 2});
        let error = RecordStore::open::<Value>(&path, &newer).unwrap_err().to_string();
        assert!(error.contains("format null, not 2"), "{error}");
        // The specs may be written differently if they mean the same players.
        let same = json!({"a": "x", "limit": {"nodes": 5}, "asked": {"a": "the newest"}});
        assert!(RecordStore::open::<Value>(&path, &same).is_ok());
    }

    #[test]
    fn the_header_can_be_read_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.jsonl");
        assert_eq!(RecordStore::header(&path).unwrap(), None);
        for (text, header) in
            [("", None), ("{\"a\":", None), ("{\"a\":1}\nbroken\n", Some(json!({"a": 1})))]
        {
            std::fs::write(&path, text).unwrap();
            assert_eq!(RecordStore::header(&path).unwrap(), header, "{text}");
        }
        std::fs::write(&path, "not ours\n").unwrap();
        assert!(RecordStore::header(&path).is_err());
        File::create(&path).unwrap().set_len(2 * MAX_HEADER).unwrap();
        let error = RecordStore::header(&path).unwrap_err().to_string();
        assert!(error.ends_with("line 1: this is not a file of games"), "{error}");
    }

    #[test]
    fn errors_report_a_damaged_line_and_a_second_writer() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.jsonl");
        std::fs::write(&path, "{}\n{\"game\":1}\nnonsense\n{\"game\":2}\n").unwrap();
        let error = RecordStore::open::<Value>(&path, &json!({})).unwrap_err().to_string();
        assert!(error.contains("m.jsonl, line 3: "), "{error}");
        std::fs::write(&path, "{}\n").unwrap();
        let (_first, _) = RecordStore::open::<Value>(&path, &json!({})).unwrap();
        let error = RecordStore::open::<Value>(&path, &json!({})).unwrap_err().to_string();
        assert!(error.ends_with("another process is writing to it"), "{error}");
    }
}
