//! `headwater index` of films that lie elsewhere: the index MP4 names them by their URL, and knows
//! in which state they were.

use crate::nginx::Nginx;
use crate::remote::{playlists, requests, segments};
use crate::support::{Folder, Server, fixture};
use std::process::Command;
use std::time::{Duration, SystemTime};

/// A film behind nginx, and the folder that it lies in.
fn storage(name: &str) -> Option<(Folder, Nginx)> {
    let film = fixture(name)?;
    let folder = Folder::new();
    folder.put("films/a film.mp4", &std::fs::read(film).unwrap());
    let own = folder.0.join("nginx");
    std::fs::create_dir(&own).unwrap();
    let nginx = Nginx::of(&own, &folder.0.join("films"), "", "")?;
    Some((folder, nginx))
}

fn index(args: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_headwater"));
    let made = command.arg("index").args(args).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    String::from_utf8(made.stdout).unwrap()
}

#[test]
fn a_film_is_indexed_by_its_url_and_served_from_there() {
    let Some((_films, nginx)) = storage("avc.mp4") else {
        return;
    };
    let out = Folder::new();
    let folder = out.0.to_str().unwrap();
    let url = nginx.url("a%20film.mp4");
    let said = index(&[&url, "-o", folder]);
    assert!(said.contains(&format!("of {url}, ")), "{said}");
    let from = format!("{0}={0}", nginx.url(""));
    let args = [folder, "--segment", "2s", "--media-from", &from];
    let served = Server::start(&args);
    let whole = Server::start(&[&nginx.url(""), "--segment", "2s"]);
    for title in ["/a%20film.ism", "/a%20film-index.mp4"] {
        let own = playlists(&served, title);
        let theirs = playlists(&whole, "/a%20film.mp4");
        assert_eq!(own.len(), theirs.len());
        for (own, theirs) in own.iter().zip(&theirs) {
            let pair = (segments(&served, own), segments(&whole, theirs));
            assert_eq!(pair.0.len(), pair.1.len());
            for (own, theirs) in pair.0.iter().zip(&pair.1) {
                assert!(served.body(own) == whole.body(theirs), "{own}");
            }
        }
    }
}

#[test]
fn other_media_of_the_same_length_is_noticed_by_its_entity_tag() {
    let Some((films, nginx)) = storage("avc.mp4") else {
        return;
    };
    let film = films.0.join("films/a film.mp4");
    let url = nginx.url("a%20film.mp4");
    let base = nginx.url("");
    let out = Folder::new();
    let folder = out.0.to_str().unwrap();
    index(&[&url, "-o", folder, "--base", &base]);
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
    let served = Server::start(&args);
    let list = playlists(&served, "/a%20film.ism").remove(0);
    let first = segments(&served, &list).remove(0);
    assert_eq!(
        requests(&served, "look"),
        0,
        "nobody looks at the media before it is wanted"
    );
    let right = served.body(&first);

    // Replaced while it is served, and once a server starts that never saw it as it was.
    let mut other = std::fs::read(&film).unwrap();
    // Of the media only: its tables lie at the end.
    let (from, to) = (other.len() / 4, other.len() / 2);
    other[from..to].iter_mut().for_each(|byte| *byte ^= 0x55);
    std::fs::write(&film, &other).unwrap();
    let file = std::fs::File::options().write(true).open(&film).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_secs(1000))
        .unwrap();
    let fresh = Server::start(&args);
    for server in [&served, &fresh] {
        let list = playlists(server, "/a%20film.ism").remove(0);
        for segment in segments(server, &list) {
            let answer = server.get(&segment);
            let said = answer.reason();
            assert!(
                matches!(answer.status, 415 | 503),
                "{} {said}",
                answer.status
            );
        }
        let answer = server.get(&first);
        assert!(
            answer.reason().contains("replaced since it was indexed"),
            "{}",
            answer.reason()
        );
    }
    // Indexed again, it is served again: as what it is now.
    index(&[&url, "-o", folder, "--base", &base]);
    let again = Server::start(&args);
    let list = playlists(&again, "/a%20film.ism").remove(0);
    let now = segments(&again, &list);
    assert_ne!(now[0], first);
    assert_eq!(again.body(&now[0]).len(), right.len());
}
