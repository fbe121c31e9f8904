//! Tests of protection rules for each folder (`[[drm.rule]]`).
#![allow(clippy::unwrap_used)]

mod support;

use net::config::{SettingSources, UsageError};
use origin::config::{SETTINGS, ServeSettings, SettingLayers, define_serve_command};
use support::TestServer;
use support::keys::*;

/// Serves a library with the same film in several folders.
fn serve_folders(file: &str) -> TestServer {
    let root = tempfile::tempdir().unwrap();
    let film = support::demo_folder().join("video-180p.mp4");
    for folder in ["kids", "films", "trailers"] {
        std::fs::create_dir(root.path().join(folder)).unwrap();
        std::fs::copy(&film, root.path().join(folder).join("a.mp4")).unwrap();
    }
    let named = "<smil><body><switch><video src=\"../kids/a.mp4\"/></switch></body></smil>";
    std::fs::write(root.path().join("trailers/named.ism"), named).unwrap();
    let config = TextFile::new(file);
    let path = config.path();
    TestServer::from_folder(root, &["--config", path.to_str().unwrap()])
}

fn rules(keys: &str, other: &str) -> String {
    format!(
        "segment = \"2s\"\n[drm]\nkeys = {keys:?}\nscheme = \"cbcs\"\n\
         [[drm.rule]]\npath = \"trailers/**\"\nkeys = \"none\"\n\
         [[drm.rule]]\npath = \"kids/**\"\nkeys = {other:?}\nscheme = \"cenc\"\n\
         systems = [\"widevine\"]\nlicense-url = {{ widevine = \"https://l.example/kids\" }}\n\
         [[drm.rule]]\npath = \"kids/**\"\nkeys = \"none\"\n"
    )
}

#[test]
fn the_first_matching_rule_protects_a_title() {
    let (one, other) = (
        TextFile::new(SECRET),
        TextFile::new(&SECRET.replace('0', "9")),
    );
    let server = serve_folders(&rules(&one.keys("secret"), &other.keys("secret")));
    let kids = server.text("/kids/a.mp4/.mpd");
    assert!(
        kids.contains("mp4protection:2011\" value=\"cenc\""),
        "{kids}"
    );
    assert!(kids.contains("https://l.example/kids"), "{kids}");
    let films = server.text("/films/a.mp4/.mpd");
    assert!(
        films.contains("mp4protection:2011\" value=\"cbcs\""),
        "{films}"
    );
    assert!(
        !films.contains("widevine") && !films.contains("l.example"),
        "{films}"
    );
    // Key ids are derived from the secret and the title's path. The two titles have different
    // secrets and paths, so their key ids differ.
    let kid = |mpd: &str| mpd.split("default_KID=\"").nth(1).unwrap()[..36].to_owned();
    assert_ne!(kid(&kids), kid(&films));
    let trailers = server.text("/trailers/a.mp4/.mpd");
    assert!(!trailers.contains("ContentProtection"), "{trailers}");
}

#[test]
fn only_the_files_of_unprotected_folders_are_served() {
    let secret = TextFile::new(SECRET);
    let keys = secret.keys("secret");
    let server = serve_folders(&rules(&keys, &keys));
    assert_eq!(server.get("/trailers/a.mp4").status, 200);
    assert_eq!(server.get("/trailers/a.mp4/.m3u8?format=ts").status, 200);
    assert_eq!(
        server
            .request("POST", "/trailers/a.mp4/.license", "")
            .status,
        404
    );
    for protected in [
        "/kids/a.mp4",
        "/films/a.mp4",
        "/films/a.mp4/.m3u8?format=ts",
    ] {
        assert_eq!(server.get(protected).status, 404, "{protected}");
    }
    assert_eq!(
        server.request("POST", "/films/a.mp4/.license", "").status,
        200
    );
}

#[test]
fn a_manifest_in_an_unprotected_folder_does_not_open_a_protected_film() {
    let secret = TextFile::new(SECRET);
    let keys = secret.keys("secret");
    let server = serve_folders(&rules(&keys, &keys));
    let refused = server.get("/trailers/named.ism/.m3u8");
    let error = refused.header("headwater-error");
    assert_eq!(refused.status, 415, "{error}");
    assert!(
        error.contains("kids/a.mp4 is protected by the rule for its path"),
        "{error}"
    );
}

#[test]
fn a_manifest_in_an_unprotected_folder_does_not_open_a_protected_index() {
    // The media of the index is in an unprotected folder.
    let film = std::fs::read(support::demo_folder().join("video-180p.mp4")).unwrap();
    let index = media::index::index_file_in_memory(&film).unwrap();
    let index = media::mp4::write_index_mp4(&index, "../trailers/a.mp4").unwrap();
    let secret = TextFile::new(SECRET);
    let keys = secret.keys("secret");
    let server = serve_folders(&rules(&keys, &keys));
    std::fs::write(server.path("kids/film-index.mp4"), index).unwrap();
    let named =
        "<smil><body><switch><video src=\"../kids/film-index.mp4\"/></switch></body></smil>";
    std::fs::write(server.path("trailers/index.ism"), named).unwrap();
    let refused = server.get("/trailers/index.ism/.m3u8");
    let error = refused.header("headwater-error");
    assert_eq!(refused.status, 415, "{error}");
    assert!(
        error.contains("kids/film-index.mp4 is protected by the rule for its path"),
        "{error}"
    );
}

fn read_layers(file: &str) -> Result<SettingLayers, UsageError> {
    let flags = define_serve_command().get_matches_from(["serve", "--config", "x", "films"]);
    SettingLayers::new(&SettingSources {
        settings: SETTINGS,
        tables: &[],
        flags: &flags,
        env: &|_| None,
        read: &|_| Ok(file.to_owned()),
    })
}

#[test]
fn mistakes_in_rules_are_named_without_credentials() {
    for (file, wrong) in [
        (
            "[[drm.rule]]\npath = 'a'\nkeys = 'none'",
            "drm-rule: titles that no rule matches have no keys",
        ),
        (
            "[drm]\nkeys = 'none'\n[[drm.rule]]\nkeys = 'none'",
            "drm-rule 1: expected path",
        ),
        (
            "[drm]\nkeys = 'none'\n[[drm.rule]]\npath = 'a'\n[[drm.rule]]\npath = 'a'\nscheem = 'cbcs'",
            "drm-rule 2: unknown key \"scheem\"; did you mean \"scheme\"?",
        ),
        (
            "[drm]\nkeys = 'none'\n[[drm.rule]]\npath = 'a//b'",
            "drm-rule 1: path = \"a//b\": expected a path such as kids/**",
        ),
        (
            "[drm]\nkeys = 'none'\n[[drm.rule]]\npath = 'a'\nkeys = 'speke:https://u:pass@h/x'",
            "(drm-rule 1): expected http(s)://HOST/PATH without a user name",
        ),
        (
            "aes-secret = 'f'\n[drm]\nkeys = 'none'\n[[drm.rule]]\npath = 'a'\nkeys = 'secret:f'",
            "both encrypt the segments",
        ),
        (
            "[drm]\nkeys = 'none'\nrule = ['{ path = \"u:pass@h']",
            "drm-rule 1: ",
        ),
    ] {
        let layers = read_layers(file).unwrap();
        let error = ServeSettings::new(&layers).err().unwrap().to_string();
        assert!(error.contains(wrong), "{file}: {error}");
        assert!(!error.contains("pass"), "{error}");
        assert!(!layers.to_string().contains(":pass@h/x"), "{layers}");
    }
}

#[test]
fn printed_rules_are_valid_settings() {
    let file = rules("secret:a", "cpix:https://k.example/{title}");
    let layers = read_layers(&file).unwrap();
    let printed = read_layers(&layers.to_string()).unwrap();
    let parse = |layers: &SettingLayers| ServeSettings::new(layers).unwrap().drm.unwrap();
    let drm = parse(&layers);
    assert_eq!((drm.rules.len(), &parse(&printed)), (3, &drm));
}

/// Regression test: the content security policy of the web page blocked requests to license servers
/// of other origins.
#[test]
fn the_page_may_request_licenses_from_the_set_servers() {
    let (one, other) = (TextFile::new(SECRET), TextFile::new(SECRET));
    let server = serve_folders(&rules(&one.keys("secret"), &other.keys("secret")));
    let page = server.get("/");
    let policy = page.header("content-security-policy");
    assert!(
        policy.contains("connect-src 'self' https://l.example;"),
        "{policy}"
    );
}
