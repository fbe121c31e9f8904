//! A trak box: what the track is, and its samples where they are not in fragments.

use super::draft::{Draft, Entry};
use super::table::read_stbl;
use crate::bmff::dref::{self, Location};
use crate::bmff::hdlr::Hdlr;
use crate::bmff::mdhd::Mdhd;
use crate::bmff::tkhd::Tkhd;
use crate::bmff::{Mp4Box, elng, elst, stsd, udta};
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
    /// Its media lies in a file that is not being indexed.
    Elsewhere,
}

/// The file whose media is being indexed.
#[derive(Debug, Clone)]
pub(super) struct Source {
    /// What references to it say.
    pub location: Location,
    /// Its length in bytes.
    pub len: u64,
    /// Where in it the moov lies, in which no sample can; empty where that is in another file.
    pub metadata: Range<u64>,
}

impl Source {
    /// The file that is being read itself, whose moov lies at `metadata`.
    pub fn own(len: u64, metadata: Range<u64>) -> Source {
        Source {
            location: Location::Here,
            len,
            metadata,
        }
    }

    /// Another file.
    pub fn other(location: Location, len: u64) -> Source {
        Source {
            location,
            len,
            metadata: 0..0,
        }
    }
}

/// Reads a trak box.
pub(super) fn read_trak(trak: &Mp4Box<'_>, quicktime: bool, source: &Source) -> Result<Parsed> {
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
    let entries = read_entries(&minf, source).map_err(within)?;
    if entries.iter().all(|entry| entry.elsewhere) {
        return Ok(Parsed::Elsewhere);
    }
    if let Some(why) = unsupported(&entries) {
        return Ok(Parsed::Skipped { id: tkhd.id, why });
    }
    if mdhd.1.timescale == 0 {
        let error = Error::malformed(format!("track {} has a timescale of 0", tkhd.id));
        return Err(error.inside(*b"mdhd").inside(*b"mdia").at(mdhd.0));
    }
    let mut draft = Draft::new(tkhd, mdhd.1.timescale, entries);
    draft.is_video = hdlr.kind == *b"vide";
    draft.file_len = source.len;
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
    read_stbl(&stbl, &mut draft, source.metadata.clone())
        .map_err(|error| within(error.inside(*b"stbl")))?;
    Ok(Parsed::Draft(Box::new(draft)))
}

/// The sample entries, each with what it means or why we do not package it.
fn read_entries(minf: &Mp4Box<'_>, source: &Source) -> Result<Vec<Entry>> {
    let within = |error: Error| error.inside(*b"stsd").inside(*b"stbl");
    let (found, dref) = described(minf)?;
    let mut entries: Vec<Entry> = Vec::new();
    for entry in &found {
        let bytes = entry.whole.to_vec();
        let codec = match entries.iter().find(|known| known.bytes == bytes) {
            Some(known) => known.codec.clone(),
            None => parse_entry(entry, dref.as_ref(), source),
        };
        let elsewhere = location(entry, dref.as_ref()).is_ok_and(|at| at != source.location);
        match &codec {
            Err(error) if error.kind != Kind::Unsupported => {
                return Err(within(error.clone().inside(entry.name).at(entry.at)));
            }
            _ => entries.push(Entry {
                bytes,
                codec,
                elsewhere,
            }),
        }
    }
    if entries.is_empty() {
        return Err(within(Error::malformed("there is no sample entry")));
    }
    Ok(entries)
}

/// The sample entries of a track, and its dref box.
fn described<'a>(minf: &Mp4Box<'a>) -> Result<(Vec<Mp4Box<'a>>, Option<Mp4Box<'a>>)> {
    let stbl = minf.need(b"stbl")?;
    let within = |error: Error| error.inside(*b"stsd").inside(*b"stbl");
    let found = stsd::parse(&stbl.need(b"stsd")?).map_err(within)?;
    let dref = match minf.find(b"dinf")? {
        Some(dinf) => dinf.find(b"dref")?,
        None => None,
    };
    Ok((found, dref))
}

fn parse_entry(entry: &Mp4Box<'_>, dref: Option<&Mp4Box<'_>>, source: &Source) -> Result<Codec> {
    if location(entry, dref)? != source.location {
        let code = fourcc(entry.name);
        let what = format!("the media of its {code} samples lies in another file");
        return Err(Error::unsupported(what));
    }
    Codec::parse(entry.whole)
}

/// Where the media lies that a sample entry describes.
fn location(entry: &Mp4Box<'_>, dref: Option<&Mp4Box<'_>>) -> Result<Location> {
    let mut reader = Reader::new(entry.body);
    reader.skip(6);
    let reference = reader.u16();
    dref.map_or(Ok(Location::Here), |dref| dref::location(dref, reference))
}

/// Adds to `found` where the media of a trak box lies, if it is a track that we package.
pub(super) fn add_locations(trak: &Mp4Box<'_>, found: &mut Vec<Location>) -> Result<()> {
    let mdia = trak.need(b"mdia")?;
    let hdlr = mdia.need(b"hdlr")?.read(Hdlr::parse)?;
    if hdlr.kind != *b"vide" && hdlr.kind != *b"soun" {
        return Ok(());
    }
    let (entries, dref) = described(&mdia.need(b"minf")?)?;
    for entry in &entries {
        match location(entry, dref.as_ref()) {
            Ok(location) if !found.contains(&location) => found.push(location),
            Ok(_) => {}
            Err(error) if error.kind == Kind::Unsupported => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
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
