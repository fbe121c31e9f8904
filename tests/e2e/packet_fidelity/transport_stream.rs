//! Tests packets in transport streams and packed audio.

use super::*;
use crate::ffmpeg::ProbedPacket;

/// Checks HLS with transport streams and packed audio. Frames equal those of the source, and times
/// are rounded to the 90 kHz clock.
pub(super) fn ts(name: &str) {
    let Some(title) = open_title(name) else {
        return;
    };
    let target = format!("{}/.m3u8?format=ts", title.target);
    let playlists = hls::list_media_playlists(&title.server, &target);
    assert!(!playlists.is_empty());
    let mut shifts = BTreeMap::new();
    for target in &playlists {
        let media = hls::fetch_media_playlist(&title.server, target);
        assert_eq!(media.map, None, "{target}: TS needs no init");
        let (_, ending) = media.segments[0].1.rsplit_once('.').unwrap();
        let (file, mut served) = probe_rendition(&title, &media, &format!(".{ending}"));
        if !media.is_video() {
            apply_id3_times(&title, &media, &mut served);
        }
        let found = title.sources.iter().find_map(|source| {
            let alike = source.kind == served.kind && source.packets.len() == served.packets.len();
            alike
                .then(|| measure_presentation_shift(source, &served, media.is_video()))
                .flatten()
        });
        let found = found.unwrap_or_else(|| panic!("{target}: no source has these times"));
        shifts.insert(target.clone(), found);
        if media.is_video() && title.files.len() == 1 {
            let wanted = decode_video_hashes(title.files[0].to_str().unwrap());
            assert_eq!(
                wanted,
                decode_video_hashes(&file),
                "{target}: decoded frames differ"
            );
        }
    }
    if name != "frag_ladder" {
        assert_one_shift(&title, &shifts);
    }
}

/// Returns the shift of presentation times in seconds. Returns `None` if packets with known times
/// have different shifts, or if a video packet is a key frame in only one of the streams.
fn measure_presentation_shift(
    source: &ProbedStream,
    served: &ProbedStream,
    is_video: bool,
) -> Option<f64> {
    let seconds =
        |stream: &ProbedStream, n: usize| stream.packets[n].pts as f64 / stream.rate as f64;
    let first = seconds(served, 0) - seconds(source, 0);
    let known = (0..served.packets.len()).filter(|n| served.packets[*n].pts != UNKNOWN);
    let mut all = known.map(|n| {
        let off = seconds(served, n) - seconds(source, n) - first;
        let same_key = !is_video || served.packets[n].key == source.packets[n].key;
        same_key && off.abs() < 2.5 / 90_000.0
    });
    all.all(|same| same).then_some(first)
}

const UNKNOWN: i64 = i64::MIN;

/// Sets the time of the first packet of each segment from the segment's ID3 timestamp (90 kHz),
/// because packed audio contains no other times.
fn apply_id3_times(title: &FixtureTitle, media: &hls::MediaPlaylist, served: &mut ProbedStream) {
    let mut packets = Vec::new();
    for (_, segment) in &media.segments {
        let bytes = title.server.get_body(segment);
        let owner = b"com.apple.streaming.transportStreamTimestamp\0";
        let at = bytes.windows(owner.len()).position(|w| w == owner);
        let at = at.expect("no ID3 timestamp") + owner.len();
        let time = i64::from_be_bytes(bytes[at..at + 8].try_into().unwrap());
        let (_, ending) = segment.rsplit_once('.').unwrap();
        let file = write_probe_input(&title.folder.0, &format!("one.{ending}"), &bytes);
        let found = probe_streams(&file).remove(0).packets.into_iter();
        packets.extend(found.enumerate().map(|(n, packet)| ProbedPacket {
            pts: if n == 0 { time } else { UNKNOWN },
            ..packet
        }));
    }
    served.rate = 90_000;
    served.packets = packets;
}
