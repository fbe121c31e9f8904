//! An object's file: written, and read again.

use std::fs::File;
use std::io::{self, Read, Write};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use twox_hash::XxHash3_64;

use super::format::{FIXED, Header};
use super::index::Shelved;
use crate::error::Error;
use crate::local::LocalFile;
use crate::meter::Reason;

/// Why a file gives no object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unread {
    /// It holds none, or another one.
    Broken,
    /// The system does not let us look, for want of descriptors, say: nothing is known of it.
    Unknown,
}

impl From<io::Error> for Unread {
    fn from(error: io::Error) -> Unread {
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::UnexpectedEof => Unread::Broken,
            _ => Unread::Unknown,
        }
    }
}

/// Read at once where a body is looked at.
const READ_BYTES: u64 = 1 << 20;

/// An object to be kept.
#[derive(Debug)]
pub struct Shelving {
    /// What it is found by.
    pub key: String,
    /// Names that it can be removed by, separated by spaces.
    pub tags: String,
    /// What comes back with it.
    pub head: Vec<u8>,
    /// Its bytes.
    pub body: ShelvedBody,
}

/// Where an object's bytes are.
#[derive(Debug, Clone)]
pub enum ShelvedBody {
    /// In memory.
    Memory(Vec<Bytes>),
    /// In a file, which may have been removed meanwhile.
    File(Arc<LocalFile>, Range<u64>),
}

/// What the file says that it is.
pub(super) fn shelved(path: &Path) -> Result<(String, Shelved), Unread> {
    let file = File::open(path)?;
    let len = file.metadata()?.len();
    let bytes = begin(&file)?;
    let header = Header::read(&bytes).ok_or(Unread::Broken)?;
    if bytes.len() as u64 + header.body_len != len {
        return Err(Unread::Broken);
    }
    let shelved = Shelved::new(header.key, header.tags, len, false);
    Ok((header.key.to_owned(), shelved))
}

/// A file's bytes before its body.
pub(super) fn begin(mut file: &File) -> Result<Vec<u8>, Unread> {
    let mut bytes = vec![0; FIXED];
    file.read_exact(&mut bytes)?;
    let start = super::format::start(&bytes).ok_or(Unread::Broken)?;
    bytes.resize(start, 0);
    file.read_exact(bytes.get_mut(FIXED..).ok_or(Unread::Broken)?)?;
    Ok(bytes)
}

/// Writes a whole file; returns its length. Without waiting for the disk: what a machine that stops
/// leaves of it does not agree with its checksums.
pub(super) fn write(path: &Path, object: &Shelving) -> io::Result<u64> {
    let (mut body_len, mut summed) = (0, XxHash3_64::new());
    object.body.each(|bytes| {
        body_len += bytes.len() as u64;
        std::hash::Hasher::write(&mut summed, bytes);
        Ok(())
    })?;
    let header = Header {
        key: &object.key,
        tags: &object.tags,
        head: &object.head,
        body_len,
        body_sum: std::hash::Hasher::finish(&summed),
    };
    let header = header.write().ok_or(io::ErrorKind::InvalidInput)?;
    let mut file = File::create(path)?;
    file.write_all(&header)?;
    object.body.each(|bytes| file.write_all(bytes))?;
    Ok(header.len() as u64 + body_len)
}

impl ShelvedBody {
    /// Bytes.
    pub fn len(&self) -> u64 {
        match self {
            ShelvedBody::Memory(pieces) => pieces.iter().map(|piece| piece.len() as u64).sum(),
            ShelvedBody::File(_, range) => range.end - range.start,
        }
    }

    /// No bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn each(&self, mut with: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        match self {
            ShelvedBody::Memory(pieces) => pieces.iter().try_for_each(|piece| with(piece)),
            ShelvedBody::File(file, range) => each(file, range, with),
        }
    }
}

pub(super) fn each(
    file: &LocalFile,
    range: &Range<u64>,
    mut with: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let mut at = range.start;
    while at < range.end {
        let end = range.end.min(at + READ_BYTES);
        let bytes = file
            .read(at..end, Reason::Plain)
            .map_err(|error| match error {
                Error::Io(error) => error,
                // It is shorter than it was.
                _ => io::ErrorKind::UnexpectedEof.into(),
            })?;
        with(&bytes)?;
        at = end;
    }
    Ok(())
}
