//! A trak box: what the track is, and its samples where they are not in fragments.

use super::draft::{Draft, Entry};
use super::table::read_stbl;
use crate::bmff::hdlr::Hdlr;
use crate::bmff::mdhd::Mdhd;
use crate::bmff::tkhd::Tkhd;
use crate::bmff::{Mp4Box, dref, elng, elst, stsd, udta};
use crate::bytes::Reader;
use crate::codec::Codec;
use crate::error::{Error, Kind, Result, fourcc};
use std::ops::Range;

/// What became of a track.
pub(super) enum Parsed {
    /// It can be packaged.
    Draft(Box<Draft>),
    /// It cannot, and why.
    Skipped { id: u32, why: String },
}

/// Reads a trak box. `metadata` is where the moov lies, in which no sample can.
pub(super) fn read_trak(
    trak: &Mp4Box<'_>,
    quicktime: bool,
    file_len: u64,
    metadata: Range<u64>,
) -> Result<Parsed> {
    let tkhd = trak.need(b"tkhd")?.read(Tkhd::parse)?;
    let mdia = trak.need(b"mdia")?;
    let within = |error: Error| error.inside(*b"mdia");
    let hdlr = mdia.need(b"hdlr")?.read(Hdlr::parse).map_err(within)?;
    if hdlr.kind != *b"vide" && hdlr.kind != *b"soun" {
        let why = format!("{} is neither audio nor video", fourcc(hdlr.kind));
        return Ok(Parsed::Skipped { id: tkhd.id, why });
    }
    let mdhd = mdia.need(b"mdhd")?;
    let mdhd = (mdhd.at, mdhd.read(Mdhd::parse).map_err(within)?);
    let minf = mdia.need(b"minf")?;
    let within = |error: Error| error.inside(*b"minf").inside(*b"mdia");
    let entries = read_entries(&minf).map_err(within)?;
    if let Some(why) = unsupported(&entries) {
        return Ok(Parsed::Skipped { id: tkhd.id, why });
    }
    if mdhd.1.timescale == 0 {
        let error = Error::malformed(format!("track {} has a timescale of 0", tkhd.id));
        return Err(error.inside(*b"mdhd").inside(*b"mdia").at(mdhd.0));
    }
    let mut draft = Draft::new(tkhd, mdhd.1.timescale, entries);
    draft.is_video = hdlr.kind == *b"vide";
    draft.file_len = file_len;
    draft.language = language(&mdia, &mdhd.1, quicktime)?;
    draft.name = name(trak, hdlr)?;
    if let Some(edts) = trak.find(b"edts")?
        && let Some(elst) = edts.find(b"elst")?
    {
        draft.edits = elst
            .read(elst::parse)
            .map_err(|error| error.inside(*b"edts"))?;
    }
    let stbl = minf.need(b"stbl").map_err(|error| error.inside(*b"mdia"))?;
    read_stbl(&stbl, &mut draft, metadata).map_err(|error| within(error.inside(*b"stbl")))?;
    Ok(Parsed::Draft(Box::new(draft)))
}

/// The sample entries, each with what it means or why we do not package it.
fn read_entries(minf: &Mp4Box<'_>) -> Result<Vec<Entry>> {
    let stbl = minf.need(b"stbl")?;
    let within = |error: Error| error.inside(*b"stsd").inside(*b"stbl");
    let found = stsd::parse(&stbl.need(b"stsd")?).map_err(within)?;
    let dref = match minf.find(b"dinf")? {
        Some(dinf) => dinf.find(b"dref")?,
        None => None,
    };
    let mut entries: Vec<Entry> = Vec::new();
    for entry in &found {
        let bytes = entry.whole.to_vec();
        let codec = match entries.iter().find(|known| known.bytes == bytes) {
            Some(known) => known.codec.clone(),
            None => parse_entry(entry, dref.as_ref()),
        };
        match &codec {
            Err(error) if error.kind != Kind::Unsupported => {
                return Err(within(error.clone().inside(entry.name).at(entry.at)));
            }
            _ => entries.push(Entry { bytes, codec }),
        }
    }
    if entries.is_empty() {
        return Err(within(Error::malformed("there is no sample entry")));
    }
    Ok(entries)
}

fn parse_entry(entry: &Mp4Box<'_>, dref: Option<&Mp4Box<'_>>) -> Result<Codec> {
    let mut reader = Reader::new(entry.body);
    reader.skip(6);
    let reference = reader.u16();
    if let Some(dref) = dref
        && !dref::is_self_contained(dref, reference)?
    {
        let code = fourcc(entry.name);
        let what = format!("the media of its {code} samples lies in another file");
        return Err(Error::unsupported(what));
    }
    Codec::parse(entry.whole)
}

/// Why no entry can be packaged, if so, naming their codes.
fn unsupported(entries: &[Entry]) -> Option<String> {
    let whys: Vec<String> = entries
        .iter()
        .map_while(|entry| entry.codec.as_ref().err())
        .map(|error| error.what.clone())
        .collect();
    (whys.len() == entries.len()).then(|| {
        let mut whys = whys;
        whys.dedup();
        whys.join(", ")
    })
}

fn language(mdia: &Mp4Box<'_>, mdhd: &Mdhd, quicktime: bool) -> Result<String> {
    let tag = match mdia.find(b"elng")? {
        Some(elng) => elng.read(elng::parse)?,
        None => None,
    };
    let language = tag.or_else(|| mdhd.language(quicktime));
    Ok(language.unwrap_or_else(|| "und".to_owned()))
}

fn name(trak: &Mp4Box<'_>, hdlr: Hdlr) -> Result<Option<String>> {
    let given = match trak.find(b"udta")? {
        // User data is free-form: what cannot be read is no reason to refuse the film.
        Some(udta) => udta::name(&udta).unwrap_or(None),
        None => None,
    };
    Ok([given.unwrap_or_default(), hdlr.name]
        .into_iter()
        .find(|name| is_given(name)))
}

/// Longest track name that is kept, in bytes.
const NAME_MAX: usize = 200;

/// Whether a person gave this name, rather than the program that wrote the file.
fn is_given(name: &str) -> bool {
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
    ) && name.len() <= NAME_MAX
        && !name.contains(char::is_control)
        && !name.contains(char::REPLACEMENT_CHARACTER)
        && !STOCK.iter().any(|stock| lower.contains(stock))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stock_names_are_not_given() {
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
            assert!(!is_given(name), "{name}");
        }
        for name in ["Director's commentary", "Stereo", "Deutsch (5.1)"] {
            assert!(is_given(name), "{name}");
        }
    }
}
