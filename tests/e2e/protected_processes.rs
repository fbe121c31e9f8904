//! Checks that two processes encrypt a film to the same bytes, because any origin of a fleet may
//! serve any segment of the film.

use crate::support::{HeadwaterServer, TempFolder};
use std::path::Path;

/// Returns the URIs in a playlist that end with `end`, sorted and without duplicates.
fn list_uris(text: &str, end: &str) -> Vec<String> {
    let words = text.split(['"', '\n']);
    let found = words.filter(|word| word.ends_with(end));
    let mut found: Vec<String> = found.map(str::to_owned).collect();
    found.sort();
    found.dedup();
    found
}

#[test]
fn two_processes_serve_the_same_encrypted_bytes() {
    let folder = TempFolder::new();
    let secret = folder.write_file("secret", b"0123456789abcdef0123456789abcdef\n");
    let keys = format!("secret:{}", secret.display());
    let films = Path::new(env!("CARGO_MANIFEST_DIR")).join("media");
    for scheme in ["cbcs", "cenc"] {
        let start = || {
            HeadwaterServer::serve(&[
                films.to_str().unwrap(),
                "--segment",
                "6s",
                "--drm-keys",
                &keys,
                "--drm-scheme",
                scheme,
                "--drm-key-per",
                "resolution",
                "--drm-systems",
                "widevine",
                "--drm-systems",
                "playready",
            ])
        };
        let (first, second) = (start(), start());
        assert_ne!(first.process_id(), second.process_id());
        assert_eq!(first.get_text("/demo/.mpd"), second.get_text("/demo/.mpd"));
        let multivariant = first.get_text("/demo/.m3u8");
        assert_eq!(multivariant, second.get_text("/demo/.m3u8"));
        for uri in list_uris(&multivariant, ".m3u8") {
            let playlist = format!("/demo/{uri}");
            let text = first.get_text(&playlist);
            assert_eq!(text, second.get_text(&playlist), "{playlist}");
            let base = playlist.rsplit_once('/').unwrap().0;
            let mut urls = list_uris(&text, ".m4s");
            assert!(urls.len() > 2, "{text}");
            urls.push("init.mp4".to_owned());
            for name in urls {
                let url = format!("{base}/{name}");
                let (ours, theirs) = (first.get_body(&url), second.get_body(&url));
                assert!(ours == theirs, "{scheme}: {url} differs between processes");
            }
        }
    }
}
