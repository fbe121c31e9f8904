//! Compares the bytes of every public format of the built-in film with recorded hashes.
//!
//! Caches and players store these bytes. Therefore, if one of the hashes changes, the change needs
//! a new packaging version and an entry in the change log.
#![allow(clippy::unwrap_used)]

use media::index::{MediaVersion, index_file_in_memory};
use media::manifest::SegmentFormat;
use media::manifest::dash::{TemplateAddressing, write_mpd};
use media::manifest::hls::{
    write_iframe_playlist, write_media_playlist, write_multivariant_playlist,
};
use media::mp4::write_index_mp4;
use media::plan::Plan;
use media::presentation::{PackagingRules, Presentation, Rendition};
use media::ts::mux_ts_or_packed_audio;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

const FILES: [&str; 5] = [
    "audio-eng.m4a",
    "audio-fra.m4a",
    "video-180p.mp4",
    "video-360p.mp4",
    "video-540p.mp4",
];

fn read_demo_file(name: &str) -> Vec<u8> {
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../media/demo");
    std::fs::read(demo.join(name)).unwrap()
}

fn build_presentation(files: &[Vec<u8>]) -> Presentation {
    let indexes = files
        .iter()
        .map(|file| Arc::new(index_file_in_memory(file).unwrap()));
    let rules = PackagingRules {
        segment_duration_ms: 6000,
    };
    Presentation::new(indexes.collect(), &rules).unwrap()
}

/// FNV-1a.
fn hash_bytes(bytes: impl AsRef<[u8]>) -> u64 {
    let bytes = bytes.as_ref().iter();
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn slice_ranges<'a>(file: &'a [u8], ranges: &[Range<u64>]) -> Vec<&'a [u8]> {
    let slice = |range: &Range<u64>| &file[range.start as usize..range.end as usize];
    ranges.iter().map(slice).collect()
}

fn assemble_plan(plan: &Plan, files: &[Vec<u8>]) -> Vec<u8> {
    let source = slice_ranges(&files[plan.file_index], &plan.source_ranges).concat();
    [plan.head.clone(), source].concat()
}

/// Wraps the second segment. The first segment starts at time 0, which could hide wrong times.
fn wrap_second_segment(title: &Presentation, rendition: &Rendition, files: &[Vec<u8>]) -> Vec<u8> {
    let units = title.plan_access_units(rendition, 1);
    let parts = slice_ranges(&files[units.file_index], &units.source_ranges);
    mux_ts_or_packed_audio(&title.track(rendition).codec, &units, &parts).unwrap()
}

#[test]
fn manifests_have_their_pinned_bytes() {
    let title = build_presentation(&FILES.map(read_demo_file));
    let video = &title.renditions[0];
    let cmaf = SegmentFormat::Cmaf;
    let playlist = |format| write_media_playlist(&title, video, format, None).unwrap();
    let texts = [
        write_multivariant_playlist(&title, cmaf, false).unwrap(),
        write_mpd(&title, TemplateAddressing::Time),
        playlist(cmaf),
        playlist(SegmentFormat::Ts),
        write_iframe_playlist(&title, video).unwrap(),
    ];
    let expected = [
        0xee80_38cb_ecda_7de5,
        0x30c8_f975_1a4f_5d98,
        0xcc6e_14c1_b7b2_7612,
        0x868e_1d27_2907_17da,
        0xb25d_a5dd_4239_3e41,
    ];
    assert_eq!(texts.map(hash_bytes), expected);
}

#[test]
fn segments_have_their_pinned_bytes() {
    let files = FILES.map(read_demo_file);
    let title = build_presentation(&files);
    let video = &title.renditions[0];
    let (_, audio) = title.find_rendition("audio_eng=48000").unwrap();
    let key = title.trick_play_key_frames(video).nth(1).unwrap();
    let segments = [
        title.init_segment(video),
        assemble_plan(&title.plan_segment(video, 1), &files),
        assemble_plan(&title.plan_key_frame(video, key), &files),
        wrap_second_segment(&title, video, &files),
        wrap_second_segment(&title, audio, &files),
    ];
    let expected = [
        0x9b44_a63d_fe3b_262a,
        0x63a0_ba3b_7c94_9673,
        0x0629_1fae_b3db_7cba,
        0x3ae7_95b4_84b8_ece2,
        0x9c81_f416_a7e3_9698,
    ];
    assert_eq!(segments.map(|segment| hash_bytes(&segment)), expected);
}

#[test]
fn index_mp4s_have_their_pinned_bytes() {
    let write = |name: &str, content_hash| {
        let mut index = index_file_in_memory(&read_demo_file(name)).unwrap();
        // The origin combines the fingerprint with a hash of media bytes in the same way.
        index.fingerprint ^= content_hash;
        index.media_version = Some(MediaVersion::ContentHash(content_hash));
        hash_bytes(write_index_mp4(&index, &format!("../lib/demo/{name}")).unwrap())
    };
    let video = write("video-540p.mp4", 0x4bca_2521_96d1_f898);
    let audio = write("audio-eng.m4a", 0xc178_4f31_444b_32fa);
    assert_eq!(video, 0x447b_fa60_7b34_6bd6);
    assert_eq!(audio, 0x659f_c4ab_b553_3229);
}
