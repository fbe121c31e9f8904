//! Captions inside of a title's video, found in its first key frames.

use media::presentation::Presentation;
use media::text::{CaptionChannel, find_caption_channels};
use store::{Object, Reason};

/// Number of key frames that are searched.
const KEY_FRAMES_MAX: usize = 3;
/// Maximum number of bytes that are read of each. Captions precede the picture.
const KEY_FRAME_BYTES_MAX: u64 = 64 << 10;

/// Returns the captions in the first video of a title. Those of remote films are not looked for,
/// because that would cost requests. Blocks.
pub(crate) fn find_captions<'a>(
    presentation: &Presentation,
    mut objects: impl Iterator<Item = &'a Object>,
) -> Vec<CaptionChannel> {
    let Some(rendition) = presentation.video_renditions().next() else {
        return Vec::new();
    };
    let Some(object) = objects
        .nth(rendition.file_index)
        .filter(|object| !object.is_remote())
    else {
        return Vec::new();
    };
    let track = presentation.track(rendition);
    if track.protection.is_some() {
        return Vec::new();
    }
    let keys = presentation.key_frames(rendition).take(KEY_FRAMES_MAX);
    let mut found: Vec<CaptionChannel> = keys
        .filter_map(|key| {
            let sample = track.samples.get(key);
            let len = u64::from(sample.size).min(KEY_FRAME_BYTES_MAX);
            // The film plays without the announcement.
            let bytes = object
                .read(sample.offset..sample.offset + len, Reason::Text)
                .ok()?;
            Some(find_caption_channels(&track.codec, &bytes))
        })
        .flatten()
        .collect();
    found.sort_unstable();
    found.dedup();
    found
}
