//! Parses media playlists into segments with durations, byte ranges and init segments.

use super::super::decimal::{self, NANOS_PER_SECOND};
use super::super::segment_list::{InitSegment, SegmentAddress, SegmentList, SegmentRow};
use super::playlist_lines::{PlaylistLine, numbered_lines};
use super::{AttributeList, MediaPlaylist, PlaylistVariables};
use crate::error::{Error, ErrorKind, Result};
use std::ops::Range;
use std::sync::Arc;
use url::Url;

pub(super) fn parse_media_playlist(url: &Url, text: &str) -> Result<MediaPlaylist> {
    let mut reader = MediaPlaylistReader::new(url);
    for line in numbered_lines(text) {
        reader.read_line(&line?)?;
    }
    if reader.segments.is_empty() {
        return Err(Error::new(
            ErrorKind::Empty,
            "a media playlist without segments",
        ));
    }
    Ok(MediaPlaylist {
        segments: reader.segments,
        is_live: !reader.has_endlist,
        is_iframes_only: reader.is_iframes_only,
        is_encrypted: reader.is_encrypted,
    })
}

struct MediaPlaylistReader<'a> {
    url: &'a Url,
    base: Arc<Url>,
    segments: SegmentList,
    variables: PlaylistVariables,
    /// Values of tags that apply only to the next segment.
    duration_ns: Option<i64>,
    range: Option<(u64, Option<u64>)>,
    is_gap: bool,
    /// Init segment of all following segments, and number and start time of the next segment.
    init_index: Option<u16>,
    media_sequence: u64,
    start_ns: i64,
    /// Address index of the previous segment, and end of the byte range of the previous segment.
    last_range: Option<(u32, u64)>,
    has_endlist: bool,
    is_iframes_only: bool,
    is_encrypted: bool,
}

impl<'a> MediaPlaylistReader<'a> {
    fn new(url: &'a Url) -> MediaPlaylistReader<'a> {
        MediaPlaylistReader {
            url,
            base: Arc::new(url.clone()),
            segments: SegmentList::default(),
            variables: PlaylistVariables::default(),
            duration_ns: None,
            range: None,
            is_gap: false,
            init_index: None,
            media_sequence: 0,
            start_ns: 0,
            last_range: None,
            has_endlist: false,
            is_iframes_only: false,
            is_encrypted: false,
        }
    }

    fn read_line(&mut self, line: &PlaylistLine<'_>) -> Result<()> {
        if !line.is_tag_or_comment() {
            return self.read_segment(line);
        }
        if let Some(value) = line.tag_value("#EXTINF") {
            let text = value.split(',').next().unwrap_or_default().trim();
            let nanos = decimal::parse_seconds(text);
            self.duration_ns = Some(nanos.ok_or_else(|| line.malformed_error("invalid duration"))?);
        } else if let Some(value) = line.tag_value("#EXT-X-BYTERANGE") {
            let range = parse_byte_range(value);
            self.range = Some(range.ok_or_else(|| line.malformed_error("invalid byte range"))?);
        } else if let Some(list) = line.tag_value("#EXT-X-MAP") {
            self.read_init_segment_tag(list, line)?;
        } else if let Some(list) = line.tag_value("#EXT-X-KEY") {
            self.is_encrypted |= AttributeList(list).get("METHOD") != Some("NONE");
        } else if let Some(value) = line.tag_value("#EXT-X-MEDIA-SEQUENCE") {
            self.media_sequence = value.parse().unwrap_or(0);
        } else if line.tag_value("#EXT-X-DEFINE").is_some() {
            self.variables.define_variable(line, self.url)?;
        }
        self.has_endlist |= line.tag_value("#EXT-X-ENDLIST").is_some();
        self.is_gap |= line.tag_value("#EXT-X-GAP").is_some();
        self.is_iframes_only |= line.tag_value("#EXT-X-I-FRAMES-ONLY").is_some();
        Ok(())
    }

    /// Reads EXT-X-MAP, which sets the init segment of all following segments.
    fn read_init_segment_tag(&mut self, list: &str, line: &PlaylistLine<'_>) -> Result<()> {
        let list = self.variables.substitute_variables(list, line)?;
        let attributes = AttributeList(&list);
        let uri = attributes
            .get("URI")
            .ok_or_else(|| line.malformed_error("EXT-X-MAP without URI"))?;
        let range = match attributes.get("BYTERANGE") {
            Some(text) => {
                let range =
                    parse_byte_range(text).and_then(|(len, at)| to_range(at.unwrap_or(0), len));
                Some(range.ok_or_else(|| line.malformed_error("invalid byte range"))?)
            }
            None => None,
        };
        let address = self.build_segment_address(uri);
        let init = self.segments.push_init(InitSegment { address, range });
        self.init_index = Some(init.map_err(|error| line.add_line_to_error(error))?);
        Ok(())
    }

    fn read_segment(&mut self, line: &PlaylistLine<'_>) -> Result<()> {
        let duration = self.duration_ns.take();
        let duration = duration.ok_or_else(|| line.malformed_error("a segment without EXTINF"))?;
        let uri = self
            .variables
            .substitute_variables(line.text, line)?
            .into_owned();
        let address = self.segments.push_address(self.build_segment_address(&uri));
        let range = match self.range.take() {
            Some(range) => Some(self.resolve_byte_range(address, range).ok_or_else(|| {
                line.malformed_error(
                    "a byte range without an offset, although the previous one is of another resource",
                )
            })?),
            None => None,
        };
        self.last_range = range.as_ref().map(|range| (address, range.end));
        let row = SegmentRow {
            start_ticks: self.start_ns,
            duration_ticks: duration,
            timescale: NANOS_PER_SECOND,
            address_index: address,
            init_index: self.init_index,
            is_gap: std::mem::take(&mut self.is_gap),
            number: self.media_sequence,
            time: 0,
            byte_range: range.map(|range| (range.start, range.end)),
        };
        self.segments
            .push(row)
            .map_err(|error| line.add_line_to_error(error))?;
        self.media_sequence = self.media_sequence.saturating_add(1);
        let end = self.start_ns.checked_add(duration);
        self.start_ns = end.ok_or_else(|| line.malformed_error("times exceed 64 bits"))?;
        Ok(())
    }

    /// Returns the byte range of a segment. Without an offset, the range starts where the range of
    /// the previous segment ends. Both ranges must then be in the same resource.
    fn resolve_byte_range(
        &self,
        address: u32,
        (len, at): (u64, Option<u64>),
    ) -> Option<Range<u64>> {
        let last = self.last_range.filter(|(last, _)| *last == address);
        to_range(at.or(last.map(|(_, end)| end))?, len)
    }

    fn build_segment_address(&self, uri: &str) -> SegmentAddress {
        SegmentAddress {
            base: Arc::clone(&self.base),
            text: uri.into(),
            template: None,
        }
    }
}

/// Parses `length[@offset]`.
fn parse_byte_range(text: &str) -> Option<(u64, Option<u64>)> {
    match text.split_once('@') {
        Some((len, at)) => Some((len.trim().parse().ok()?, Some(at.trim().parse().ok()?))),
        None => Some((text.trim().parse().ok()?, None)),
    }
}

/// Returns the range of `len` bytes from byte `at` on. Returns `None` if the range is empty,
/// because empty ranges cannot be requested.
fn to_range(at: u64, len: u64) -> Option<Range<u64>> {
    let end = at.checked_add(len)?;
    (len > 0).then_some(at..end)
}
