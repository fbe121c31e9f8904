//! Parts of a title that are not served, with the reason.

use crate::bmff::Mp4Box;
use crate::bmff::hdlr::Hdlr;
use crate::bmff::tkhd::Tkhd;
use crate::error::format_fourcc;

/// A track, or a part of the film, that is not served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOutTrack {
    /// Human-readable name, such as `track 3 (text, tx3g)`.
    pub name: String,
    /// The reason, as a clause that can follow "because".
    pub reason: String,
}

impl LeftOutTrack {
    /// Creates an entry.
    pub fn new(name: impl Into<String>, reason: impl Into<String>) -> LeftOutTrack {
        LeftOutTrack {
            name: name.into(),
            reason: reason.into(),
        }
    }
}

/// Returns whether a track is video, or is so broken that the kind of the track is unknown.
pub(super) fn may_be_video(trak: &Mp4Box<'_>) -> bool {
    let hdlr = find_path(trak, &[b"mdia", b"hdlr"]);
    let hdlr = hdlr.and_then(|hdlr| Hdlr::parse(hdlr.body).ok());
    hdlr.is_none_or(|hdlr| hdlr.handler_type == *b"vide")
}

/// Returns a description of a track with its id, kind and sample entry code, as far as the boxes
/// can be parsed.
pub(super) fn describe_track(trak: &Mp4Box<'_>) -> String {
    let tkhd = find_path(trak, &[b"tkhd"]).and_then(|tkhd| Tkhd::parse(tkhd.body).ok());
    let hdlr = find_path(trak, &[b"mdia", b"hdlr"]).and_then(|hdlr| Hdlr::parse(hdlr.body).ok());
    let entry = find_path(trak, &[b"mdia", b"minf", b"stbl", b"stsd"]);
    // `stsd` starts with the version, the flags and the entry count, which take 8 bytes. The code
    // of the first entry follows the 4-byte size of the entry.
    let code = entry.and_then(|stsd| stsd.body.get(12..16)?.try_into().ok());
    let id = tkhd.map_or_else(|| "?".to_owned(), |tkhd| tkhd.track_id.to_string());
    let facts = [
        hdlr.map(|hdlr| describe_handler(hdlr.handler_type)),
        code.map(format_fourcc),
    ];
    let facts: Vec<String> = facts.into_iter().flatten().collect();
    match facts.is_empty() {
        true => format!("track {id}"),
        false => format!("track {id} ({})", facts.join(", ")),
    }
}

fn find_path<'a>(from: &Mp4Box<'a>, path: &[&[u8; 4]]) -> Option<Mp4Box<'a>> {
    path.iter()
        .try_fold(*from, |parent, name| parent.find_child(name).ok()?)
}

/// Returns a readable name of a handler type (ISO/IEC 14496-12, 12; QuickTime File Format, "Media
/// types").
fn describe_handler(handler: [u8; 4]) -> String {
    match &handler {
        b"vide" => "video".to_owned(),
        b"soun" => "audio".to_owned(),
        b"text" | b"sbtl" | b"subt" => "text".to_owned(),
        b"clcp" => "captions".to_owned(),
        b"meta" => "metadata".to_owned(),
        b"tmcd" => "time code".to_owned(),
        b"hint" => "hints".to_owned(),
        b"pict" => "pictures".to_owned(),
        _ => format_fourcc(handler),
    }
}
