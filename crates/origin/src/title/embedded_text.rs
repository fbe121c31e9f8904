//! Reads the text tracks in a title's films completely, and converts the tracks to cues.

use crate::title::left_out::{LeftOutPart, UnreadTextLocation};
use crate::title::sample_reads::{FailedRead, read_samples};
use media::index::Track;
use media::presentation::Presentation;
use media::text::{
    TextRendition, is_default_text, parse_text_samples, text_sample_ranges, text_track_kind,
};
use store::{Error, Object};

/// Maximum number of text tracks of a title. Further text tracks are not served.
const TRACKS_MAX: usize = 64;

/// Reads the text tracks of a title. Appends tracks that cannot be read to `left_out`. `files`
/// contains the names and contents of the title's films. Blocks the thread.
pub(crate) fn read_embedded_text<'a>(
    presentation: &Presentation,
    files: impl Iterator<Item = (&'a str, &'a Object)>,
    left_out: &mut Vec<LeftOutPart>,
) -> Vec<TextRendition> {
    let tracks = presentation.files.iter().zip(files).enumerate();
    let tracks = tracks.flat_map(|(n, (index, (file, object)))| {
        let tracks = index.text_tracks.iter();
        tracks.enumerate().map(move |(position, track)| {
            let is_default = is_default_text(&index.text_tracks, position);
            ((track, is_default), n, file, object)
        })
    });
    let mut renditions: Vec<TextRendition> = Vec::new();
    for (count, ((track, is_default), file_index, file, object)) in tracks.enumerate() {
        let name = || format!("{file}, track {} (text)", track.id);
        if count >= TRACKS_MAX {
            let reason = "a title may have at most 64 text tracks; remove others";
            left_out.push(LeftOutPart::new(name(), reason.to_owned()));
            continue;
        }
        match read_text_track(presentation, (track, is_default), object) {
            // Skips copies, because each file of a bit-rate ladder often contains the same text
            // track.
            Ok(new)
                if renditions
                    .iter()
                    .any(|known| is_duplicate_text(known, &new)) => {}
            Ok(new) => match LeftOutPart::from_broken_text(&name(), &new) {
                Some(broken) => left_out.push(broken),
                None => renditions.push(new),
            },
            Err(FailedRead { error, range }) => {
                let unread = range.map(|range| UnreadTextLocation::Range { file_index, range });
                left_out.push(LeftOutPart::from_text_error(name(), &error, unread));
            }
        }
    }
    renditions
}

fn is_duplicate_text(known: &TextRendition, new: &TextRendition) -> bool {
    (&known.language, known.kind, &known.label, &known.cues)
        == (&new.language, new.kind, &new.label, &new.cues)
}

fn read_text_track(
    presentation: &Presentation,
    (track, is_default): (&Track, bool),
    object: &Object,
) -> Result<TextRendition, FailedRead> {
    let ranges = text_sample_ranges(track).ok_or(FailedRead {
        error: Error::Refused("text may have at most 16 MiB and 200 000 samples; shorten it"),
        range: None,
    })?;
    let samples = read_samples(object, &ranges)?;
    let mut problems = Vec::new();
    let bytes = samples.iter().map(Vec::as_slice);
    let cues = parse_text_samples(track, presentation.film_start(), bytes, &mut problems);
    Ok(TextRendition {
        language: track.language.clone(),
        kind: text_track_kind(track),
        label: track.name.clone(),
        is_default,
        cues,
        source: format!("track {}", track.id),
        problems,
    })
}
