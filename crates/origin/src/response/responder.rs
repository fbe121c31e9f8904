//! Evaluates conditions and ranges, and writes headers, for responses with texts, files or media
//! segments.

use crate::send::body_parts::PlannedPart;
use crate::send::body_source::BodySource;
use crate::send::{body_parts, build_body};
use http::header::{self, HeaderMap, HeaderValue};
use http::{Method, Response, StatusCode};
use net::conditional::{Validators, evaluate_conditions};
use net::content_coding::ContentCoding;
use net::headers::SerializedFields;
use net::range::{Multipart, RequestedRanges};
use net::{Body, Error, headers, range};
use std::ops::Range;
use std::sync::Arc;

const ACCEPT_ENCODING: HeaderValue = HeaderValue::from_static("Accept-Encoding");

/// The parts of a request that decide how a representation is sent.
pub(crate) struct ClientRequest<'a> {
    pub(crate) method: &'a Method,
    pub(crate) headers: &'a HeaderMap,
    /// Whether the connection copies body bytes in user space before it sends them (TLS, HTTP/2).
    pub(crate) is_copied: bool,
}

/// Headers that all responses with one representation have in common.
#[derive(Clone)]
pub(crate) struct RepresentationHeaders {
    pub(crate) content_type: HeaderValue,
    pub(crate) cache_control: HeaderValue,
    pub(crate) validators: Validators,
    /// Content coding of the body. `None` if the resource is served in a single coding only.
    pub(crate) content_coding: Option<ContentCoding>,
}

impl ClientRequest<'_> {
    /// Responds with a text in memory, or with one range of the text. Ranges refer to the encoded
    /// bytes (RFC 9110, 14.1). A request for several ranges gets the complete text, because texts
    /// are small. `whole` contains the preformatted headers of a complete response.
    pub(crate) fn respond_with_encoded_text(
        &self,
        facts: &RepresentationHeaders,
        whole: &SerializedFields,
        text: &PlannedPart,
    ) -> Response<Body> {
        if let Some(response) = self.evaluate_conditions(facts) {
            return response;
        }
        let len = text.len();
        let one = match self.requested_text_range(facts, len) {
            RequestedRanges::Unsatisfiable => return facts.range_not_satisfiable(len),
            RequestedRanges::Ranges(ranges) => <[_; 1]>::try_from(ranges).ok(),
            RequestedRanges::Whole => None,
        };
        let Some([one]) = one else {
            return Response::new(text.to_body().with_serialized_fields(whole.clone()));
        };
        let body = text.slice(one.clone()).to_body();
        let mut response = facts.partial_response(body, &one, len);
        insert_accept_ranges(response.headers_mut());
        response
    }

    /// Returns the requested ranges of a text. A date in `If-Range` never matches, because the date
    /// does not identify the text. The date is that of the film's files, and all codings share this
    /// date. Moreover, another version of this program may write a different text for the same
    /// files.
    fn requested_text_range(&self, facts: &RepresentationHeaders, len: u64) -> RequestedRanges {
        if !self.headers.contains_key(header::RANGE) {
            return RequestedRanges::Whole;
        }
        let tag = Validators {
            modified: None,
            ..facts.validators.clone()
        };
        range::requested_ranges(self.method, self.headers, &tag, len)
    }

    /// Responds with the body that consists of `pieces`, or with the requested ranges of this body.
    pub(crate) async fn respond_with_body(
        &self,
        facts: &RepresentationHeaders,
        source: BodySource,
        pieces: Arc<[PlannedPart]>,
    ) -> Result<Response<Body>, Error> {
        if let Some(response) = self.evaluate_conditions(facts) {
            return Ok(response);
        }
        let len = pieces.iter().map(PlannedPart::len).sum();
        let wanted = range::requested_ranges(self.method, self.headers, &facts.validators, len);
        let mut response = match wanted {
            RequestedRanges::Unsatisfiable => return Ok(facts.range_not_satisfiable(len)),
            RequestedRanges::Whole if self.method == Method::HEAD => facts.head_response(len),
            RequestedRanges::Whole => facts.build_response(
                StatusCode::OK,
                build_body::build_body(source, pieces).await?,
            ),
            RequestedRanges::Ranges(ranges) => match <[_; 1]>::try_from(ranges) {
                Ok([one]) => {
                    let body =
                        build_body::build_body(source, body_parts::cut_parts(&pieces, &one).into())
                            .await?;
                    facts.partial_response(body, &one, len)
                }
                Err(several) => {
                    Box::pin(facts.multipart_response(source, &pieces, several, len)).await?
                }
            },
        };
        insert_accept_ranges(response.headers_mut());
        Ok(response)
    }

    /// Responds with a complete body of `len` bytes. Returns `None` if the client requests ranges.
    /// The body is built for GET only, not for HEAD.
    pub(crate) async fn respond_unless_ranged(
        &self,
        facts: &RepresentationHeaders,
        len: u64,
        body: impl Future<Output = Result<Body, Error>>,
    ) -> Result<Option<Response<Body>>, Error> {
        let wanted = range::requested_ranges(self.method, self.headers, &facts.validators, len);
        let mut response = match wanted {
            RequestedRanges::Unsatisfiable => return Ok(Some(facts.range_not_satisfiable(len))),
            RequestedRanges::Ranges(_) => return Ok(None),
            RequestedRanges::Whole if self.method == Method::HEAD => facts.head_response(len),
            RequestedRanges::Whole => facts.build_response(StatusCode::OK, body.await?),
        };
        insert_accept_ranges(response.headers_mut());
        Ok(Some(response))
    }

    /// Returns the 304 or 412 response if the request's conditions require one.
    pub(crate) fn evaluate_conditions(
        &self,
        facts: &RepresentationHeaders,
    ) -> Option<Response<Body>> {
        let status = evaluate_conditions(self.method, self.headers, &facts.validators).status()?;
        if status == StatusCode::NOT_MODIFIED {
            return Some(facts.build_response(status, Body::empty()));
        }
        let what = "the film has changed: the precondition failed";
        Some(Error::new_client_error(status, what).to_response())
    }
}

fn insert_accept_ranges(headers: &mut HeaderMap) {
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
}

impl RepresentationHeaders {
    /// Preformats the headers of a complete response.
    pub(crate) fn preformat_headers(&self) -> SerializedFields {
        let mut response = self.build_response(StatusCode::OK, Body::empty());
        insert_accept_ranges(response.headers_mut());
        SerializedFields::new(std::mem::take(response.headers_mut()))
    }

    fn build_response(&self, status: StatusCode, body: Body) -> Response<Body> {
        let mut response = Response::new(body);
        *response.status_mut() = status;
        let map = response.headers_mut();
        map.reserve(12);
        if status != StatusCode::NOT_MODIFIED {
            map.insert(header::CONTENT_TYPE, self.content_type.clone());
        }
        map.insert(header::CACHE_CONTROL, self.cache_control.clone());
        self.validators.insert_validator_headers(map);
        headers::allow_any_origin(map);
        if let Some(coding) = self.content_coding {
            map.insert(header::VARY, ACCEPT_ENCODING);
            if let Some(name) = coding
                .header_value()
                .filter(|_| status != StatusCode::NOT_MODIFIED)
            {
                map.insert(header::CONTENT_ENCODING, name);
            }
        }
        response
    }

    /// Builds a 206 response with a single range.
    fn partial_response(&self, body: Body, range: &Range<u64>, len: u64) -> Response<Body> {
        let mut response = self.build_response(StatusCode::PARTIAL_CONTENT, body);
        let value = range::content_range(range, len);
        response.headers_mut().insert(header::CONTENT_RANGE, value);
        response
    }

    /// Builds the response to a HEAD request without reading the body.
    fn head_response(&self, len: u64) -> Response<Body> {
        let mut response = self.build_response(StatusCode::OK, Body::empty());
        response
            .headers_mut()
            .insert(header::CONTENT_LENGTH, len.into());
        response
    }

    fn range_not_satisfiable(&self, len: u64) -> Response<Body> {
        let what = format_args!("the requested ranges are outside the {len} bytes");
        let mut response =
            Error::new_client_error(StatusCode::RANGE_NOT_SATISFIABLE, what).to_response();
        let map = response.headers_mut();
        map.insert(header::CONTENT_RANGE, range::content_range_unsatisfied(len));
        if self.content_coding.is_some() {
            map.insert(header::VARY, ACCEPT_ENCODING);
        }
        response
    }

    async fn multipart_response(
        &self,
        source: BodySource,
        pieces: &[PlannedPart],
        ranges: Vec<Range<u64>>,
        len: u64,
    ) -> Result<Response<Body>, Error> {
        let content_type = self
            .content_type
            .to_str()
            .unwrap_or("application/octet-stream");
        let multipart = Multipart::new(ranges, len, content_type);
        let mut all = Vec::new();
        for (head, range) in multipart.parts() {
            all.push(PlannedPart::Generated(head.clone()));
            all.extend(body_parts::cut_parts(pieces, range));
        }
        all.push(PlannedPart::Generated(multipart.tail()));
        let body = build_body::build_body(source, all.into()).await?;
        let mut response = self.build_response(StatusCode::PARTIAL_CONTENT, body);
        response
            .headers_mut()
            .insert(header::CONTENT_TYPE, multipart.content_type());
        Ok(response)
    }
}
