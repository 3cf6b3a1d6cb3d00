//! Size-limited reads, because a device, a pipe or an archive may be endless.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// A reader that fails beyond a limit.
pub struct Bounded<R> {
    input: R,
    limit: u64,
    left: u64,
}

impl<R: Read> Bounded<R> {
    pub const fn new(input: R, limit: u64) -> Bounded<R> {
        Bounded { input, limit, left: limit }
    }
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 && !buffer.is_empty() {
            return match self.input.read(&mut [0])? {
                0 => Ok(0),
                _ => Err(too_large(self.limit)),
            };
        }
        let most = buffer.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let read = self.input.read(&mut buffer[..most])?;
        self.left -= read as u64;
        Ok(read)
    }
}

/// Opens a file. A plain file that is too large is an error at once.
pub fn open(path: &Path, limit: u64) -> io::Result<Bounded<File>> {
    let file = File::open(path)?;
    let known = file.metadata()?;
    if known.is_file() && known.len() > limit {
        return Err(too_large(limit));
    }
    Ok(Bounded::new(file, limit))
}

pub fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path, limit)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

pub fn too_large(limit: u64) -> io::Error {
    let what = format!("more than {} MB, which is the most that is read", limit >> 20);
    io::Error::new(io::ErrorKind::FileTooLarge, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_up_to_the_limit_is_read_and_more_is_an_error() {
        for length in [0, 1, 9, 10] {
            let mut read = Vec::new();
            Bounded::new(&[7; 10][..length], 10).read_to_end(&mut read).unwrap();
            assert_eq!(read, vec![7; length]);
        }
        let error = Bounded::new(io::repeat(7), 10).read_to_end(&mut Vec::new()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
    }

    #[test]
    fn a_plain_file_over_the_limit_is_not_opened() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("holes");
        File::create(&path).unwrap().set_len(1 << 40).unwrap();
        let error = open(&path, 10 << 20).map(drop).unwrap_err();
        assert_eq!(error.to_string(), "more than 10 MB, which is the most that is read");
        assert!(read(&path, 10).is_err());
    }
}
