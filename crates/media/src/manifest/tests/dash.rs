//! Tests of DASH MPDs. Another test validates MPDs against the schema with xmllint.

use super::{audio_track, build_film, build_title, video_track};
use crate::fixtures::{self, arbitrary_title};
use crate::index::Track;
use crate::manifest::dash::{TemplateAddressing, write_mpd};
use crate::presentation::{PackagingRules, Presentation, Rendition};
use dash_mpd_core::{AdaptationSet, MPD, SegmentTemplate};
use proptest::prelude::*;
use std::time::Duration;

fn parse_mpd_text(text: &str) -> MPD {
    dash_mpd_core::parse(text).expect("an MPD")
}

fn adaptation_sets(mpd: &MPD) -> &[AdaptationSet] {
    assert_eq!(mpd.periods.len(), 1);
    &mpd.periods[0].adaptations
}

/// Expands a SegmentTimeline to start times and durations.
fn timeline_entries(template: &SegmentTemplate) -> Vec<(u64, u64)> {
    let (mut at, mut segments) = (0, Vec::new());
    for s in &template
        .SegmentTimeline
        .as_ref()
        .expect("a timeline")
        .segments
    {
        at = s.t.unwrap_or(at);
        for _ in 0..=s.r.unwrap_or(0) {
            segments.push((at, s.d));
            at += s.d;
        }
    }
    segments
}

#[test]
fn a_ladder_with_two_languages_is_listed() {
    let film = build_film();
    let mpd = parse_mpd_text(&write_mpd(&film, TemplateAddressing::Time));
    assert_eq!(mpd.mpdtype.as_deref(), Some("static"));
    assert_eq!(mpd.mediaPresentationDuration, Some(Duration::from_secs(20)));
    assert_eq!(
        mpd.base_url[0].base,
        format!("{}/", film.segment_folder_name())
    );
    let [video, english, french] = adaptation_sets(&mpd) else {
        panic!("three sets")
    };
    assert_eq!(video.representations.len(), 3);
    assert_eq!((video.maxWidth, video.maxHeight), (Some(1280), Some(720)));
    assert_eq!(video.par.as_deref(), Some("16:9"));
    let first = &video.representations[0];
    assert_eq!(first.id.as_deref(), Some("video=2053000"));
    assert_eq!(first.frameRate.as_deref(), Some("25"));
    assert_eq!(first.sar.as_deref(), Some("1:1"));
    assert_eq!(first.bandwidth, Some(film.renditions[0].bandwidth.peak));
    let langs = [english, french].map(|set| set.lang.as_deref());
    assert_eq!(langs, [Some("en"), Some("fr")]);
    assert_eq!(english.selectionPriority, Some(2));
    let channels = &english.AudioChannelConfiguration[0];
    assert_eq!(channels.value.as_deref(), Some("1"));
    let rate = &english.representations[0].audioSamplingRate;
    assert_eq!(rate.as_deref(), Some("48000"));
    assert!(
        adaptation_sets(&mpd)
            .iter()
            .all(|set| set.Role[0].value.as_deref() == Some("main"))
    );
}

#[test]
fn wide_colour_is_an_essential_property() {
    let mut hdr = video_track(20_000);
    hdr.codec = fixtures::build_hevc_pq_test_codec();
    let text = write_mpd(
        &build_title(vec![vec![video_track(9_000)], vec![hdr]]),
        TemplateAddressing::Time,
    );
    let mpd = parse_mpd_text(&text);
    let [sdr, hdr] = adaptation_sets(&mpd) else {
        panic!("a set for each codec")
    };
    assert_eq!(
        (
            sdr.essential_property.len(),
            sdr.supplemental_property.len()
        ),
        (0, 3)
    );
    let values: Vec<_> = hdr
        .essential_property
        .iter()
        .map(|p| p.value.as_deref())
        .collect();
    assert_eq!(values, [Some("9"), Some("16"), Some("9")]);
}

#[test]
fn commentary_is_an_alternate_with_its_name() {
    let commentary = Track {
        name: Some("<Director> & \"crew\"".into()),
        ..audio_track("eng", 300)
    };
    let text = write_mpd(
        &build_title(vec![vec![
            video_track(9_000),
            audio_track("eng", 300),
            commentary,
        ]]),
        TemplateAddressing::Time,
    );
    let mpd = parse_mpd_text(&text);
    let set = &adaptation_sets(&mpd)[2];
    assert_eq!(set.Role[0].value.as_deref(), Some("alternate"));
    assert_eq!(set.Label[0].content, "<Director> & \"crew\"");
}

#[test]
fn qualities_of_one_programme_share_a_set() {
    let files = vec![vec![audio_track("eng", 300), audio_track("eng", 900)]];
    let mpd = parse_mpd_text(&write_mpd(&build_title(files), TemplateAddressing::Time));
    let ids: Vec<_> = adaptation_sets(&mpd)[0]
        .representations
        .iter()
        .map(|r| r.id.as_deref())
        .collect();
    assert_eq!(ids, [Some("audio_eng=338000"), Some("audio_eng=113000")]);
}

#[test]
fn numbers_count_from_one() {
    let film = build_film();
    let text = write_mpd(&film, TemplateAddressing::Number);
    let mpd = parse_mpd_text(&text);
    let template = adaptation_sets(&mpd)[0]
        .SegmentTemplate
        .as_ref()
        .expect("a template");
    assert_eq!(
        template.media.as_deref(),
        Some("$RepresentationID$/n/$Number$.m4s")
    );
    assert_eq!(template.startNumber, Some(1));
}

#[test]
fn open_gops_have_no_access_point_of_type_one() {
    let row = |n: u32| {
        let offset = match n % 50 {
            0 if n > 0 => 2,
            1 if n > 1 => 0,
            _ => 1,
        };
        (512, offset * 512, 100, n.is_multiple_of(50))
    };
    let rows: Vec<_> = (0..500).map(row).collect();
    let open = fixtures::build_track(
        fixtures::build_avc_test_codec(640, 360),
        12_800,
        -512,
        &rows,
    );
    let film = build_title(vec![vec![open, audio_track("eng", 300)]]);
    let text = write_mpd(&film, TemplateAddressing::Time);
    let types: Vec<_> = adaptation_sets(&parse_mpd_text(&text))
        .iter()
        .map(|set| set.startWithSAP)
        .collect();
    assert_eq!(types, [Some(3), Some(1)]);
}

fn segment_template_of<'a>(mpd: &'a MPD, rendition: &Rendition) -> &'a SegmentTemplate {
    let set = adaptation_sets(mpd).iter().find_map(|set| {
        let has_name = |r: &&dash_mpd_core::Representation| r.id.as_ref() == Some(&rendition.name);
        let representation = set.representations.iter().find(has_name)?;
        representation
            .SegmentTemplate
            .as_ref()
            .or(set.SegmentTemplate.as_ref())
    });
    set.expect("every rendition is listed")
}

proptest! {
    #[test]
    fn timelines_match_the_served_segments(files in arbitrary_title(), segment_ms in 100u32..4000) {
        let Ok(title) = Presentation::new(files, &PackagingRules { segment_duration_ms: segment_ms }) else { return Ok(()) };
        let mpd = parse_mpd_text(&write_mpd(&title, TemplateAddressing::Time));
        let listed: usize = adaptation_sets(&mpd).iter().map(|set| set.representations.len()).sum();
        prop_assert_eq!(listed, title.renditions.len());
        for rendition in &title.renditions {
            let template = segment_template_of(&mpd, rendition);
            let timescale = title.track(rendition).timescale;
            prop_assert_eq!(template.timescale, Some(u64::from(timescale)));
            prop_assert_eq!(template.presentationTimeOffset.unwrap_or(0) as i64, title.presentation_time_offset.round_to(timescale));
            let served: Vec<(u64, u64)> = (0..rendition.segment_count())
                .map(|n| (title.segment_start(rendition, n), title.segment_duration_ticks(rendition, n)))
                .collect();
            prop_assert_eq!(timeline_entries(template), served);
        }
    }
}
