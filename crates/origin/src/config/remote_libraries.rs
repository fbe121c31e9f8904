//! The storage settings.

use net::config::{Setting, SettingLayers, UsageError, parse_bytes, parse_count, parse_duration};
use std::time::Duration;
use store::{KeyRoute, Options, StorageTimeouts, TransportOptions, WeightedEndpoint};

/// The settings of remote libraries. In the settings file, these settings may also be in the table
/// `[storage]`.
pub const STORAGE: &[Setting] = &[
    Setting::new(
        "storage-connections",
        "pooled|fresh",
        "pooled",
        "Reuse storage connections, or open one per request",
    ),
    Setting::new(
        "storage-http",
        "1.1|2",
        "1.1",
        "HTTP version of pooled connections; 2 requires TLS and falls back to 1.1",
    ),
    Setting::new(
        "storage-connections-max",
        "N",
        "64",
        "Connection limit per storage address; further requests wait",
    ),
    Setting::new(
        "storage-idle-timeout",
        "DURATION",
        "60s",
        "Time after which an idle storage connection is closed",
    ),
    Setting::new(
        "storage-connect-timeout",
        "DURATION",
        "2s",
        "Timeout for opening a storage connection, including TLS",
    ),
    Setting::new(
        "storage-first-byte-timeout",
        "DURATION",
        "5s",
        "Timeout for the first byte of a storage response",
    ),
    Setting::new(
        "storage-stall-timeout",
        "DURATION",
        "5s",
        "Timeout for each 16 KiB of a storage response",
    ),
    Setting::new(
        "storage-retries",
        "N",
        "2",
        "Maximum number of retries of a storage request",
    ),
    Setting::new(
        "storage-hedge-percent",
        "N",
        "5",
        "Percentage of storage requests that may be sent twice because they are slow; 0: none",
    ),
    Setting::new(
        "storage-memory",
        "MEMORY",
        "10% up to 256MiB",
        "Memory limit of the cache for ranges of remote films; 0B disables it",
    ),
    Setting::new(
        "storage-unsent",
        "MEMORY",
        "10% up to 256MiB",
        "Memory limit for fetched bytes that are not sent yet; at the limit, fetching waits",
    ),
    Setting::new(
        "storage-waste",
        "BYTES",
        "1MiB",
        "Largest gap between two ranges that are read in one request",
    ),
    Setting::new(
        "storage-read-ahead",
        "on|off",
        "off",
        "Fetch the next segment of a remote film in advance",
    ),
    Setting::new(
        "storage-option",
        "KEY=VALUE",
        "",
        "Option of S3, GCS or Azure such as aws_region; pass secrets in the environment",
    )
    .as_list(),
    Setting::new(
        "storage-ca",
        "FILE",
        "",
        "PEM file with CA certificates to trust in addition to the public ones",
    ),
    Setting::new(
        "storage-via",
        "'REGEX URL'",
        "",
        "Send requests for objects with matching names through the server at URL",
    )
    .as_tables(&["match", "url"]),
    Setting::new(
        "storage-endpoint",
        "'URL WEIGHT'",
        "",
        "Another endpoint of the same library, with its share of requests",
    )
    .as_tables(&["url", "weight"]),
];

/// Reads the storage settings. The caller adds the observer of storage requests.
pub(crate) fn read_storage_options(layers: &SettingLayers) -> Result<Options, UsageError> {
    let default = Options::default();
    let time = |name, default: Duration| {
        Ok(layers
            .parse_setting(name, parse_duration)?
            .unwrap_or(default))
    };
    let size = |name, default: u64| Ok(layers.parse_setting(name, parse_bytes)?.unwrap_or(default));
    let memory = |name, default: u64| Ok(layers.parse_memory_setting(name)?.unwrap_or(default));
    let number =
        |name, default: usize| Ok(layers.parse_setting(name, parse_count)?.unwrap_or(default));
    let timeouts = StorageTimeouts::default();
    let percent = layers.parse_setting("storage-hedge-percent", parse_percent)?;
    Ok(Options {
        transport: TransportOptions {
            pooled: layers
                .parse_setting("storage-connections", parse_connection_pooling)?
                .unwrap_or(true),
            http2: layers
                .parse_setting("storage-http", parse_http_version)?
                .unwrap_or(false),
            connections_max: number("storage-connections-max", 64)?.max(1),
            idle: time("storage-idle-timeout", default.transport.idle)?,
            timeouts: StorageTimeouts {
                connect: time("storage-connect-timeout", timeouts.connect)?,
                first_byte: time("storage-first-byte-timeout", timeouts.first_byte)?,
                stall: time("storage-stall-timeout", timeouts.stall)?,
            },
            ca: layers.parse_setting("storage-ca", read_file)?,
        },
        via: parse_list_setting(layers, "storage-via", parse_key_route)?,
        endpoints: parse_list_setting(layers, "storage-endpoint", parse_storage_endpoint)?,
        settings: parse_list_setting(layers, "storage-option", parse_storage_option)?,
        memory_bytes: memory("storage-memory", default.memory_bytes)?,
        unsent_bytes: memory("storage-unsent", default.unsent_bytes)?,
        waste_bytes: size("storage-waste", default.waste_bytes)?,
        retries: number("storage-retries", 2)?.min(10) as u32,
        hedge_share: percent.unwrap_or(default.hedge_share),
        ..default
    })
}

fn parse_list_setting<T>(
    layers: &SettingLayers,
    name: &str,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<Vec<T>, UsageError> {
    let one = |text: &String| parse(text).map_err(|why| UsageError(format!("{name}: {why}")));
    layers.setting_texts(name).iter().map(one).collect()
}

fn parse_connection_pooling(text: &str) -> Result<bool, String> {
    match text {
        "pooled" => Ok(true),
        "fresh" => Ok(false),
        _ => Err("expected pooled or fresh".into()),
    }
}

fn parse_http_version(text: &str) -> Result<bool, String> {
    match text {
        "1.1" => Ok(false),
        "2" => Ok(true),
        _ => Err("expected 1.1 or 2".into()),
    }
}

fn parse_percent(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(percent) if (0.0..=100.0).contains(&percent) => Ok(percent / 100.0),
        _ => Err("expected a number from 0 to 100".into()),
    }
}

fn read_file(path: &str) -> Result<Vec<u8>, String> {
    std::fs::read(path)
        .map_err(|error| format!("cannot read it: {}", net::describe_io_error(&error)))
}

fn parse_storage_option(text: &str) -> Result<(String, String), String> {
    let (key, value) = text
        .split_once('=')
        .ok_or("expected KEY=VALUE, such as aws_region=eu-central-1")?;
    Ok((key.trim().to_owned(), value.trim().to_owned()))
}

fn parse_key_route(text: &str) -> Result<KeyRoute, String> {
    let wanted = "expected a regular expression, a space and a URL: '^4k/ http://cache:8080'";
    let (matches, url) = text.trim().rsplit_once(' ').ok_or(wanted)?;
    if !url.starts_with("http://") && !url.starts_with("https://") {
        return Err(wanted.into());
    }
    Ok(KeyRoute {
        matches: matches.trim().parse().map_err(|error| format!("{error}"))?,
        url: url.to_owned(),
    })
}

fn parse_storage_endpoint(text: &str) -> Result<WeightedEndpoint, String> {
    let (url, weight) = match text.trim().split_once(' ') {
        Some((url, weight)) => (url, weight.trim().parse().unwrap_or(f64::NAN)),
        None => (text.trim(), 1.0),
    };
    if !(0.001..=1000.0).contains(&weight) {
        return Err("expected a weight from 0.001 to 1000".into());
    }
    if !store::Remote::is_remote_url(url) {
        return Err("expected a URL such as s3://bucket or http://host/path".into());
    }
    Ok(WeightedEndpoint {
        url: url.to_owned(),
        weight,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn storage_routes_and_endpoints_are_parsed() {
        let found = parse_key_route(r"\.(ism|mp4)$ http://127.0.0.1:8081").unwrap();
        assert!(found.matches.is_match("a b.mp4") && !found.matches.is_match("a.cmfv"));
        assert_eq!(found.url, "http://127.0.0.1:8081");
        for wrong in ["", "x", "( http://a", "a ftp://b"] {
            assert!(parse_key_route(wrong).is_err(), "{wrong}");
        }
        let weighted = |url: &str, weight| WeightedEndpoint {
            url: url.to_owned(),
            weight,
        };
        assert_eq!(
            parse_storage_endpoint("s3://b/p"),
            Ok(weighted("s3://b/p", 1.0))
        );
        assert_eq!(
            parse_storage_endpoint("http://b 0.5"),
            Ok(weighted("http://b", 0.5))
        );
        for wrong in ["/films", "http://b 0", "http://b x"] {
            assert!(parse_storage_endpoint(wrong).is_err(), "{wrong}");
        }
    }
}
