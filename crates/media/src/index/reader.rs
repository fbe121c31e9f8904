//! The indexer: asks for byte ranges of one file and is fed them. It does no IO itself.

use super::ahead::Ahead;
use super::fingerprint::Fingerprint;
use super::fragment::read_moof;
use super::movie::Movie;
use super::references::References;
use super::track::Source;
use super::{Index, Note};
use crate::bmff::{Header, Mp4Box, ftyp::Ftyp};
use crate::error::{Error, Kind, Result, fourcc};
use std::ops::Range;

/// Bytes of the first read: where the moov comes first and is small, the only one.
const FIRST_READ: u64 = 64 << 10;
/// Bytes asked after a jump over the media, where the moov or its beginning is likely to lie.
const TAIL_READ: u64 = 1 << 20;
/// What follows the media is asked whole where it is no more than this: it is the moov.
const LAST_READ: u64 = 16 << 20;
/// Bytes asked at least for a fragment's metadata.
const FRAGMENT_READ: u64 = 4 << 10;
/// Fragments that are smaller than this, media included, are read several at once.
const SMALL_FRAGMENT: u64 = 128 << 10;
/// Largest moov box that is read; some 100 million samples.
const MOOV_MAX: u64 = 1 << 30;
/// Largest moof box that is read.
const MOOF_MAX: u64 = 64 << 20;
/// How many boxes are passed over to see whether a moov is coming.
const AHEAD_BOXES_MAX: u32 = 8;
/// How many boxes a file may have at its top level.
const BOXES_MAX: u32 = 8_000_000;

/// Boxes that files begin with.
const FIRST: [&[u8; 4]; 18] = [
    b"ftyp", b"styp", b"moov", b"moof", b"mdat", b"free", b"skip", b"wide", b"pnot", b"uuid",
    b"sidx", b"ssix", b"prft", b"emsg", b"meta", b"junk", b"mfra", b"udta",
];

/// Indexes one file, without doing IO: ask [`Indexer::need`], bring those bytes to
/// [`Indexer::feed`], until nothing is needed; then [`Indexer::finish`].
///
/// One read for a file whose moov comes first and is small; one more for a larger moov or one
/// that comes last; one for each fragment, or for several where they are small.
#[derive(Debug)]
pub struct Indexer {
    file_len: u64,
    /// Bytes of the file from `base` on.
    buffer: Vec<u8>,
    base: u64,
    /// Where the next box to look at begins; never before `base`.
    at: u64,
    /// Where the bytes end that are wanted before looking again.
    goal: u64,
    boxes: u32,
    quicktime: bool,
    movie: Option<Movie>,
    /// Whole size of the last moof, and where it began, to guess the next.
    last_moof: u64,
    last_moof_at: Option<u64>,
    fingerprint: Fingerprint,
    notes: Vec<Note>,
    /// Tracks of the moov, as far as they have come.
    ahead: Ahead,
    /// What the moov says, where media lies in other files.
    references: Option<References>,
    done: bool,
}

/// What a look at the buffer came to.
enum Step {
    /// A box was dealt with; the next one is at `at`.
    Next,
    /// This many bytes from `at` are needed.
    More(u64),
    /// Nothing else can matter.
    Done,
}

impl Indexer {
    /// Begins to index a file of `file_len` bytes.
    pub fn new(file_len: u64) -> Indexer {
        Indexer {
            file_len,
            buffer: Vec::new(),
            base: 0,
            at: 0,
            goal: FIRST_READ.min(file_len),
            boxes: 0,
            quicktime: true,
            movie: None,
            last_moof: 0,
            last_moof_at: None,
            fingerprint: Fingerprint::new(file_len),
            notes: Vec::new(),
            ahead: Ahead::default(),
            references: None,
            done: file_len == 0,
        }
    }

    /// The next byte range wanted (never empty, within the file), or `None` when it knows enough.
    pub fn need(&self) -> Option<Range<u64>> {
        (!self.done).then(|| self.filled()..self.goal)
    }

    /// Takes bytes of the file that begin where [`Indexer::need`] does; they may be fewer than
    /// asked, or more.
    ///
    /// # Errors
    /// What is wrong with the file; it cannot be indexed then, whatever is fed later.
    /// `Truncated` if `bytes` is empty: the file ended before its announced length.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<()> {
        if self.done {
            return Ok(());
        }
        if bytes.is_empty() {
            let what = format!(
                "the file ends here, but was announced with {} bytes",
                self.file_len
            );
            return Err(Error::new(Kind::Truncated, what).at(self.filled()));
        }
        let room = self.file_len - self.filled();
        let room = usize::try_from(room).unwrap_or(usize::MAX);
        self.buffer
            .extend_from_slice(bytes.get(..room).unwrap_or(bytes));
        if self.filled() < self.goal {
            if self.movie.is_none() {
                self.look_ahead();
            }
            return Ok(());
        }
        self.advance()
    }

    /// The index, once [`Indexer::need`] asks for nothing more.
    ///
    /// # Errors
    /// `Truncated` if it still asks; `Empty` or `Unsupported` if there is nothing that can be
    /// packaged; what is wrong with edit lists or sample entries.
    pub fn finish(self) -> Result<Index> {
        if self.file_len == 0 {
            return Err(Error::new(Kind::Empty, "the file is empty"));
        }
        if let Some(range) = self.need() {
            let what = format!("bytes {} to {} were not read", range.start, range.end);
            return Err(Error::new(Kind::Truncated, what).at(range.start));
        }
        if let Some(references) = &self.references {
            return Err(references.refusal());
        }
        let movie = self.movie.ok_or_else(|| {
            let fragments = self.last_moof_at.is_some();
            let what = match fragments {
                true => {
                    "there are fragments but no moov box: the initialization segment is missing"
                }
                false => "there is no moov box: not a media file, or its writer did not finish it",
            };
            Error::malformed(what)
        })?;
        let mut notes = self.notes;
        let tracks = movie.finish(&mut notes)?;
        Ok(Index {
            tracks,
            file_len: self.file_len,
            fingerprint: self.fingerprint.finish(),
            media_state: None,
            notes,
        })
    }

    /// Once [`Indexer::need`] asks for nothing more: what the file says of media that lies in
    /// other files. Then there is no index of the file by itself.
    pub fn take_references(&mut self) -> Option<References> {
        self.references.take()
    }

    /// Where in the file the buffer ends.
    fn filled(&self) -> u64 {
        self.base + self.buffer.len() as u64
    }

    /// The buffer from `at` on.
    fn ahead(&self) -> &[u8] {
        let from = usize::try_from(self.at - self.base).unwrap_or(usize::MAX);
        self.buffer.get(from..).unwrap_or_default()
    }

    /// Reads what has come of a moov, while more is waited for.
    fn look_ahead(&mut self) {
        let (mut at, mut quicktime) = (self.at, self.quicktime);
        for _ in 0..AHEAD_BOXES_MAX {
            let from = usize::try_from(at - self.base).unwrap_or(usize::MAX);
            let bytes = self.buffer.get(from..).unwrap_or_default();
            let left = self.file_len - at;
            let Ok(Some(header)) = Header::read(bytes, left) else {
                return;
            };
            match &header.name {
                _ if header.size > left => return,
                b"moov" => {
                    let size = usize::try_from(header.size).unwrap_or(usize::MAX);
                    let came = bytes.get(..size).unwrap_or(bytes);
                    let place = at..at + header.size;
                    return self.ahead.look(came, place, quicktime, self.file_len);
                }
                b"ftyp" => {
                    let ftyp = Mp4Box::first(bytes, at).and_then(|ftyp| Ftyp::parse(ftyp.body));
                    quicktime = ftyp.is_ok_and(|ftyp| ftyp.is_quicktime());
                }
                _ => {}
            }
            at += header.size;
        }
    }

    fn advance(&mut self) -> Result<()> {
        loop {
            match self.step()? {
                Step::Next => {}
                Step::More(bytes) => {
                    self.want(bytes);
                    return Ok(());
                }
                Step::Done => {
                    self.done = true;
                    self.buffer = Vec::new();
                    return Ok(());
                }
            }
        }
    }

    /// Asks for `bytes` from `at` on, and lets go of what lies before.
    fn want(&mut self, bytes: u64) {
        let passed = usize::try_from(self.at - self.base).unwrap_or(usize::MAX);
        self.buffer.drain(..passed.min(self.buffer.len()));
        self.base = self.at;
        // Never less than a byte more than there is: a step asks only for what it lacks.
        let goal = self.at.saturating_add(bytes).max(self.filled() + 1);
        self.goal = goal.min(self.file_len);
        let missing = usize::try_from(self.goal - self.filled()).unwrap_or(0);
        self.buffer.reserve(missing);
    }

    fn step(&mut self) -> Result<Step> {
        let left = self.file_len - self.at;
        if left == 0 {
            return Ok(Step::Done);
        }
        if self.movie.as_ref().is_some_and(Movie::is_complete) || self.references.is_some() {
            return Ok(Step::Done);
        }
        let Some(header) = Header::read(self.ahead(), left).map_err(|error| error.at(self.at))?
        else {
            return self.short_header(left);
        };
        if self.is_padding(&header) {
            self.note("zero bytes after the last box are passed over");
            return Ok(Step::Done);
        }
        self.check(&header, left)?;
        match &header.name {
            b"moov" | b"moof" | b"ftyp" => self.read_whole(header, left),
            _ => {
                let end = self.at.saturating_add(header.size);
                if end > self.file_len && self.movie.is_none() {
                    return Err(header.overrun(left).at(self.at));
                }
                if end > self.file_len {
                    let name = fourcc(header.name);
                    self.note(&format!("the last box, {name}, is cut short"));
                }
                self.pass(header.size.min(left));
                Ok(Step::Next)
            }
        }
    }

    /// Fewer bytes are at hand than a header has.
    fn short_header(&mut self, left: u64) -> Result<Step> {
        let have = self.ahead().len() as u64;
        if have < left {
            return Ok(Step::More(self.guess(left).max(16)));
        }
        if self.movie.is_none() {
            let what = "the file ends within a box header";
            return Err(Error::new(Kind::Truncated, what).at(self.at));
        }
        self.note("bytes after the last box are passed over");
        Ok(Step::Done)
    }

    /// How much to ask at the start of an unknown box.
    fn guess(&self, left: u64) -> u64 {
        match self.last_moof_at {
            _ if self.movie.is_none() && left <= LAST_READ => left,
            _ if self.movie.is_none() => TAIL_READ,
            // A box more than the last fragment's, so that its mdat's header comes along.
            Some(at) if self.at - at <= SMALL_FRAGMENT => TAIL_READ / 2,
            _ => FRAGMENT_READ.max(self.last_moof + self.last_moof / 4 + 256),
        }
        .min(left)
    }

    /// Whether the file ends in zeros, which would read as a box to the end without a name.
    fn is_padding(&self, header: &Header) -> bool {
        self.movie.is_some() && header.name == [0; 4] && self.ahead().starts_with(&[0; 8])
    }

    fn check(&mut self, header: &Header, left: u64) -> Result<()> {
        self.boxes += 1;
        if self.boxes > BOXES_MAX {
            let what = format!("the file has more than {BOXES_MAX} boxes");
            return Err(Error::new(Kind::TooLarge, what).at(self.at));
        }
        let legal = |byte: &u8| byte.is_ascii_graphic() || *byte == b' ' || *byte == 0xa9;
        let name = fourcc(header.name);
        if self.at == 0 && !FIRST.contains(&&header.name) {
            let what = format!("this is not an MP4 or QuickTime file: it begins with {name}");
            return Err(Error::malformed(what).at(self.at));
        }
        if !header.name.iter().all(legal) {
            let what = format!("there is no box here, but {left} bytes beginning with {name}");
            return Err(Error::malformed(what).at(self.at));
        }
        Ok(())
    }

    /// Deals with a box whose content matters, once all of it is here.
    fn read_whole(&mut self, header: Header, left: u64) -> Result<Step> {
        let name = fourcc(header.name);
        let most = if header.name == *b"moof" {
            MOOF_MAX
        } else {
            MOOV_MAX
        };
        if header.size > left {
            return Err(header.overrun(left).at(self.at));
        }
        if header.size > most {
            let what = format!("{name} is {} bytes; at most {most} are read", header.size);
            return Err(Error::new(Kind::TooLarge, what).at(self.at));
        }
        if (self.ahead().len() as u64) < header.size {
            return Ok(Step::More(header.size));
        }
        let buffer = std::mem::take(&mut self.buffer);
        let from = usize::try_from(self.at - self.base).unwrap_or(usize::MAX);
        let read = self.read_box(buffer.get(from..).unwrap_or_default());
        match &mut self.references {
            Some(references) => references.hold(buffer, from, std::mem::take(&mut self.ahead)),
            None => self.buffer = buffer,
        }
        read?;
        self.pass(header.size);
        Ok(Step::Next)
    }

    fn read_box(&mut self, bytes: &[u8]) -> Result<()> {
        // A size of 0 means the end of the file, which a slice cannot know.
        let left = usize::try_from(self.file_len - self.at).unwrap_or(usize::MAX);
        let found = Mp4Box::first(bytes.get(..left).unwrap_or(bytes), self.at)?;
        match &found.name {
            b"ftyp" => self.quicktime = Ftyp::parse(found.body)?.is_quicktime(),
            b"moov" if self.last_moof_at.is_some() && self.movie.is_none() => {
                let what = "fragments come before the moov box that describes them";
                return Err(Error::malformed(what).at(found.at));
            }
            b"moov" if self.movie.is_none() => {
                let mut ahead = std::mem::take(&mut self.ahead);
                ahead.settle(found.at, self.quicktime);
                self.references = References::read(&found, self.quicktime, &mut ahead)?;
                if self.references.is_some() {
                    self.ahead = ahead;
                    return Ok(());
                }
                // Nothing but the file's length was hashed before.
                match ahead.hash(found.whole, 0..found.whole.len()) {
                    Some(hash) => self.fingerprint = hash,
                    None => self.fingerprint.add(found.at, found.whole),
                }
                let place = found.at..found.at + found.whole.len() as u64;
                let source = Source::own(self.file_len, place);
                let (quicktime, notes) = (self.quicktime, &mut self.notes);
                let movie = Movie::parse(&found, quicktime, &source, &mut ahead, notes)?;
                self.movie = Some(movie);
            }
            b"moov" => self.note("a second moov box is passed over"),
            _ => {
                self.fingerprint.add(found.at, found.whole);
                self.last_moof = found.whole.len() as u64;
                self.last_moof_at = Some(found.at);
                if let Some(movie) = &mut self.movie {
                    read_moof(&found, movie).map_err(|error| error.at(found.at))?;
                }
            }
        }
        Ok(())
    }

    /// Passes over `size` bytes, within the buffer or beyond it.
    fn pass(&mut self, size: u64) {
        self.at = self.at.saturating_add(size).min(self.file_len);
        if self.at >= self.filled() {
            self.buffer.clear();
            self.base = self.at;
        }
    }

    fn note(&mut self, what: &str) {
        self.notes.push(Note {
            track: 0,
            at: None,
            what: format!("{what} (at byte {})", self.at),
        });
    }
}

/// Indexes a file that is in memory as a whole.
///
/// # Errors
/// Those of [`Indexer::feed`] and [`Indexer::finish`].
pub fn index_bytes(file: &[u8]) -> Result<Index> {
    let mut indexer = Indexer::new(file.len() as u64);
    while let Some(range) = indexer.need() {
        let part = usize::try_from(range.start)
            .ok()
            .zip(usize::try_from(range.end).ok());
        let bytes = part.and_then(|(start, end)| file.get(start..end));
        indexer.feed(bytes.unwrap_or_default())?;
    }
    indexer.finish()
}
