//! What is fetched of a title in HLS, where playlists come one by one.

use super::super::super::stream::Wish;
use super::*;
use media::manifest::read::{Segments, hls};

/// Plays to the end; every answer comes at once, with what `document` says. Gives the paths that
/// were asked for.
fn played(
    viewer: &mut Viewer,
    mut document: impl FnMut(&Fetch) -> Option<Document>,
) -> Vec<String> {
    let (mut asked, mut now) = (Vec::new(), 0);
    loop {
        match viewer.poll(now) {
            Step::Ask(fetch) => {
                asked.push(fetch.part.url.path().to_string());
                let answer = Answer {
                    ok: true,
                    bytes: 100_000,
                    sent: Some(now),
                    first_byte: Some(now),
                    document: document(&fetch),
                };
                now += 5000;
                viewer.handle(now, fetch.id, answer);
            }
            Step::Wait(at) => now = at,
            Step::Cancel(_) => {}
            Step::Done => return asked,
        }
    }
}

/// The segments of a media playlist.
fn segments(url: &Url, text: &str) -> Arc<Segments> {
    match hls::read(url, text.as_bytes()).unwrap() {
        hls::Playlist::Media(media) => Arc::new(media.segments),
        hls::Playlist::Multivariant(_) => panic!("no media playlist: {text}"),
    }
}

#[test]
fn hls_playlists_are_fetched_when_their_level_is() {
    let master = "#EXTM3U\n#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"a\",NAME=\"e\",URI=\"a.m3u8\"\n\
        #EXT-X-STREAM-INF:BANDWIDTH=500000,AUDIO=\"a\"\nv500.m3u8\n#EXT-X-STREAM-INF:BANDWIDTH=4000000,AUDIO=\"a\"\nv4000.m3u8\n";
    let url = Url::parse("http://o.test/m.m3u8").unwrap();
    let hls::Playlist::Multivariant(title) = hls::read(&url, master.as_bytes()).unwrap() else {
        panic!()
    };
    let stream = Arc::new(Stream::new(title, true, &Wish::default()).unwrap());
    let mut viewer = viewer(plan(), abr::Throughput::default());
    let asked = played(&mut viewer, |fetch| match fetch.what {
        What::Manifest => Some(Document::Stream(stream.clone())),
        What::Playlist => {
            let url = &fetch.part.url;
            let name = url.path().trim_matches('/').trim_end_matches(".m3u8");
            let list: String = (0..10)
                .map(|n| format!("#EXTINF:2\n{name}/{n}\n"))
                .collect();
            Some(Document::Segments(segments(
                url,
                &format!("#EXTM3U\n{list}"),
            )))
        }
        _ => None,
    });
    assert_eq!(viewer.ended(), Some(End::Finished));
    let main: Vec<&String> = asked.iter().filter(|path| path.contains("v")).collect();
    assert_eq!(main[..3], ["/v500.m3u8", "/v500/0", "/v4000.m3u8"]);
    assert_eq!(
        asked.iter().filter(|path| path.ends_with(".m3u8")).count(),
        3
    );
    assert_eq!(viewer.summary().played_ms, 20_000);
}

#[test]
fn a_media_playlist_by_itself_is_a_title() {
    let url = Url::parse("http://o.test/a.m3u8").unwrap();
    let list = segments(
        &url,
        "#EXTM3U\n#EXTINF:2\na\n#EXTINF:2\nb\n#EXT-X-ENDLIST\n",
    );
    let mut viewer = viewer(plan(), abr::Dynamic::default());
    let asked = played(&mut viewer, |fetch| {
        (fetch.what == What::Manifest).then(|| Document::Segments(list.clone()))
    });
    assert_eq!(asked, ["/m.mpd", "/a", "/b"]);
    assert_eq!(viewer.ended(), Some(End::Finished));
}
