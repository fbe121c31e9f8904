//! The indexer, which performs no I/O. It requests byte ranges of one file, and the caller supplies
//! the bytes.

use super::early_parsed_tracks::EarlyParsedTracks;
use super::external_references::ExternalReferences;
use super::fingerprint::FingerprintHasher;
use super::fragment::read_moof;
use super::movie_draft::{FinishedMovie, MovieDraft};
use super::trak::MediaFile;
use super::{Index, IndexNote};
use crate::bmff::{BoxHeader, Mp4Box, ftyp::Ftyp};
use crate::error::{Error, ErrorKind, Result, format_fourcc};
use std::ops::Range;

/// Size of the first read, in bytes. A file without fragments needs no further read if a small
/// `moov` is at its start.
const FIRST_READ_BYTES: u64 = 64 << 10;
/// Number of bytes to read immediately after the media, where the `moov` probably is.
const TAIL_READ_BYTES: u64 = 1 << 20;
/// If at most this many bytes follow the media, all of them are read at once, because they are
/// probably the `moov`.
const WHOLE_TAIL_READ_BYTES_MAX: u64 = 16 << 20;
/// Minimum bytes to read for a fragment's metadata.
const FRAGMENT_READ_BYTES_MIN: u64 = 4 << 10;
/// If the last fragment, including its media, has at most this many bytes, the next read covers
/// several fragments.
const SMALL_FRAGMENT_BYTES_MAX: u64 = 128 << 10;
/// Maximum size of a `moov` box, in bytes. A box of this size describes about 100 million samples.
const MOOV_BYTES_MAX: u64 = 1 << 30;
/// Maximum size of a `moof` box, in bytes.
const MOOF_BYTES_MAX: u64 = 64 << 20;
/// Maximum number of boxes that are examined to find a `moov` that is still being received.
const LOOKAHEAD_BOXES_MAX: u32 = 8;
/// Maximum number of boxes at the top level of a file.
const BOXES_MAX: u32 = 8_000_000;
/// Maximum number of notes about boxes at the top level of a file. Further notes are dropped.
const BOX_NOTES_MAX: usize = 100;

/// Names of boxes with which a file may start.
const FIRST_BOX_NAMES: [&[u8; 4]; 18] = [
    b"ftyp", b"styp", b"moov", b"moof", b"mdat", b"free", b"skip", b"wide", b"pnot", b"uuid",
    b"sidx", b"ssix", b"prft", b"emsg", b"meta", b"junk", b"mfra", b"udta",
];

/// Indexes one file without I/O.
///
/// Read the bytes of [`Indexer::needed_range`] and pass them to [`Indexer::feed`], until
/// [`Indexer::needed_range`] returns `None`. Then call [`Indexer::finish`].
///
/// A file with a small `moov` at its start takes one read. A file with a larger `moov`, or with a
/// `moov` at the end, takes one more read, or two if more than 16 MiB follow the media. Each large
/// fragment takes one read, and several small fragments share one read.
#[derive(Debug)]
pub struct Indexer {
    file_len: u64,
    /// Bytes of the file from `buffer_offset` on.
    buffer: Vec<u8>,
    buffer_offset: u64,
    /// Offset of the next box in the file; never less than `buffer_offset`.
    next_box_offset: u64,
    /// End of the bytes that are needed before parsing continues.
    needed_end: u64,
    box_count: u32,
    is_quicktime: bool,
    movie: Option<MovieDraft>,
    /// Size and offset of the last `moof`. The size of the next read is estimated from these
    /// values.
    last_moof_bytes: u64,
    last_moof_offset: Option<u64>,
    fingerprint_hasher: FingerprintHasher,
    notes: Vec<IndexNote>,
    /// Tracks of a `moov` that is still being received.
    early_tracks: EarlyParsedTracks,
    /// The parsed `moov`, if its media is in other files.
    external_references: Option<ExternalReferences>,
    is_done: bool,
}

/// Outcome of one parsing step.
enum ParseStep {
    /// A box was parsed or skipped. The next box is at `next_box_offset`.
    Next,
    /// This many bytes from `next_box_offset` on are needed.
    More(u64),
    /// The rest of the file is not needed.
    Done,
}

impl Indexer {
    /// Starts to index a file of `file_len` bytes.
    pub fn new(file_len: u64) -> Indexer {
        Indexer {
            file_len,
            buffer: Vec::new(),
            buffer_offset: 0,
            next_box_offset: 0,
            needed_end: FIRST_READ_BYTES.min(file_len),
            box_count: 0,
            is_quicktime: true,
            movie: None,
            last_moof_bytes: 0,
            last_moof_offset: None,
            fingerprint_hasher: FingerprintHasher::new(file_len),
            notes: Vec::new(),
            early_tracks: EarlyParsedTracks::default(),
            external_references: None,
            is_done: file_len == 0,
        }
    }

    /// Returns the next byte range to read. The range is not empty and is within the file. Returns
    /// `None` if the indexer needs no more bytes.
    pub fn needed_range(&self) -> Option<Range<u64>> {
        (!self.is_done).then(|| self.buffer_end()..self.needed_end)
    }

    /// Adds bytes of the file from the start of [`Indexer::needed_range`] on. The number of bytes
    /// may be lower or higher than requested.
    ///
    /// # Errors
    /// Any error in the file that prevents indexing. `Truncated` if `bytes` is empty, because the
    /// file then ends before its announced length.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<()> {
        if self.is_done {
            return Ok(());
        }
        if bytes.is_empty() {
            let message = format!(
                "the file ends here, but {} bytes were announced",
                self.file_len
            );
            return Err(
                Error::new(ErrorKind::Truncated, message).with_byte_offset(self.buffer_end())
            );
        }
        let room = self.file_len - self.buffer_end();
        let room = usize::try_from(room).unwrap_or(usize::MAX);
        self.buffer
            .extend_from_slice(bytes.get(..room).unwrap_or(bytes));
        if self.buffer_end() < self.needed_end {
            if self.movie.is_none() {
                self.read_early_tracks();
            }
            return Ok(());
        }
        self.parse_buffered_boxes()
    }

    /// Builds the index. Call this after [`Indexer::needed_range`] has returned `None`.
    ///
    /// # Errors
    /// `Truncated` if bytes are still needed; `Malformed` if there is no `moov`; `Empty` or
    /// `Unsupported` if no track can be packaged. Errors in edit lists and sample entries are also
    /// returned.
    pub fn finish(self) -> Result<Index> {
        if self.file_len == 0 {
            return Err(Error::new(ErrorKind::Empty, "the file is empty"));
        }
        if let Some(range) = self.needed_range() {
            let message = format!("bytes {} to {} were not read", range.start, range.end);
            return Err(Error::new(ErrorKind::Truncated, message).with_byte_offset(range.start));
        }
        if let Some(references) = &self.external_references {
            return Err(references.index_as_media_error());
        }
        let movie = self.movie.ok_or_else(|| {
            let fragments = self.last_moof_offset.is_some();
            let message = match fragments {
                true => {
                    "there are fragments but no moov box: the initialization segment is missing"
                }
                false => "there is no moov box: not a media file, or its writer did not finish it",
            };
            Error::malformed(message)
        })?;
        let mut notes = self.notes;
        let FinishedMovie {
            tracks,
            text_tracks,
            left_out,
        } = movie.finish(&mut notes)?;
        Ok(Index {
            tracks,
            text_tracks,
            file_len: self.file_len,
            fingerprint: self.fingerprint_hasher.finish(),
            media_version: None,
            notes,
            left_out,
            caption_channels: None,
        })
    }

    /// Takes the references to media in other files, if there are any. Call this after
    /// [`Indexer::needed_range`] has returned `None`. For a file with references,
    /// [`Indexer::finish`] returns an error.
    pub fn take_references(&mut self) -> Option<ExternalReferences> {
        self.external_references.take()
    }

    /// Returns the file offset at which the buffer ends.
    fn buffer_end(&self) -> u64 {
        self.buffer_offset + self.buffer.len() as u64
    }

    /// Returns the buffered bytes from the next box on.
    fn unparsed_bytes(&self) -> &[u8] {
        let from = usize::try_from(self.next_box_offset - self.buffer_offset).unwrap_or(usize::MAX);
        self.buffer.get(from..).unwrap_or_default()
    }

    /// Parses the tracks that have arrived completely, while the rest of the `moov` is still
    /// missing.
    fn read_early_tracks(&mut self) {
        let (mut at, mut is_quicktime) = (self.next_box_offset, self.is_quicktime);
        for _ in 0..LOOKAHEAD_BOXES_MAX {
            let from = usize::try_from(at - self.buffer_offset).unwrap_or(usize::MAX);
            let bytes = self.buffer.get(from..).unwrap_or_default();
            let left = self.file_len - at;
            let Ok(Some(header)) = BoxHeader::parse(bytes, left) else {
                return;
            };
            match &header.name {
                _ if header.box_size > left => return,
                b"moov" => {
                    let size = usize::try_from(header.box_size).unwrap_or(usize::MAX);
                    let available = bytes.get(..size).unwrap_or(bytes);
                    let moov_range = at..at + header.box_size;
                    return self.early_tracks.parse_available_tracks(
                        available,
                        moov_range,
                        is_quicktime,
                        self.file_len,
                    );
                }
                b"ftyp" => {
                    let ftyp =
                        Mp4Box::parse_first(bytes, at).and_then(|ftyp| Ftyp::parse(ftyp.body));
                    is_quicktime = ftyp.is_ok_and(|ftyp| ftyp.is_quicktime());
                }
                _ => {}
            }
            at += header.box_size;
        }
    }

    fn parse_buffered_boxes(&mut self) -> Result<()> {
        loop {
            match self.parse_next_box()? {
                ParseStep::Next => {}
                ParseStep::More(bytes) => {
                    self.request_bytes(bytes);
                    return Ok(());
                }
                ParseStep::Done => {
                    self.is_done = true;
                    self.buffer = Vec::new();
                    return Ok(());
                }
            }
        }
    }

    /// Requests `bytes` bytes from the next box on. Drops the buffered bytes before that box.
    fn request_bytes(&mut self, bytes: u64) {
        let skipped_bytes =
            usize::try_from(self.next_box_offset - self.buffer_offset).unwrap_or(usize::MAX);
        self.buffer.drain(..skipped_bytes.min(self.buffer.len()));
        self.buffer_offset = self.next_box_offset;
        // A parsing step requests bytes only if some are missing, so at least one byte after the
        // buffer is needed.
        let goal = self
            .next_box_offset
            .saturating_add(bytes)
            .max(self.buffer_end() + 1);
        self.needed_end = goal.min(self.file_len);
        let missing = usize::try_from(self.needed_end - self.buffer_end()).unwrap_or(0);
        self.buffer.reserve(missing);
    }

    fn parse_next_box(&mut self) -> Result<ParseStep> {
        let left = self.file_len - self.next_box_offset;
        if left == 0 {
            return Ok(ParseStep::Done);
        }
        if self.movie.as_ref().is_some_and(MovieDraft::is_complete)
            || self.external_references.is_some()
        {
            return Ok(ParseStep::Done);
        }
        let Some(header) = BoxHeader::parse(self.unparsed_bytes(), left)
            .map_err(|error| error.with_byte_offset(self.next_box_offset))?
        else {
            return self.handle_short_header(left);
        };
        if self.is_zero_padding(&header) {
            self.add_note("zero bytes after the last box are ignored");
            return Ok(ParseStep::Done);
        }
        self.check_box_header(&header, left)?;
        match &header.name {
            b"moov" | b"moof" | b"ftyp" => self.parse_or_request_box(header, left),
            _ => {
                let end = self.next_box_offset.saturating_add(header.box_size);
                if end > self.file_len && self.movie.is_none() {
                    return Err(header
                        .overrun_error(left)
                        .with_byte_offset(self.next_box_offset));
                }
                if end > self.file_len {
                    let name = format_fourcc(header.name);
                    self.add_note(&format!("the last box, {name}, is cut short"));
                }
                self.skip_bytes(header.box_size.min(left));
                Ok(ParseStep::Next)
            }
        }
    }

    /// Handles a box header that is not completely buffered.
    fn handle_short_header(&mut self, left: u64) -> Result<ParseStep> {
        let have = self.unparsed_bytes().len() as u64;
        if have < left {
            return Ok(ParseStep::More(self.guess_read_bytes(left).max(16)));
        }
        if self.movie.is_none() {
            let message = "the file ends within a box header";
            return Err(
                Error::new(ErrorKind::Truncated, message).with_byte_offset(self.next_box_offset)
            );
        }
        self.add_note("bytes after the last box are ignored");
        Ok(ParseStep::Done)
    }

    /// Estimates how many bytes to request for a box whose header is not known yet.
    fn guess_read_bytes(&self, left: u64) -> u64 {
        match self.last_moof_offset {
            _ if self.movie.is_none() && left <= WHOLE_TAIL_READ_BYTES_MAX => left,
            _ if self.movie.is_none() => TAIL_READ_BYTES,
            Some(at) if self.next_box_offset - at <= SMALL_FRAGMENT_BYTES_MAX => {
                TAIL_READ_BYTES / 2
            }
            // Somewhat more than the size of the last `moof`, so that the header of the `mdat` is
            // included.
            _ => FRAGMENT_READ_BYTES_MIN.max(self.last_moof_bytes + self.last_moof_bytes / 4 + 256),
        }
        .min(left)
    }

    /// Returns whether bytes with the value 0 follow the last box. Without this check, the zero
    /// bytes would be parsed as a nameless box that extends to the end of the file.
    fn is_zero_padding(&self, header: &BoxHeader) -> bool {
        self.movie.is_some() && header.name == [0; 4] && self.unparsed_bytes().starts_with(&[0; 8])
    }

    fn check_box_header(&mut self, header: &BoxHeader, left: u64) -> Result<()> {
        self.box_count += 1;
        if self.box_count > BOXES_MAX {
            let message = format!("the file has more than {BOXES_MAX} boxes");
            return Err(
                Error::new(ErrorKind::TooLarge, message).with_byte_offset(self.next_box_offset)
            );
        }
        let legal = |byte: &u8| byte.is_ascii_graphic() || *byte == b' ' || *byte == 0xa9;
        let name = format_fourcc(header.name);
        if self.next_box_offset == 0 && !FIRST_BOX_NAMES.contains(&&header.name) {
            let message =
                format!("this is not an MP4 or QuickTime file: the first box is \"{name}\"");
            return Err(Error::malformed(message).with_byte_offset(self.next_box_offset));
        }
        if !header.name.iter().all(legal) {
            let message = format!("no box here, but {left} bytes that start with {name}");
            return Err(Error::malformed(message).with_byte_offset(self.next_box_offset));
        }
        Ok(())
    }

    /// Parses a `moov`, `moof` or `ftyp` box. If the box is not completely buffered, requests the
    /// missing bytes.
    fn parse_or_request_box(&mut self, header: BoxHeader, left: u64) -> Result<ParseStep> {
        let name = format_fourcc(header.name);
        let limit = if header.name == *b"moof" {
            MOOF_BYTES_MAX
        } else {
            MOOV_BYTES_MAX
        };
        if header.box_size > left {
            return self.handle_truncated_box(&header, left);
        }
        if header.box_size > limit {
            let message = format!(
                "{name} is {} bytes; at most {limit} are read",
                header.box_size
            );
            return Err(
                Error::new(ErrorKind::TooLarge, message).with_byte_offset(self.next_box_offset)
            );
        }
        if (self.unparsed_bytes().len() as u64) < header.box_size {
            return Ok(ParseStep::More(header.box_size));
        }
        let buffer = std::mem::take(&mut self.buffer);
        let from = usize::try_from(self.next_box_offset - self.buffer_offset).unwrap_or(usize::MAX);
        let read = self.parse_box_content(buffer.get(from..).unwrap_or_default());
        match &mut self.external_references {
            Some(references) => {
                references.store_moov_bytes(buffer, from, std::mem::take(&mut self.early_tracks))
            }
            None => self.buffer = buffer,
        }
        read?;
        self.skip_bytes(header.box_size);
        Ok(ParseStep::Next)
    }

    /// Handles a box that the end of the file cuts off. If the box is a `moof` after other
    /// fragments, only its fragment is left out, because the other fragments are intact. Otherwise,
    /// returns an error.
    fn handle_truncated_box(&mut self, header: &BoxHeader, left: u64) -> Result<ParseStep> {
        match &mut self.movie {
            Some(movie) if header.name == *b"moof" && movie.has_fragments => {
                movie.leave_out_fragment(self.next_box_offset);
                Ok(ParseStep::Done)
            }
            _ => Err(header
                .overrun_error(left)
                .with_byte_offset(self.next_box_offset)),
        }
    }

    fn parse_box_content(&mut self, bytes: &[u8]) -> Result<()> {
        // A box of size 0 extends to the end of the slice, so the slice must not extend beyond the
        // file.
        let left = usize::try_from(self.file_len - self.next_box_offset).unwrap_or(usize::MAX);
        let found = Mp4Box::parse_first(bytes.get(..left).unwrap_or(bytes), self.next_box_offset)?;
        match &found.name {
            b"ftyp" => self.is_quicktime = Ftyp::parse(found.body)?.is_quicktime(),
            b"moov" if self.last_moof_offset.is_some() && self.movie.is_none() => {
                let message = "fragments come before the moov box that describes them";
                return Err(Error::malformed(message).with_byte_offset(found.offset));
            }
            b"moov" if self.movie.is_none() => {
                let mut early_tracks = std::mem::take(&mut self.early_tracks);
                early_tracks.discard_unless_moov_at(found.offset, self.is_quicktime);
                self.external_references =
                    ExternalReferences::from_moov(&found, self.is_quicktime, &mut early_tracks)?;
                if self.external_references.is_some() {
                    self.early_tracks = early_tracks;
                    return Ok(());
                }
                // The hasher covers only the length of the file so far. The early hash also covers
                // this length, and therefore may replace the hasher.
                match early_tracks.take_hash(found.bytes, 0..found.bytes.len()) {
                    Some(hash) => self.fingerprint_hasher = hash,
                    None => self.fingerprint_hasher.add_box(found.offset, found.bytes),
                }
                let moov_range = found.offset..found.offset + found.bytes.len() as u64;
                let source = MediaFile::containing_moov(self.file_len, moov_range);
                let movie =
                    MovieDraft::from_moov(&found, self.is_quicktime, &source, &mut early_tracks)?;
                self.movie = Some(movie);
            }
            b"moov" => self.add_note("a second moov box is ignored"),
            _ => {
                self.fingerprint_hasher.add_box(found.offset, found.bytes);
                self.last_moof_bytes = found.bytes.len() as u64;
                self.last_moof_offset = Some(found.offset);
                if let Some(movie) = &mut self.movie {
                    read_moof(&found, movie)
                        .map_err(|error| error.with_byte_offset(found.offset))?;
                }
            }
        }
        Ok(())
    }

    /// Skips `size` bytes. Not all of these bytes need to be in the buffer.
    fn skip_bytes(&mut self, size: u64) {
        self.next_box_offset = self.next_box_offset.saturating_add(size).min(self.file_len);
        if self.next_box_offset >= self.buffer_end() {
            self.buffer.clear();
            self.buffer_offset = self.next_box_offset;
        }
    }

    /// Adds a note about the next box, unless there are already [`BOX_NOTES_MAX`] notes.
    fn add_note(&mut self, message: &str) {
        if self.notes.len() >= BOX_NOTES_MAX {
            return;
        }
        self.notes.push(IndexNote {
            track_id: 0,
            time_ticks: None,
            message: format!("{message} (at byte {})", self.next_box_offset),
        });
    }
}

/// Indexes a file that is in memory.
///
/// # Errors
/// The errors of [`Indexer::feed`] and [`Indexer::finish`].
pub fn index_file_in_memory(file: &[u8]) -> Result<Index> {
    let mut indexer = Indexer::new(file.len() as u64);
    while let Some(range) = indexer.needed_range() {
        let part = usize::try_from(range.start)
            .ok()
            .zip(usize::try_from(range.end).ok());
        let bytes = part.and_then(|(start, end)| file.get(start..end));
        indexer.feed(bytes.unwrap_or_default())?;
    }
    indexer.finish()
}
