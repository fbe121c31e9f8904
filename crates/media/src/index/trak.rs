//! Parses a `trak` box, which describes a track and lists the samples that are not in fragments.

use super::stbl::read_stbl;
use super::track_draft::{DraftSampleEntry, TrackDraft};
use super::track_role::read_track_roles;
use crate::bmff::dref::{self, DataReference};
use crate::bmff::hdlr::Hdlr;
use crate::bmff::mdhd::Mdhd;
use crate::bmff::tkhd::Tkhd;
use crate::bmff::{Mp4Box, elng, elst, stsd, udta};
use crate::bytes::ByteReader;
use crate::codec::Codec;
use crate::error::{Error, ErrorKind, Result, format_fourcc};
use crate::protection::ProtectedEntry;
use crate::protection::source_protection::is_protected_entry;
use std::ops::Range;

/// Maximum number of tracks in a file.
pub(super) const TRACKS_MAX: usize = 1000;

/// Handler types of video and audio tracks.
pub(super) const MEDIA_HANDLERS: [[u8; 4]; 2] = [*b"vide", *b"soun"];
/// Handler types of text tracks (ISO/IEC 14496-12, 12.5 and 12.6), including Apple's type `sbtl`.
pub(super) const TEXT_HANDLERS: [[u8; 4]; 3] = [*b"text", *b"subt", *b"sbtl"];

/// Outcome of parsing a track.
pub(super) enum TrakOutcome {
    /// The track can be packaged.
    Draft(Box<TrackDraft>),
    /// The track is left out for this reason.
    Skipped { reason: String },
    /// The media of the track is not in the file that is being indexed.
    OtherFile,
}

/// The file whose media is being indexed.
#[derive(Debug, Clone)]
pub(super) struct MediaFile {
    /// Location of the file, as `dref` boxes name it.
    pub location: DataReference,
    /// Length of the file, in bytes.
    pub len: u64,
    /// Byte range of the `moov`, in which no chunk may start. Empty if the `moov` is in another
    /// file.
    pub moov_range: Range<u64>,
}

impl MediaFile {
    /// Describes a media file that also contains the `moov`. `metadata` is the byte range of the
    /// `moov`.
    pub fn containing_moov(len: u64, metadata: Range<u64>) -> MediaFile {
        MediaFile {
            location: DataReference::SameFile,
            len,
            moov_range: metadata,
        }
    }

    /// Describes a media file that does not contain the `moov`.
    pub fn from_external_file(location: DataReference, len: u64) -> MediaFile {
        MediaFile {
            location,
            len,
            moov_range: 0..0,
        }
    }
}

/// Parses a `trak` box.
pub(super) fn read_trak(
    trak: &Mp4Box<'_>,
    is_quicktime: bool,
    source: &MediaFile,
) -> Result<TrakOutcome> {
    let tkhd = trak.require_child(b"tkhd")?.parse_body(Tkhd::parse)?;
    let mdia = trak.require_child(b"mdia")?;
    let within = |error: Error| error.with_enclosing_box(*b"mdia");
    let hdlr = mdia
        .require_child(b"hdlr")?
        .parse_body(Hdlr::parse)
        .map_err(within)?;
    if TEXT_HANDLERS.contains(&hdlr.handler_type) {
        let handler = format_fourcc(hdlr.handler_type);
        let skip = |reason| TrakOutcome::Skipped { reason };
        return Ok(
            match read_supported_trak(trak, (tkhd, hdlr), is_quicktime, source) {
                Ok(TrakOutcome::Draft(draft)) if !draft.is_text() => {
                    skip(format!("{handler} is neither audio nor video"))
                }
                Ok(outcome) => outcome,
                // Leaves out the text track, because the film plays without text.
                Err(error) => skip(error.to_string()),
            },
        );
    }
    if !MEDIA_HANDLERS.contains(&hdlr.handler_type) {
        let reason = explain_unsupported_handler(hdlr.handler_type);
        return Ok(TrakOutcome::Skipped { reason });
    }
    read_supported_trak(trak, (tkhd, hdlr), is_quicktime, source)
}

/// Parses a track whose handler type is supported.
fn read_supported_trak(
    trak: &Mp4Box<'_>,
    (tkhd, hdlr): (Tkhd, Hdlr),
    is_quicktime: bool,
    source: &MediaFile,
) -> Result<TrakOutcome> {
    let mdia = trak.require_child(b"mdia")?;
    let within = |error: Error| error.with_enclosing_box(*b"mdia");
    let mdhd = mdia.require_child(b"mdhd")?;
    let mdhd = (mdhd.offset, mdhd.parse_body(Mdhd::parse).map_err(within)?);
    let minf = mdia.require_child(b"minf")?;
    let within = |error: Error| {
        error
            .with_enclosing_box(*b"minf")
            .with_enclosing_box(*b"mdia")
    };
    let entries = read_sample_entries(&minf, source).map_err(within)?;
    if entries.iter().all(|entry| entry.is_external) {
        return Ok(TrakOutcome::OtherFile);
    }
    if let Some(reason) = unsupported_reason(&entries) {
        return Ok(TrakOutcome::Skipped { reason });
    }
    if mdhd.1.timescale == 0 {
        let error = Error::malformed(format!("track {} has a timescale of 0", tkhd.track_id));
        return Err(error
            .with_enclosing_box(*b"mdhd")
            .with_enclosing_box(*b"mdia")
            .with_byte_offset(mdhd.0));
    }
    let mut draft = TrackDraft::new(tkhd, mdhd.1.timescale, entries);
    draft.is_video = hdlr.handler_type == *b"vide";
    draft.file_len = source.len;
    draft.language = read_language(&mdia, &mdhd.1, is_quicktime)?;
    draft.name = read_track_name(trak, hdlr)?;
    draft.roles = trak
        .find_child(b"udta")?
        .map_or_else(Vec::new, |udta| read_track_roles(&udta));
    if let Some(edts) = trak.find_child(b"edts")?
        && let Some(elst) = edts.find_child(b"elst")?
    {
        draft.edits = elst
            .parse_body(elst::parse_elst)
            .map_err(|error| error.with_enclosing_box(*b"edts"))?;
    }
    let stbl = minf
        .require_child(b"stbl")
        .map_err(|error| error.with_enclosing_box(*b"mdia"))?;
    let mut read = read_stbl(&stbl, &mut draft, source.moov_range.clone());
    // Only index MP4s contain subsamples that this crate stored. The media of an index MP4 is in
    // another file.
    if source.location != DataReference::SameFile {
        read = read.and_then(|()| draft.read_stored_subsamples(&stbl));
    }
    read.map_err(|error| within(error.with_enclosing_box(*b"stbl")))?;
    Ok(TrakOutcome::Draft(Box::new(draft)))
}

/// Explains why tracks with this handler type are left out.
fn explain_unsupported_handler(handler: [u8; 4]) -> String {
    match &handler {
        b"clcp" => "tracks of closed captions are not served".to_owned(),
        _ => format!("{} is neither audio nor video", format_fourcc(handler)),
    }
}

/// Parses the sample entries. Each result contains the codec, or the reason why the entry cannot be
/// packaged.
fn read_sample_entries(minf: &Mp4Box<'_>, source: &MediaFile) -> Result<Vec<DraftSampleEntry>> {
    let within = |error: Error| {
        error
            .with_enclosing_box(*b"stsd")
            .with_enclosing_box(*b"stbl")
    };
    let (found, dref) = find_sample_entries(minf)?;
    let mut entries: Vec<DraftSampleEntry> = Vec::new();
    for entry in &found {
        let bytes = entry.bytes.to_vec();
        let (codec, protection) = match entries.iter().find(|known| known.bytes == bytes) {
            Some(known) => (known.codec.clone(), known.protection.clone()),
            None => match parse_sample_entry(entry, dref.as_ref(), source) {
                Ok((codec, protection)) => (Ok(codec), protection),
                Err(error) => (Err(error), None),
            },
        };
        let elsewhere =
            data_reference_of_entry(entry, dref.as_ref()).is_ok_and(|at| at != source.location);
        match &codec {
            Err(error) if error.kind != ErrorKind::Unsupported => {
                return Err(within(
                    error
                        .clone()
                        .with_enclosing_box(entry.name)
                        .with_byte_offset(entry.offset),
                ));
            }
            _ => entries.push(DraftSampleEntry {
                bytes,
                codec,
                protection,
                is_external: elsewhere,
            }),
        }
    }
    if entries.is_empty() {
        return Err(within(Error::malformed("there is no sample entry")));
    }
    Ok(entries)
}

/// Returns the sample entries of a track, and its `dref` box.
fn find_sample_entries<'a>(minf: &Mp4Box<'a>) -> Result<(Vec<Mp4Box<'a>>, Option<Mp4Box<'a>>)> {
    let stbl = minf.require_child(b"stbl")?;
    let within = |error: Error| {
        error
            .with_enclosing_box(*b"stsd")
            .with_enclosing_box(*b"stbl")
    };
    let found = stsd::parse_stsd(&stbl.require_child(b"stsd")?).map_err(within)?;
    let dref = match minf.find_child(b"dinf")? {
        Some(dinf) => dinf.find_child(b"dref")?,
        None => None,
    };
    Ok((found, dref))
}

fn parse_sample_entry(
    entry: &Mp4Box<'_>,
    dref: Option<&Mp4Box<'_>>,
    source: &MediaFile,
) -> Result<(Codec, Option<ProtectedEntry>)> {
    if data_reference_of_entry(entry, dref)? != source.location {
        let code = format_fourcc(entry.name);
        let message = format!("the media of the {code} samples is in another file");
        return Err(Error::unsupported(message));
    }
    if is_protected_entry(entry.name) {
        let (clear, protection) = ProtectedEntry::split_protected_entry(entry.bytes)?;
        return Ok((Codec::from_sample_entry(&clear)?, Some(protection)));
    }
    Ok((Codec::from_sample_entry(entry.bytes)?, None))
}

/// Returns the file that contains the media of a sample entry.
fn data_reference_of_entry(entry: &Mp4Box<'_>, dref: Option<&Mp4Box<'_>>) -> Result<DataReference> {
    let mut reader = ByteReader::new(entry.body);
    reader.skip(6);
    let reference = reader.u16();
    dref.map_or(Ok(DataReference::SameFile), |dref| {
        dref::find_data_reference(dref, reference)
    })
}

/// Adds the locations of a track's media (from its `dref` box) to `found`, if the track has one of
/// the handler types `handlers`.
pub(super) fn collect_data_references(
    trak: &Mp4Box<'_>,
    handlers: &[[u8; 4]],
    found: &mut Vec<DataReference>,
) -> Result<()> {
    let mdia = trak.require_child(b"mdia")?;
    let hdlr = mdia.require_child(b"hdlr")?.parse_body(Hdlr::parse)?;
    if !handlers.contains(&hdlr.handler_type) {
        return Ok(());
    }
    let (entries, dref) = find_sample_entries(&mdia.require_child(b"minf")?)?;
    for entry in &entries {
        match data_reference_of_entry(entry, dref.as_ref()) {
            Ok(location) if !found.contains(&location) => found.push(location),
            Ok(_) => {}
            Err(error) if error.kind == ErrorKind::Unsupported => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Returns the reasons why none of the entries can be packaged. Returns `None` if at least one
/// entry can be packaged.
fn unsupported_reason(entries: &[DraftSampleEntry]) -> Option<String> {
    let reasons: Vec<String> = entries
        .iter()
        .map_while(|entry| entry.codec.as_ref().err())
        .map(|error| error.message.clone())
        .collect();
    (reasons.len() == entries.len()).then(|| {
        let mut reasons = reasons;
        reasons.dedup();
        reasons.join(", ")
    })
}

fn read_language(mdia: &Mp4Box<'_>, mdhd: &Mdhd, is_quicktime: bool) -> Result<String> {
    let tag = match mdia.find_child(b"elng")? {
        Some(elng) => elng.parse_body(elng::parse_elng)?,
        None => None,
    };
    let language = tag.or_else(|| mdhd.decode_language(is_quicktime));
    Ok(language.unwrap_or_else(|| "und".to_owned()))
}

fn read_track_name(trak: &Mp4Box<'_>, hdlr: Hdlr) -> Result<Option<String>> {
    let given = match trak.find_child(b"udta")? {
        // Ignores errors, because user data has no fixed format.
        Some(udta) => udta::find_track_name(&udta).unwrap_or(None),
        None => None,
    };
    Ok([given.unwrap_or_default(), hdlr.name]
        .into_iter()
        .find(|name| is_user_given_name(name)))
}

/// Maximum length of a track name, in bytes. Longer names are dropped.
const NAME_BYTES_MAX: usize = 200;

/// Returns whether a person probably chose this name. Otherwise, the program that wrote the file
/// probably chose it.
fn is_user_given_name(name: &str) -> bool {
    const STOCK: [&str; 15] = [
        "handler",
        "handle",
        "core media",
        "apple ",
        "gpac",
        "bento4",
        "l-smash",
        "iso media",
        "mainconcept",
        "video media",
        "sound media",
        "muxer",
        "mp4 ",
        "created with",
        "google inc",
    ];
    let lower = name.to_lowercase();
    !matches!(
        &*lower,
        "" | "vide" | "soun" | "video" | "audio" | "sound" | "und"
    ) && name.len() <= NAME_BYTES_MAX
        && !name.contains(char::is_control)
        && !name.contains(char::REPLACEMENT_CHARACTER)
        && !STOCK.iter().any(|stock| lower.contains(stock))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stock_handler_names_are_dropped() {
        let stock = [
            "VideoHandler",
            "SoundHandler",
            "Core Media Video",
            "GPAC ISO Video Handler",
            "",
            "Bento4 Video Handler",
            "Apple Video Media Handler",
            "USP Video Handler",
            "SoundHandle",
            "ISO Media file produced by Google Inc.",
            "L-SMASH Audio Handler",
            "(C) 2007 Google Inc. v08.13.2007.",
            "a\nb",
        ];
        for name in stock {
            assert!(!is_user_given_name(name), "{name}");
        }
        for name in ["Director's commentary", "Stereo", "Deutsch (5.1)"] {
            assert!(is_user_given_name(name), "{name}");
        }
    }
}
