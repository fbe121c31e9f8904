//! Handles `POST /cmcd`, whose body contains event reports, one per line.

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Response, StatusCode};

use crate::body::{Incoming, read_request_body};
use crate::cmcd::CmcdData;
use crate::headers::allow_any_origin;
use crate::{Body, Conn, Error};

use super::collector::{CMCD_PATH, CmcdCollector, DISCOVERY_PATH};
use super::session::ReportMode;

/// Maximum size of a request's body, in bytes.
const BODY_BYTES_MAX: u64 = 64 << 10;
/// Maximum number of lines in a request's body. Further lines are dropped.
const LINES_MAX: usize = 128;
/// Supported types of bodies. Web pages send `text/plain`, because a cross-origin request with
/// another type requires a preflight request.
const CONTENT_TYPES: [&str; 2] = ["application/cmcd", "text/plain"];
const METHODS: &str = "POST, OPTIONS";

impl CmcdCollector {
    /// Returns whether the collector responds to this request on the port for viewers.
    pub fn takes_request(method: &Method, path: &str) -> bool {
        match path {
            CMCD_PATH => matches!(*method, Method::POST | Method::OPTIONS),
            DISCOVERY_PATH => matches!(*method, Method::GET | Method::HEAD),
            _ => false,
        }
    }

    /// Responds to a request that [`CmcdCollector::takes_request`] accepts.
    ///
    /// # Errors
    /// 413 if the body is too long, 408 if the body arrives too slowly, 415 if the type of the body
    /// is not supported, and 400 if the body is incomplete or has no valid line.
    pub async fn respond_to_event_request(
        &self,
        method: &Method,
        headers: &HeaderMap,
        body: Incoming,
        conn: &Conn,
    ) -> Result<Response<Body>, Error> {
        match *method {
            Method::POST => self.collect_events(headers, body, conn).await,
            Method::OPTIONS => Ok(preflight_response()),
            _ => Ok(collector_discovery_response(true)),
        }
    }

    async fn collect_events(
        &self,
        headers: &HeaderMap,
        body: Incoming,
        conn: &Conn,
    ) -> Result<Response<Body>, Error> {
        check_content_type(headers)?;
        let bytes = read_request_body(body, BODY_BYTES_MAX).await?;
        let (valid, dropped) = self.collect_lines(&bytes, conn);
        self.metrics.count_malformed(dropped);
        if valid == 0 && dropped > 0 {
            let what = "no valid CMCD event; expected lines such as e=ps,sid=\"ID\",sta=p,v=2";
            return Err(Error::new_client_error(StatusCode::BAD_REQUEST, what));
        }
        Ok(no_content())
    }

    /// Applies each line as an event report. Returns the number of valid lines and the number of
    /// dropped lines.
    fn collect_lines(&self, bytes: &[u8], conn: &Conn) -> (u64, u64) {
        let (mut valid, mut dropped) = (0, 0);
        let lines = bytes.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
        for (at, line) in lines.filter(|line| !line.is_empty()).enumerate() {
            let text = (at < LINES_MAX).then(|| std::str::from_utf8(line).ok());
            match text.flatten().and_then(CmcdData::parse_event) {
                Some(data) => {
                    self.collect_report(&data, ReportMode::Event, "", conn);
                    valid += 1;
                }
                None => dropped += 1,
            }
        }
        (valid, dropped)
    }
}

fn check_content_type(headers: &HeaderMap) -> Result<(), Error> {
    let Some(value) = headers.get(header::CONTENT_TYPE) else {
        return Ok(());
    };
    let essence = value.to_str().unwrap_or_default().split(';').next();
    let essence = essence.unwrap_or_default().trim();
    if CONTENT_TYPES
        .iter()
        .any(|known| essence.eq_ignore_ascii_case(known))
    {
        return Ok(());
    }
    let what = "expected Content-Type application/cmcd or text/plain";
    Err(Error::new_client_error(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        what,
    ))
}

/// Returns the response to a request for [`DISCOVERY_PATH`].
pub fn collector_discovery_response(is_collecting: bool) -> Response<Body> {
    let path = match is_collecting {
        true => format!("\"{CMCD_PATH}\""),
        false => "null".to_owned(),
    };
    let mut response = Response::new(Body::from_bytes(format!("{{\"cmcd\":{path}}}\n")));
    set_fields(&mut response, &[(header::CONTENT_TYPE, "application/json")]);
    response
}

fn no_content() -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    set_fields(&mut response, &[]);
    response
}

fn preflight_response() -> Response<Body> {
    let mut response = no_content();
    let rows = [
        (header::ALLOW, METHODS),
        (header::ACCESS_CONTROL_ALLOW_METHODS, METHODS),
        (header::ACCESS_CONTROL_ALLOW_HEADERS, "*, Content-Type"),
        (header::ACCESS_CONTROL_MAX_AGE, "86400"),
    ];
    set_fields(&mut response, &rows);
    response
}

fn set_fields(response: &mut Response<Body>, rows: &[(HeaderName, &'static str)]) {
    let headers = response.headers_mut();
    for (name, value) in rows {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    allow_any_origin(headers);
}
