//! Text tracks inside of a title's films: read whole and converted to cues.

use crate::title::joined_ranges::join_close_ranges;
use crate::title::left_out::LeftOutPart;
use media::index::Track;
use media::presentation::Presentation;
use media::text::{TextRendition, parse_text_samples, text_sample_ranges, text_track_kind};
use std::ops::Range;
use store::{Error, Object, Reason};

/// Maximum number of text tracks of a title. Further ones are left out.
const TRACKS_MAX: usize = 64;
/// Maximum number of requests for the text of a remote film. Text between the pictures is spread
/// over the whole file.
const REMOTE_READS_MAX: usize = 32;
/// Samples of a remote film that are closer than this are read together.
const REMOTE_GAP_BYTES_MAX: u64 = 1 << 20;
const LOCAL_GAP_BYTES_MAX: u64 = 4 << 10;

/// Reads the text tracks of a title. Appends those that cannot be read to `left_out`. `files` are the
/// names and contents of its films. Blocks.
pub(crate) fn read_embedded_text<'a>(
    presentation: &Presentation,
    files: impl Iterator<Item = (&'a str, &'a Object)>,
    left_out: &mut Vec<LeftOutPart>,
) -> Vec<TextRendition> {
    let tracks = presentation.files.iter().zip(files);
    let tracks =
        tracks.flat_map(|(index, file)| index.text_tracks.iter().map(move |track| (track, file)));
    let mut renditions: Vec<TextRendition> = Vec::new();
    for (track, (file, object)) in tracks.take(TRACKS_MAX) {
        let name = || format!("{file}, track {} (text)", track.id);
        match read_track(presentation, track, object) {
            // Each file of a ladder often has a copy.
            Ok(new) if renditions.iter().any(|known| is_copy(known, &new)) => {}
            Ok(new) => match LeftOutPart::from_broken_text(&name(), &new) {
                Some(broken) => left_out.push(broken),
                None => renditions.push(new),
            },
            Err(error) => left_out.push(LeftOutPart::from_text_error(name(), &error)),
        }
    }
    renditions
}

fn is_copy(known: &TextRendition, new: &TextRendition) -> bool {
    (&known.language, known.kind, &known.label, &known.cues)
        == (&new.language, new.kind, &new.label, &new.cues)
}

fn read_track(
    presentation: &Presentation,
    track: &Track,
    object: &Object,
) -> Result<TextRendition, Error> {
    let ranges = text_sample_ranges(track);
    let ranges = ranges.ok_or(Error::Refused(
        "text may have at most 16 MiB and 200 000 samples; shorten it",
    ))?;
    let samples = read_ranges(object, &ranges)?;
    let mut problems = Vec::new();
    let bytes = samples.iter().map(Vec::as_slice);
    let cues = parse_text_samples(track, presentation.film_start(), bytes, &mut problems);
    Ok(TextRendition {
        language: track.language.clone(),
        kind: text_track_kind(track),
        label: track.name.clone(),
        is_default: false,
        cues,
        source: format!("track {}", track.id),
        problems,
    })
}

/// Reads ranges, those that are close to each other together.
fn read_ranges(object: &Object, ranges: &[Range<u64>]) -> Result<Vec<Vec<u8>>, Error> {
    let gap = match object.is_remote() {
        true => REMOTE_GAP_BYTES_MAX,
        false => LOCAL_GAP_BYTES_MAX,
    };
    let spans = join_close_ranges(ranges.iter().cloned(), gap);
    if object.is_remote() && spans.len() > REMOTE_READS_MAX {
        return Err(Error::Refused(
            "the text of this remote film would need many requests; store it as a file beside the film",
        ));
    }
    let mut samples = Vec::with_capacity(ranges.len());
    for joined in spans {
        let bytes = object.read(joined.span.clone(), Reason::Text)?;
        samples.extend(joined.cut(&bytes).map(<[u8]>::to_vec));
    }
    Ok(samples)
}
