//! Tests that written IMSC documents are read back.

use super::*;
use crate::fixtures::{self, build_index_of_tracks};
use crate::manifest::dash::{TemplateAddressing, write_mpd};
use crate::manifest::hls::{write_multivariant_playlist, write_text_playlist};
use crate::manifest::{HlsTextForm, SegmentFormat};
use crate::presentation::{CmafHlsTextForm, DashTextForm, PackagingRules, Presentation};
use std::sync::Arc;

fn cues(text: &str) -> CueList {
    parse_vtt(text, &mut Vec::new())
}

/// Builds a film of 20 seconds with these cues, in segments of 6 seconds.
fn film(list: &CueList) -> Presentation {
    let track = fixtures::build_video_track(20, 50, 1000);
    let rules = PackagingRules {
        segment_duration_ms: 6000,
    };
    let film = Presentation::new(vec![build_index_of_tracks(vec![track])], &rules).unwrap();
    let rendition = TextRendition {
        language: "en".to_owned(),
        cues: list.clone(),
        ..TextRendition::default()
    };
    film.with_text(Arc::new(TextSet::new(vec![rendition])))
}

/// Returns the document of a segment, which is the only sample of the segment.
fn imsc_document_of_segment(film: &Presentation, list: &CueList, n: usize) -> String {
    let segment = write_imsc_segment(&film.text_segment_times().unwrap(), Some("en"), list, n);
    let at = segment.windows(4).position(|name| name == b"mdat").unwrap();
    String::from_utf8(segment[at + 4..].to_vec()).unwrap()
}

#[test]
fn documents_of_segments_contain_their_part_of_a_cue() {
    let list =
        cues("WEBVTT\n\n00:01.000 --> 00:13.500\nlong\n\n00:02.000 --> 00:03.000 line:0\nshort\n");
    let film = film(&list);
    let zero = film
        .text_segment_times()
        .unwrap()
        .served_film_start()
        .round_to(1000);
    let mut shown = Vec::new();
    for n in 0..film.text_segment_times().unwrap().segment_count() {
        let mut problems = Vec::new();
        let read = parse_ttml(
            &imsc_document_of_segment(&film, &list, n),
            i64::MAX,
            &mut problems,
        );
        assert!(
            problems
                .iter()
                .all(|problem| matches!(problem, CueProblem::Overlapping(_)))
        );
        let times = |cue: &Cue| (cue.payload.clone(), cue.start_ms - zero, cue.end_ms - zero);
        shown.extend(read.cues().iter().map(times));
    }
    let parts: Vec<_> = shown.iter().filter(|(text, ..)| text == "long").collect();
    assert!(parts.len() == 3, "{shown:?}");
    assert!(
        parts.windows(2).all(|pair| pair[0].2 == pair[1].1),
        "{shown:?}"
    );
    assert_eq!((parts[0].1, parts[2].2), (1000, 13_500));
    assert!(
        shown.contains(&("short".to_owned(), 2000, 3000)),
        "{shown:?}"
    );
}

#[test]
fn markup_is_written_as_spans_and_read_back() {
    let text = "WEBVTT\n\n00:01.000 --> 00:02.000\n<b>a & b</b> <i>c<u>d</i>e\n<c.yellow.x>&lt;f&gt;&#33;</c> &unknown; <v Bob>\"g\"\n";
    let list = cues(text);
    let read = parse_ttml(
        &imsc_document_of_segment(&film(&list), &list, 0),
        i64::MAX,
        &mut Vec::new(),
    );
    assert_eq!(
        read.cues()[0].payload,
        "<b>a &amp; b</b> <i>c<u>d</u></i>e\n<c.yellow>&lt;f>!</c> &amp;unknown; \"g\""
    );
}

#[test]
fn hostile_cue_text_is_well_formed() {
    let payloads = [
        "<",
        "&",
        "</b></i>",
        "<b><b><b",
        "&#x0;&#99999999999;",
        "<c.red><lang en>x",
        "]]>",
        "<ruby>a<rt>b",
    ];
    let deep = "<b>".repeat(100);
    for payload in payloads.into_iter().chain([&*deep]) {
        let list = CueList::from_cues(
            String::new(),
            vec![Cue {
                end_ms: 1000,
                payload: format!("{payload}y"),
                ..Cue::default()
            }],
            &mut Vec::new(),
        );
        let document = imsc_document_of_segment(&film(&list), &list, 0);
        assert!(
            crate::xml::parse_xml_document(&document).is_ok(),
            "{document}"
        );
    }
}

#[test]
fn manifests_declare_the_form_of_the_text() {
    let list = cues("WEBVTT\n\n00:01.000 --> 00:02.000\na\n");
    let mut film = film(&list);
    film.manifest_rules.hls_text = CmafHlsTextForm::Imsc;
    film.manifest_rules.dash_text = DashTextForm::Imsc;
    let hls = write_multivariant_playlist(&film, SegmentFormat::Cmaf, false).unwrap();
    assert!(
        hls.contains("/text=en/imsc.m3u8\"") && hls.contains(",stpp.ttml.im1t\""),
        "{hls}"
    );
    let ts = write_multivariant_playlist(&film, SegmentFormat::Ts, false).unwrap();
    assert!(
        ts.contains("/text=en/ts.m3u8\"") && !ts.contains("stpp"),
        "{ts}"
    );
    let playlist = write_text_playlist(&film, HlsTextForm::Imsc).unwrap();
    assert!(
        playlist.contains("#EXT-X-MAP:URI=\"init.imsc.mp4\"\n") && playlist.contains(".imsc.m4s\n"),
        "{playlist}"
    );
    let mpd = write_mpd(&film, TemplateAddressing::Number);
    for part in [
        "codecs=\"stpp.ttml.im1t\"",
        "initialization=\"$RepresentationID$/init.imsc.mp4\"",
        "media=\"$RepresentationID$/n/$Number$.imsc.m4s\"",
    ] {
        assert!(mpd.contains(part), "{part}: {mpd}");
    }
    film.manifest_rules.dash_text = DashTextForm::File;
    let mpd = write_mpd(&film, TemplateAddressing::Time);
    assert!(
        mpd.contains("mimeType=\"text/vtt\"") && mpd.contains("/text=en/all.vtt</BaseURL>"),
        "{mpd}"
    );
}
