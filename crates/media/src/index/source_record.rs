//! The source record of an index MP4. It contains facts about the media file that the sample tables
//! do not contain.

use super::early_parsed_tracks::EarlyParsedTracks;
use super::fingerprint::FingerprintHasher;
use super::{IndexNote, LeftOutTrack, MediaVersion};
use crate::bmff::{BoxIterator, Mp4Box};
use crate::bytes::{ByteReader, write_box};
use crate::text::{CaptionChannel, pack_caption_channels, unpack_caption_channels};

/// Extended type that distinguishes the box from other `uuid` boxes (ISO/IEC 14496-12, 4.2.2).
const ID: [u8; 16] = *b"\x8f\x2c\x1a\x90\x5e\x37\x4d\x0b\xa1\x6c\xd4\x21\x77\x0e\x93\x5b";
const VERSION: u8 = 3;
/// The previous version of the record, which contains no caption channels. Records of this version
/// are still read.
const VERSION_WITHOUT_CAPTIONS: u8 = 2;
/// Maximum number of stored notes, and maximum length of a note in bytes. Notes beyond these limits
/// are dropped.
const NOTES_MAX: usize = 1000;
const NOTE_BYTES_MAX: usize = 1000;

/// Facts about the media file when it was indexed. The record is stored in the last box of the
/// `moov`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SourceRecord {
    /// Length of the media file, in bytes.
    pub file_len: u64,
    /// Fingerprint of the index.
    pub fingerprint: u64,
    /// Version of the media file that was indexed.
    pub media_state: Option<MediaVersion>,
    /// Notes of the index.
    pub notes: Vec<IndexNote>,
    /// Parts of the film that are not served. They are stored as notes with a flag.
    pub left_out: Vec<LeftOutTrack>,
    /// Caption channels in the video; `None` if the video was not searched for them.
    pub caption_channels: Option<Vec<CaptionChannel>>,
}

/// Flags of a stored note.
const HAS_TIME: u8 = 1;
const IS_LEFT_OUT: u8 = 2;

impl SourceRecord {
    /// Appends the box to `moov`. The box contains a hash of the bytes of `moov` from `from` on. If
    /// another program later changes these bytes but keeps the box, the hash no longer matches, and
    /// the box is ignored.
    pub fn append_to_moov(&self, moov: &mut Vec<u8>, from: usize) {
        let tables = hash_tables(moov.get(from..).unwrap_or_default());
        write_box(moov, b"uuid", |out| {
            out.extend_from_slice(&ID);
            out.push(VERSION);
            for word in [tables, self.file_len, self.fingerprint] {
                out.extend_from_slice(&word.to_be_bytes());
            }
            let (kind, hash) = match self.media_state {
                None => (0, 0),
                Some(MediaVersion::ContentHash(hash)) => (1, hash),
                Some(MediaVersion::EntityTagHash(hash)) => (2, hash),
            };
            out.push(kind);
            out.extend_from_slice(&hash.to_be_bytes());
            let captions = pack_caption_channels(self.caption_channels.as_deref());
            out.extend_from_slice(&captions.to_be_bytes());
            let fits = |note: &&IndexNote| note.message.len() <= NOTE_BYTES_MAX;
            let left_out: Vec<IndexNote> = self.left_out.iter().map(note_of_left_out).collect();
            let of_notes = self.notes.iter().map(|note| (note, 0));
            let of_left_out = left_out.iter().map(|note| (note, IS_LEFT_OUT));
            let notes = of_left_out.chain(of_notes).filter(|(note, _)| fits(note));
            let notes: Vec<(&IndexNote, u8)> = notes.take(NOTES_MAX).collect();
            out.extend_from_slice(&(notes.len() as u32).to_be_bytes());
            for (note, flag) in notes {
                out.extend_from_slice(&note.track_id.to_be_bytes());
                let has_time = u8::from(note.time_ticks.is_some()) * HAS_TIME;
                out.push(has_time | flag);
                out.extend_from_slice(&note.time_ticks.unwrap_or(0).to_be_bytes());
                out.extend_from_slice(&(note.message.len() as u32).to_be_bytes());
                out.extend_from_slice(note.message.as_bytes());
            }
        });
    }

    /// Length of the box without notes, in bytes.
    pub(super) const BYTES_MIN: usize = 8 + ID.len() + 1 + 3 * 8 + 1 + 8 + 2 + 4;

    /// Creates a hasher for sample tables with a total length of `len` bytes.
    pub(super) fn start_tables_hash(len: usize) -> FingerprintHasher {
        let mut hash = FingerprintHasher::new(len as u64);
        hash.begin_box(0, len);
        hash
    }

    /// Reads the source record of a `moov` box. Returns `None` unless there is a record that
    /// matches the tables of the `moov`.
    ///
    /// The hash of the tables may have been computed while the `moov` was being received.
    pub(super) fn read_from_moov(
        moov: &Mp4Box<'_>,
        early_tracks: &mut EarlyParsedTracks,
    ) -> Option<SourceRecord> {
        let boxes = BoxIterator::new(moov.body, 0).map_while(Result::ok);
        let last = boxes.last().filter(|last| last.name == *b"uuid")?;
        let tables = moov.body.get(..moov.body.len() - last.bytes.len())?;
        let header = moov.bytes.len() - moov.body.len();
        let mut reader = ByteReader::new(last.body);
        if reader.read_array() != ID {
            return None;
        }
        let has_captions = match reader.u8() {
            VERSION => true,
            VERSION_WITHOUT_CAPTIONS => false,
            _ => return None,
        };
        let early_hash = early_tracks.take_hash(moov.bytes, header..header + tables.len());
        let hash = early_hash.map_or_else(|| hash_tables(tables), FingerprintHasher::finish);
        let matches_tables = reader.u64() == hash;
        let (file_len, fingerprint) = (reader.u64(), reader.u64());
        let (kind, hash) = (reader.u8(), reader.u64());
        let captions = if has_captions { reader.u16() } else { 0 };
        let count = reader.u32() as usize;
        let media_state = match kind {
            1 => Some(MediaVersion::ContentHash(hash)),
            2 => Some(MediaVersion::EntityTagHash(hash)),
            _ => None,
        };
        if !matches_tables || count > NOTES_MAX {
            return None;
        }
        let (mut notes, mut left_out) = (Vec::new(), Vec::new());
        for _ in 0..count {
            let (note, flags) = read_note(&mut reader)?;
            match flags & IS_LEFT_OUT {
                0 => notes.push(note),
                _ => left_out.push(left_out_from_note(&note)),
            }
        }
        reader.check_no_short_read().ok()?;
        Some(SourceRecord {
            file_len,
            fingerprint,
            media_state,
            notes,
            left_out,
            caption_channels: unpack_caption_channels(captions),
        })
    }
}

/// Converts an entry to a note. The message contains the name and the reason on one line each.
fn note_of_left_out(track: &LeftOutTrack) -> IndexNote {
    IndexNote {
        track_id: 0,
        time_ticks: None,
        message: format!("{}\n{}", track.name.replace('\n', " "), track.reason),
    }
}

fn left_out_from_note(note: &IndexNote) -> LeftOutTrack {
    let (name, reason) = note.message.split_once('\n').unwrap_or((&note.message, ""));
    LeftOutTrack::new(name, reason)
}

/// Reads a note and its flags.
fn read_note(reader: &mut ByteReader<'_>) -> Option<(IndexNote, u8)> {
    let (track, flags, at, len) = (reader.u32(), reader.u8(), reader.u64(), reader.u32());
    let message = reader.take(len as usize);
    let message = (len as usize <= NOTE_BYTES_MAX).then(|| std::str::from_utf8(message).ok())??;
    let note = IndexNote {
        track_id: track,
        time_ticks: (flags & HAS_TIME != 0).then_some(at),
        message: message.to_owned(),
    };
    Some((note, flags))
}

fn hash_tables(bytes: &[u8]) -> u64 {
    let mut hash = SourceRecord::start_tables_hash(bytes.len());
    let words = hash.add_words(bytes);
    hash.add_partial_word(bytes.get(words..).unwrap_or_default());
    hash.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build_moov(mark: &SourceRecord) -> Vec<u8> {
        let mut out = Vec::new();
        write_box(&mut out, b"moov", |out| {
            let from = out.len();
            write_box(out, b"trak", |out| out.extend_from_slice(b"tables"));
            mark.append_to_moov(out, from);
        });
        out
    }

    #[test]
    fn a_record_without_notes_has_the_minimum_length() {
        let mark = SourceRecord {
            file_len: 1,
            fingerprint: 2,
            media_state: None,
            notes: Vec::new(),
            left_out: Vec::new(),
            caption_channels: None,
        };
        let mut bytes = Vec::new();
        mark.append_to_moov(&mut bytes, 0);
        assert_eq!(bytes.len(), SourceRecord::BYTES_MIN);
    }

    #[test]
    fn a_record_of_the_previous_version_is_read_without_captions() {
        let mut mark = SourceRecord {
            file_len: 77,
            fingerprint: 5,
            media_state: Some(MediaVersion::ContentHash(3)),
            notes: Vec::new(),
            left_out: Vec::new(),
            caption_channels: Some(vec![CaptionChannel::Cea608(1)]),
        };
        let mut bytes = build_moov(&mark);
        // Converts the record to the previous version: changes the version byte, and removes the
        // caption mask before the number of notes.
        let record = bytes.len() - SourceRecord::BYTES_MIN;
        bytes[record + 8 + ID.len()] = VERSION_WITHOUT_CAPTIONS;
        let mask = bytes.len() - 6..bytes.len() - 4;
        bytes.drain(mask);
        for at in [0, record] {
            let len = (bytes.len() - at) as u32;
            bytes[at..at + 4].copy_from_slice(&len.to_be_bytes());
        }
        mark.caption_channels = None;
        let moov = Mp4Box::parse_first(&bytes, 0).unwrap();
        let read = SourceRecord::read_from_moov(&moov, &mut EarlyParsedTracks::default());
        assert_eq!(read, Some(mark));
    }

    #[test]
    fn a_flipped_bit_in_the_tables_voids_the_record() {
        let at = Some(7);
        let message = "a note".to_owned();
        let mark = SourceRecord {
            file_len: 1 << 40,
            fingerprint: 9,
            media_state: Some(MediaVersion::EntityTagHash(4)),
            notes: vec![IndexNote {
                track_id: 3,
                time_ticks: at,
                message,
            }],
            left_out: vec![LeftOutTrack::new("track 4 (text)", "it is text")],
            caption_channels: Some(vec![CaptionChannel::Cea608(1), CaptionChannel::Cea708(2)]),
        };
        let bytes = build_moov(&mark);
        let read = |bytes: &[u8]| {
            SourceRecord::read_from_moov(
                &Mp4Box::parse_first(bytes, 0).ok()?,
                &mut EarlyParsedTracks::default(),
            )
        };
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
