//! What our own index MP4s say besides: facts of the media file that its tables do not hold.

use super::ahead::Ahead;
use super::fingerprint::Fingerprint;
use super::{MediaState, Note};
use crate::bmff::{Children, Mp4Box};
use crate::bytes::{Reader, write_box};

/// Names the box among others of kind `uuid` (ISO/IEC 14496-12, 4.2.2).
const ID: [u8; 16] = *b"\x8f\x2c\x1a\x90\x5e\x37\x4d\x0b\xa1\x6c\xd4\x21\x77\x0e\x93\x5b";
const VERSION: u8 = 2;
/// More notes are not kept, nor longer ones.
const NOTES_MAX: usize = 1000;
const NOTE_BYTES_MAX: usize = 1000;

/// Facts of the media file, as it was when it was indexed. The last box in the moov.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mark {
    /// Its length in bytes.
    pub file_len: u64,
    /// Its index's.
    pub fingerprint: u64,
    /// Its index's.
    pub media_state: Option<MediaState>,
    /// Its index's.
    pub notes: Vec<Note>,
}

impl Mark {
    /// Appends the box to `moov`, the boxes of a moov so far, with a hash of them: whoever edits
    /// the tables and keeps the box makes it void.
    pub fn write(&self, moov: &mut Vec<u8>, from: usize) {
        let tables = hash(moov.get(from..).unwrap_or_default());
        write_box(moov, b"uuid", |out| {
            out.extend_from_slice(&ID);
            out.push(VERSION);
            for word in [tables, self.file_len, self.fingerprint] {
                out.extend_from_slice(&word.to_be_bytes());
            }
            let (kind, hash) = match self.media_state {
                None => (0, 0),
                Some(MediaState::Bytes(hash)) => (1, hash),
                Some(MediaState::Tag(hash)) => (2, hash),
            };
            out.push(kind);
            out.extend_from_slice(&hash.to_be_bytes());
            let fits = |note: &&Note| note.what.len() <= NOTE_BYTES_MAX;
            let notes: Vec<&Note> = self.notes.iter().filter(fits).take(NOTES_MAX).collect();
            out.extend_from_slice(&(notes.len() as u32).to_be_bytes());
            for note in notes {
                out.extend_from_slice(&note.track.to_be_bytes());
                out.push(u8::from(note.at.is_some()));
                out.extend_from_slice(&note.at.unwrap_or(0).to_be_bytes());
                out.extend_from_slice(&(note.what.len() as u32).to_be_bytes());
                out.extend_from_slice(note.what.as_bytes());
            }
        });
    }

    /// How long its box is without notes.
    pub(super) const BYTES_MIN: usize = 8 + ID.len() + 1 + 3 * 8 + 1 + 8 + 4;

    /// The begin of a hash of so many bytes of tables.
    pub(super) fn hashing(len: usize) -> Fingerprint {
        let mut hash = Fingerprint::new(len as u64);
        hash.begin(0, len);
        hash
    }

    /// The mark of a moov box, if it has one that holds for its tables, whose hash may have been taken
    /// `ahead`.
    pub(super) fn read(moov: &Mp4Box<'_>, ahead: &mut Ahead) -> Option<Mark> {
        let boxes = Children::new(moov.body, 0).map_while(Result::ok);
        let last = boxes.last().filter(|last| last.name == *b"uuid")?;
        let tables = moov.body.get(..moov.body.len() - last.whole.len())?;
        let header = moov.whole.len() - moov.body.len();
        let mut reader = Reader::new(last.body);
        if reader.array() != ID || reader.u8() != VERSION {
            return None;
        }
        let hashed = ahead.hash(moov.whole, header..header + tables.len());
        let hash = hashed.map_or_else(|| hash(tables), Fingerprint::finish);
        let ours = reader.u64() == hash;
        let (file_len, fingerprint) = (reader.u64(), reader.u64());
        let (kind, hash, count) = (reader.u8(), reader.u64(), reader.u32() as usize);
        let media_state = match kind {
            1 => Some(MediaState::Bytes(hash)),
            2 => Some(MediaState::Tag(hash)),
            _ => None,
        };
        if !ours || count > NOTES_MAX {
            return None;
        }
        let notes = (0..count)
            .map(|_| note(&mut reader))
            .collect::<Option<_>>()?;
        reader.done().ok()?;
        Some(Mark {
            file_len,
            fingerprint,
            media_state,
            notes,
        })
    }
}

fn note(reader: &mut Reader<'_>) -> Option<Note> {
    let (track, has_at, at, len) = (reader.u32(), reader.u8(), reader.u64(), reader.u32());
    let what = reader.take(len as usize);
    let what = (len as usize <= NOTE_BYTES_MAX).then(|| std::str::from_utf8(what).ok())??;
    Some(Note {
        track,
        at: (has_at != 0).then_some(at),
        what: what.to_owned(),
    })
}

fn hash(bytes: &[u8]) -> u64 {
    let mut hash = Mark::hashing(bytes.len());
    let words = hash.words(bytes);
    hash.end(bytes.get(words..).unwrap_or_default());
    hash.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(mark: &Mark) -> Vec<u8> {
        let mut out = Vec::new();
        write_box(&mut out, b"moov", |out| {
            let from = out.len();
            write_box(out, b"trak", |out| out.extend_from_slice(b"tables"));
            mark.write(out, from);
        });
        out
    }

    #[test]
    fn one_without_notes_is_as_long_as_is_said() {
        let mark = Mark {
            file_len: 1,
            fingerprint: 2,
            media_state: None,
            notes: Vec::new(),
        };
        let mut bytes = Vec::new();
        mark.write(&mut bytes, 0);
        assert_eq!(bytes.len(), Mark::BYTES_MIN);
    }

    #[test]
    fn any_flipped_bit_makes_it_void_or_changes_no_table() {
        let at = Some(7);
        let what = "a note".to_owned();
        let mark = Mark {
            file_len: 1 << 40,
            fingerprint: 9,
            media_state: Some(MediaState::Tag(4)),
            notes: vec![Note { track: 3, at, what }],
        };
        let bytes = marked(&mark);
        let read = |bytes: &[u8]| Mark::read(&Mp4Box::first(bytes, 0).ok()?, &mut Ahead::default());
        assert_eq!(read(&bytes).as_ref(), Some(&mark));
        for bit in 16 * 8..22 * 8 {
            let mut other = bytes.clone();
            other[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(read(&other), None, "bit {bit}");
        }
        for end in 8..bytes.len() {
            assert_eq!(read(&bytes[..end]), None);
        }
    }
}
