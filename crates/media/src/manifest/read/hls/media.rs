//! Media playlists: segments with their durations, byte ranges and init segments.

use super::super::decimal::{self, NANOS};
use super::super::segments::{Address, Init, Row, Segments};
use super::{Attributes, Line, Media, Variables, lines};
use crate::error::{Error, Kind, Result};
use std::ops::Range;
use std::sync::Arc;
use url::Url;

pub(super) fn read(url: &Url, text: &str) -> Result<Media> {
    let mut reader = Reader::new(url);
    for line in lines(text) {
        reader.line(&line?)?;
    }
    if reader.segments.is_empty() {
        return Err(Error::new(Kind::Empty, "a media playlist without segments"));
    }
    Ok(Media {
        segments: reader.segments,
        live: !reader.ended,
        iframes_only: reader.iframes_only,
        encrypted: reader.encrypted,
    })
}

struct Reader<'a> {
    url: &'a Url,
    base: Arc<Url>,
    segments: Segments,
    variables: Variables,
    /// Tags that speak of the next segment.
    duration: Option<i64>,
    range: Option<(u64, Option<u64>)>,
    gap: bool,
    /// Tags that speak of all that follow.
    init: Option<u16>,
    number: u64,
    start: i64,
    /// Which resource the last byte range ended in, and where.
    last_range: Option<(u32, u64)>,
    ended: bool,
    iframes_only: bool,
    encrypted: bool,
}

impl<'a> Reader<'a> {
    fn new(url: &'a Url) -> Reader<'a> {
        Reader {
            url,
            base: Arc::new(url.clone()),
            segments: Segments::default(),
            variables: Variables::default(),
            duration: None,
            range: None,
            gap: false,
            init: None,
            number: 0,
            start: 0,
            last_range: None,
            ended: false,
            iframes_only: false,
            encrypted: false,
        }
    }

    fn line(&mut self, line: &Line<'_>) -> Result<()> {
        if !line.is_tag() {
            return self.segment(line);
        }
        if let Some(value) = line.tag("#EXTINF") {
            let text = value.split(',').next().unwrap_or_default().trim();
            let nanos = decimal::seconds(text);
            self.duration = Some(nanos.ok_or_else(|| line.malformed("a duration that is none"))?);
        } else if let Some(value) = line.tag("#EXT-X-BYTERANGE") {
            let range = byte_range(value);
            self.range = Some(range.ok_or_else(|| line.malformed("a byte range that is none"))?);
        } else if let Some(list) = line.tag("#EXT-X-MAP") {
            self.map(list, line)?;
        } else if let Some(list) = line.tag("#EXT-X-KEY") {
            self.encrypted |= Attributes(list).get("METHOD") != Some("NONE");
        } else if let Some(value) = line.tag("#EXT-X-MEDIA-SEQUENCE") {
            self.number = value.parse().unwrap_or(0);
        } else if line.tag("#EXT-X-DEFINE").is_some() {
            self.variables.define(line, self.url)?;
        }
        self.ended |= line.tag("#EXT-X-ENDLIST").is_some();
        self.gap |= line.tag("#EXT-X-GAP").is_some();
        self.iframes_only |= line.tag("#EXT-X-I-FRAMES-ONLY").is_some();
        Ok(())
    }

    /// An init segment for all that follow.
    fn map(&mut self, list: &str, line: &Line<'_>) -> Result<()> {
        let list = self.variables.fill(list, line)?;
        let attributes = Attributes(&list);
        let uri = attributes
            .get("URI")
            .ok_or_else(|| line.malformed("EXT-X-MAP without URI"))?;
        let range = match attributes.get("BYTERANGE") {
            Some(text) => {
                let range = byte_range(text).and_then(|(len, at)| to_range(at.unwrap_or(0), len));
                Some(range.ok_or_else(|| line.malformed("a byte range that is none"))?)
            }
            None => None,
        };
        let address = self.address(uri);
        let init = self.segments.push_init(Init { address, range });
        self.init = Some(init.map_err(|error| line.place(error))?);
        Ok(())
    }

    fn segment(&mut self, line: &Line<'_>) -> Result<()> {
        let duration = self.duration.take();
        let duration = duration.ok_or_else(|| line.malformed("a segment without EXTINF"))?;
        let uri = self.variables.fill(line.text, line)?.into_owned();
        let address = self.segments.push_address(self.address(&uri));
        let range = match self.range.take() {
            Some(range) => Some(self.sub_range(address, range).ok_or_else(|| {
                line.malformed("a byte range without an offset, of another resource than the last")
            })?),
            None => None,
        };
        self.last_range = range.as_ref().map(|range| (address, range.end));
        let row = Row {
            start: self.start,
            duration,
            timescale: NANOS,
            address,
            init: self.init,
            gap: std::mem::take(&mut self.gap),
            number: self.number,
            time: 0,
            range: range.map(|range| (range.start, range.end)),
        };
        self.segments.push(row).map_err(|error| line.place(error))?;
        self.number = self.number.saturating_add(1);
        let end = self.start.checked_add(duration);
        self.start = end.ok_or_else(|| line.malformed("times run past 64 bits"))?;
        Ok(())
    }

    /// A range; without an offset it starts where the last one of the same resource ended.
    fn sub_range(&self, address: u32, (len, at): (u64, Option<u64>)) -> Option<Range<u64>> {
        let last = self.last_range.filter(|(last, _)| *last == address);
        to_range(at.or(last.map(|(_, end)| end))?, len)
    }

    fn address(&self, uri: &str) -> Address {
        Address {
            base: Arc::clone(&self.base),
            text: uri.into(),
            template: None,
        }
    }
}

/// `length[@offset]`.
fn byte_range(text: &str) -> Option<(u64, Option<u64>)> {
    match text.split_once('@') {
        Some((len, at)) => Some((len.trim().parse().ok()?, Some(at.trim().parse().ok()?))),
        None => Some((text.trim().parse().ok()?, None)),
    }
}

/// Empty ranges cannot be asked for.
fn to_range(at: u64, len: u64) -> Option<Range<u64>> {
    let end = at.checked_add(len)?;
    (len > 0).then_some(at..end)
}
