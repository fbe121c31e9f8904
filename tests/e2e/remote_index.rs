//! Tests `headwater index` for remote films. The index MP4 references the film by its URL, and
//! records the version of the film.

use crate::http_storage::{count_requests, list_playlists, list_segments};
use crate::nginx::Nginx;
use crate::support::{HeadwaterServer, TempFolder, fixture_path};
use std::process::Command;
use std::time::{Duration, SystemTime};

/// Serves a film with nginx. Returns the film's folder and the nginx process.
fn serve_film(name: &str) -> Option<(TempFolder, Nginx)> {
    let film = fixture_path(name)?;
    let folder = TempFolder::new();
    folder.write_file("films/a film.mp4", &std::fs::read(film).unwrap());
    let own = folder.0.join("nginx");
    std::fs::create_dir(&own).unwrap();
    let nginx = Nginx::of(&own, &folder.0.join("films"), "", "")?;
    Some((folder, nginx))
}

fn run_index(args: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_headwater"));
    let made = command.arg("index").args(args).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    String::from_utf8(made.stdout).unwrap()
}

#[test]
fn a_film_is_indexed_and_served_by_its_url() {
    let Some((_films, nginx)) = serve_film("avc.mp4") else {
        return;
    };
    let out = TempFolder::new();
    let folder = out.0.to_str().unwrap();
    let url = nginx.url("a%20film.mp4");
    let printed = run_index(&[&url, "-o", folder]);
    assert!(printed.contains(&format!("index of {url} (")), "{printed}");
    let from = format!("{0}={0}", nginx.url(""));
    let args = [folder, "--segment", "2s", "--media-from", &from];
    let served = HeadwaterServer::serve(&args);
    let whole = HeadwaterServer::serve(&[&nginx.url(""), "--segment", "2s"]);
    for title in ["/a%20film.ism", "/a%20film-index.mp4"] {
        let own = list_playlists(&served, title);
        let theirs = list_playlists(&whole, "/a%20film.mp4");
        assert_eq!(own.len(), theirs.len());
        for (own, theirs) in own.iter().zip(&theirs) {
            let pair = (list_segments(&served, own), list_segments(&whole, theirs));
            assert_eq!(pair.0.len(), pair.1.len());
            for (own, theirs) in pair.0.iter().zip(&pair.1) {
                assert!(served.get_body(own) == whole.get_body(theirs), "{own}");
            }
        }
    }
}

#[test]
fn replaced_media_is_noticed_by_its_entity_tag() {
    let Some((films, nginx)) = serve_film("avc.mp4") else {
        return;
    };
    let film = films.0.join("films/a film.mp4");
    let url = nginx.url("a%20film.mp4");
    let base = nginx.url("");
    let out = TempFolder::new();
    let folder = out.0.to_str().unwrap();
    run_index(&[&url, "-o", folder, "--base", &base]);
    let from = format!("{0}={0}", nginx.url(""));
    let args = [
        folder,
        "--segment",
        "2s",
        "--media-from",
        &from,
        "--storage-memory",
        "0B",
    ];
    let served = HeadwaterServer::serve(&args);
    let list = list_playlists(&served, "/a%20film.ism").remove(0);
    let first = list_segments(&served, &list).remove(0);
    assert_eq!(
        count_requests(&served, "look"),
        0,
        "the media is not read before its first request"
    );
    let right = served.get_body(&first);

    // Replaces the film while the first server runs. The second server starts after the change.
    let mut other = std::fs::read(&film).unwrap();
    // The changed range contains only media data, because the index tables are at the end of the
    // file.
    let (from, to) = (other.len() / 4, other.len() / 2);
    other[from..to].iter_mut().for_each(|byte| *byte ^= 0x55);
    std::fs::write(&film, &other).unwrap();
    let file = std::fs::File::options().write(true).open(&film).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_secs(1000))
        .unwrap();
    let fresh = HeadwaterServer::serve(&args);
    for server in [&served, &fresh] {
        let list = list_playlists(server, "/a%20film.ism").remove(0);
        for segment in list_segments(server, &list) {
            let response = server.get(&segment);
            let printed = response.error_reason();
            assert!(
                matches!(response.status, 415 | 503),
                "{} {printed}",
                response.status
            );
        }
        let response = server.get(&first);
        assert!(
            response
                .error_reason()
                .contains("replaced after it was indexed"),
            "{}",
            response.error_reason()
        );
    }
    // After the film is indexed again, a server serves the new version.
    run_index(&[&url, "-o", folder, "--base", &base]);
    let again = HeadwaterServer::serve(&args);
    let list = list_playlists(&again, "/a%20film.ism").remove(0);
    let now = list_segments(&again, &list);
    assert_ne!(now[0], first);
    assert_eq!(again.get_body(&now[0]).len(), right.len());
}
