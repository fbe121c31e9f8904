//! Segments asked for lately: what need not be worked out a second time.
//!
//! The first request for a segment finds, plans and names it; that costs more than sending it.
//! What came of it is kept under the URL's path, and where its bytes had to be gathered or packed,
//! they are kept too, in memory that the kernel sends without a copy.
//!
//! What is kept belongs to one state of a title: it is told only while the catalog knows the same
//! one, and only while the file is unchanged.

use crate::catalog::Catalog;
use crate::observe::Kind;
use crate::pieces::{Piece, Source};
use crate::respond::{Ask, Facts};
use crate::route::Segment;
use crate::title::Title;
use bytes::Bytes;
use http::header::{self, HeaderValue};
use http::{Response, StatusCode};
use net::{Body, Error, Mapped};
use quick_cache::sync::Cache;
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};
use store::{Arena, Kept, Key, Reason};

/// What is not longer than this is gathered when it is asked for again: the fewer bytes there are to
/// send, the more pieces cost beside them.
const SHORT_BYTES_MAX: u64 = 256 << 10;
/// What is longer is gathered once it has come back so often in a row while it would still have been
/// here: a copy of it costs about as much as sending it, and it displaces others.
const RETURNS_MIN: u32 = 2;
/// In more pieces than this, it need come back only once.
const PIECES_MAX: usize = 4;
/// Memory of one beside its pieces, in bytes, estimated.
const READY_BYTES: u64 = 1024;
/// Parts of the cache with a lock each.
const SHARDS: usize = 4;

/// A segment as it is sent.
pub(crate) struct Ready {
    key: Key,
    title: Weak<Title>,
    file: usize,
    /// See [`Source::along`].
    along: Option<Arc<[Range<u64>]>>,
    pub(crate) kind: Kind,
    facts: Facts,
    /// `Link` to the next segment.
    link: Option<HeaderValue>,
    pieces: Arc<[Piece]>,
    len: u64,
    /// What the only piece is, where the kernel can send it by itself.
    whole: Option<Mapped>,
    /// Bytes asked for of all segments before this one was, the last time.
    asked_at: AtomicU64,
    /// Times in a row that it was asked for again before as many bytes were as there is room for.
    returns: AtomicU32,
    gathering: AtomicBool,
}

/// What segment, and where its bytes lie.
pub(crate) struct Place<'a> {
    pub(crate) segment: &'a Segment,
    /// Which of the title's files.
    pub(crate) file: usize,
    /// See [`Source::along`].
    pub(crate) along: Option<Arc<[Range<u64>]>>,
}

/// Those kept, by path.
pub(crate) struct Segments {
    kept: Cache<Box<str>, Arc<Ready>, Weigh>,
    arena: Arc<Arena>,
    /// Bytes of all that was asked for.
    asked: AtomicU64,
}

#[derive(Clone)]
struct Weigh {
    most: u64,
}

impl Weighter<Box<str>, Arc<Ready>> for Weigh {
    fn weight(&self, path: &Box<str>, ready: &Arc<Ready>) -> u64 {
        (path.len() as u64 + ready.bytes()).clamp(1, self.most)
    }
}

impl Segments {
    /// Keeps up to so many bytes.
    pub(crate) fn new(memory_bytes: u64) -> Segments {
        let options = OptionsBuilder::new()
            .shards(SHARDS)
            .estimated_items_capacity(4096)
            .weight_capacity(memory_bytes)
            .build()
            .unwrap_or_else(|_| unreachable!("all that the builder asks for is given"));
        let most = (memory_bytes / SHARDS as u64).max(1);
        let hash = DefaultHashBuilder::default();
        Segments {
            kept: Cache::with_options(options, Weigh { most }, hash, Default::default()),
            arena: Arc::new(Arena::new(memory_bytes)),
            asked: AtomicU64::new(0),
        }
    }

    /// Where their bytes are kept.
    pub(crate) fn arena(&self) -> &Arc<Arena> {
        &self.arena
    }

    /// Memory taken, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.kept.weight()
    }

    /// What is kept of this path.
    pub(crate) fn get(&self, path: &str) -> Option<Arc<Ready>> {
        self.kept.get(path)
    }

    /// Keeps one that was asked for the first time, if there is room at all for what is like it.
    pub(crate) fn keep(&self, path: &str, ready: Arc<Ready>) {
        ready.asked_at.store(self.count(&ready), Relaxed);
        self.insert(path, ready);
    }

    fn insert(&self, path: &str, ready: Arc<Ready>) {
        if self.fits(ready.bytes()) {
            self.kept.insert(path.into(), ready);
        }
    }

    fn fits(&self, bytes: u64) -> bool {
        bytes < self.kept.capacity() / SHARDS as u64
    }

    /// Answers from what is kept. `None`: the title is in another state by now.
    pub(crate) async fn answer(
        self: &Arc<Self>,
        path: &str,
        ready: &Arc<Ready>,
        catalog: &Arc<Catalog>,
        ask: &Ask<'_>,
    ) -> Option<Result<Response<Body>, Error>> {
        let title = catalog.title(&ready.key).await.ok()?;
        let source = ready.source(&title, ask)?;
        if source.object.changed() {
            self.kept.remove(path);
            return None;
        }
        if self.wants_gathering(ready) && !ready.gathering.swap(true, Relaxed) {
            self.gather(path, ready, &source);
        }
        Some(ready.send(source, ask).await)
    }

    /// Bytes asked for before a request for this one, which is counted.
    fn count(&self, ready: &Ready) -> u64 {
        self.asked.fetch_add(ready.len, Relaxed)
    }

    fn wants_gathering(&self, ready: &Ready) -> bool {
        let now = self.count(ready);
        if ready.gathering.load(Relaxed) {
            return false;
        }
        if ready.is_short() {
            return true;
        }
        let before = ready.asked_at.swap(now, Relaxed);
        let late = now.saturating_sub(before) > self.kept.capacity();
        if late || !self.fits(ready.len) {
            ready.returns.store(0, Relaxed);
            return false;
        }
        let returns = ready.returns.fetch_add(1, Relaxed) + 1;
        returns >= RETURNS_MIN || ready.pieces.len() > PIECES_MAX
    }

    /// Here and now if that takes little, else by a thread that may wait. Not what is remote: its store
    /// keeps it.
    fn gather(self: &Arc<Self>, path: &str, ready: &Arc<Ready>, source: &Source) {
        if source.is_quick(&ready.pieces) {
            self.gather_now(path, ready, source);
        } else if source.is_local() {
            let (segments, path) = (self.clone(), Box::<str>::from(path));
            let (ready, source) = (ready.clone(), source.clone());
            tokio::task::spawn_blocking(move || segments.gather_now(&path, &ready, &source));
        }
    }

    fn gather_now(&self, path: &str, ready: &Ready, source: &Source) {
        // What fails here fails again, and is said, when it is sent.
        let Ok(parts) = source.read_now(&ready.pieces) else {
            return;
        };
        let gathered = ready.holding(Held::copied(&parts, &self.arena));
        // Where the arena has no room, a long one leaves its file for less than it would ordinary memory.
        if gathered.whole.is_some() || gathered.is_short() {
            self.insert(path, Arc::new(gathered));
        }
    }
}

/// Bytes in memory.
pub(crate) struct Held {
    bytes: Bytes,
    /// What they are, where the kernel can send them by itself.
    whole: Option<Mapped>,
}

impl Held {
    /// Parts joined: in the arena, if it has room.
    pub(crate) fn copied(parts: &[Bytes], arena: &Arena) -> Held {
        match arena.keep(parts.iter().map(|part| &part[..])) {
            Ok(kept) => Held::kept(kept),
            Err(_) => Held::ordinary(parts.concat()),
        }
    }

    /// What `write` makes in up to `len` bytes: in the arena, if it has room. It says how many it made.
    pub(crate) fn made(
        arena: &Arena,
        len: usize,
        mut write: impl FnMut(&mut [u8]) -> Result<usize, Error>,
    ) -> Result<Held, Error> {
        if let Ok(kept) = arena.make(len, &mut write) {
            return kept.map(Held::kept);
        }
        let mut bytes = vec![0; len];
        let len = write(&mut bytes)?;
        bytes.truncate(len);
        Ok(Held::ordinary(bytes))
    }

    fn kept(kept: Kept) -> Held {
        let bytes = kept.bytes().clone();
        let (address, len) = kept.place();
        Held {
            bytes,
            whole: Some(Mapped::memory(Arc::new(kept), address, len)),
        }
    }

    fn ordinary(bytes: Vec<u8>) -> Held {
        Held {
            bytes: bytes.into(),
            whole: None,
        }
    }
}

impl Ready {
    /// A segment of `title`, in pieces of its `file`.
    pub(crate) fn new(
        title: &Arc<Title>,
        place: Place<'_>,
        facts: Facts,
        pieces: Vec<Piece>,
        link: Option<HeaderValue>,
    ) -> Ready {
        Ready {
            key: place.segment.title.clone(),
            title: Arc::downgrade(title),
            file: place.file,
            along: place.along,
            kind: Kind::of_part(place.segment.part),
            facts,
            link,
            len: pieces.iter().map(Piece::len).sum(),
            pieces: pieces.into(),
            whole: None,
            asked_at: AtomicU64::new(0),
            returns: AtomicU32::new(0),
            gathering: AtomicBool::new(false),
        }
    }

    /// The same, of these bytes.
    pub(crate) fn holding(&self, held: Held) -> Ready {
        Ready {
            key: self.key.clone(),
            title: self.title.clone(),
            file: self.file,
            along: None,
            kind: self.kind,
            facts: self.facts.clone(),
            link: self.link.clone(),
            len: held.bytes.len() as u64,
            pieces: Arc::new([Piece::Made(held.bytes)]),
            whole: held.whole,
            asked_at: AtomicU64::new(0),
            returns: AtomicU32::new(0),
            gathering: AtomicBool::new(true),
        }
    }

    pub(crate) fn pieces(&self) -> &Arc<[Piece]> {
        &self.pieces
    }

    pub(crate) fn facts(&self) -> &Facts {
        &self.facts
    }

    fn is_short(&self) -> bool {
        self.len <= SHORT_BYTES_MAX
    }

    /// Where its bytes are to come from, if `title` is the state that it is of.
    pub(crate) fn source(&self, title: &Arc<Title>, ask: &Ask<'_>) -> Option<Source> {
        let same = std::ptr::eq(self.title.as_ptr(), Arc::as_ptr(title));
        let object = title.object(self.file).ok().filter(|_| same)?.clone();
        let (reason, touched) = (Reason::Segment, ask.touched);
        Some(Source {
            object,
            reason,
            touched,
            along: self.along.clone(),
            behind: Arc::new([]),
        })
    }

    /// Answers a request for it.
    pub(crate) async fn send(
        &self,
        source: Source,
        ask: &Ask<'_>,
    ) -> Result<Response<Body>, Error> {
        let answer = ask.pieces(&self.facts, source, self.pieces.clone()).await;
        let mut response = answer?;
        if let Some(link) = &self.link
            && response.status() != StatusCode::NOT_MODIFIED
        {
            response.headers_mut().insert(header::LINK, link.clone());
        }
        match &self.whole {
            Some(whole) if !ask.touched => Ok(response.map(|body| body.of_file(whole.clone()))),
            _ => Ok(response),
        }
    }

    fn bytes(&self) -> u64 {
        let piece = |piece: &Piece| match piece {
            // In an arena each takes whole pages.
            Piece::Made(bytes) => bytes.len().next_multiple_of(4096) + size_of::<Piece>(),
            Piece::Of(_) => size_of::<Piece>(),
        };
        let along = self.along.as_ref().map_or(0, |along| size_of_val(&**along));
        along as u64 + READY_BYTES + self.pieces.iter().map(piece).sum::<usize>() as u64
    }
}
