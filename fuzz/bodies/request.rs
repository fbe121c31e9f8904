//! Checks that no request makes the edge panic, or gets a response whose body contradicts its head.
//! An origin must parse a forwarded request as a single request, without hop-by-hop headers.

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
use crate::config::{EdgeSettings, SETTINGS, TABLES, define_edge_command};
use crate::deliver;
use crate::freshness::{FreshnessLifetime, LifetimeSource};
use crate::request_facts::{LocalRequest, RequestFacts};
use net::cmcd::CmcdData;

/// The first byte selects settings of the edge. The rest is the data that a client sends.
pub fn run_case(data: &[u8]) {
    let Some((flags, bytes)) = data.split_first() else {
        return;
    };
    let client_host = flags & 1 != 0;
    for parts in parse_requests(bytes) {
        check(&parts, settings(client_host));
    }
}

/// Parses the bytes with hyper, as the edge does.
fn parse_requests(bytes: &[u8]) -> Vec<Parts> {
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
    // Ignores the result of the connection, because only the parsed requests matter.
    let _ = run(connection);
    seen.into_inner().unwrap()
}

fn check(parts: &Parts, settings: &EdgeSettings) {
    let instance = HeaderValue::from_static("headwater-1");
    let client = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let received = match RequestFacts::from_parts(parts, settings, &instance, client) {
        Ok(received) => received,
        Err(LocalRequest::Rejected(response)) => {
            assert!(response.status().is_client_error() || response.status().as_u16() == 508);
            return;
        }
        Err(_) => return,
    };
    assert!(received.target.starts_with('/'));
    assert!(received.primary_key.ends_with(&*received.normalized_target));
    assert!(received.normalized_target.starts_with('/'));
    // In the key of a variant, a line for each selecting header follows the primary key. If the
    // primary key contained a line break, a client could add such a line.
    assert!(!received.primary_key.contains('\n'));
    let cmcd = CmcdData::parse_cmcd(Some(received.query), received.headers);
    assert!(cmcd.iter().count() <= 64);
    let host = received.forwarded_host(settings);
    let fetch_request = received.to_fetch_request(0, None, settings, &instance);
    for headers in [
        fetch_request.origin_headers,
        received.pass_headers(&instance),
    ] {
        check_forwarded(&received, headers, host.as_ref());
    }
    check_delivered(parts, &received);
}

/// Checks with a strict parser that the edge forwards a single request, with the same target and
/// one Host.
fn check_forwarded(received: &RequestFacts<'_>, headers: HeaderMap, host: Option<&HeaderValue>) {
    let Ok(uri) = received.target.parse() else {
        // The target is invalid. Neither the edge nor this test can send such a request.
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
        // Ignores the failure of the request, because no response follows.
        let sending = async move { sender.send_request(request).await };
        let _ = futures_util::future::join(connection, sending).await;
    });
    let written = written.lock().unwrap();
    if written.is_empty() {
        return;
    }
    let message = Message::parse(&written);
    let request_line: Vec<&str> = message.first.split(' ').collect();
    assert_eq!(
        request_line,
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
    assert!(ends <= 1, "two body lengths");
    for name in [
        "keep-alive",
        "proxy-connection",
        "te",
        "upgrade",
        "expect",
        "forwarded",
        "x-forwarded-host",
    ] {
        assert!(message.all(name).is_empty(), "{name} is forwarded");
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

/// Checks the response from the cache to this request, which may contain conditions and ranges.
fn check_delivered(parts: &Parts, received: &RequestFacts<'_>) {
    let (object, body) = cached_object();
    let outcome = CacheOutcome::Hit;
    let response =
        deliver::respond_with_object(&parts.method, received.headers, object, outcome, None);
    let response = response.expect("a complete object can be delivered");
    let head = parts.method == Method::HEAD;
    let (status, declared_len) = (response.status(), response.body().len());
    let written = bytes_sent_for(response, head);
    let message = Message::parse(&written);
    match status {
        StatusCode::OK if !head => assert!(message.rest == body),
        StatusCode::NOT_MODIFIED => assert!(message.rest.is_empty()),
        StatusCode::OK | StatusCode::PARTIAL_CONTENT | StatusCode::RANGE_NOT_SATISFIABLE => {
            assert!(head || message.rest.len() as u64 == declared_len);
        }
        StatusCode::PRECONDITION_FAILED => {}
        other => panic!("{other}"),
    }
}

fn cached_object() -> &'static (Arc<CachedObject>, Vec<u8>) {
    static CACHED: OnceLock<(Arc<CachedObject>, Vec<u8>)> = OnceLock::new();
    CACHED.get_or_init(|| {
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
            object
                .body
                .growing
                .append_bytes(Bytes::copy_from_slice(piece));
        }
        object.body.mark_complete(false);
        (Arc::new(object), body)
    })
}

fn settings(client_host: bool) -> &'static EdgeSettings {
    static BOTH: [OnceLock<EdgeSettings>; 2] = [OnceLock::new(), OnceLock::new()];
    BOTH[usize::from(client_host)].get_or_init(|| {
        let host = if client_host { "client" } else { "origin" };
        let arguments = ["edge", "--origin", "http://origin", "--forward-host", host];
        let flags = define_edge_command()
            .get_matches_from(arguments.into_iter().chain(["--forward", "x-tenant"]));
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
