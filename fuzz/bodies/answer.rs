//! Nothing that an origin answers can make the edge panic, or give a client what is meant for its
//! neighbour on the wire, another body than came, or one that was cut as if it were whole.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use http_body::Body as _;
use net::Body;

use super::wire::{Message, Wire, answered, run};
use crate::deliver;
use crate::fresh::{Asked, Directives, Policy, judge, keep};
use crate::object::{Object, varying};
use crate::parts;
use crate::reason::{Outcome, Passing};

/// The first byte says what the request carried; then what the origin answers.
pub fn try_it(data: &[u8]) {
    let Some((flags, bytes)) = data.split_first() else {
        return;
    };
    let Some(came) = run(asked(bytes)) else {
        return;
    };
    let mut request = HeaderMap::new();
    if flags & 1 != 0 {
        request.insert(
            header::ORIGIN,
            HeaderValue::from_static("https://player.example"),
        );
    }
    relayed(&came);
    kept(&came, &request, *flags);
}

/// An answer as it came.
struct Came {
    status: StatusCode,
    headers: HeaderMap,
    len: Option<u64>,
    body: Vec<u8>,
    whole: bool,
}

/// What hyper makes of the bytes, as for every origin.
async fn asked(bytes: &[u8]) -> Option<Came> {
    let (wire, _) = Wire::new(bytes, true);
    let mut builder = hyper::client::conn::http1::Builder::new();
    let shaking = builder.max_header_size(64 << 10).handshake(wire);
    let (mut sender, connection) = shaking.await.ok()?;
    let request = Request::get("/a")
        .header("host", "origin")
        .body(Body::empty());
    let reading = async move {
        let answered = sender.send_request(request.unwrap()).await;
        let (head, mut body) = answered.ok()?.into_parts();
        let len = body.size_hint().exact();
        let (mut all, mut whole) = (Vec::new(), true);
        while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
            match frame.map(|frame| frame.into_data()) {
                Ok(Ok(data)) => all.extend_from_slice(&data),
                // Trailers end here.
                Ok(Err(_)) => {}
                Err(_) => {
                    whole = false;
                    break;
                }
            }
        }
        Some(Came {
            status: head.status,
            headers: head.headers,
            len,
            body: all,
            whole,
        })
    };
    let came = futures_util::future::join(connection, reading).await.1?;
    // Such an answer is refused where it comes in.
    (came.status != StatusCode::SWITCHING_PROTOCOLS).then_some(came)
}

/// What ends at the edge.
const ENDS_HERE: [&str; 8] = [
    "keep-alive",
    "proxy-connection",
    "proxy-authenticate",
    "te",
    "trailer",
    "upgrade",
    "surrogate-key",
    "x-named",
];

fn judged(written: &[u8], came: &Came, expected: &[u8], bodiless: bool) {
    if written.is_empty() {
        assert!(!came.whole, "nothing was sent");
        return;
    }
    let message = Message::read(written);
    for name in ENDS_HERE {
        let named = name != "x-named" || names_it(&came.headers);
        assert!(!named || message.all(name).is_empty(), "{name} goes on");
    }
    if bodiless {
        assert!(message.rest.is_empty(), "{:?}", message.first);
        return;
    }
    match message.body() {
        Some(body) => assert!(came.whole && body == expected, "{:?}", message.first),
        None => assert!(!came.whole, "cut without a reason"),
    }
}

fn names_it(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::CONNECTION).iter();
    let mut texts = values.filter_map(|value| value.to_str().ok());
    texts.any(|text| {
        text.split(',')
            .any(|name| name.trim().eq_ignore_ascii_case("x-named"))
    })
}

/// For one client, as it came.
fn relayed(came: &Came) {
    for method in [Method::GET, Method::HEAD] {
        let outcome = Outcome::Pass(Passing::Method);
        let (headers, bodiless) =
            deliver::relayed_head(&method, came.status, &came.headers, outcome);
        let mut response = Response::new(if bodiless { Body::empty() } else { body(came) });
        *response.status_mut() = came.status;
        *response.headers_mut() = headers;
        let written = answered(response, method == Method::HEAD);
        judged(&written, came, &came.body, bodiless);
    }
}

fn body(came: &Came) -> Body {
    let cut = (!came.whole).then(|| Err(net::body::Cut::new("cut")));
    let data = Ok(Bytes::copy_from_slice(&came.body));
    let pieces = futures_util::stream::iter([data].into_iter().chain(cut));
    match came.len {
        Some(len) => Body::stream(len, pieces),
        None => Body::unsized_stream(pieces),
    }
}

/// For all clients, if it may be.
fn kept(came: &Came, request: &HeaderMap, flags: u8) {
    let asked = Asked {
        method: &Method::GET,
        authorized: flags & 2 != 0,
        cookies: flags & 4 != 0,
        delay: Duration::from_millis(u64::from(flags)),
    };
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    let Ok(lifetime) = keep(&asked, came.status, &came.headers, now, &Policy::default()) else {
        return;
    };
    let said = Directives::of_answer(&came.headers);
    assert!(!said.private && (!said.no_store || said.must_understand));
    assert!(!came.headers.contains_key(header::SET_COOKIE));
    if let Some(etag) = parts::etag(&came.headers) {
        assert!(etag.starts_with('"'));
    }
    let object = Object::new(came.status, &came.headers, lifetime, came.len, request);
    let names: Vec<_> = object.vary.iter().map(|(name, _)| name.clone()).collect();
    assert!(object.answers(request) && varying(&object.headers) == names);
    judge(
        &lifetime,
        Duration::from_secs(u64::from(flags)),
        &Directives::default(),
    );
    object
        .content
        .growing
        .push(Bytes::copy_from_slice(&came.body));
    if came.whole {
        object.content.finish(false);
    } else {
        object.content.cut("cut");
    }
    let confirmed = object.confirmed(&came.headers, lifetime, request);
    assert_eq!(confirmed.status, object.status);
    assert!(confirmed.answers(request));
    assert!(!confirmed.headers.contains_key(header::CONTENT_LENGTH));
    for object in [object, confirmed].map(Arc::new) {
        for range in [None, Some("bytes=0-0"), Some("bytes=-1")] {
            delivered(came, &object, range);
        }
    }
}

fn delivered(came: &Came, object: &Arc<Object>, range: Option<&'static str>) {
    let mut request = HeaderMap::new();
    if let Some(range) = range {
        request.insert(header::RANGE, HeaderValue::from_static(range));
    }
    for method in [Method::GET, Method::HEAD] {
        let response = deliver::object(&method, &request, object, Outcome::Hit, None, true);
        let response = response.expect("its first bytes are here");
        let status = response.status();
        let head = method == Method::HEAD;
        let bodiless = head || matches!(status.as_u16(), 204 | 304);
        let written = answered(response, head);
        let last = came.body.len().saturating_sub(1);
        match (status, range) {
            (StatusCode::RANGE_NOT_SATISFIABLE, _) => {}
            // The part may be here where the rest is not.
            (StatusCode::PARTIAL_CONTENT, _) if !came.whole => {}
            (StatusCode::PARTIAL_CONTENT, Some("bytes=0-0")) => {
                judged(&written, came, &came.body[..1], bodiless);
            }
            (StatusCode::PARTIAL_CONTENT, _) => {
                judged(&written, came, &came.body[last..], bodiless);
            }
            _ => judged(&written, came, &came.body, bodiless),
        }
    }
}
