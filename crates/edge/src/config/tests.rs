use super::*;
use net::config::SettingSources;

fn settings(words: &[&str]) -> Result<EdgeSettings, UsageError> {
    let all = ["edge"].iter().chain(words);
    let flags = define_edge_command().try_get_matches_from(all).unwrap();
    let sources = SettingSources {
        settings: SETTINGS,
        tables: TABLES,
        flags: &flags,
        env: &|_| None,
        read: &|_| Ok(String::new()),
    };
    EdgeSettings::from_layers(&SettingLayers::new(&sources)?)
}

#[test]
fn an_origin_is_the_only_required_setting() {
    let is = settings(&["--origin", "http://o:1", "--memory-limit", "8GiB"]).unwrap();
    assert_eq!(is.policy, FreshnessPolicy::default());
    assert_eq!(is.treatment.limits, upstream::UpstreamLimits::default());
    assert_eq!(is.pools[""].origins, ["http://o:1"]);
    assert_eq!(is.memory_bytes, 1 << 30);
    assert!(!is.client_host);
}

#[test]
fn the_cache_takes_a_share_of_the_memory_limit() {
    let memory_bytes = |words: &[&str]| {
        let all = [&["--origin", "http://o:1"], words].concat();
        settings(&all).unwrap().memory_bytes
    };
    assert_eq!(memory_bytes(&["--memory-limit", "1GiB"]), 512 << 20);
    let quarter = ["--memory-limit", "1GiB", "--memory", "25%"];
    assert_eq!(memory_bytes(&quarter), 256 << 20);
    // The default of `memory` is half of the memory limit. Half of 1 MiB is below the minimum of
    // `memory`, so the minimum is used.
    assert_eq!(memory_bytes(&["--memory-limit", "1MiB"]), 16 << 20);
}

#[test]
fn invalid_settings_are_reported_with_a_remedy() {
    for (words, part) in [
        (&[][..], "--origin is missing"),
        (
            &["--origin", "http://o", "--memory", "1MiB"],
            "at least 16MiB",
        ),
        (
            &["--origin", "http://o", "--client-ca", "ca.pem"],
            "requires TLS; set tls-cert",
        ),
        (
            &["--origin", "http://o", "--origin-key", "edge.key"],
            "origin-cert and origin-key must be set together",
        ),
        (
            &["--origin", "http://o", "--forward", "a b"],
            "invalid header name",
        ),
        (
            &["--origin", "http://o", "--forward-host", "me"],
            "origin or client",
        ),
        (
            &["--origin", "http://o", "--origin-health", "healthz"],
            "begins with /",
        ),
        (
            &["--origin", "http://o", "--origin-retries", "101"],
            "from 0 to 100",
        ),
        (
            &["--origin", "http://o", "--trust-proxy", "10.0.0.0/99"],
            "invalid network",
        ),
    ] {
        let wrong = settings(words).unwrap_err();
        assert!(wrong.0.contains(part), "{wrong}");
    }
}
