//! Finds the captions in the video of a film by searching key frames when the film is indexed.

use crate::title::joined_ranges::join_close_ranges;
use media::index::{Index, Track};
use media::presentation::Presentation;
use media::text::{CaptionChannel, find_caption_channels};
use std::ops::Range;
use store::{Object, RequestReason};

/// Maximum number of key frames that are searched.
const KEY_FRAMES_MAX: usize = 3;
/// Maximum number of bytes that are read from each key frame. Captions precede the picture data.
const KEY_FRAME_BYTES_MAX: u64 = 64 << 10;
/// Minimum distance between the searched key frames, in seconds. Frames of different times must be
/// searched, because caption channels are rarely active all the time.
const KEY_FRAME_SPACING_S: u64 = 1;
/// Maximum gap between two key frames that one request reads from a remote film, in bytes.
const REMOTE_GAP_BYTES_MAX: u64 = 256 << 10;

/// Searches the first video track of a film for captions. Blocks the thread.
///
/// For a remote film, the search takes at most three requests. If the first key frame contains no
/// captions, the search stops after one request, because encoders write caption data into every
/// picture. Returns `None` if the film cannot be read. Players can still play the film then, but
/// its manifests announce no captions.
pub(crate) fn find_captions(object: &Object, index: &Index) -> Option<Vec<CaptionChannel>> {
    let mut found = Vec::new();
    let Some(track) = video_track_with_readable_sei(index) else {
        return Some(found);
    };
    let gap = if object.is_remote() {
        REMOTE_GAP_BYTES_MAX
    } else {
        0
    };
    for joined in join_close_ranges(caption_search_ranges(track), gap, u64::MAX) {
        let bytes = object.read(joined.span.clone(), RequestReason::Text).ok()?;
        let frames = joined.split_members(&bytes);
        found.extend(frames.flat_map(|frame| find_caption_channels(&track.codec, frame)));
        if object.is_remote() && found.is_empty() {
            break;
        }
    }
    found.sort_unstable();
    found.dedup();
    Some(found)
}

/// Returns the first video track, if its codec has SEI messages and the source is not encrypted.
fn video_track_with_readable_sei(index: &Index) -> Option<&Track> {
    let videos = index.tracks.iter();
    let (track, video) = videos
        .filter_map(|track| Some((track, track.codec.video()?)))
        .next()?;
    let is_readable = video.nal.is_some() && track.protection.is_none();
    is_readable.then_some(track)
}

/// Returns the byte ranges from which the searched key frames are read.
fn caption_search_ranges(track: &Track) -> impl Iterator<Item = Range<u64>> {
    let samples = &track.samples;
    let spacing = KEY_FRAME_SPACING_S * u64::from(track.timescale);
    let keys = std::iter::successors(samples.first_sync_from(0), move |key| {
        let from = samples.dts(*key).saturating_add(spacing);
        let at = samples.sample_at_dts(from).max(key + 1);
        samples.first_sync_from(at)
    });
    keys.take(KEY_FRAMES_MAX).map(|key| {
        let sample = samples.get(key);
        sample.offset..sample.offset + u64::from(sample.size).min(KEY_FRAME_BYTES_MAX)
    })
}

/// Returns the captions in the first video rendition of a title.
pub(crate) fn captions_of_title(presentation: &Presentation) -> Vec<CaptionChannel> {
    let first = presentation.video_renditions().next();
    let file = first.and_then(|rendition| presentation.files.get(rendition.file_index));
    let captions = file.and_then(|index| index.caption_channels.clone());
    captions.unwrap_or_default()
}
