//! Checks that every packet of every fixture arrives unchanged. The tests compare the packets that
//! ffprobe lists for the source with the packets of HLS (CMAF and TS) and DASH, in total and per
//! segment. They also compare the decoded frames.

mod transport_stream;

use crate::ffmpeg::{ProbedStream, decode_video_hashes, probe_streams, write_probe_input};
use crate::hls_playlists as hls;
use crate::support::{HeadwaterServer, TempFolder, fixture_path, fixtures_folder, report_skip};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use transport_stream::ts;

/// A served title with the packets of its sources.
struct FixtureTitle {
    server: HeadwaterServer,
    /// The start of the title's URLs, which is `/` and the name.
    target: String,
    sources: Vec<ProbedStream>,
    files: Vec<PathBuf>,
    folder: TempFolder,
}

/// Serves a fixture. Returns `None` if the fixture cannot be made on this machine.
fn open_title(name: &str) -> Option<FixtureTitle> {
    fixture_path(name).map(|path| open_title_at(name, &path))
}

fn open_title_at(name: &str, path: &Path) -> FixtureTitle {
    let mut files = vec![path.to_owned()];
    if path.is_dir() {
        let entries = std::fs::read_dir(path).unwrap();
        files = entries.map(|entry| entry.unwrap().path()).collect();
        files.sort();
    }
    FixtureTitle {
        server: HeadwaterServer::serve_source(path.parent().unwrap()),
        target: format!("/{name}"),
        sources: files
            .iter()
            .flat_map(|file| probe_streams(file.to_str().unwrap()))
            .collect(),
        files,
        folder: TempFolder::new(),
    }
}

/// Joins the init segment and all media segments of a rendition, and probes the result.
fn probe_rendition(
    title: &FixtureTitle,
    media: &hls::MediaPlaylist,
    ending: &str,
) -> (String, ProbedStream) {
    let mut bytes = media.fetch_init(&title.server);
    for (_, segment) in &media.segments {
        bytes.extend(title.server.get_body(segment));
    }
    let name = media.target.replace('/', "_") + ending;
    let file = write_probe_input(&title.folder.0, &name, &bytes);
    let mut found = probe_streams(&file);
    assert_eq!(found.len(), 1, "{}: {found:?}", media.target);
    (file, found.remove(0))
}

/// Finds the source stream that starts with the packets of the served stream.
fn find_source<'a>(title: &'a FixtureTitle, served: &ProbedStream) -> &'a ProbedStream {
    let same = |source: &&ProbedStream| {
        let mut pairs = source.packets.iter().zip(&served.packets);
        source.packets.len() >= served.packets.len() && pairs.all(|(a, b)| a.hash == b.hash)
    };
    title.sources.iter().find(same).unwrap_or_else(|| {
        let counts: Vec<_> = title.sources.iter().map(|s| s.packets.len()).collect();
        panic!(
            "{}: no source starts with these {} packets of {}; sources have {counts:?}",
            title.target,
            served.packets.len(),
            served.codec
        )
    })
}

/// Returns the time shift of a served stream in seconds. All packets must have the same shift,
/// within `slack` ticks of the served stream.
fn measure_shift(source: &ProbedStream, served: &ProbedStream, slack: i64) -> Result<f64, String> {
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

/// Checks that all tracks have the same shift, up to rounding to the movie timescale (1 ms).
fn assert_one_shift(title: &FixtureTitle, shifts: &BTreeMap<String, f64>) {
    let low = shifts.values().copied().fold(f64::MAX, f64::min);
    let high = shifts.values().copied().fold(f64::MIN, f64::max);
    assert!(
        high - low <= 0.0011,
        "{}: tracks shifted apart: {shifts:?}",
        title.target
    );
}

/// Checks HLS with CMAF. Data, sizes, flags and times of the packets equal those of the source,
/// except for one common time shift.
fn cmaf(name: &str) {
    if let Some(title) = open_title(name) {
        assert_cmaf_matches(name, &title);
    }
}

fn assert_cmaf_matches(name: &str, title: &FixtureTitle) {
    let playlists = hls::list_media_playlists(&title.server, &format!("{}/.m3u8", title.target));
    assert_eq!(playlists.len(), title.sources.len(), "{playlists:?}");
    let mut shifts = BTreeMap::new();
    for target in playlists {
        let media = hls::fetch_media_playlist(&title.server, &target);
        let (file, served) = probe_rendition(title, &media, ".mp4");
        let source = find_source(title, &served);
        assert_eq!(served.rate, source.rate, "{target}: timescale changed");
        assert_eq!(served.packets.len(), source.packets.len(), "{target}");
        shifts.insert(target.clone(), measure_shift(source, &served, 0).unwrap());
        assert_segments_match(title, &media, &served);
        if media.is_video() && title.files.len() == 1 {
            let wanted = decode_video_hashes(title.files[0].to_str().unwrap());
            assert_eq!(
                wanted,
                decode_video_hashes(&file),
                "{target}: decoded frames differ"
            );
        }
    }
    // ffmpeg shifts the video timestamps of the source `frag_ladder`, because its composition
    // offsets are signed. The shifts of video and audio therefore differ.
    if name != "frag_ladder" {
        assert_one_shift(title, &shifts);
    }
}

/// Checks that each segment starts with a key frame, and that all segments together contain the
/// packets of the rendition.
fn assert_segments_match(title: &FixtureTitle, media: &hls::MediaPlaylist, whole: &ProbedStream) {
    let init = media.fetch_init(&title.server);
    let mut packets = Vec::new();
    for (number, (_, segment)) in media.segments.iter().enumerate() {
        let mut bytes = init.clone();
        bytes.extend(title.server.get_body(segment));
        let file = write_probe_input(&title.folder.0, "segment", &bytes);
        let found = probe_streams(&file).remove(0);
        assert!(!found.packets.is_empty(), "{segment} is empty");
        let first = &found.packets[0];
        assert!(first.key, "{segment} does not start with a key frame");
        // In an open GOP, frames that are decoded after the key frame may be presented before the
        // key frame.
        if number > 0 && !media.target.contains("open_gop") {
            let earliest = found.packets.iter().map(|p| p.pts).min();
            assert_eq!(earliest, Some(first.pts), "{segment}: an earlier frame");
        }
        packets.extend(found.packets);
    }
    assert_eq!(packets, whole.packets, "{}", media.target);
}

/// Checks films by other encoders, if the folder `shared/media` is next to this repository.
#[test]
fn external_films_arrive_unchanged() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let found = root.ancestors().map(|above| above.join("shared/media"));
    let Some(folder) = found.into_iter().find(|folder| folder.is_dir()) else {
        return report_skip("external films: no shared/media next to this repository");
    };
    if fixtures_folder().is_none() {
        return;
    }
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if name.contains("stpp") {
            let server = HeadwaterServer::serve_source(&folder);
            let response = server.get(&format!("/{name}/.m3u8"));
            assert_eq!(response.status, 415, "{name}");
            assert!(
                response.error_reason().contains("stpp"),
                "{}",
                response.error_reason()
            );
        } else if name.ends_with(".mp4") {
            assert_cmaf_matches(&name, &open_title_at(&name, &path));
        }
    }
}

/// Returns the seconds from the first audio packet to the first video packet, and slightly more
/// than one tick as tolerance.
fn measure_audio_lead(input: &str) -> (f64, f64) {
    let found = probe_streams(input);
    let first = |kind: &str| {
        let stream = found.iter().find(|stream| stream.kind == kind).unwrap();
        let first = stream.packets.iter().map(|packet| packet.pts).min();
        (first.unwrap() as f64 / stream.rate as f64, stream.rate)
    };
    let ((video, a), (audio, b)) = (first("video"), first("audio"));
    (video - audio, 1.01 / a.min(b) as f64)
}

/// If a track has negative composition offsets, ffmpeg adds the size of the lowest offset to all
/// presentation times of the track. mpv and ffplay use ffmpeg. An earlier Headwater wrote such
/// offsets, so video was later than audio by the delay of the B-frames.
#[test]
fn b_frames_are_not_later_than_their_audio() {
    for name in [
        "avc.mp4",
        "avc_2997.mp4",
        "avc_5994.mp4",
        "audio_late.mp4",
        "frag_unequal.mp4",
    ] {
        let Some(title) = open_title(name) else {
            continue;
        };
        let (wanted, slack) = measure_audio_lead(title.files[0].to_str().unwrap());
        assert!(title.sources[0].packets.iter().any(|p| p.pts > p.dts));
        for manifest in [".m3u8", ".mpd", ".mpd?template=number"] {
            let url = title.server.url(&format!("{}/{manifest}", title.target));
            let (found, _) = measure_audio_lead(&url);
            assert!(
                (found - wanted).abs() <= slack,
                "{url}: {found}, not {wanted}"
            );
        }
    }
}

/// Checks DASH with ffmpeg's client and both addressing modes. The client stops when the first
/// track finishes, so other tracks may lack their last packets.
fn dash(name: &str) {
    let Some(title) = open_title(name) else {
        return;
    };
    for template in ["time", "number"] {
        let target = format!("{}/.mpd?template={template}", title.target);
        let mut shifts = BTreeMap::new();
        let found = probe_streams(&title.server.url(&target));
        assert_eq!(found.len(), title.sources.len(), "{target}");
        let mut complete = 0;
        for (number, served) in found.iter().enumerate() {
            let source = find_source(&title, served);
            complete += usize::from(source.packets.len() == served.packets.len());
            let kind = format!("{number} {}", served.kind);
            shifts.insert(kind, measure_shift(source, served, 0).unwrap());
        }
        assert!(complete > 0, "{target}: no track is complete");
        assert_one_shift(&title, &shifts);
    }
}

/// Declares one test per fixture and format, so that the tests run concurrently and a failure names
/// the fixture.
macro_rules! tests_per_fixture {
    ($($form:ident { $($test:ident $name:literal)* })*) => {
        $(mod $form { $(#[test] fn $test() { super::$form($name); })* })*
    };
}

tests_per_fixture! {
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
        vfr_jitter "vfr_jitter.mp4"
        vfr_slows "vfr_slows.mp4"
        avc_anamorphic "avc_anamorphic.mp4"
        avc_captions "avc_captions.mp4"
        purposes "purposes.mp4"
        hevc "hevc.mp4"
        hevc_hev1 "hevc_hev1.mp4"
        hevc_pq "hevc_pq.mp4"
        hevc_hlg "hevc_hlg.mp4"
        hevc_open_gop "hevc_open_gop.mp4"
        hevc_open_gop_leading "hevc_open_gop_leading.mp4"
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
        vfr_jitter "vfr_jitter.mp4"
        avc_2997 "avc_2997.mp4"
        hevc "hevc.mp4"
        hevc_open_gop "hevc_open_gop.mp4"
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
