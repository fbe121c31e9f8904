//! What can be said about the storage.

use net::config::{Knob, Layers, Wrong, bytes, count, duration};
use std::time::Duration;
use store::{Options, Timeouts, Transport, Via, Weighted};

/// The knobs of remote libraries. In the file also as `[storage]`.
pub const STORAGE: &[Knob] = &[
    Knob::new(
        "storage-connections",
        "pooled|fresh",
        "pooled",
        "Whether connections to the storage are kept, or opened anew for each request",
    ),
    Knob::new(
        "storage-http",
        "1.1|2",
        "1.1",
        "HTTP of connections that are kept; 2 only where the storage offers it (TLS), else 1.1",
    ),
    Knob::new(
        "storage-connections-max",
        "N",
        "64",
        "Most connections to one address of the storage; who comes later waits",
    ),
    Knob::new(
        "storage-idle-timeout",
        "DURATION",
        "60s",
        "Time a connection to the storage is kept without a request",
    ),
    Knob::new(
        "storage-connect-timeout",
        "DURATION",
        "2s",
        "Time for a connection to the storage, TLS included",
    ),
    Knob::new(
        "storage-first-byte-timeout",
        "DURATION",
        "5s",
        "Time for the storage to begin an answer; then 504",
    ),
    Knob::new(
        "storage-stall-timeout",
        "DURATION",
        "5s",
        "Time for each 16 KiB of the storage's answer",
    ),
    Knob::new(
        "storage-retries",
        "N",
        "2",
        "How often a failed request to the storage is sent again, at most",
    ),
    Knob::new(
        "storage-hedge-percent",
        "N",
        "5",
        "Share of requests that may be sent a second time because the first is slow; 0: none",
    ),
    Knob::new(
        "storage-memory",
        "BYTES",
        "256MiB",
        "Most memory for parts of remote films; 0B keeps none",
    ),
    Knob::new(
        "storage-unsent",
        "BYTES",
        "256MiB",
        "Most memory beside it for parts that were fetched and not yet sent; beyond it they are \
         fetched as they are taken",
    ),
    Knob::new(
        "storage-waste",
        "BYTES",
        "1MiB",
        "Bytes between two wanted parts that are rather read along than asked for apart",
    ),
    Knob::new(
        "storage-read-ahead",
        "on|off",
        "off",
        "Whether the next segment is fetched before it is asked for",
    ),
    Knob::new(
        "storage-option",
        "KEY=VALUE",
        "",
        "A setting of S3, GCS or Azure, such as aws_region; secrets rather in the environment",
    )
    .list(),
    Knob::new(
        "storage-ca",
        "FILE",
        "",
        "Certificates in PEM to trust beside the public authorities",
    ),
    Knob::new(
        "storage-via",
        "'REGEX URL'",
        "",
        "Send requests for objects whose name matches through the server at URL",
    )
    .tables(&["match", "url"]),
    Knob::new(
        "storage-endpoint",
        "'URL WEIGHT'",
        "",
        "Another place that holds the same library, and its share of the requests",
    )
    .tables(&["url", "weight"]),
];

/// Gives the knobs their meaning; what is told of requests is left to the caller.
pub(crate) fn options(layers: &Layers) -> Result<Options, Wrong> {
    let default = Options::default();
    let time = |name, default: Duration| Ok(layers.with(name, duration)?.unwrap_or(default));
    let size = |name, default: u64| Ok(layers.with(name, bytes)?.unwrap_or(default));
    let number = |name, default: usize| Ok(layers.with(name, count)?.unwrap_or(default));
    let timeouts = Timeouts::default();
    let percent = layers.with("storage-hedge-percent", percent)?;
    Ok(Options {
        transport: Transport {
            pooled: layers.with("storage-connections", pooled)?.unwrap_or(true),
            http2: layers.with("storage-http", http2)?.unwrap_or(false),
            connections_max: number("storage-connections-max", 64)?.max(1),
            idle: time("storage-idle-timeout", default.transport.idle)?,
            timeouts: Timeouts {
                connect: time("storage-connect-timeout", timeouts.connect)?,
                first_byte: time("storage-first-byte-timeout", timeouts.first_byte)?,
                stall: time("storage-stall-timeout", timeouts.stall)?,
            },
            ca: layers.with("storage-ca", file)?,
        },
        via: all(layers, "storage-via", via)?,
        endpoints: all(layers, "storage-endpoint", endpoint)?,
        settings: all(layers, "storage-option", setting)?,
        memory_bytes: size("storage-memory", default.memory_bytes)?,
        unsent_bytes: size("storage-unsent", default.unsent_bytes)?,
        waste_bytes: size("storage-waste", default.waste_bytes)?,
        retries: number("storage-retries", 2)?.min(10) as u32,
        hedge_share: percent.unwrap_or(default.hedge_share),
        ..default
    })
}

/// `on` or `off`.
pub(super) fn switch(text: &str) -> Result<bool, String> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err("it is on or off".into()),
    }
}

fn all<T>(
    layers: &Layers,
    name: &str,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<Vec<T>, Wrong> {
    let one = |text: &String| parse(text).map_err(|why| Wrong(format!("{name}: {why}")));
    layers.list(name).iter().map(one).collect()
}

fn pooled(text: &str) -> Result<bool, String> {
    match text {
        "pooled" => Ok(true),
        "fresh" => Ok(false),
        _ => Err("it is pooled or fresh".into()),
    }
}

fn http2(text: &str) -> Result<bool, String> {
    match text {
        "1.1" => Ok(false),
        "2" => Ok(true),
        _ => Err("it is 1.1 or 2".into()),
    }
}

fn percent(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(percent) if (0.0..=100.0).contains(&percent) => Ok(percent / 100.0),
        _ => Err("it is a number from 0 to 100".into()),
    }
}

fn file(path: &str) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| error.to_string())
}

fn setting(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("it is KEY=VALUE")?;
    Ok((key.trim().to_owned(), value.trim().to_owned()))
}

fn via(text: &str) -> Result<Via, String> {
    let wanted = "it is a regular expression, a space and an http or https URL";
    let (matches, url) = text.trim().rsplit_once(' ').ok_or(wanted)?;
    if !url.starts_with("http://") && !url.starts_with("https://") {
        return Err(wanted.into());
    }
    Ok(Via {
        matches: matches.trim().parse().map_err(|error| format!("{error}"))?,
        url: url.to_owned(),
    })
}

fn endpoint(text: &str) -> Result<Weighted, String> {
    let (url, weight) = match text.trim().split_once(' ') {
        Some((url, weight)) => (url, weight.trim().parse().unwrap_or(f64::NAN)),
        None => (text.trim(), 1.0),
    };
    if !(0.001..=1000.0).contains(&weight) {
        return Err("a weight is a number from 0.001 to 1000".into());
    }
    if !store::Remote::is_remote(url) {
        return Err("an endpoint is a URL such as s3://bucket or http://host/path".into());
    }
    Ok(Weighted {
        url: url.to_owned(),
        weight,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_and_endpoints() {
        let found = via(r"\.(ism|mp4)$ http://127.0.0.1:8081").unwrap();
        assert!(found.matches.is_match("a b.mp4") && !found.matches.is_match("a.cmfv"));
        assert_eq!(found.url, "http://127.0.0.1:8081");
        for wrong in ["", "x", "( http://a", "a ftp://b"] {
            assert!(via(wrong).is_err(), "{wrong}");
        }
        let weighted = |url: &str, weight| Weighted {
            url: url.to_owned(),
            weight,
        };
        assert_eq!(endpoint("s3://b/p"), Ok(weighted("s3://b/p", 1.0)));
        assert_eq!(endpoint("http://b 0.5"), Ok(weighted("http://b", 0.5)));
        for wrong in ["/films", "http://b 0", "http://b x"] {
            assert!(endpoint(wrong).is_err(), "{wrong}");
        }
    }
}
