//! No file in the disk cache can make its reader panic or return a value that was not written under
//! that name and version.

use crate::record::{CacheRecord, RecordError};

/// Two bytes are the lengths of name and version, which follow with the value. The rest damages the
/// file: offsets and bits to flip, and the length to cut it to.
pub fn run(data: &[u8]) {
    if let Err(unread) = CacheRecord::read(data, "film", b"1") {
        assert!(matches!(unread, RecordError::Broken | RecordError::Other));
    }
    let Some(([name, version, value, harms], rest)) = data.split_first_chunk::<4>() else {
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
    let harms = take(*harms);
    let record = CacheRecord {
        name: &name,
        version,
        value,
    };
    let whole = record.write();
    assert_eq!(CacheRecord::read(&whole, &name, version), Ok(value));
    let mut harmed = whole.clone();
    for harm in harms.chunks_exact(3) {
        let at = usize::from(u16::from_le_bytes([harm[0], harm[1]]));
        match harm[2] {
            bit @ 0..8 => {
                if let Some(byte) = harmed.get_mut(at) {
                    *byte ^= 1 << bit;
                }
            }
            8 => harmed.truncate(at),
            byte => harmed.insert(at.min(harmed.len()), byte),
        }
    }
    let read = CacheRecord::read(&harmed, &name, version);
    assert_eq!(read == Ok(value), harmed == whole);
    assert!(harmed == whole || read.is_err());
}
