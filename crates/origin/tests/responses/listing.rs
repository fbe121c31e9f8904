//! Tests that the server serves every URL in lists and descriptions.

use super::support::{TestServer, demo_folder};

/// Returns every URL in a manifest as an absolute path.
fn urls_of(manifest: &str, text: &str) -> Vec<String> {
    let folder = manifest
        .split('?')
        .next()
        .unwrap()
        .rsplit_once('/')
        .unwrap()
        .0;
    let mut urls = Vec::new();
    for line in text.lines() {
        let quoted = line
            .split("URI=\"")
            .nth(1)
            .and_then(|rest| rest.split('"').next());
        let bare = (!line.starts_with('#') && !line.is_empty()).then_some(line);
        for url in quoted.into_iter().chain(bare) {
            urls.push(format!("{folder}/{url}"));
        }
    }
    urls
}

#[test]
fn every_url_that_playlists_print_is_served() {
    let server = TestServer::new(&["--segment", "4s"]);
    let mut ahead = vec!["/film/.m3u8".to_owned(), "/film/.m3u8?format=ts".to_owned()];
    let mut seen = std::collections::BTreeSet::new();
    let mut media = 0;
    while let Some(url) = ahead.pop() {
        if !seen.insert(url.clone()) {
            continue;
        }
        let response = server.get(&url);
        assert_eq!(
            response.status,
            200,
            "{url}: {}",
            response.header("headwater-error")
        );
        assert!(!response.body.is_empty(), "{url}");
        if response.header("content-type").contains("mpegurl") {
            ahead.extend(urls_of(&url, &String::from_utf8(response.body).unwrap()));
        } else {
            media += 1;
        }
    }
    // The title has two video and two audio renditions with 12 segments of 4 s each. Each segment
    // is served in two formats (CMAF and `?format=ts`). Key frames add further URLs.
    assert!(media > 4 * 12 * 2, "only {media} segments");
}

#[test]
fn the_library_lists_titles() {
    let server = TestServer::new(&[]);
    std::fs::create_dir_all(server.path("series/one")).unwrap();
    for name in ["e1.mp4", "e2.mp4"] {
        std::fs::copy(
            demo_folder().join("video-360p.mp4"),
            server.path("series/one").join(name),
        )
        .unwrap();
    }
    std::fs::write(server.path("series/broken.mp4"), "no film").unwrap();
    std::fs::write(server.path("series/notes.txt"), "no film").unwrap();
    let list: serde_json::Value = serde_json::from_str(&server.text("/-/library.json")).unwrap();
    let titles = list["titles"].as_array().unwrap();
    let paths: Vec<_> = titles.iter().map(|t| t["path"].as_str().unwrap()).collect();
    let expected = [
        "film.mp4",
        "film",
        "series/broken.mp4",
        "series/one/e1.mp4",
        "series/one/e2.mp4",
    ];
    assert_eq!(paths, expected);
    let film = &titles[1];
    assert_eq!(film["kind"], "folder");
    assert_eq!(film["video"].as_array().unwrap().len(), 2);
    assert_eq!(film["audio"][1]["language"], "fra");
    assert_eq!(film["duration_ms"], 48_000);
    assert!(film["error"].is_null());
    assert!(
        titles[2]["error"]
            .as_str()
            .unwrap()
            .starts_with("series/broken.mp4: ")
    );
}

#[test]
fn the_library_list_names_films_in_other_containers() {
    let server = TestServer::new(&[]);
    std::fs::write(server.path("x.mkv"), "not read").unwrap();
    std::fs::write(server.path("notes.txt"), "no film").unwrap();
    let list: serde_json::Value = serde_json::from_str(&server.text("/-/library.json")).unwrap();
    assert_eq!(list["ignored"]["count"], 1);
    let ignored = &list["ignored"]["first"][0];
    assert_eq!(
        (&ignored["file"], &ignored["reason"]),
        (&"x.mkv".into(), &"is not MP4".into())
    );
    let fix = ignored["fix"].as_str().unwrap();
    assert!(fix.contains("ffmpeg -i x.mkv -c copy"), "{fix}");
}

#[test]
fn the_description_lists_segment_urls() {
    let server = TestServer::new(&["--dash-segment", "2s"]);
    let film: serde_json::Value = serde_json::from_str(&server.text("/film/.json")).unwrap();
    assert_eq!(film["name"], "film");
    assert_ne!(film["set"], film["dash_set"]);
    for rendition in film["renditions"].as_array().unwrap() {
        let init = rendition["init"].as_str().unwrap();
        assert_eq!(server.get(&format!("/film/{init}")).status, 200);
        let segments = rendition["segments"].as_array().unwrap();
        for segment in [&segments[0], &segments[segments.len() - 1]] {
            let time = segment["t"].to_string();
            let url = rendition["media"].as_str().unwrap().replace("{t}", &time);
            let response = server.get(&format!("/film/{url}"));
            assert_eq!(response.status, 200);
            assert_eq!(segment["bytes"], response.body.len());
        }
    }
}
