//! Every packet of every fixture arrives as it left: ffprobe's list of the source against its
//! lists of our HLS (CMAF, TS) and DASH, whole and segment by segment; decoded pictures too.

mod transport;

use crate::ffmpeg::{Stream, keep, pictures, streams};
use crate::hls;
use crate::support::{Folder, Server, fixture, fixtures, skip};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use transport::ts;

/// What a title lies in: the server that serves it, and the packets of its sources.
struct Title {
    server: Server,
    /// `/` and the name, as it begins URLs.
    target: String,
    sources: Vec<Stream>,
    files: Vec<PathBuf>,
    folder: Folder,
}

/// Opens a fixture; None when it cannot be made here.
fn open(name: &str) -> Option<Title> {
    fixture(name).map(|path| open_at(name, &path))
}

fn open_at(name: &str, path: &Path) -> Title {
    let mut files = vec![path.to_owned()];
    if path.is_dir() {
        let entries = std::fs::read_dir(path).unwrap();
        files = entries.map(|entry| entry.unwrap().path()).collect();
        files.sort();
    }
    Title {
        server: Server::of(path.parent().unwrap()),
        target: format!("/{name}"),
        sources: files
            .iter()
            .flat_map(|file| streams(file.to_str().unwrap()))
            .collect(),
        files,
        folder: Folder::new(),
    }
}

/// A served rendition as ffprobe reads it: init and all segments behind one another.
fn whole(title: &Title, media: &hls::Media, ending: &str) -> (String, Stream) {
    let mut bytes = media.init(&title.server);
    for (_, segment) in &media.segments {
        bytes.extend(title.server.body(segment));
    }
    let name = media.target.replace('/', "_") + ending;
    let file = keep(&title.folder.0, &name, &bytes);
    let mut found = streams(&file);
    assert_eq!(found.len(), 1, "{}: {found:?}", media.target);
    (file, found.remove(0))
}

/// The source stream with the same content, found by its packets' hashes; the served one may
/// end earlier.
fn source_of<'a>(title: &'a Title, served: &Stream) -> &'a Stream {
    let same = |source: &&Stream| {
        let mut pairs = source.packets.iter().zip(&served.packets);
        source.packets.len() >= served.packets.len() && pairs.all(|(a, b)| a.hash == b.hash)
    };
    title.sources.iter().find(same).unwrap_or_else(|| {
        let counts: Vec<_> = title.sources.iter().map(|s| s.packets.len()).collect();
        panic!(
            "{}: no source begins with these {} packets of {}; sources have {counts:?}",
            title.target,
            served.packets.len(),
            served.codec
        )
    })
}

/// By how many seconds the stream moved: every packet by the same, within `slack` ticks of the
/// served rate.
fn shift(source: &Stream, served: &Stream, slack: i64) -> Result<f64, String> {
    let (from, to) = (&source.packets[0], &served.packets[0]);
    let moved = |a: i64, b: i64| b * source.rate - a * served.rate;
    let (pts, dts) = (moved(from.pts, to.pts), moved(from.dts, to.dts));
    for (a, b) in source.packets.iter().zip(&served.packets) {
        let off = (moved(a.pts, b.pts) - pts).abs();
        let off = off.max((moved(a.dts, b.dts) - dts).abs());
        if a.key != b.key || off > slack * source.rate {
            return Err(format!("{a:?} became {b:?}"));
        }
    }
    Ok(to.pts as f64 / served.rate as f64 - from.pts as f64 / source.rate as f64)
}

/// Sound and picture keep their distance; only rounding of the container's movie timescale (1 ms)
/// may lie between.
fn assert_one_shift(title: &Title, shifts: &BTreeMap<String, f64>) {
    let low = shifts.values().copied().fold(f64::MAX, f64::min);
    let high = shifts.values().copied().fold(f64::MIN, f64::max);
    assert!(
        high - low <= 0.0011,
        "{}: tracks moved apart: {shifts:?}",
        title.target
    );
}

/// HLS with CMAF: data, sizes, flags and times are the source's; all tracks moved by one shift.
fn cmaf(name: &str) {
    if let Some(title) = open(name) {
        arrives_in_cmaf(name, &title);
    }
}

fn arrives_in_cmaf(name: &str, title: &Title) {
    let playlists = hls::media_playlists(&title.server, &format!("{}/.m3u8", title.target));
    assert_eq!(playlists.len(), title.sources.len(), "{playlists:?}");
    let mut shifts = BTreeMap::new();
    for target in playlists {
        let media = hls::media(&title.server, &target);
        let (file, served) = whole(title, &media, ".mp4");
        let source = source_of(title, &served);
        assert_eq!(served.rate, source.rate, "{target}: timescale changed");
        assert_eq!(served.packets.len(), source.packets.len(), "{target}");
        shifts.insert(target.clone(), shift(source, &served, 0).unwrap());
        each_segment(title, &media, &served);
        if media.is_video() && title.files.len() == 1 {
            let wanted = pictures(title.files[0].to_str().unwrap());
            assert_eq!(wanted, pictures(&file), "{target}: decoded pictures differ");
        }
    }
    // Of sources with signed offsets, ffmpeg reads even the source late.
    if name != "frag_ladder" {
        assert_one_shift(title, &shifts);
    }
}

/// Segments alone decode from their first packet, and are the whole's packets in order.
fn each_segment(title: &Title, media: &hls::Media, whole: &Stream) {
    let init = media.init(&title.server);
    let mut packets = Vec::new();
    for (number, (_, segment)) in media.segments.iter().enumerate() {
        let mut bytes = init.clone();
        bytes.extend(title.server.body(segment));
        let file = keep(&title.folder.0, "segment", &bytes);
        let found = streams(&file).remove(0);
        assert!(!found.packets.is_empty(), "{segment} is empty");
        let first = &found.packets[0];
        assert!(first.key, "{segment} does not begin with a key frame");
        // Open GOPs have pictures that are shown before the key frame that they follow.
        if number > 0 && !media.target.contains("open_gop") {
            let earliest = found.packets.iter().map(|p| p.pts).min();
            assert_eq!(earliest, Some(first.pts), "{segment}: an earlier picture");
        }
        packets.extend(found.packets);
    }
    assert_eq!(packets, whole.packets, "{}", media.target);
}

/// Films that others made, where they lie beside this repository.
#[test]
fn films_of_others() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let found = root.ancestors().map(|above| above.join("shared/media"));
    let Some(folder) = found.into_iter().find(|folder| folder.is_dir()) else {
        return skip("films of others: no shared/media beside this repository");
    };
    if fixtures().is_none() {
        return;
    }
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if name.contains("stpp") {
            let server = Server::of(&folder);
            let answer = server.get(&format!("/{name}/.m3u8"));
            assert_eq!(answer.status, 415, "{name}");
            assert!(answer.reason().contains("stpp"), "{}", answer.reason());
        } else if name.ends_with(".mp4") {
            arrives_in_cmaf(&name, &open_at(&name, &path));
        }
    }
}

/// Seconds from the first sound to the first picture, as ffprobe reads an input, and the slack of
/// one tick.
fn lead_of_sound(input: &str) -> (f64, f64) {
    let found = streams(input);
    let first = |kind: &str| {
        let stream = found.iter().find(|stream| stream.kind == kind).unwrap();
        let first = stream.packets.iter().map(|packet| packet.pts).min();
        (first.unwrap() as f64 / stream.rate as f64, stream.rate)
    };
    let ((picture, a), (sound, b)) = (first("video"), first("audio"));
    (picture - sound, 1.01 / a.min(b) as f64)
}

/// ffmpeg (so mpv and ffplay) adds the largest negative composition offset of a track to every
/// time of its pictures: served with such offsets, they came later than the sound by the B-frames'
/// delay.
#[test]
fn b_frames_do_not_come_later_than_their_sound() {
    for name in [
        "avc.mp4",
        "avc_2997.mp4",
        "avc_5994.mp4",
        "audio_late.mp4",
        "frag_unequal.mp4",
    ] {
        let Some(title) = open(name) else { continue };
        let (wanted, slack) = lead_of_sound(title.files[0].to_str().unwrap());
        assert!(title.sources[0].packets.iter().any(|p| p.pts > p.dts));
        for manifest in [".m3u8", ".mpd", ".mpd?template=number"] {
            let url = title.server.url(&format!("{}/{manifest}", title.target));
            let (found, _) = lead_of_sound(&url);
            assert!(
                (found - wanted).abs() <= slack,
                "{url}: {found}, not {wanted}"
            );
        }
    }
}

/// DASH through ffmpeg's own client, both addressings. It ends when the first track ends, so
/// others may lack their last packets.
fn dash(name: &str) {
    let Some(title) = open(name) else { return };
    for template in ["time", "number"] {
        let target = format!("{}/.mpd?template={template}", title.target);
        let mut shifts = BTreeMap::new();
        let found = streams(&title.server.url(&target));
        assert_eq!(found.len(), title.sources.len(), "{target}");
        let mut complete = 0;
        for (number, served) in found.iter().enumerate() {
            let source = source_of(&title, served);
            complete += usize::from(source.packets.len() == served.packets.len());
            let kind = format!("{number} {}", served.kind);
            shifts.insert(kind, shift(source, served, 0).unwrap());
        }
        assert!(complete > 0, "{target}: no track is complete");
        assert_one_shift(&title, &shifts);
    }
}

/// One test per fixture and form, so that they run side by side and a failure has a name.
macro_rules! judged {
    ($($form:ident { $($test:ident $name:literal)* })*) => {
        $(mod $form { $(#[test] fn $test() { super::$form($name); })* })*
    };
}

judged! {
    cmaf {
        avc "avc.mp4"
        avc_faststart "avc_faststart.mp4"
        avc_container "avc_container.mov"
        avc_90000 "avc_90000.mp4"
        avc_48000 "avc_48000.mp4"
        avc_signed_cts "avc_signed_cts.mp4"
        avc_no_edits "avc_no_edits.mp4"
        audio_late "audio_late.mp4"
        video_late "video_late.mp4"
        short "short.mp4"
        video_only "video_only.mp4"
        audio_only "audio_only.mp4"
        avc_co64 "avc_co64.mp4"
        avc_open_gop "avc_open_gop.mp4"
        avc_2997 "avc_2997.mp4"
        avc_5994 "avc_5994.mp4"
        avc_vfr "avc_vfr.mp4"
        avc_anamorphic "avc_anamorphic.mp4"
        hevc "hevc.mp4"
        hevc_hev1 "hevc_hev1.mp4"
        hevc_pq "hevc_pq.mp4"
        hevc_hlg "hevc_hlg.mp4"
        av1 "av1.mp4"
        vp9 "vp9.mp4"
        aac_44100 "aac_44100.mp4"
        aac_mono "aac_mono.mp4"
        aac_51 "aac_51.mp4"
        aac_he "aac_he.mp4"
        ac3 "ac3.mp4"
        eac3 "eac3.mp4"
        opus "opus.mp4"
        flac "flac.mp4"
        mp3 "mp3.mp4"
        several_tracks "several_tracks.mp4"
        ladder "ladder"
        unaligned "unaligned"
        frag_mfra "frag_mfra.mp4"
        frag_bare "frag_bare.mp4"
        frag_delay_moov "frag_delay_moov.mp4"
        frag_no_base "frag_no_base.mp4"
        frag_sidx "frag_sidx.mp4"
        frag_sidx_audio "frag_sidx_audio.mp4"
        frag_many_sidx "frag_many_sidx.mp4"
        frag_cmaf "frag_cmaf.mp4"
        frag_unequal "frag_unequal.mp4"
        frag_half_seconds "frag_half_seconds.mp4"
        frag_odd_boxes "frag_odd_boxes.mp4"
        frag_ladder "frag_ladder"
    }
    ts {
        avc "avc.mp4"
        avc_faststart "avc_faststart.mp4"
        avc_container "avc_container.mov"
        avc_90000 "avc_90000.mp4"
        avc_48000 "avc_48000.mp4"
        avc_signed_cts "avc_signed_cts.mp4"
        avc_no_edits "avc_no_edits.mp4"
        audio_late "audio_late.mp4"
        video_late "video_late.mp4"
        short "short.mp4"
        video_only "video_only.mp4"
        audio_only "audio_only.mp4"
        avc_co64 "avc_co64.mp4"
        avc_open_gop "avc_open_gop.mp4"
        avc_2997 "avc_2997.mp4"
        avc_5994 "avc_5994.mp4"
        avc_vfr "avc_vfr.mp4"
        avc_anamorphic "avc_anamorphic.mp4"
        hevc "hevc.mp4"
        hevc_hev1 "hevc_hev1.mp4"
        hevc_pq "hevc_pq.mp4"
        hevc_hlg "hevc_hlg.mp4"
        aac_44100 "aac_44100.mp4"
        aac_mono "aac_mono.mp4"
        aac_51 "aac_51.mp4"
        aac_he "aac_he.mp4"
        ac3 "ac3.mp4"
        eac3 "eac3.mp4"
        mp3 "mp3.mp4"
        several_tracks "several_tracks.mp4"
        ladder "ladder"
        unaligned "unaligned"
        frag_mfra "frag_mfra.mp4"
        frag_bare "frag_bare.mp4"
        frag_delay_moov "frag_delay_moov.mp4"
        frag_no_base "frag_no_base.mp4"
        frag_sidx "frag_sidx.mp4"
        frag_sidx_audio "frag_sidx_audio.mp4"
        frag_many_sidx "frag_many_sidx.mp4"
        frag_cmaf "frag_cmaf.mp4"
        frag_unequal "frag_unequal.mp4"
        frag_half_seconds "frag_half_seconds.mp4"
        frag_odd_boxes "frag_odd_boxes.mp4"
        frag_ladder "frag_ladder"
    }
    dash {
        avc "avc.mp4"
        audio_late "audio_late.mp4"
        video_late "video_late.mp4"
        avc_vfr "avc_vfr.mp4"
        avc_2997 "avc_2997.mp4"
        hevc "hevc.mp4"
        av1 "av1.mp4"
        vp9 "vp9.mp4"
        aac_he "aac_he.mp4"
        ac3 "ac3.mp4"
        eac3 "eac3.mp4"
        opus "opus.mp4"
        flac "flac.mp4"
        mp3 "mp3.mp4"
        several_tracks "several_tracks.mp4"
        ladder "ladder"
        frag_unequal "frag_unequal.mp4"
        frag_half_seconds "frag_half_seconds.mp4"
        short "short.mp4"
    }
}
