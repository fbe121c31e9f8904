use super::*;
use proptest::prelude::*;

fn key(path: &str) -> Key {
    Key::parse(path).unwrap()
}

fn manifest(title: &str, manifest: Manifest) -> Request {
    Request::Manifest {
        title: key(title),
        manifest,
        file: None,
    }
}

const SET: Set = Set {
    segment_ms: 6000,
    version: 0x9f,
};

fn segment(title: &str, part: Part) -> Request {
    Request::Segment(Segment {
        title: key(title),
        set: SET,
        rendition: "video=1".into(),
        part,
    })
}

/// As parsed, but for the file that might be there instead.
fn read(url: &str) -> Result<Request, Bad> {
    let (path, query) = url
        .split_once('?')
        .map_or((url, None), |(p, q)| (p, Some(q)));
    Ok(match parse(path, query)? {
        Request::Manifest {
            title, manifest, ..
        } => Request::Manifest {
            title,
            manifest,
            file: None,
        },
        other => other,
    })
}

#[test]
fn what_urls_of_texts_mean() {
    use Manifest::{Dash, Description, KeyFrames, Media, Multivariant};
    let video = || "video=1".to_owned();
    for (url, request) in [
        ("/", Request::Page),
        ("/healthz", Request::Health),
        ("/readyz", Request::Ready),
        ("/metrics", Request::Metrics),
        ("/-/library.json", Request::Library),
        ("/%68ealthz", Request::Health),
        ("/-/a%20b.js", Request::Asset("a b.js".into())),
        ("/-/vendor/hls.js", Request::Asset("vendor/hls.js".into())),
        ("/a.mp4", Request::File(key("a.mp4"))),
        ("/.key", Request::Key(key(""))),
        ("/a/b%20c.mp4/.key", Request::Key(key("a/b c.mp4"))),
        ("/a/b%20c.mp4?x=1", Request::File(key("a/b c.mp4"))),
        (
            "/a.mp4/.m3u8",
            manifest("a.mp4", Multivariant(Packing::Cmaf)),
        ),
        (
            "/a.mp4/.m3u8?x&format=ts&y=1",
            manifest("a.mp4", Multivariant(Packing::Ts)),
        ),
        (
            "/a.mp4/any.m3u8",
            manifest("a.mp4", Multivariant(Packing::Cmaf)),
        ),
        (
            "/hls/any.m3u8",
            manifest("hls", Multivariant(Packing::Cmaf)),
        ),
        ("/.m3u8", manifest("", Multivariant(Packing::Cmaf))),
        (
            "/a/6000-000000000000009f/video=1/hls.m3u8",
            manifest("a", Media(SET, Packing::Cmaf, video())),
        ),
        (
            "/a/6000-000000000000009f/video%3D1/hls.m3u8",
            manifest("a", Media(SET, Packing::Cmaf, video())),
        ),
        (
            "/a/6000-000000000000009f/video=1/ts.m3u8",
            manifest("a", Media(SET, Packing::Ts, video())),
        ),
        (
            "/6000-000000000000009f/video=1/hls.m3u8",
            manifest("", Media(SET, Packing::Cmaf, video())),
        ),
        (
            "/a/6000-000000000000009f/video=1/keyframes.m3u8",
            manifest("a", KeyFrames(SET, video())),
        ),
        ("/a/.mpd", manifest("a", Dash(Addressing::Time))),
        (
            "/a/b.mpd?template=number",
            manifest("a", Dash(Addressing::Number)),
        ),
        ("/a/.json", manifest("a", Description)),
    ] {
        assert_eq!(read(url), Ok(request), "{url}");
    }
}

#[test]
fn a_key_has_one_spelling() {
    let guarded = |url: &str| url.ends_with("/.key");
    assert!(guarded("/a%20b/.key") && read("/a%20b/.key").is_ok());
    for url in [
        "/a/%2Ekey",
        "/a/.ke%79",
        "/a/%2ekey",
        "/a/.key?x",
        "/a/.key?",
        "/.k%65y",
    ] {
        assert_eq!(read(url), Err(Bad::Nothing), "{url}");
    }
}

#[test]
fn what_urls_of_media_mean() {
    for (url, request) in [
        (
            "/a/6000-000000000000009f/video=1/init.mp4",
            segment("a", Part::Init),
        ),
        (
            "/6000-000000000000009f/video=1/init.mp4",
            segment("", Part::Init),
        ),
        (
            "/a/b/6000-000000000000009f/video=1/0.m4s?q",
            segment("a/b", Part::At(0, Form::Cmaf)),
        ),
        (
            "/a/6000-000000000000009f/video=1/7.ts",
            segment("a", Part::At(7, Form::Ts)),
        ),
        (
            "/a/6000-000000000000009f/video=1/n/1.m4s",
            segment("a", Part::Number(1)),
        ),
        (
            "/a/6000-000000000000009f/video=1/key/5.m4s",
            segment("a", Part::KeyFrame(5)),
        ),
        // A tree of ready-made segments.
        ("/ready/init.mp4", Request::File(key("ready/init.mp4"))),
        ("/ready/n/1.m4s", Request::File(key("ready/n/1.m4s"))),
        ("/ready/v-1.m3u8", Request::File(key("ready/v-1.m3u8"))),
        ("/hls/v=1.m3u8", Request::File(key("hls/v=1.m3u8"))),
    ] {
        assert_eq!(read(url), Ok(request), "{url}");
    }
}

#[test]
fn what_urls_do_not_mean() {
    const SET: &str = "6000-000000000000009f";
    for (url, bad) in [
        ("", Bad::Path(BadKey::Empty)),
        ("*", Bad::Path(BadKey::Empty)),
        ("//a.mp4", Bad::Path(BadKey::Empty)),
        ("/a//b", Bad::Path(BadKey::Empty)),
        ("/a/", Bad::Nothing),
        ("/a/../b", Bad::Path(BadKey::Dots)),
        ("/a/%2e%2e/b", Bad::Path(BadKey::Dots)),
        ("/%2e%2E/.m3u8", Bad::Path(BadKey::Dots)),
        ("/-/../x", Bad::Path(BadKey::Dots)),
        ("/a%2fb", Bad::Path(BadKey::Character)),
        ("/a%00.mp4", Bad::Path(BadKey::Character)),
        ("/a%5Cb", Bad::Path(BadKey::Character)),
        ("/.git/config", Bad::Path(BadKey::Hidden)),
        ("/a/.b.m3u8", Bad::Path(BadKey::Hidden)),
        ("/a%00.m3u8", Bad::Path(BadKey::Character)),
        ("/%", Bad::Encoding),
        ("/%4", Bad::Encoding),
        ("/%zz", Bad::Encoding),
        ("/%+1", Bad::Encoding),
        ("/%ff", Bad::Encoding),
        ("/a/.m3u8?format=webm", Bad::Query("format is cmaf or ts")),
        (
            "/a/.mpd?template=",
            Bad::Query("template is time or number"),
        ),
        (&format!("/a/{SET}/video=1/042.m4s"), Bad::Nothing),
        (&format!("/a/{SET}/video=1/+1.m4s"), Bad::Nothing),
        (&format!("/a/{SET}/video=1/-1.m4s"), Bad::Nothing),
        (&format!("/a/{SET}/video=1/.m4s"), Bad::Nothing),
        (
            &format!("/a/{SET}/video=1/18446744073709551616.m4s"),
            Bad::Nothing,
        ),
        (&format!("/a/{SET}/video=1/n/0.m4s"), Bad::Nothing),
        (&format!("/a/{SET}/video=1/n/4294967297.m4s"), Bad::Nothing),
        (&format!("/a/{SET}/video=1/n/1.ts"), Bad::Nothing),
        (&format!("/a/{SET}/video/1.m4s"), Bad::Nothing),
        (&format!("/a/{SET}/video=1/.m3u8"), Bad::Nothing),
        (&format!("/a/{SET}/video=1/any.m3u8"), Bad::Nothing),
        (&format!("/a/{SET}/video=1/hls-1.m3u8"), Bad::Nothing),
        (&"/a".repeat(4097), Bad::TooLong),
    ] {
        assert_eq!(read(url), Err(bad), "{url}");
    }
}

#[test]
fn a_set_has_one_spelling() {
    for name in [
        "6000-9f",
        "06000-000000000000009f",
        "6000-000000000000009F",
        "6000-+00000000000009f",
    ] {
        assert_eq!(Set::parse(name), None, "{name}");
    }
}

prop_compose! {
    fn any_title()(path in "([a-zA-Z0-9 %?#é=_][a-zA-Z0-9 .%?#é=+_-]{0,6}(/[a-z]{1,4}){0,2})?") -> Key {
        key(&path)
    }
}

fn any_manifest() -> impl Strategy<Value = Manifest> {
    let of_set = || {
        let name = "[a-z_]{1,8}=[0-9]{1,7}";
        (any::<(u32, u64)>(), name).prop_map(|((segment_ms, version), name)| {
            let set = Set {
                segment_ms,
                version,
            };
            (set, name)
        })
    };
    prop_oneof![
        Just(Manifest::Multivariant(Packing::Cmaf)),
        Just(Manifest::Multivariant(Packing::Ts)),
        of_set().prop_map(|(set, name)| Manifest::Media(set, Packing::Cmaf, name)),
        of_set().prop_map(|(set, name)| Manifest::Media(set, Packing::Ts, name)),
        of_set().prop_map(|(set, name)| Manifest::KeyFrames(set, name)),
        Just(Manifest::Dash(Addressing::Time)),
        Just(Manifest::Dash(Addressing::Number)),
        Just(Manifest::Description),
    ]
}

fn any_part() -> impl Strategy<Value = Part> {
    prop_oneof![
        Just(Part::Init),
        (any::<u64>(), prop::sample::select(&FORMS[..])).prop_map(|(t, f)| Part::At(t, f.0)),
        (1..=u32::MAX).prop_map(Part::Number),
        any::<u64>().prop_map(Part::KeyFrame),
    ]
}

proptest! {
    #[test]
    fn what_is_printed_is_read_back(
        title in any_title(), wanted in any_manifest(), part in any_part(),
        segment_ms: u32, version: u64, rendition in "[a-z_]{1,8}=[0-9]{1,7}",
    ) {
        let set = Set { segment_ms, version };
        let segment = Segment { title: title.clone(), set, rendition, part };
        let key = Request::Key(title.clone());
        let manifest = Request::Manifest { title, manifest: wanted, file: None };
        for request in [manifest, Request::Segment(segment), key] {
            prop_assert_eq!(read(&request.to_string()), Ok(request));
        }
    }

    #[test]
    fn anything_is_answered(path in "/[-a-z0-9./%=]{0,60}|\\PC{0,40}", query in "\\PC{0,20}") {
        if let Ok(request) = parse(&path, Some(&query)) {
            let printed = request.to_string();
            let again = read(&printed);
            prop_assert!(again.is_ok(), "{} then {}: {:?}", path, printed, again);
        }
    }
}
