//! WebVTT in CMAF (ISO/IEC 14496-30, 7). The samples cover the timeline without gaps.

use super::{Cue, CueList, TextSegmentTimes};
use crate::bmff::tkhd::IDENTITY_MATRIX;
use crate::bytes::{write_box, write_full_box};
use crate::codec::{Codec, TextFormat, TrackFormat};
use crate::index::{SampleTableBuilder, Track};
use crate::plan::init_segment::write_init_segment;
use crate::plan::{STYP, SYNC, TRACK_ID};

/// Maximum total length of the samples of a segment, in bytes. The samples beyond this limit show
/// no cues. Each change of the shown cues starts a sample, which repeats the text of all shown
/// cues. Without this limit, the segments of a small file could become very large.
const SEGMENT_TEXT_BYTES_MAX: usize = 8 << 20;
/// Length of a box header (size and name), in bytes.
const BOX_HEAD: usize = 8;

/// Writes the init segment of a rendition.
pub fn write_wvtt_init(grid: &TextSegmentTimes<'_>, language: &str, list: &CueList) -> Vec<u8> {
    let mut entry = Vec::new();
    write_box(&mut entry, b"wvtt", |out| {
        out.extend_from_slice(&[0, 0, 0, 0, 0, 0, 0, 1]);
        write_box(out, b"vttC", |out| {
            out.extend_from_slice(b"WEBVTT\n");
            if !list.header.is_empty() {
                out.push(b'\n');
                out.extend_from_slice(list.header.as_bytes());
                out.push(b'\n');
            }
        });
    });
    write_text_init(grid, language, entry, (TextFormat::Wvtt, "wvtt"))
}

/// Writes an init segment with this sample entry.
pub(super) fn write_text_init(
    grid: &TextSegmentTimes<'_>,
    language: &str,
    sample_entry: Vec<u8>,
    (format, codec): (TextFormat, &str),
) -> Vec<u8> {
    let fourcc = match format {
        TextFormat::Stpp => *b"stpp",
        TextFormat::Wvtt | TextFormat::Tx3g => *b"wvtt",
    };
    write_init_segment(
        &Track {
            id: TRACK_ID,
            timescale: grid.timescale(),
            language: language.to_owned(),
            name: None,
            roles: Vec::new(),
            is_enabled: true,
            codec: Codec {
                fourcc,
                sample_entry,
                codec_string: codec.to_owned(),
                supplemental_codecs: None,
                format: TrackFormat::Text(format),
            },
            samples: SampleTableBuilder::default().finish(),
            presentation_offset: 0,
            presentation_end: None,
            protection: None,
            subsamples: None,
            matrix: IDENTITY_MATRIX,
        },
        None,
    )
}

/// Writes media segment `n`. Each sample contains the cues that are shown during the sample, or an
/// empty `vtte` box.
pub fn write_wvtt_segment(grid: &TextSegmentTimes<'_>, list: &CueList, n: usize) -> Vec<u8> {
    let mut samples = Vec::new();
    for_each_wvtt_sample(grid, list, n, |ticks, shown, _| {
        samples.push((ticks, write_wvtt_sample(shown)));
    });
    write_text_fragment(grid.segment_start(n), n, &samples)
}

/// Returns the length of the segment that [`write_wvtt_segment`] writes, in bytes. The bandwidth is
/// computed from this length.
pub(super) fn wvtt_segment_len(grid: &TextSegmentTimes<'_>, list: &CueList, n: usize) -> usize {
    let (mut samples, mut bytes) = (0, 0);
    for_each_wvtt_sample(grid, list, n, |_, _, len| {
        samples += 1;
        bytes += len;
    });
    fragment_len(samples, bytes)
}

/// Calls `visit` for each sample of segment `n`, with the sample's duration in ticks, the cues that
/// are shown during the sample, and the sample's length in bytes. The samples beyond
/// [`SEGMENT_TEXT_BYTES_MAX`] show no cues.
fn for_each_wvtt_sample(
    grid: &TextSegmentTimes<'_>,
    list: &CueList,
    n: usize,
    mut visit: impl FnMut(u64, &[&ServedCue<'_>], usize),
) {
    let (start, end) = (grid.segment_start(n), grid.segment_start(n + 1));
    let mut cues: Vec<ServedCue> = grid
        .cues_of_segment(list, n)
        .map(|cue| ServedCue::new(grid, cue, start, end))
        .filter(|cue| cue.start < cue.end)
        .collect();
    cues.sort_by_key(|cue| cue.start);
    let mut times: Vec<u64> = cues.iter().flat_map(|cue| [cue.start, cue.end]).collect();
    times.extend([start, end]);
    times.sort_unstable();
    times.dedup();
    let (mut waiting, mut shown) = (cues.iter().peekable(), Vec::<&ServedCue>::new());
    let mut sample_bytes = 0_usize;
    for time in times.windows(2) {
        shown.retain(|cue| cue.end > time[0]);
        while let Some(cue) = waiting.next_if(|cue| cue.start <= time[0]) {
            shown.push(cue);
        }
        let (ticks, len) = (time[1] - time[0], wvtt_sample_len(&shown));
        sample_bytes = sample_bytes.saturating_add(len);
        match sample_bytes <= SEGMENT_TEXT_BYTES_MAX {
            true => visit(ticks, &shown, len),
            false => visit(ticks, &[], wvtt_sample_len(&[])),
        }
    }
}

/// A cue with its served times in ticks, limited to the times of the segment.
struct ServedCue<'a> {
    cue: &'a Cue,
    start: u64,
    end: u64,
    /// Source id (`vsid`) of a cue that is cut at a segment boundary. All parts of the cue have the
    /// same id.
    source_id: Option<u32>,
}

impl<'a> ServedCue<'a> {
    fn new(grid: &TextSegmentTimes<'_>, cue: &'a Cue, start: u64, end: u64) -> ServedCue<'a> {
        let served = |ms| u64::try_from(grid.ticks_from_film_ms(ms)).unwrap_or(0);
        let (from, until) = (served(cue.start_ms), served(cue.end_ms));
        // The start in milliseconds is unique enough as an id, because players compare only
        // adjacent cues.
        let source_id = (from < start || until > end).then_some(cue.start_ms as u32 & 0x7fff_ffff);
        ServedCue {
            cue,
            start: from.clamp(start, end),
            end: until.clamp(start, end),
            source_id,
        }
    }

    /// Iterates over the boxes of the cue (identifier, settings and text), except empty boxes.
    fn text_boxes(&self) -> impl Iterator<Item = (&'static [u8; 4], &'a str)> {
        let Cue {
            id,
            settings,
            payload,
            ..
        } = self.cue;
        let boxes = [(b"iden", id), (b"sttg", settings), (b"payl", payload)];
        let boxes = boxes.into_iter().map(|(name, text)| (name, &**text));
        boxes.filter(|(_, text)| !text.is_empty())
    }
}

fn write_wvtt_sample(shown: &[&ServedCue<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    if shown.is_empty() {
        write_box(&mut out, b"vtte", |_| {});
    }
    for served in shown {
        write_box(&mut out, b"vttc", |out| {
            if let Some(id) = served.source_id {
                write_box(out, b"vsid", |out| out.extend_from_slice(&id.to_be_bytes()));
            }
            for (name, text) in served.text_boxes() {
                write_box(out, name, |out| out.extend_from_slice(text.as_bytes()));
            }
        });
    }
    out
}

/// Returns the length of the sample that [`write_wvtt_sample`] writes, in bytes.
fn wvtt_sample_len(shown: &[&ServedCue<'_>]) -> usize {
    let cue_len = |served: &&ServedCue<'_>| {
        let text = served.text_boxes().map(|(_, text)| BOX_HEAD + text.len());
        let source_id = served.source_id.map_or(0, |_| BOX_HEAD + 4);
        BOX_HEAD + source_id + text.sum::<usize>()
    };
    match shown {
        [] => BOX_HEAD,
        shown => shown.iter().map(cue_len).sum(),
    }
}

/// Writes media segment `n`, which starts at `start` ticks. Each item of `samples` contains the
/// duration of a sample in ticks, and the bytes of the sample.
pub(super) fn write_text_fragment(start: u64, n: usize, samples: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let word = |out: &mut Vec<u8>, word: u32| out.extend_from_slice(&word.to_be_bytes());
    let bytes: usize = samples.iter().map(|(_, sample)| sample.len()).sum();
    let mut out = Vec::with_capacity(fragment_len(samples.len(), bytes));
    out.extend_from_slice(STYP);
    let moof_len = moof_len(samples.len());
    write_box(&mut out, b"moof", |out| {
        write_full_box(out, b"mfhd", 0, 0, |out| {
            word(out, (n as u32).wrapping_add(1))
        });
        write_box(out, b"traf", |out| {
            // flags: default-base-is-moof, default-sample-flags-present
            write_full_box(out, b"tfhd", 0, 0x2_0020, |out| {
                word(out, TRACK_ID);
                word(out, SYNC);
            });
            write_full_box(out, b"tfdt", 1, 0, |out| {
                out.extend_from_slice(&start.to_be_bytes())
            });
            // flags: data offset, sample durations and sample sizes are present
            write_full_box(out, b"trun", 0, 0x301, |out| {
                word(out, samples.len() as u32);
                word(out, (moof_len + 8) as u32);
                for (ticks, sample) in samples {
                    word(out, u32::try_from(*ticks).unwrap_or(u32::MAX));
                    word(out, sample.len() as u32);
                }
            });
        });
    });
    write_box(&mut out, b"mdat", |out| {
        samples
            .iter()
            .for_each(|(_, sample)| out.extend_from_slice(sample));
    });
    out
}

/// Returns the length of a `moof` box in bytes. Only the length of `trun` depends on the number of
/// samples.
fn moof_len(samples: usize) -> usize {
    // moof, mfhd, traf, tfhd, tfdt, trun
    8 + 16 + 8 + 20 + 20 + 20 + samples * 8
}

/// Returns the length of a segment in bytes. Its samples have `bytes` bytes in total.
fn fragment_len(samples: usize, bytes: usize) -> usize {
    STYP.len() + moof_len(samples) + BOX_HEAD + bytes
}
