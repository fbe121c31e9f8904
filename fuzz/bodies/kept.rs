//! No file of the disk cache can make its reader panic, or be taken for a value that was not
//! written as just that.

use crate::record::{Record, Unread};

/// Two bytes say how long name and version are; they follow, then the value, then what is done to
/// the file: places and bits to flip, and where to cut it.
pub fn run(data: &[u8]) {
    if let Err(unread) = Record::read(data, "film", b"1") {
        assert!(matches!(unread, Unread::Broken | Unread::Other));
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
    let record = Record {
        name: &name,
        version,
        value,
    };
    let whole = record.write();
    assert_eq!(Record::read(&whole, &name, version), Ok(value));
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
    let read = Record::read(&harmed, &name, version);
    assert_eq!(read == Ok(value), harmed == whole);
    assert!(harmed == whole || read.is_err());
}
