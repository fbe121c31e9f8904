use super::super::mpd::parse_mpd;
use super::super::{ParsedManifest, RenditionKind, SegmentList, SegmentListSource, Url};
use crate::error;
use crate::time::Time;

fn mpd_url() -> Url {
    Url::parse("http://o.test/film/a.mpd").unwrap()
}

fn parse_title(text: &str) -> ParsedManifest {
    parse_mpd(&mpd_url(), text.as_bytes()).unwrap()
}

fn segments_of(title: &ParsedManifest, n: usize) -> &SegmentList {
    match &title.renditions[n].segment_sources[0] {
        SegmentListSource::Segments(segments) => segments,
        other => panic!("{other:?}"),
    }
}

/// Returns an MPD with one video representation, whose adaptation set also contains `inside`.
fn video_mpd(inside: &str) -> String {
    format!(
        "<MPD type='static' mediaPresentationDuration='PT10S'><Period><AdaptationSet contentType='video'>{inside}\
         <Representation id='v1' bandwidth='900000' width='640' height='360' frameRate='24000/1001' codecs='avc1.64001e'/>\
         </AdaptationSet></Period></MPD>"
    )
}

#[test]
fn timelines_are_expanded_exactly() {
    let title = parse_title(&video_mpd(
        "<SegmentTemplate timescale='90000' presentationTimeOffset='9000' initialization='$RepresentationID$/i.mp4' media='$RepresentationID$/$Time$-$Number%03d$.m4s'>\
         <SegmentTimeline><S t='9000' d='180000' r='2'/><S d='90000'/><S t='640000' d='90000' r='-1'/></SegmentTimeline></SegmentTemplate>",
    ));
    let rendition = &title.renditions[0];
    assert_eq!(
        (rendition.kind, rendition.resolution),
        (RenditionKind::Video, Some((640, 360)))
    );
    assert!((rendition.frame_rate.unwrap() - 23.976).abs() < 1e-3);
    let found = segments_of(&title, 0);
    let starts: Vec<i64> = (0..found.len())
        .map(|n| found.start_time(n).round_to(90_000))
        .collect();
    // The last entry repeats until the end of the period. The period ends after 10 s, at tick
    // 900000 of the presentation and tick 909000 of the media.
    assert_eq!(
        starts,
        [0, 180_000, 360_000, 540_000, 631_000, 721_000, 811_000]
    );
    let part = found.segment_resource(1).unwrap().unwrap();
    assert_eq!(part.url.as_str(), "http://o.test/film/v1/189000-002.m4s");
    let init = found
        .init_resource(found.init_index(0).unwrap())
        .unwrap()
        .unwrap();
    assert_eq!(init.url.as_str(), "http://o.test/film/v1/i.mp4");
}

#[test]
fn one_duration_fills_the_period() {
    let title = parse_title(&video_mpd(
        "<SegmentTemplate timescale='1000' duration='4000' startNumber='0' media='$Number$.m4s'/>",
    ));
    let found = segments_of(&title, 0);
    assert_eq!(
        (found.len(), found.last_segment_end()),
        (3, Time::from_ms(10_000))
    );
    assert_eq!(found.duration(2), Time::from_ms(2000));
    assert_eq!(
        found.segment_resource(2).unwrap().unwrap().url.path(),
        "/film/2.m4s"
    );
    assert_eq!(found.init_index(0), None);
}

#[test]
fn bases_and_templates_are_inherited() {
    let title = parse_title(
        "<d:MPD xmlns:d='urn:mpeg:dash:schema:mpd:2011' mediaPresentationDuration='PT4S'><d:BaseURL>x/</d:BaseURL><d:Period><d:BaseURL>y/</d:BaseURL>\
         <d:SegmentTemplate timescale='10' duration='20'/><d:AdaptationSet mimeType='audio/mp4' lang='en'>\
         <d:SegmentTemplate media='$Number$.m4s' startNumber='5'/><d:Representation id='a' bandwidth='1'><d:BaseURL>http://cdn.test/z/</d:BaseURL></d:Representation>\
         <d:Representation id='b' bandwidth='2'><d:SegmentTemplate timescale='1' duration='1'/></d:Representation></d:AdaptationSet></d:Period></d:MPD>",
    );
    assert_eq!(title.renditions[0].language.as_deref(), Some("en"));
    let (a, b) = (segments_of(&title, 0), segments_of(&title, 1));
    assert_eq!((a.len(), b.len()), (2, 4));
    assert_eq!(
        a.segment_resource(0).unwrap().unwrap().url.as_str(),
        "http://cdn.test/z/5.m4s"
    );
    assert_eq!(
        b.segment_resource(3).unwrap().unwrap().url.as_str(),
        "http://o.test/film/x/y/8.m4s"
    );
}

#[test]
fn segment_lists_and_single_files_are_parsed() {
    let list = parse_title(&video_mpd(
        "<SegmentList timescale='1' duration='5'><Initialization sourceURL='f.mp4' range='0-99'/>\
         <SegmentURL media='f.mp4' mediaRange='100-199'/><SegmentURL media='f.mp4' mediaRange='200-299'/></SegmentList>",
    ));
    let found = segments_of(&list, 0);
    assert_eq!(
        (
            found.len(),
            found.segment_resource(1).unwrap().unwrap().range
        ),
        (2, Some(200..300))
    );
    assert_eq!(found.init_resource(0).unwrap().unwrap().range, Some(0..100));

    let whole = parse_title(&video_mpd("<BaseURL>f.mp4</BaseURL>"));
    let found = segments_of(&whole, 0);
    assert_eq!(
        (found.len(), found.last_segment_end()),
        (1, Time::from_ms(10_000))
    );
    assert_eq!(found.segment_resource(0).unwrap().unwrap().range, None);
}

#[test]
fn a_sidx_gives_byte_ranges() {
    let title = parse_title(&video_mpd(
        "<BaseURL>f.mp4</BaseURL><SegmentBase timescale='1000' presentationTimeOffset='500' indexRange='700-755'><Initialization range='0-699'/></SegmentBase>",
    ));
    let SegmentListSource::Sidx(index) = &title.renditions[0].segment_sources[0] else {
        panic!()
    };
    assert_eq!(
        (index.index_resource.range.clone(), index.init_range.clone()),
        (Some(700..756), Some(0..700))
    );
    let mut sidx = vec![0, 0, 0, 56];
    sidx.extend(b"sidx");
    let words = |words: &[u32]| {
        words
            .iter()
            .flat_map(|word| word.to_be_bytes())
            .collect::<Vec<u8>>()
    };
    // The fields are version 0, track 1, 1000 ticks per second, earliest presentation time 500,
    // first offset 10 bytes, and two references.
    sidx.extend(words(&[
        0,
        1,
        1000,
        500,
        10,
        2,
        4000,
        2000,
        0x9000_0000,
        5000,
        1500,
        0x9000_0000,
    ]));
    let found = index.parse_segments(&sidx).unwrap();
    assert_eq!(found.start_time(1), Time::from_ms(2000));
    assert_eq!(found.last_segment_end(), Time::from_ms(3500));
    assert_eq!(
        found.segment_resource(0).unwrap().unwrap().range,
        Some(766..4766)
    );
    assert_eq!(
        found.segment_resource(1).unwrap().unwrap().range,
        Some(4766..9766)
    );
    assert!(index.parse_segments(&sidx[..50]).is_err() && index.parse_segments(b"").is_err());
    // A reference to a further `sidx` is refused.
    sidx[32] |= 0x80;
    assert_eq!(
        index.parse_segments(&sidx).unwrap_err().kind,
        error::ErrorKind::Unsupported
    );
}

#[test]
fn periods_are_joined_by_id_or_bandwidth() {
    let set = |ids: &[(&str, u32)], media: &str| {
        let template = format!(
            "<SegmentTemplate timescale='1' duration='2' media='{media}-$RepresentationID$-$Number$'/>"
        );
        let inside: String = ids
            .iter()
            .map(|(id, bandwidth)| format!("<Representation id='{id}' bandwidth='{bandwidth}'/>"))
            .collect();
        format!("<AdaptationSet contentType='video'>{template}{inside}</AdaptationSet>")
    };
    let (first, second) = (
        set(&[("a", 100), ("b", 900)], "p1"),
        set(&[("c", 800), ("a", 90)], "p2"),
    );
    let title = parse_title(&format!(
        "<MPD><Period duration='PT4S'>{first}</Period><Period start='PT4S' duration='PT2S'>{second}</Period></MPD>"
    ));
    let last = |n: usize| match &title.renditions[n].segment_sources[1] {
        SegmentListSource::Segments(segments) => (
            segments.start_time(0),
            segments
                .segment_resource(0)
                .unwrap()
                .unwrap()
                .url
                .path()
                .to_string(),
        ),
        other => panic!("{other:?}"),
    };
    assert_eq!(title.renditions.len(), 2);
    assert_eq!(last(0), (Time::from_ms(4000), "/film/p2-a-1".to_string()));
    assert_eq!(last(1).1, "/film/p2-c-1");
}

#[test]
fn trick_modes_images_and_links_are_ignored() {
    let title = parse_title(
        "<MPD mediaPresentationDuration='PT2S'><Period><AdaptationSet contentType='video'>\
         <EssentialProperty schemeIdUri='http://dashif.org/guidelines/trickmode' value='1'/><Representation id='t'/></AdaptationSet>\
         <AdaptationSet mimeType='image/jpeg'><Representation id='i'/></AdaptationSet>\
         <AdaptationSet mimeType='video/mp4'><Representation id='v'><BaseURL>v.mp4</BaseURL></Representation></AdaptationSet></Period>\
         <Period href='http://x/' xmlns:xlink='x'/></MPD>",
    );
    assert_eq!((title.renditions.len(), title.notes.len()), (1, 3));
}

const MALFORMED: error::ErrorKind = error::ErrorKind::Malformed;
const LARGE: error::ErrorKind = error::ErrorKind::TooLarge;

/// Returns invalid documents, each with the kind of the expected error and a part of its message.
fn faulty_documents() -> Vec<(String, error::ErrorKind, &'static str)> {
    let timeline = |entries: &str| {
        video_mpd(&format!(
            "<SegmentTemplate media='$Time$'><SegmentTimeline>{entries}</SegmentTimeline></SegmentTemplate>"
        ))
    };
    vec![
        ("garbage".to_string(), MALFORMED, "not XML"),
        ("<html></html>".to_string(), MALFORMED, "MPD is expected"),
        (
            "<MPD/>".to_string(),
            error::ErrorKind::Empty,
            "without a Period",
        ),
        (
            "<MPD><Period/></MPD>".to_string(),
            error::ErrorKind::Empty,
            "representation",
        ),
        (
            timeline("<S t='0' d='1' r='999999999'/>"),
            LARGE,
            "1000000000 segments",
        ),
        (
            timeline("<S t='0' d='1' r='99999999999999999999'/>"),
            MALFORMED,
            "S@r",
        ),
        (timeline("<S t='0' d='0' r='-1'/>"), MALFORMED, "S@d"),
        (timeline("<S t='0'/>"), MALFORMED, "S without d"),
        (
            timeline("<S t='18446744073709551615' d='9'/>"),
            MALFORMED,
            "64 bits",
        ),
        (
            video_mpd("<SegmentTemplate timescale='1000000000' duration='1' media='a'/>"),
            LARGE,
            "10000000000 segments",
        ),
        (
            video_mpd("<SegmentTemplate duration='0' media='a'/>"),
            MALFORMED,
            "duration of 0",
        ),
        (
            video_mpd("<SegmentTemplate timescale='0' duration='1' media='a'/>"),
            MALFORMED,
            "timescale",
        ),
        (
            video_mpd("<SegmentTemplate duration='1' media='$Nonsense$'/>"),
            MALFORMED,
            "$Nonsense$",
        ),
        (
            video_mpd("<SegmentTemplate duration='1'/>"),
            MALFORMED,
            "without media",
        ),
        (
            video_mpd("<BaseURL>file:///etc/</BaseURL>"),
            error::ErrorKind::Unsupported,
            "http",
        ),
    ]
}

#[test]
fn invalid_mpds_are_refused_with_a_reason() {
    for (text, kind, message) in faulty_documents() {
        let error = parse_mpd(&mpd_url(), text.as_bytes()).unwrap_err();
        assert_eq!(error.kind, kind, "{text}: {error}");
        assert!(error.to_string().contains(message), "{text}: {error}");
    }
}

#[test]
fn the_segment_limit_covers_the_whole_document() {
    let representations: String = (0..20)
        .map(|n| format!("<Representation id='{n}'/>"))
        .collect();
    let text = format!(
        "<MPD><Period><AdaptationSet contentType='video'><SegmentTemplate media='$Time$'><SegmentTimeline><S t='0' d='1' r='99999'/></SegmentTimeline></SegmentTemplate>{representations}</AdaptationSet></Period></MPD>"
    );
    assert_eq!(
        parse_mpd(&mpd_url(), text.as_bytes()).unwrap_err().kind,
        error::ErrorKind::TooLarge
    );
}

#[test]
fn copies_of_a_representation_for_several_renditions_count_as_segments() {
    let title = |renditions: usize| {
        let ids: String = (0..renditions)
            .map(|n| format!("<Representation id='{n}'/>"))
            .collect();
        let period = |template: &str, ids: &str| {
            format!(
                "<Period duration='PT1S'><AdaptationSet contentType='video'><SegmentTemplate media='$Time$' {template}/>{ids}</AdaptationSet></Period>"
            )
        };
        let first = period("duration='1'", &ids);
        let second = period("timescale='200000' duration='1'", "<Representation/>");
        parse_mpd(&mpd_url(), format!("<MPD>{first}{second}</MPD>").as_bytes())
    };
    // The second period has one representation of 200,000 segments.
    assert_eq!(title(4).unwrap().renditions.len(), 4);
    let error = title(6).unwrap_err();
    assert_eq!(error.kind, LARGE);
    assert!(error.message.contains("at most 1000000"), "{error}");
}

#[test]
fn representations_are_counted_before_they_are_parsed() {
    let legal = "<Representation><BaseURL>v.mp4</BaseURL></Representation>".repeat(4096);
    let text = format!(
        "<MPD><Period><AdaptationSet contentType='video'>{legal}<Representation bandwidth='x'/></AdaptationSet></Period></MPD>"
    );
    let error = parse_mpd(&mpd_url(), text.as_bytes()).unwrap_err();
    assert_eq!(error.kind, LARGE, "{error}");
    assert!(error.message.contains("more than 4096 representations"));
}
