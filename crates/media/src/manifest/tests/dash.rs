//! DASH MPDs. Validity against the schema is judged elsewhere, with xmllint.

use super::{audio, film, title, video};
use crate::fixtures::{self, any_title};
use crate::index::Track;
use crate::manifest::dash::{Template, mpd};
use crate::presentation::{Presentation, Rendition, Rules};
use dash_mpd_core::{AdaptationSet, MPD, SegmentTemplate};
use proptest::prelude::*;
use std::time::Duration;

fn parse(text: &str) -> MPD {
    dash_mpd_core::parse(text).expect("an MPD")
}

fn sets(mpd: &MPD) -> &[AdaptationSet] {
    assert_eq!(mpd.periods.len(), 1);
    &mpd.periods[0].adaptations
}

/// Start times and durations that a SegmentTimeline says.
fn timeline(template: &SegmentTemplate) -> Vec<(u64, u64)> {
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
fn a_ladder_with_two_languages() {
    let film = film();
    let mpd = parse(&mpd(&film, Template::Time));
    assert_eq!(mpd.mpdtype.as_deref(), Some("static"));
    assert_eq!(mpd.mediaPresentationDuration, Some(Duration::from_secs(20)));
    assert_eq!(mpd.base_url[0].base, format!("{}/", film.set_name()));
    let [video, english, french] = sets(&mpd) else {
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
        sets(&mpd)
            .iter()
            .all(|set| set.Role[0].value.as_deref() == Some("main"))
    );
}

#[test]
fn wide_colour_is_essential() {
    let mut hdr = video(20_000);
    hdr.codec = fixtures::hevc();
    let text = mpd(&title(vec![vec![video(9_000)], vec![hdr]]), Template::Time);
    let mpd = parse(&text);
    let [sdr, hdr] = sets(&mpd) else {
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
        ..audio("eng", 300)
    };
    let text = mpd(
        &title(vec![vec![video(9_000), audio("eng", 300), commentary]]),
        Template::Time,
    );
    let mpd = parse(&text);
    let set = &sets(&mpd)[2];
    assert_eq!(set.Role[0].value.as_deref(), Some("alternate"));
    assert_eq!(set.Label[0].content, "<Director> & \"crew\"");
}

#[test]
fn qualities_of_one_programme_share_a_set() {
    let files = vec![vec![audio("eng", 300), audio("eng", 900)]];
    let mpd = parse(&mpd(&title(files), Template::Time));
    let ids: Vec<_> = sets(&mpd)[0]
        .representations
        .iter()
        .map(|r| r.id.as_deref())
        .collect();
    assert_eq!(ids, [Some("audio_eng=338000"), Some("audio_eng=113000")]);
}

#[test]
fn numbers_count_from_one() {
    let film = film();
    let text = mpd(&film, Template::Number);
    let mpd = parse(&text);
    let template = sets(&mpd)[0].SegmentTemplate.as_ref().expect("a template");
    assert_eq!(
        template.media.as_deref(),
        Some("$RepresentationID$/n/$Number$.m4s")
    );
    assert_eq!(template.startNumber, Some(1));
}

fn said<'a>(mpd: &'a MPD, rendition: &Rendition) -> &'a SegmentTemplate {
    let set = sets(mpd).iter().find_map(|set| {
        let of = |r: &&dash_mpd_core::Representation| r.id.as_ref() == Some(&rendition.name);
        let representation = set.representations.iter().find(of)?;
        representation
            .SegmentTemplate
            .as_ref()
            .or(set.SegmentTemplate.as_ref())
    });
    set.expect("every rendition is listed")
}

proptest! {
    #[test]
    fn timelines_say_what_is_served(files in any_title(), segment_ms in 100u32..4000) {
        let Ok(title) = Presentation::new(files, &Rules { segment_ms }) else { return Ok(()) };
        let mpd = parse(&mpd(&title, Template::Time));
        let listed: usize = sets(&mpd).iter().map(|set| set.representations.len()).sum();
        prop_assert_eq!(listed, title.renditions.len());
        for rendition in &title.renditions {
            let template = said(&mpd, rendition);
            let timescale = title.track(rendition).timescale;
            prop_assert_eq!(template.timescale, Some(u64::from(timescale)));
            prop_assert_eq!(template.presentationTimeOffset.unwrap_or(0) as i64, title.zero.round_to(timescale));
            let served: Vec<(u64, u64)> = (0..rendition.segments())
                .map(|n| (title.segment_start(rendition, n), title.segment_ticks(rendition, n)))
                .collect();
            prop_assert_eq!(timeline(template), served);
        }
    }
}
