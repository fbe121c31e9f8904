//! Tests which resources of an HLS title a viewer fetches, and when.

use super::super::super::title_ladder::AudioPreference;
use super::*;
use media::manifest::read::{SegmentList, hls};

/// Plays the title to its end. Each response arrives after 5 ms and contains the result of
/// `document`. Returns the requested paths.
fn play_to_end(
    viewer: &mut Viewer,
    mut document: impl FnMut(&MediaFetch) -> Option<ParsedDocument>,
) -> Vec<String> {
    let (mut requests, mut now) = (Vec::new(), 0);
    loop {
        match viewer.poll(now) {
            PlayerAction::Fetch(fetch) => {
                requests.push(fetch.resource.url.path().to_string());
                let result = FetchResult {
                    ok: true,
                    bytes: 100_000,
                    sent: Some(now),
                    first_byte: Some(now),
                    document: document(&fetch),
                };
                now += 5000;
                viewer.handle_result(now, fetch.id, result);
            }
            PlayerAction::Wait(at) => now = at,
            PlayerAction::Cancel(_) => {}
            PlayerAction::Done => return requests,
        }
    }
}

/// Parses the segments of a media playlist.
fn known_segments(url: &Url, text: &str) -> Arc<SegmentList> {
    match hls::parse_playlist(url, text.as_bytes()).unwrap() {
        hls::ParsedPlaylist::Media(media) => Arc::new(media.segments),
        hls::ParsedPlaylist::Multivariant(_) => panic!("no media playlist: {text}"),
    }
}

#[test]
fn a_playlist_is_fetched_when_its_level_is_chosen() {
    let master = "#EXTM3U\n#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"a\",NAME=\"e\",URI=\"a.m3u8\"\n\
        #EXT-X-STREAM-INF:BANDWIDTH=500000,AUDIO=\"a\"\nv500.m3u8\n#EXT-X-STREAM-INF:BANDWIDTH=4000000,AUDIO=\"a\"\nv4000.m3u8\n";
    let url = Url::parse("http://o.test/m.m3u8").unwrap();
    let hls::ParsedPlaylist::Multivariant(title) =
        hls::parse_playlist(&url, master.as_bytes()).unwrap()
    else {
        panic!()
    };
    let stream = Arc::new(TitleLadder::new(title, true, &AudioPreference::default()).unwrap());
    let mut viewer = test_viewer(test_plan(), abr::ThroughputRule::default());
    let requests = play_to_end(&mut viewer, |fetch| match fetch.purpose {
        FetchPurpose::Manifest => Some(ParsedDocument::TitleLadder(stream.clone())),
        FetchPurpose::Playlist => {
            let url = &fetch.resource.url;
            let name = url.path().trim_matches('/').trim_end_matches(".m3u8");
            let list: String = (0..10)
                .map(|n| format!("#EXTINF:2\n{name}/{n}\n"))
                .collect();
            Some(ParsedDocument::Segments(known_segments(
                url,
                &format!("#EXTM3U\n{list}"),
            )))
        }
        _ => None,
    });
    assert_eq!(viewer.end_reason(), Some(SessionEnd::Finished));
    let main: Vec<&String> = requests.iter().filter(|path| path.contains("v")).collect();
    assert_eq!(main[..3], ["/v500.m3u8", "/v500/0", "/v4000.m3u8"]);
    assert_eq!(
        requests
            .iter()
            .filter(|path| path.ends_with(".m3u8"))
            .count(),
        3
    );
    assert_eq!(viewer.summary().played_ms, 20_000);
}

#[test]
fn a_single_media_playlist_is_a_title() {
    let url = Url::parse("http://o.test/a.m3u8").unwrap();
    let list = known_segments(
        &url,
        "#EXTM3U\n#EXTINF:2\na\n#EXTINF:2\nb\n#EXT-X-ENDLIST\n",
    );
    let mut viewer = test_viewer(test_plan(), abr::DynamicRule::default());
    let requests = play_to_end(&mut viewer, |fetch| {
        (fetch.purpose == FetchPurpose::Manifest).then(|| ParsedDocument::Segments(list.clone()))
    });
    assert_eq!(requests, ["/m.mpd", "/a", "/b"]);
    assert_eq!(viewer.end_reason(), Some(SessionEnd::Finished));
}
