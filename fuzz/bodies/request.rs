//! No request can make the edge panic, be parsed as two by an origin, carry hop-by-hop headers to
//! the origin, or get a body that contradicts its head.

use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http::header::{HeaderMap, HeaderValue};
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use hyper::service::service_fn;
use net::Body;
use net::config::{SettingLayers, SettingSources};

use super::wire::{Message, Wire, bytes_sent_for, run};
use crate::cache_outcome::CacheOutcome;
use crate::cached_object::CachedObject;
use crate::config::{EdgeSettings, SETTINGS, TABLES, command};
use crate::deliver;
use crate::freshness::{FreshnessLifetime, LifetimeSource};
use crate::request_facts::{LocalReply, RequestFacts};
use net::cmcd::CmcdData;

/// The first byte selects settings of the edge. The rest is sent by a client.
pub fn run_case(data: &[u8]) {
    let Some((flags, bytes)) = data.split_first() else {
        return;
    };
    let client_host = flags & 1 != 0;
    for parts in parsed(bytes) {
        check(&parts, settings(client_host));
    }
}

/// Parses the bytes with hyper, as the edge's own port does.
fn parsed(bytes: &[u8]) -> Vec<Parts> {
    let (wire, _) = Wire::new(bytes, false);
    let seen: Mutex<Vec<Parts>> = Mutex::default();
    let service = service_fn(|request: Request<hyper::body::Incoming>| {
        seen.lock().unwrap().push(request.into_parts().0);
        async { Ok::<_, Infallible>(Response::new(Body::empty())) }
    });
    let mut builder = hyper::server::conn::http1::Builder::new();
    let connection = builder
        .half_close(true)
        .max_buf_size(64 << 10)
        .serve_connection(wire, service);
    // The result of the connection does not matter.
    let _ = run(connection);
    seen.into_inner().unwrap()
}

fn check(parts: &Parts, settings: &EdgeSettings) {
    let instance = HeaderValue::from_static("headwater-1");
    let client = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let received = match RequestFacts::from_parts(parts, settings, &instance, client) {
        Ok(received) => received,
        Err(LocalReply::Rejected(response)) => {
            assert!(response.status().is_client_error() || response.status().as_u16() == 508);
            return;
        }
        Err(_) => return,
    };
    assert!(received.target.starts_with('/'));
    assert!(received.primary_key.ends_with(&*received.target));
    // Otherwise a client could write a line into a variant's name.
    assert!(!received.primary_key.contains('\n'));
    let said = CmcdData::parse(Some(received.query), received.headers);
    assert!(said.iter().count() <= 64);
    let host = received.forwarded_host(settings);
    let ask = received.to_fetch_request(0, None, settings, &instance);
    for headers in [ask.origin_headers, received.pass_headers(&instance)] {
        sent(&received, headers, host.as_ref());
    }
    delivered(parts, &received);
}

/// Parses the forwarded request strictly: one request for the same target with one Host.
fn sent(received: &RequestFacts<'_>, headers: HeaderMap, host: Option<&HeaderValue>) {
    let Ok(uri) = received.target.parse() else {
        // The edge does not send it either.
        return;
    };
    let mut request = Request::new(Body::empty());
    *request.method_mut() = received.method.clone();
    *request.uri_mut() = uri;
    *request.headers_mut() = headers;
    let ours = HeaderValue::from_static("origin");
    request
        .headers_mut()
        .insert("host", host.unwrap_or(&ours).clone());
    let (wire, written) = Wire::new(b"", true);
    run(async {
        let Ok((mut sender, connection)) = hyper::client::conn::http1::handshake(wire).await else {
            return;
        };
        // There is no response.
        let sending = async move { sender.send_request(request).await };
        let _ = futures_util::future::join(connection, sending).await;
    });
    let written = written.lock().unwrap();
    if written.is_empty() {
        return;
    }
    let message = Message::parse(&written);
    let words: Vec<&str> = message.first.split(' ').collect();
    assert_eq!(
        words,
        [received.method.as_str(), &received.target, "HTTP/1.1"]
    );
    assert_eq!(message.all("host"), [host.unwrap_or(&ours).as_bytes()]);
    let empty = message.rest.is_empty() || message.rest == b"0\r\n\r\n";
    assert!(
        empty,
        "a second request: {:?}",
        String::from_utf8_lossy(message.rest)
    );
    let ends = message.all("content-length").len() + message.all("transfer-encoding").len();
    assert!(ends <= 1, "two ends");
    for name in [
        "keep-alive",
        "proxy-connection",
        "te",
        "upgrade",
        "expect",
        "forwarded",
        "x-forwarded-host",
    ] {
        assert!(message.all(name).is_empty(), "{name} goes on");
    }
    assert_eq!(
        message
            .all("x-forwarded-for")
            .iter()
            .filter(|v| **v != b"127.0.0.1")
            .count(),
        0
    );
}

/// Checks a cached response to this request, with its conditions and ranges.
fn delivered(parts: &Parts, received: &RequestFacts<'_>) {
    let (object, body) = kept();
    let outcome = CacheOutcome::Hit;
    let response =
        deliver::respond_with_object(&parts.method, received.headers, object, outcome, None);
    let response = response.expect("a whole one can always be had");
    let head = parts.method == Method::HEAD;
    let (status, promised) = (response.status(), response.body().len());
    let written = bytes_sent_for(response, head);
    let message = Message::parse(&written);
    match status {
        StatusCode::OK if !head => assert!(message.rest == body),
        StatusCode::NOT_MODIFIED => assert!(message.rest.is_empty()),
        StatusCode::OK | StatusCode::PARTIAL_CONTENT | StatusCode::RANGE_NOT_SATISFIABLE => {
            assert!(head || message.rest.len() as u64 == promised);
        }
        StatusCode::PRECONDITION_FAILED => {}
        other => panic!("{other}"),
    }
}

fn kept() -> &'static (Arc<CachedObject>, Vec<u8>) {
    static KEPT: OnceLock<(Arc<CachedObject>, Vec<u8>)> = OnceLock::new();
    KEPT.get_or_init(|| {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("etag", "\"v1\""),
            ("last-modified", "Tue, 14 Nov 2023 22:13:20 GMT"),
            ("content-type", "video/mp4"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        let lifetime = FreshnessLifetime {
            fresh: Duration::from_secs(1 << 30),
            source: LifetimeSource::MaxAge,
            age: Duration::ZERO,
            no_cache: false,
            must_revalidate: false,
            stale_while_revalidate: Duration::ZERO,
            stale_if_error: Duration::ZERO,
        };
        let body: Vec<u8> = (0..3000u32).map(|n| (n % 251) as u8).collect();
        let len = Some(body.len() as u64);
        let object = CachedObject::new(StatusCode::OK, &headers, lifetime, len, &HeaderMap::new());
        for piece in body.chunks(1000) {
            object.body.growing.push(Bytes::copy_from_slice(piece));
        }
        object.body.complete_with(false);
        (Arc::new(object), body)
    })
}

fn settings(client_host: bool) -> &'static EdgeSettings {
    static BOTH: [OnceLock<EdgeSettings>; 2] = [OnceLock::new(), OnceLock::new()];
    BOTH[usize::from(client_host)].get_or_init(|| {
        let host = if client_host { "client" } else { "origin" };
        let words = ["edge", "--origin", "http://origin", "--forward-host", host];
        let flags = command().get_matches_from(words.into_iter().chain(["--forward", "x-tenant"]));
        let layers = SettingLayers::new(&SettingSources {
            settings: SETTINGS,
            tables: TABLES,
            flags: &flags,
            env: &|_| None,
            read: &|path| std::fs::read_to_string(path),
        });
        EdgeSettings::from_layers(&layers.unwrap()).unwrap()
    })
}
