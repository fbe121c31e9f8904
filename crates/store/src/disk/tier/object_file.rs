//! Writes and reads the file of an object.

use std::fs::File;
use std::io::{self, Read, Write};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use twox_hash::XxHash3_64;

use super::format::{FIXED, TierFileHeader};
use super::index::TierEntry;
use crate::error::Error;
use crate::local_file::LocalFile;
use crate::storage_meter::RequestReason;

/// The reason why a file contains no usable object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TierFileError {
    /// The file is missing, is damaged, or contains another object.
    Broken,
    /// The system cannot open or read the file now, for example because the process has no free
    /// file descriptors.
    Unknown,
}

impl From<io::Error> for TierFileError {
    fn from(error: io::Error) -> TierFileError {
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::UnexpectedEof => TierFileError::Broken,
            _ => TierFileError::Unknown,
        }
    }
}

/// Number of bytes per read when a body is checked or copied.
const READ_BYTES: u64 = 1 << 20;

/// An object to store.
#[derive(Debug)]
pub struct ObjectToStore {
    /// The key.
    pub key: String,
    /// Tags by which the object can be purged, separated by spaces.
    pub tags: String,
    /// Metadata that is returned with the object.
    pub head: Vec<u8>,
    /// The bytes.
    pub body: TierBodySource,
}

/// The location of an object's bytes.
#[derive(Debug, Clone)]
pub enum TierBodySource {
    /// In memory.
    Memory(Vec<Bytes>),
    /// In a range of an open file. The file may have been removed from its folder, but stays
    /// readable.
    File(Arc<LocalFile>, Range<u64>),
}

/// Reads the header of a file. Returns the key and the index entry of the object.
pub(super) fn read_index_entry(path: &Path) -> Result<(String, TierEntry), TierFileError> {
    let file = File::open(path)?;
    let len = file.metadata()?.len();
    let bytes = read_header_bytes(&file)?;
    let header = TierFileHeader::decode_header(&bytes).ok_or(TierFileError::Broken)?;
    if bytes.len() as u64 + header.body_len != len {
        return Err(TierFileError::Broken);
    }
    let shelved = TierEntry::new(header.key, header.tags, len, false);
    Ok((header.key.to_owned(), shelved))
}

/// Reads all bytes before the body.
pub(super) fn read_header_bytes(mut file: &File) -> Result<Vec<u8>, TierFileError> {
    let mut bytes = vec![0; FIXED];
    file.read_exact(&mut bytes)?;
    let start = super::format::body_offset(&bytes).ok_or(TierFileError::Broken)?;
    bytes.resize(start, 0);
    file.read_exact(bytes.get_mut(FIXED..).ok_or(TierFileError::Broken)?)?;
    Ok(bytes)
}

/// Writes a complete file and returns its length in bytes. Does not call `fsync`, because the
/// checksums reveal a file that is incomplete after a crash.
pub(super) fn write_object_file(path: &Path, object: &ObjectToStore) -> io::Result<u64> {
    let (mut body_len, mut summed) = (0, XxHash3_64::new());
    object.body.for_each_block(|bytes| {
        body_len += bytes.len() as u64;
        std::hash::Hasher::write(&mut summed, bytes);
        Ok(())
    })?;
    let header = TierFileHeader {
        key: &object.key,
        tags: &object.tags,
        head: &object.head,
        body_len,
        body_sum: std::hash::Hasher::finish(&summed),
    };
    let header = header.encode_header().ok_or(io::ErrorKind::InvalidInput)?;
    let mut file = File::create(path)?;
    file.write_all(&header)?;
    object.body.for_each_block(|bytes| file.write_all(bytes))?;
    Ok(header.len() as u64 + body_len)
}

impl TierBodySource {
    /// The length of the body in bytes.
    pub fn len(&self) -> u64 {
        match self {
            TierBodySource::Memory(pieces) => pieces.iter().map(|piece| piece.len() as u64).sum(),
            TierBodySource::File(_, range) => range.end - range.start,
        }
    }

    /// Returns whether the body is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn for_each_block(&self, mut with: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        match self {
            TierBodySource::Memory(pieces) => pieces.iter().try_for_each(|piece| with(piece)),
            TierBodySource::File(file, range) => for_each_block(file, range, with),
        }
    }
}

pub(super) fn for_each_block(
    file: &LocalFile,
    range: &Range<u64>,
    mut with: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let mut at = range.start;
    while at < range.end {
        let end = range.end.min(at + READ_BYTES);
        let bytes = file
            .read(at..end, RequestReason::Plain)
            .map_err(|error| match error {
                Error::Io(error) => error,
                // Any other error means that the file was truncated.
                _ => io::ErrorKind::UnexpectedEof.into(),
            })?;
        with(&bytes)?;
        at = end;
    }
    Ok(())
}
