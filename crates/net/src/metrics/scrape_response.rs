//! The response to `GET /metrics`.

use http::Response;
use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderValue, VARY};

use super::Metrics;
use super::text_format::{ExpositionFormat, to_prometheus_text};
use crate::{Body, Error};

impl Metrics {
    /// Returns the response to `GET /metrics`, in the format that the request's `Accept` header
    /// prefers.
    pub fn scrape_response(&self, request_headers: &HeaderMap) -> Response<Body> {
        let Ok(text) = self.encode_text() else {
            return Error::new_internal_error("cannot print the metrics").to_response();
        };
        let format = ExpositionFormat::from_accept(request_headers);
        let text = match format {
            ExpositionFormat::OpenMetrics => self.exemplars.add_exemplars(text),
            ExpositionFormat::Prometheus => to_prometheus_text(&text),
        };
        let mut response = Response::new(Body::from_bytes(text));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, format.content_type());
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(VARY, HeaderValue::from(ACCEPT));
        response
    }
}
