use super::url_forms::{SEGMENT_URLS, SERVER_URLS, TEXT_URLS, TITLE_URLS, UrlForm};
use super::*;
use proptest::prelude::*;

fn key(path: &str) -> Key {
    Key::parse(path).unwrap()
}

fn manifest(title: &str, manifest: ManifestKind) -> RequestedResource {
    RequestedResource::Manifest {
        title: key(title),
        manifest,
        file: None,
    }
}

const SET: SegmentSetId = SegmentSetId {
    segment_ms: 6000,
    version: 0x9f,
};

fn segment(title: &str, part: SegmentAddress) -> RequestedResource {
    RequestedResource::Segment(SegmentUrl {
        title: key(title),
        set: SET,
        rendition: "video=1".into(),
        part,
    })
}

/// Parses a URL. Clears the `file` of a manifest request, which the tests do not compare.
fn parse_url(url: &str) -> Result<RequestedResource, RouteError> {
    let (path, query) = url
        .split_once('?')
        .map_or((url, None), |(p, q)| (p, Some(q)));
    Ok(match parse_route(path, query)? {
        RequestedResource::Manifest {
            title, manifest, ..
        } => RequestedResource::Manifest {
            title,
            manifest,
            file: None,
        },
        other => other,
    })
}

#[test]
fn each_parameter_that_selects_a_part_of_a_title_is_refused_by_name() {
    for name in [
        "filter",
        "vbegin",
        "vend",
        "t",
        "max_bitrate",
        "min_bitrate",
        "tracks",
        "sort_tracks",
        "start_index",
        "base_path",
        "aws.manifestfilter",
        "wowzaplaystart",
        "wowzaplayduration",
        "max_resolution",
        "min_resolution",
        "asset_start_time",
        "asset_end_time",
    ] {
        let refused = Err(RouteError::UnsupportedParameter(name));
        for query in [
            format!("{name}=1"),
            name.to_owned(),
            format!("format=ts&{name}=1"),
            format!("%ff=1&{name}=1"),
            format!("{}=1", name.to_ascii_uppercase()),
            format!("%{:02x}{}=1", name.as_bytes()[0], &name[1..]),
        ] {
            for manifest in [
                ".m3u8",
                ".mpd",
                ".json",
                "master.m3u8",
                "6000-9f86d081884c7d65/video=1/hls.m3u8",
                "6000-9f86d081884c7d65/video=1/keyframes.m3u8",
                "t-9f86d081884c7d65/text=en/hls.m3u8",
                "t-9f86d081884c7d65/text=en/ts.m3u8",
                "t-9f86d081884c7d65/text=en/imsc.m3u8",
            ] {
                let url = format!("/film.mp4/{manifest}?{query}");
                assert_eq!(parse_url(&url), refused, "{url}");
            }
        }
    }
}

#[test]
fn other_unknown_parameters_are_ignored() {
    for query in [
        "filters=x",
        "utm_source=filter",
        "CMCD=bl%3D2",
        "tt=1",
        "&&=",
        // Names that cannot be decoded.
        "%",
        "%zz=1",
        "%ff=1",
        "%2f=1",
    ] {
        assert!(
            parse_url(&format!("/film.mp4/.m3u8?{query}")).is_ok(),
            "{query}"
        );
    }
    // The URL of a static file may contain `filter`, because the file is not a manifest.
    assert!(parse_url("/notes.txt?filter=x").is_ok());
}

#[test]
fn manifest_urls_are_parsed() {
    use super::RequestedResource as Resource;
    use ManifestKind::{Dash, Description, KeyFrames, Media, Multivariant};
    let video = || "video=1".to_owned();
    for (url, request) in [
        ("/", Resource::Page),
        ("/healthz", Resource::Health),
        ("/readyz", Resource::Ready),
        ("/metrics", Resource::Metrics),
        ("/-/library.json", Resource::Library),
        ("/%68ealthz", Resource::Health),
        ("/-/a%20b.js", Resource::Asset("a b.js".into())),
        ("/-/v/hls.js", Resource::Asset("v/hls.js".into())),
        ("/a.mp4", Resource::File(key("a.mp4"))),
        ("/.key", Resource::Key(key(""))),
        ("/a/b%20c.mp4/.key", Resource::Key(key("a/b c.mp4"))),
        ("/a%20b/.license", Resource::License(key("a b"))),
        ("/a/b%20c.mp4?x=1", Resource::File(key("a/b c.mp4"))),
        (
            "/a.mp4/.m3u8",
            manifest("a.mp4", Multivariant(HlsContainer::Cmaf)),
        ),
        (
            "/a.mp4/.m3u8?x&format=ts&y=1",
            manifest("a.mp4", Multivariant(HlsContainer::Ts)),
        ),
        (
            "/a.mp4/any.m3u8",
            manifest("a.mp4", Multivariant(HlsContainer::Cmaf)),
        ),
        (
            "/hls/any.m3u8",
            manifest("hls", Multivariant(HlsContainer::Cmaf)),
        ),
        ("/.m3u8", manifest("", Multivariant(HlsContainer::Cmaf))),
        (
            "/a/6000-000000000000009f/video=1/hls.m3u8",
            manifest("a", Media(SET, HlsContainer::Cmaf, video())),
        ),
        (
            "/a/6000-000000000000009f/video%3D1/hls.m3u8",
            manifest("a", Media(SET, HlsContainer::Cmaf, video())),
        ),
        (
            "/a/6000-000000000000009f/video=1/ts.m3u8",
            manifest("a", Media(SET, HlsContainer::Ts, video())),
        ),
        (
            "/6000-000000000000009f/video=1/hls.m3u8",
            manifest("", Media(SET, HlsContainer::Cmaf, video())),
        ),
        (
            "/a/6000-000000000000009f/video=1/keyframes.m3u8",
            manifest("a", KeyFrames(SET, video())),
        ),
        ("/a/.mpd", manifest("a", Dash(DashAddressing::Time))),
        (
            "/a/b.mpd?template=number",
            manifest("a", Dash(DashAddressing::Number)),
        ),
        ("/a/.json", manifest("a", Description)),
    ] {
        assert_eq!(parse_url(url), Ok(request), "{url}");
    }
}

#[test]
fn a_key_has_one_spelling() {
    let guarded = |url: &str| url.ends_with("/.key");
    assert!(guarded("/a%20b/.key") && parse_url("/a%20b/.key").is_ok());
    for url in [
        "/a/%2Ekey",
        "/a/.ke%79",
        "/a/%2ekey",
        "/a/.key?x",
        "/a/.key?",
        "/.k%65y",
        "/a/.licens%65",
        "/a/.license?kid=0",
    ] {
        assert_eq!(parse_url(url), Err(RouteError::NotFound), "{url}");
    }
}

#[test]
fn media_urls_are_parsed() {
    for (url, request) in [
        (
            "/a/6000-000000000000009f/video=1/init.mp4",
            segment("a", SegmentAddress::Init),
        ),
        (
            "/6000-000000000000009f/video=1/init.mp4",
            segment("", SegmentAddress::Init),
        ),
        (
            "/a/b/6000-000000000000009f/video=1/0.m4s?q",
            segment("a/b", SegmentAddress::At(0, SegmentContainer::Cmaf)),
        ),
        (
            "/a/6000-000000000000009f/video=1/7.ts",
            segment("a", SegmentAddress::At(7, SegmentContainer::Ts)),
        ),
        (
            "/a/6000-000000000000009f/video=1/n/1.m4s",
            segment("a", SegmentAddress::Number(1)),
        ),
        (
            "/a/6000-000000000000009f/video=1/key/5.m4s",
            segment("a", SegmentAddress::KeyFrame(5)),
        ),
        // Static files in a folder of pre-packaged segments.
        (
            "/ready/init.mp4",
            RequestedResource::File(key("ready/init.mp4")),
        ),
        (
            "/ready/n/1.m4s",
            RequestedResource::File(key("ready/n/1.m4s")),
        ),
        (
            "/ready/v-1.m3u8",
            RequestedResource::File(key("ready/v-1.m3u8")),
        ),
        (
            "/hls/v=1.m3u8",
            RequestedResource::File(key("hls/v=1.m3u8")),
        ),
    ] {
        assert_eq!(parse_url(url), Ok(request), "{url}");
    }
}

#[test]
fn malformed_urls_are_rejected() {
    const SET: &str = "6000-000000000000009f";
    for (url, bad) in [
        ("", RouteError::Path(BadKey::Empty)),
        ("*", RouteError::Path(BadKey::Empty)),
        ("//a.mp4", RouteError::Path(BadKey::Empty)),
        ("/a//b", RouteError::Path(BadKey::Empty)),
        ("/a/", RouteError::NotFound),
        ("/a/../b", RouteError::Path(BadKey::Dots)),
        ("/a/%2e%2e/b", RouteError::Path(BadKey::Dots)),
        ("/%2e%2E/.m3u8", RouteError::Path(BadKey::Dots)),
        ("/-/../x", RouteError::Path(BadKey::Dots)),
        ("/a%2fb", RouteError::Path(BadKey::Character)),
        ("/a%00.mp4", RouteError::Path(BadKey::Character)),
        ("/a%5Cb", RouteError::Path(BadKey::Character)),
        ("/.git/config", RouteError::Path(BadKey::Hidden)),
        ("/a/.b.m3u8", RouteError::Path(BadKey::Hidden)),
        ("/a%00.m3u8", RouteError::Path(BadKey::Character)),
        ("/%", RouteError::Encoding),
        ("/%4", RouteError::Encoding),
        ("/%zz", RouteError::Encoding),
        ("/%+1", RouteError::Encoding),
        ("/%ff", RouteError::Encoding),
        (
            "/a/.m3u8?format=webm",
            RouteError::Query("`format` must be cmaf or ts"),
        ),
        (
            "/a/.mpd?template=",
            RouteError::Query("`template` must be time or number"),
        ),
        (&format!("/a/{SET}/video=1/042.m4s"), RouteError::NotFound),
        (&format!("/a/{SET}/video=1/+1.m4s"), RouteError::NotFound),
        (&format!("/a/{SET}/video=1/-1.m4s"), RouteError::NotFound),
        (&format!("/a/{SET}/video=1/.m4s"), RouteError::NotFound),
        (
            &format!("/a/{SET}/video=1/18446744073709551616.m4s"),
            RouteError::NotFound,
        ),
        (&format!("/a/{SET}/video=1/n/0.m4s"), RouteError::NotFound),
        (
            &format!("/a/{SET}/video=1/n/4294967297.m4s"),
            RouteError::NotFound,
        ),
        (&format!("/a/{SET}/video=1/n/1.ts"), RouteError::NotFound),
        (&format!("/a/{SET}/video/1.m4s"), RouteError::NotFound),
        (&format!("/a/{SET}/video=1/.m3u8"), RouteError::NotFound),
        (&format!("/a/{SET}/video=1/any.m3u8"), RouteError::NotFound),
        (
            &format!("/a/{SET}/video=1/hls-1.m3u8"),
            RouteError::NotFound,
        ),
        (&"/a".repeat(4097), RouteError::TooLong),
    ] {
        assert_eq!(parse_url(url), Err(bad), "{url}");
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
        assert_eq!(SegmentSetId::parse_set_name(name), None, "{name}");
    }
}

/// Returns the documented forms that match a URL, except the form `T`, which matches every path.
fn matching_forms(url: &str) -> Vec<&'static str> {
    let forms = documented_forms().filter(|form| form.url != "T" && form.is_form_of_url(url));
    forms.map(|form| form.url).collect()
}

fn documented_forms() -> impl Iterator<Item = &'static UrlForm> {
    let groups = [TITLE_URLS, SEGMENT_URLS, TEXT_URLS, SERVER_URLS];
    groups.into_iter().flatten()
}

/// Tests that each documented form is parsed to a request of its kind. The property tests below
/// check that each printed request has a documented form.
#[test]
fn each_documented_form_is_a_request_of_its_kind() {
    const VERSION: &str = "000000000000009f";
    let set = format!("6000-{VERSION}");
    let values = [
        ("<set>", set.as_str()),
        ("<rendition>", "video=1"),
        ("<version>", VERSION),
        ("<language>", "en"),
        ("<time>", "42"),
        ("<number>", "7"),
        ("<asset>", "engines/shaka.js"),
    ];
    for form in documented_forms() {
        let url = form
            .url
            .strip_prefix('T')
            .map_or(form.url.into(), |rest| format!("/folder/film.mp4{rest}"));
        let url = values
            .iter()
            .fold(url, |url: String, (name, value)| url.replace(name, value));
        let request = parse_url(&url).unwrap();
        assert_eq!(request.to_string(), url, "the URL is canonical");
        // `/cmcd` is parsed as a file, because the collector handles it before the router is
        // called.
        let is_file = matches!(request, RequestedResource::File(_));
        assert_eq!(is_file, ["T", "/cmcd"].contains(&form.url), "{url}");
        let fixed = ["/-/library.json", "/-/collector.json"];
        let expected = match fixed.contains(&form.url) {
            true => vec![form.url, "/-/<asset>"],
            false if form.url == "T" => vec![],
            false => vec![form.url],
        };
        assert_eq!(matching_forms(&url), expected);
    }
    for own in [
        RequestedResource::Page,
        RequestedResource::Library,
        RequestedResource::Health,
        RequestedResource::Ready,
        RequestedResource::Metrics,
        RequestedResource::Asset("page.js".into()),
    ] {
        assert!(!matching_forms(&own.to_string()).is_empty(), "{own}");
    }
}

prop_compose! {
    fn any_title()(path in "([a-zA-Z0-9 %?#é=_][a-zA-Z0-9 .%?#é=+_-]{0,6}(/[a-z]{1,4}){0,2})?") -> Key {
        key(&path)
    }
}

fn any_manifest() -> impl Strategy<Value = ManifestKind> {
    let of_set = || {
        let name = "[a-z_]{1,8}=[0-9]{1,7}";
        (any::<(u32, u64)>(), name).prop_map(|((segment_ms, version), name)| {
            let set = SegmentSetId {
                segment_ms,
                version,
            };
            (set, name)
        })
    };
    prop_oneof![
        Just(ManifestKind::Multivariant(HlsContainer::Cmaf)),
        Just(ManifestKind::Multivariant(HlsContainer::Ts)),
        of_set().prop_map(|(set, name)| ManifestKind::Media(set, HlsContainer::Cmaf, name)),
        of_set().prop_map(|(set, name)| ManifestKind::Media(set, HlsContainer::Ts, name)),
        of_set().prop_map(|(set, name)| ManifestKind::KeyFrames(set, name)),
        Just(ManifestKind::Dash(DashAddressing::Time)),
        Just(ManifestKind::Dash(DashAddressing::Number)),
        Just(ManifestKind::Description),
    ]
}

fn any_part() -> impl Strategy<Value = SegmentAddress> {
    prop_oneof![
        Just(SegmentAddress::Init),
        (any::<u64>(), prop::sample::select(&CONTAINER_SUFFIXES[..]))
            .prop_map(|(t, f)| SegmentAddress::At(t, f.0)),
        (1..=u32::MAX).prop_map(SegmentAddress::Number),
        any::<u64>().prop_map(SegmentAddress::KeyFrame),
    ]
}

fn any_text_part() -> impl Strategy<Value = TextResource> {
    let form = || prop_oneof![Just(CmafTextFormat::Wvtt), Just(CmafTextFormat::Imsc)];
    prop_oneof![
        form().prop_map(TextResource::Init),
        (any::<u64>(), form()).prop_map(|(time, form)| TextResource::Cmaf(time, form)),
        (1..=u32::MAX, form()).prop_map(|(number, form)| TextResource::Number(number, form)),
        any::<u64>().prop_map(|time| TextResource::Vtt(time, HlsContainer::Cmaf)),
        any::<u64>().prop_map(|time| TextResource::Vtt(time, HlsContainer::Ts)),
        Just(TextResource::Whole),
    ]
}

fn any_text_playlist() -> impl Strategy<Value = TextPlaylist> {
    prop_oneof![
        Just(TextPlaylist::Vtt(HlsContainer::Cmaf)),
        Just(TextPlaylist::Vtt(HlsContainer::Ts)),
        Just(TextPlaylist::Imsc),
    ]
}

proptest! {
    #[test]
    fn urls_of_text_are_read_back(
        title in any_title(), version: u64, part in any_text_part(),
        playlist in any_text_playlist(), rendition in "text=[a-z]{2,3}(-[0-9])?",
    ) {
        let version = TextSetId(version);
        let manifest = ManifestKind::Text(version, playlist, rendition.clone());
        let playlist = RequestedResource::Manifest { title: title.clone(), manifest, file: None };
        let part = RequestedResource::Text(TextUrl { title, version, rendition, part });
        for request in [playlist, part] {
            let url = request.to_string();
            prop_assert_eq!(matching_forms(&url).len(), 1, "{}", url);
            prop_assert_eq!(parse_url(&url), Ok(request));
        }
    }
}

proptest! {
    #[test]
    fn what_is_printed_is_read_back(
        title in any_title(), wanted in any_manifest(), part in any_part(),
        segment_ms: u32, version: u64, rendition in "[a-z_]{1,8}=[0-9]{1,7}",
    ) {
        let set = SegmentSetId { segment_ms, version };
        let segment = SegmentUrl { title: title.clone(), set, rendition, part };
        let key = RequestedResource::Key(title.clone());
        let license = RequestedResource::License(title.clone());
        let manifest = RequestedResource::Manifest { title, manifest: wanted, file: None };
        for request in [manifest, RequestedResource::Segment(segment), key, license] {
            let url = request.to_string();
            prop_assert_eq!(matching_forms(&url).len(), 1, "{}", url);
            prop_assert_eq!(parse_url(&url), Ok(request));
        }
    }

    #[test]
    fn anything_is_answered(path in "/[-a-z0-9./%=]{0,60}|\\PC{0,40}", query in "\\PC{0,20}") {
        if let Ok(request) = parse_route(&path, Some(&query)) {
            let printed = request.to_string();
            let again = parse_url(&printed);
            prop_assert!(again.is_ok(), "{} then {}: {:?}", path, printed, again);
        }
    }
}
