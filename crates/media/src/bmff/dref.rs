//! `dref`: where a track's media lies (8.7.2).

use super::{Children, Mp4Box, version_and_flags};
use crate::bytes::{Reader, write_full_box};
use crate::error::{Error, Kind, Result, fourcc};

/// Where the media of a sample entry lies.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Location {
    /// In this very file.
    Here,
    /// In the file of this name: a relative reference or a URL, as it is written.
    Named(String),
}

/// Longest name, in bytes.
pub const NAME_BYTES_MAX: usize = 4096;

/// Where the media is that entry `index`, from 1, speaks of. An entry that is missing or too
/// short is taken to mean this very file, as is QuickTime's `alis` that says so.
///
/// # Errors
/// What is wrong with an entry's size or name; `Unsupported` for other kinds of reference.
pub fn location(dref: &Mp4Box<'_>, index: u16) -> Result<Location> {
    let mut reader = Reader::new(dref.body);
    version_and_flags(&mut reader);
    reader.u32();
    reader.done()?;
    let wanted = usize::from(index.max(1)) - 1;
    let Some(entry) = Children::new(reader.rest(), dref.body_at() + 8).nth(wanted) else {
        return Ok(Location::Here);
    };
    let entry = entry?;
    let mut reader = Reader::new(entry.body);
    let (_, flags) = version_and_flags(&mut reader);
    if reader.done().is_err() || flags & 1 != 0 {
        return Ok(Location::Here);
    }
    let name = match &entry.name {
        b"url " => terminated(reader.rest()).0,
        // A name first (which we cannot look up), then where to find it.
        b"urn " => terminated(terminated(reader.rest()).1).0,
        other => {
            let what = format!("a reference to other files of kind {}", fourcc(*other));
            return Err(Error::unsupported(what).inside(*b"dref").at(entry.at));
        }
    };
    named(name).map_err(|error| error.inside(entry.name).inside(*b"dref").at(entry.at))
}

fn named(bytes: &[u8]) -> Result<Location> {
    if bytes.len() > NAME_BYTES_MAX {
        let what = format!(
            "a name of {} bytes; at most {NAME_BYTES_MAX} are read",
            bytes.len()
        );
        return Err(Error::new(Kind::TooLarge, what));
    }
    match std::str::from_utf8(bytes) {
        Ok("") => Err(Error::malformed("a reference to another file names none")),
        Ok(name) => Ok(Location::Named(name.to_owned())),
        Err(_) => Err(Error::malformed("a reference to another file is not UTF-8")),
    }
}

/// Bytes up to the first NUL, and those after it.
fn terminated(bytes: &[u8]) -> (&[u8], &[u8]) {
    let end = bytes.iter().position(|byte| *byte == 0);
    let end = end.unwrap_or(bytes.len());
    (&bytes[..end], bytes.get(end + 1..).unwrap_or_default())
}

/// Appends a dref box with one entry.
pub fn write(out: &mut Vec<u8>, location: &Location) {
    write_full_box(out, b"dref", 0, 0, |out| {
        out.extend_from_slice(&1u32.to_be_bytes());
        match location {
            Location::Here => write_full_box(out, b"url ", 0, 1, |_| ()),
            Location::Named(name) => write_full_box(out, b"url ", 0, 0, |out| {
                out.extend(name.bytes().filter(|byte| *byte != 0));
                out.push(0);
            }),
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(kinds: &[(&[u8; 4], u32, &[u8])]) -> Vec<u8> {
        let mut bytes = Vec::new();
        write_full_box(&mut bytes, b"dref", 0, 0, |out| {
            out.extend((kinds.len() as u32).to_be_bytes());
            for (kind, flags, body) in kinds {
                write_full_box(out, kind, 0, *flags, |out| out.extend(*body));
            }
        });
        bytes
    }

    fn at(bytes: &[u8], index: u16) -> Result<Location> {
        location(&Mp4Box::first(bytes, 0).unwrap(), index)
    }

    #[test]
    fn here_or_elsewhere() {
        let named = |name: &str| Ok(Location::Named(name.to_owned()));
        let bytes = entries(&[
            (b"url ", 1, b""),
            (b"url ", 0, b"http://a/b.mp4\0"),
            (b"url ", 0, b"no end.mp4"),
            (b"urn ", 0, b"urn:x\0where.mp4\0"),
            (b"alis", 1, b""),
        ]);
        assert_eq!(at(&bytes, 0), Ok(Location::Here));
        assert_eq!(at(&bytes, 1), Ok(Location::Here));
        assert_eq!(at(&bytes, 2), named("http://a/b.mp4"));
        assert_eq!(at(&bytes, 3), named("no end.mp4"));
        assert_eq!(at(&bytes, 4), named("where.mp4"));
        assert_eq!(at(&bytes, 5), Ok(Location::Here));
        assert_eq!(at(&bytes, 6), Ok(Location::Here));
    }

    #[test]
    fn what_names_nothing_is_refused() {
        let long = [b'a'; NAME_BYTES_MAX + 1];
        for (kind, body, expected) in [
            (b"url ", &b""[..], Kind::Malformed),
            (b"url ", b"\0", Kind::Malformed),
            (b"url ", b"\xff\0", Kind::Malformed),
            (b"urn ", b"urn:x\0", Kind::Malformed),
            (b"url ", &long, Kind::TooLarge),
            (b"alis", b"alias", Kind::Unsupported),
        ] {
            let error = at(&entries(&[(kind, 0, body)]), 1).unwrap_err();
            assert_eq!(error.kind, expected, "{error}");
        }
    }

    #[test]
    fn round_trip() {
        for location in [Location::Here, Location::Named("../a film.mp4".into())] {
            let mut bytes = Vec::new();
            write(&mut bytes, &location);
            assert_eq!(at(&bytes, 1), Ok(location));
        }
    }
}
