use super::*;
use net::config::ProgramLogFormat;
use std::time::Duration;

fn layers(flags: &[&str], env: &[(&str, &str)], file: &str) -> Result<SettingLayers, UsageError> {
    let words = ["serve"].iter().chain(flags);
    let flags = define_serve_command().try_get_matches_from(words).unwrap();
    let find = |name: &str| {
        env.iter()
            .find(|(n, _)| *n == name)
            .map(|(_, v)| v.to_string())
    };
    let read = |_: &str| Ok(file.to_owned());
    SettingLayers::new(&SettingSources {
        settings: SETTINGS,
        tables: &[],
        flags: &flags,
        env: &find,
        read: &read,
    })
}

fn settings(flags: &[&str], env: &[(&str, &str)], file: &str) -> ServeSettings {
    ServeSettings::new(&layers(flags, env, file).unwrap()).unwrap()
}

#[test]
fn flags_override_variables_override_the_file() {
    let file = "segment = '3s'\nworkers = 3\nlog-format = 'json'\nlisten = ['a:1', 'b:2']";
    let env = [
        ("HEADWATER_SEGMENT", "4s"),
        ("HEADWATER_WORKERS", "4"),
        ("HEADWATER_MEMORY_LIMIT", "8GiB"),
        ("HEADWATER_CONFIG", "f"),
    ];
    let is = settings(&["--segment", "5s", "films"], &env, file);
    assert_eq!((is.hls_segment_ms, is.dash_segment_ms), (5000, 5000));
    assert_eq!(is.common.workers, 4);
    assert_eq!(is.common.log_format, ProgramLogFormat::Json);
    assert_eq!(is.listen, ["a:1", "b:2"]);
    assert_eq!(is.index_memory_bytes, 512 << 20);
    assert_eq!(is.segment_memory_bytes, 128 << 20);
    assert_eq!(is.source, Some("films".into()));
}

#[test]
fn a_remote_film_is_no_library() {
    let of = |source: &str| ServeSettings::new(&layers(&[source], &[], "").unwrap());
    for film in [
        "s3://bucket/films/a%20b.mp4",
        "https://h:1/film.ism",
        "http://h/x.MOV",
    ] {
        let error = of(film).unwrap_err().to_string();
        assert!(error.contains("give ") && error.contains(film), "{error}");
    }
    let error = of("s3://bucket/films/a.mp4").unwrap_err().to_string();
    assert!(
        error.ends_with("give s3://bucket/films/, and play /a.mp4"),
        "{error}"
    );
    for library in [
        "film.mp4",
        "s3://bucket",
        "s3://film.mp4",
        "s3://bucket/films.mp4/",
        "https://h/films",
    ] {
        assert_eq!(of(library).unwrap().source.as_deref(), Some(library));
    }
}

#[test]
fn defaults_apply_without_settings() {
    let is = settings(&[], &[("HEADWATER_SEGMENT", "")], "");
    assert_eq!((is.hls_segment_ms, is.dash_segment_ms), (6000, 6000));
    assert_eq!(is.listen, ["127.0.0.1:8080"]);
    assert_eq!(is.common.limits, net::Limits::default());
    assert_eq!((is.source, is.common.records), (None, None));
}

#[test]
fn sizes_of_memory_follow_the_memory_limit() {
    let is = settings(&["--memory-limit", "1GiB"], &[], "");
    assert_eq!(is.index_memory_bytes, (1 << 30) / 5);
    assert_eq!(is.segment_memory_bytes, (1 << 30) / 10);
    assert_eq!(is.storage.memory_bytes, (1 << 30) / 10);
    assert_eq!(is.common.send_memory_bytes, Some(256 << 20));
    assert_eq!(is.common.memory_limit().bytes(), 1 << 30);
    let file = "memory-limit = '1GiB'\nstorage-memory = '50%'\nsend-memory = '5MiB'";
    let is = settings(&["--config", "f"], &[], file);
    assert_eq!(is.storage.memory_bytes, 512 << 20);
    assert_eq!(is.common.send_memory_bytes, Some(5 << 20));
}

#[test]
fn lists_and_limits_are_parsed() {
    let is = settings(
        &[
            "--listen",
            "a:1",
            "--listen",
            "b:2",
            "--drain-timeout",
            "3s",
            "--hls-segment",
            "2s",
        ],
        &[("HEADWATER_LISTEN", "c:3, d:4")],
        "",
    );
    assert_eq!(is.listen, ["a:1", "b:2"]);
    assert_eq!(is.common.limits.drain_timeout, Duration::from_secs(3));
    assert_eq!((is.hls_segment_ms, is.dash_segment_ms), (2000, 6000));
    assert_eq!(
        settings(&[], &[("HEADWATER_LISTEN", "c:3, d:4")], "").listen,
        ["c:3", "d:4"]
    );
}

#[test]
fn errors_name_the_setting_and_a_remedy() {
    let config = ["--config", "h.toml"];
    for (file, message) in [
        (
            "segmnt = '6s'",
            "h.toml: unknown setting \"segmnt\"; did you mean \"segment\"?",
        ),
        ("colour = 'blue'", "h.toml: unknown setting \"colour\""),
        (
            "segment = true",
            "h.toml: segment must be a text or a number",
        ),
        (
            "segment = ['1s']",
            "h.toml: segment must be a text or a number",
        ),
        (
            "listen = [1.5]",
            "h.toml: listen must be a text or a number or an array of them",
        ),
    ] {
        assert_eq!(layers(&config, &[], file).unwrap_err().0, message);
    }
    assert!(
        layers(&config, &[], "a = ")
            .unwrap_err()
            .0
            .starts_with("h.toml: TOML parse error")
    );
    for (flags, env, message) in [
        (
            ["--segment", "6"],
            [("", "")],
            "segment = \"6\" (--segment): expected a duration in ms, s, min or h, such as 6s",
        ),
        (
            ["--workers", "1"],
            [("HEADWATER_SEGMENT", "1h")],
            "segment = \"1h\" (HEADWATER_SEGMENT): expected a segment length from 100ms to 60s",
        ),
        (
            ["--tls-key", "k"],
            [("", "")],
            "tls-cert and tls-key must be set together",
        ),
    ] {
        let layers = layers(&flags, &env, "").unwrap();
        assert_eq!(ServeSettings::new(&layers).unwrap_err().0, message);
    }
}

#[test]
fn the_printed_settings_are_a_file_that_sets_the_same() {
    let flags = ["--segment", "4s", "--listen", "a:1", "--listen", "b:2"];
    let flags = [&flags[..], &["--memory-limit", "8GiB"]].concat();
    let printed = layers(&flags, &[], "").unwrap().to_string();
    assert!(
        printed.contains("segment = \"4s\"  # --segment\n"),
        "{printed}"
    );
    assert!(
        printed.contains("index-memory = \"20% up to 512MiB\"  # default; here 512 MiB\n"),
        "{printed}"
    );
    assert!(printed.contains("# records is not set\n"), "{printed}");
    let again = settings(&["--config", "h.toml"], &[], &printed);
    assert_eq!(again.hls_segment_ms, 4000);
    assert_eq!(again.listen, ["a:1", "b:2"]);
}

#[test]
fn index_cache_and_media_from_are_parsed() {
    assert_eq!(
        settings(&[], &[], "").index_cache,
        IndexCacheStorage::Memory
    );
    let file = "index-cache = 'memory+disk'\nindex-cache-dir = 'kept'\nindex-disk = '1GiB'";
    let is = settings(&["--config", "h.toml"], &[], file);
    assert_eq!(is.index_cache, IndexCacheStorage::Disk("kept".into()));
    assert_eq!(is.index_disk_bytes, 1 << 30);
    let from = "http://a.example/x=films/x, https://b.example=/mnt/b";
    let is = settings(&[], &[("HEADWATER_MEDIA_FROM", from)], "");
    let folders: Vec<_> = is
        .media_from
        .iter()
        .map(|(_, folder)| folder.clone())
        .collect();
    assert_eq!(folders, [PathBuf::from("films/x"), "/mnt/b".into()]);
    for (flags, what) in [
        (["--index-cache", "disk"], "off, memory or memory+disk"),
        (["--index-cache", "memory+disk"], "index-cache-dir"),
        (["--media-from", "https://a.example/"], "URL=SOURCE"),
        (["--media-from", "file:///films=films"], "http(s)"),
        (
            ["--media-from", "https://u@a.example/=films"],
            "a host and a path",
        ),
    ] {
        let wrong = ServeSettings::new(&layers(&flags, &[], "").unwrap()).unwrap_err();
        assert!(wrong.0.contains(what), "{wrong}");
    }
}

#[test]
fn key_urls_are_validated() {
    let secret = ["--aes-secret", "s", "--aes-key-url"];
    for url in [
        "https://keys.example/of/{title}?a=b",
        "http://k/{title}",
        "/keys/{title}",
    ] {
        let is = settings(&[&secret[..], &[url]].concat(), &[], "");
        assert_eq!(is.aes_key_url.as_deref(), Some(url));
    }
    for (flags, what) in [
        (
            [&secret[..], &["https://keys.example/"]].concat(),
            "expected {title}",
        ),
        ([&secret[..], &["keys/{title}"]].concat(), "expected a URL"),
        (
            [&secret[..], &["ftp://keys/{title}"]].concat(),
            "expected a URL",
        ),
        (
            [&secret[..], &["https://keys/a\"b/{title}"]].concat(),
            "expected a URL",
        ),
        (
            [&secret[..], &["/keys/\n{title}"]].concat(),
            "expected a URL",
        ),
        (
            vec!["--aes-key-url", "https://k/{title}"],
            "aes-secret = FILE",
        ),
    ] {
        let wrong = ServeSettings::new(&layers(&flags, &[], "").unwrap()).unwrap_err();
        assert!(wrong.0.contains(what), "{flags:?}: {wrong}");
    }
}
