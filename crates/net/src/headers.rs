//! Headers that many responses share.

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Response, StatusCode};

use crate::Body;

pub use self::header_map_pool::recycle_map;
pub(crate) use self::header_map_pool::take_map;
pub use self::serialized_fields::SerializedFields;
pub(crate) use self::serialized_fields::write_field;

mod header_map_pool;
mod serialized_fields;

/// The header with the reason of a failed request, in the form `side; reason`.
pub const ERROR: HeaderName = HeaderName::from_static("headwater-error");

/// Response headers that web pages of another origin may read.
const EXPOSED: &str = "Content-Length, Content-Range, ETag, Headwater-Error, Link";

/// Lets web pages of any origin read the response (section 3.3 of the Fetch standard).
pub fn allow_any_origin(headers: &mut HeaderMap) {
    headers.insert(
        header::ACCESS_CONTROL_ALLOW_ORIGIN,
        HeaderValue::from_static("*"),
    );
    headers.insert(
        header::ACCESS_CONTROL_EXPOSE_HEADERS,
        HeaderValue::from_static(EXPOSED),
    );
}

/// Returns the response to `OPTIONS`. The response lists the permitted methods. For the CORS
/// preflight requests of other origins, it also lists the permitted request headers.
pub fn preflight_response() -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    allow_any_origin(headers);
    let rows = [
        (header::ALLOW, "GET, HEAD, OPTIONS"),
        (header::ACCESS_CONTROL_ALLOW_METHODS, "GET, HEAD, OPTIONS"),
        (
            header::ACCESS_CONTROL_ALLOW_HEADERS,
            "*, Range, If-None-Match, If-Range",
        ),
        (header::ACCESS_CONTROL_MAX_AGE, "86400"),
    ];
    for (name, value) in rows {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Adds `Server-Timing` if there is a value, and lets web pages of any site read it.
pub fn add_server_timing(headers: &mut HeaderMap, value: Option<String>) {
    let value = value.and_then(|value| HeaderValue::try_from(value).ok());
    if let Some(value) = value {
        headers.insert(HeaderName::from_static("server-timing"), value);
        let any = HeaderValue::from_static("*");
        headers.insert(HeaderName::from_static("timing-allow-origin"), any);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preflight_for_a_range_is_allowed() {
        let response = preflight_response();
        assert_eq!(response.status(), 204);
        assert_eq!(response.headers()["access-control-allow-origin"], "*");
        let allowed = response.headers()["access-control-allow-headers"]
            .to_str()
            .unwrap();
        assert!(allowed.contains("Range"));
    }
}
