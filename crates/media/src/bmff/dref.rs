//! `dref`: data references, which name the file that contains a track's media (8.7.2).

use super::{BoxIterator, Mp4Box, read_version_and_flags};
use crate::bytes::{ByteReader, write_full_box};
use crate::error::{Error, ErrorKind, Result, format_fourcc};

/// The file that contains the samples described by a sample entry.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum DataReference {
    /// The file that contains the `dref` box.
    SameFile,
    /// Another file. The name is a relative reference or a URL, exactly as stored in the box.
    External(String),
}

/// Maximum length of the name of another file, in bytes.
pub const NAME_BYTES_MAX: usize = 4096;

/// Returns the data reference with the given index. The first reference has index 1.
///
/// A missing or truncated reference means the same file. The self-reference flag also means the
/// same file, for example in QuickTime's `alis`.
///
/// # Errors
/// Returns `Malformed` or `TooLarge` for an invalid name. Returns `Unsupported` for a reference to
/// another file that is neither `url ` nor `urn `. Returns an error if a box size is invalid.
pub fn find_data_reference(dref: &Mp4Box<'_>, index: u16) -> Result<DataReference> {
    let mut reader = ByteReader::new(dref.body);
    read_version_and_flags(&mut reader);
    reader.u32();
    reader.check_no_short_read()?;
    let wanted = usize::from(index.max(1)) - 1;
    let Some(entry) =
        BoxIterator::new(reader.remaining_slice(), dref.body_offset() + 8).nth(wanted)
    else {
        return Ok(DataReference::SameFile);
    };
    let entry = entry?;
    let mut reader = ByteReader::new(entry.body);
    let (_, flags) = read_version_and_flags(&mut reader);
    if reader.check_no_short_read().is_err() || flags & 1 != 0 {
        return Ok(DataReference::SameFile);
    }
    let name = match &entry.name {
        b"url " => split_at_nul(reader.remaining_slice()).0,
        // A `urn ` reference contains a URN and then a location. Only the location is used, because
        // a URN cannot be resolved.
        b"urn " => split_at_nul(split_at_nul(reader.remaining_slice()).1).0,
        other => {
            let message = format!(
                "unsupported kind of reference to other files: {}",
                format_fourcc(*other)
            );
            return Err(Error::unsupported(message)
                .with_enclosing_box(*b"dref")
                .with_byte_offset(entry.offset));
        }
    };
    parse_external_name(name).map_err(|error| {
        error
            .with_enclosing_box(entry.name)
            .with_enclosing_box(*b"dref")
            .with_byte_offset(entry.offset)
    })
}

fn parse_external_name(bytes: &[u8]) -> Result<DataReference> {
    if bytes.len() > NAME_BYTES_MAX {
        let message = format!(
            "a file name of {} bytes; at most {NAME_BYTES_MAX} are read",
            bytes.len()
        );
        return Err(Error::new(ErrorKind::TooLarge, message));
    }
    match std::str::from_utf8(bytes) {
        Ok("") => Err(Error::malformed("a reference to another file has no name")),
        Ok(name) => Ok(DataReference::External(name.to_owned())),
        Err(_) => Err(Error::malformed("a reference to another file is not UTF-8")),
    }
}

/// Returns the bytes before and the bytes after the first NUL.
fn split_at_nul(bytes: &[u8]) -> (&[u8], &[u8]) {
    let end = bytes.iter().position(|byte| *byte == 0);
    let end = end.unwrap_or(bytes.len());
    (&bytes[..end], bytes.get(end + 1..).unwrap_or_default())
}

/// Appends a `dref` box with one data reference (8.7.2).
pub fn write_dref(out: &mut Vec<u8>, location: &DataReference) {
    write_full_box(out, b"dref", 0, 0, |out| {
        out.extend_from_slice(&1u32.to_be_bytes());
        match location {
            DataReference::SameFile => write_full_box(out, b"url ", 0, 1, |_| ()),
            DataReference::External(name) => write_full_box(out, b"url ", 0, 0, |out| {
                out.extend(name.bytes().filter(|byte| *byte != 0));
                out.push(0);
            }),
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build_dref(kinds: &[(&[u8; 4], u32, &[u8])]) -> Vec<u8> {
        let mut bytes = Vec::new();
        write_full_box(&mut bytes, b"dref", 0, 0, |out| {
            out.extend((kinds.len() as u32).to_be_bytes());
            for (kind, flags, body) in kinds {
                write_full_box(out, kind, 0, *flags, |out| out.extend(*body));
            }
        });
        bytes
    }

    fn find_in(bytes: &[u8], index: u16) -> Result<DataReference> {
        find_data_reference(&Mp4Box::parse_first(bytes, 0).unwrap(), index)
    }

    #[test]
    fn entries_name_the_same_file_or_another() {
        let named = |name: &str| Ok(DataReference::External(name.to_owned()));
        let bytes = build_dref(&[
            (b"url ", 1, b""),
            (b"url ", 0, b"http://a/b.mp4\0"),
            (b"url ", 0, b"no end.mp4"),
            (b"urn ", 0, b"urn:x\0where.mp4\0"),
            (b"alis", 1, b""),
        ]);
        assert_eq!(find_in(&bytes, 0), Ok(DataReference::SameFile));
        assert_eq!(find_in(&bytes, 1), Ok(DataReference::SameFile));
        assert_eq!(find_in(&bytes, 2), named("http://a/b.mp4"));
        assert_eq!(find_in(&bytes, 3), named("no end.mp4"));
        assert_eq!(find_in(&bytes, 4), named("where.mp4"));
        assert_eq!(find_in(&bytes, 5), Ok(DataReference::SameFile));
        assert_eq!(find_in(&bytes, 6), Ok(DataReference::SameFile));
    }

    #[test]
    fn references_without_a_valid_name_are_refused() {
        let long = [b'a'; NAME_BYTES_MAX + 1];
        for (kind, body, expected) in [
            (b"url ", &b""[..], ErrorKind::Malformed),
            (b"url ", b"\0", ErrorKind::Malformed),
            (b"url ", b"\xff\0", ErrorKind::Malformed),
            (b"urn ", b"urn:x\0", ErrorKind::Malformed),
            (b"url ", &long, ErrorKind::TooLarge),
            (b"alis", b"alias", ErrorKind::Unsupported),
        ] {
            let error = find_in(&build_dref(&[(kind, 0, body)]), 1).unwrap_err();
            assert_eq!(error.kind, expected, "{error}");
        }
    }

    #[test]
    fn written_locations_are_read_back() {
        for location in [
            DataReference::SameFile,
            DataReference::External("../a film.mp4".into()),
        ] {
            let mut bytes = Vec::new();
            write_dref(&mut bytes, &location);
            assert_eq!(find_in(&bytes, 1), Ok(location));
        }
    }
}
