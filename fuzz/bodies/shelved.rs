//! Checks that no file in the disk tier makes its reader panic, or return an object other than the
//! object that was written under this key.

use crate::format::{self, FIXED, TierFileHeader};

/// The first three bytes are the lengths of the key, tags and head, which follow. The rest is a
/// list of offsets, each with a bit to flip.
pub fn run(data: &[u8]) {
    // Also parses the data itself as a file that another program wrote.
    if let Some(header) = TierFileHeader::decode_header(data) {
        let again = header.encode_header();
        let start = format::body_offset(data);
        assert_eq!(again.as_ref().map(Vec::len), start);
        assert!(again.is_some_and(|again| TierFileHeader::decode_header(&again) == Some(header)));
    }
    let Some(([key, tags, head], rest)) = data.split_first_chunk::<3>() else {
        return;
    };
    let mut rest = rest;
    let mut take = |len: u8| {
        let (taken, tail) = rest.split_at(usize::from(len).min(rest.len()));
        rest = tail;
        taken
    };
    let key = String::from_utf8_lossy(take(*key));
    let tags = String::from_utf8_lossy(take(*tags));
    let head = take(*head);
    let header = TierFileHeader {
        key: &key,
        tags: &tags,
        head,
        body_len: head.len() as u64,
        body_sum: format::checksum(head),
    };
    let Some(written) = header.encode_header() else {
        return;
    };
    assert_eq!(written.len() % 4096, 0);
    assert_eq!(format::body_offset(&written[..FIXED]), Some(written.len()));
    assert_eq!(TierFileHeader::decode_header(&written), Some(header));
    let declared_len = FIXED + key.len() + tags.len() + head.len() + 8;
    let mut damaged = written.clone();
    for change in rest.chunks_exact(3) {
        let at = usize::from(u16::from_le_bytes([change[0], change[1]])) % declared_len;
        damaged[at] ^= 1 << (change[2] % 8);
    }
    if damaged != written {
        assert_eq!(TierFileHeader::decode_header(&damaged), None);
    }
}
