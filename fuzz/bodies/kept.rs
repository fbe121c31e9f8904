//! Checks that no file in the disk cache makes its reader panic, or return a value other than the
//! value that was written under this name and version.

use crate::record::{CacheRecord, RecordError};

/// The first four bytes are the lengths of the name, version, value and damage, which follow. The
/// damage is a list of changes, each with an offset. A change flips a bit, inserts a byte or
/// truncates the file.
pub fn run(data: &[u8]) {
    if let Err(error) = CacheRecord::decode_value(data, "film", b"1") {
        assert!(matches!(error, RecordError::Broken | RecordError::Other));
    }
    let Some(([name, version, value, damage], rest)) = data.split_first_chunk::<4>() else {
        return;
    };
    let mut rest = rest;
    let mut take = |len: u8| {
        let (head, tail) = rest.split_at(usize::from(len).min(rest.len()));
        rest = tail;
        head
    };
    let name = String::from_utf8_lossy(take(*name));
    let (version, value) = (take(*version), take(*value));
    let damage = take(*damage);
    let record = CacheRecord {
        name: &name,
        version,
        value,
    };
    let whole = record.encode();
    assert_eq!(CacheRecord::decode_value(&whole, &name, version), Ok(value));
    let mut damaged = whole.clone();
    for change in damage.chunks_exact(3) {
        let at = usize::from(u16::from_le_bytes([change[0], change[1]]));
        match change[2] {
            bit @ 0..8 => {
                if let Some(byte) = damaged.get_mut(at) {
                    *byte ^= 1 << bit;
                }
            }
            8 => damaged.truncate(at),
            byte => damaged.insert(at.min(damaged.len()), byte),
        }
    }
    let read = CacheRecord::decode_value(&damaged, &name, version);
    assert_eq!(read == Ok(value), damaged == whole);
    assert!(damaged == whole || read.is_err());
}
