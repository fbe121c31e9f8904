//! The rules that all answers with a body share: conditions, ranges, headers.

use crate::pieces::{self, Piece, Source};
use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderValue};
use http::{Method, Response, StatusCode};
use net::conditional::{Validators, evaluate};
use net::range::{Multipart, Wanted};
use net::{Body, Error, headers, range};
use std::ops::Range;

/// What a request says about how it wants its answer.
pub(crate) struct Ask<'a> {
    pub(crate) method: &'a Method,
    pub(crate) headers: &'a HeaderMap,
    /// Whether the connection looks at the bytes it sends.
    pub(crate) touched: bool,
}

/// What all answers about one thing carry.
pub(crate) struct Facts {
    pub(crate) content_type: HeaderValue,
    pub(crate) cache: HeaderValue,
    pub(crate) validators: Validators,
}

impl Ask<'_> {
    /// Answers with text that is in memory, as a whole: ranges of texts help nobody, and they
    /// would be ranges of one coding of it.
    pub(crate) fn text(&self, facts: &Facts, bytes: Bytes) -> Response<Body> {
        if let Some(response) = self.condition(facts) {
            return response;
        }
        let mut response = facts.response(StatusCode::OK, Body::full(bytes));
        response
            .headers_mut()
            .insert(header::ACCEPT_RANGES, HeaderValue::from_static("none"));
        response
    }

    /// Answers with pieces of a file, or with parts of them.
    pub(crate) async fn pieces(
        &self,
        facts: &Facts,
        source: Source,
        pieces: Vec<Piece>,
    ) -> Result<Response<Body>, Error> {
        if let Some(response) = self.condition(facts) {
            return Ok(response);
        }
        let len = pieces.iter().map(Piece::len).sum();
        let wanted = range::wanted(self.method, self.headers, &facts.validators, len);
        let mut response = match wanted {
            Wanted::Unsatisfiable => return Ok(facts.unsatisfiable(len)),
            Wanted::Whole if self.method == Method::HEAD => facts.head(len),
            Wanted::Whole => facts.response(StatusCode::OK, pieces::body(source, pieces).await?),
            Wanted::Ranges(ranges) => match <[_; 1]>::try_from(ranges) {
                Ok([one]) => {
                    let body = pieces::body(source, pieces::cut(&pieces, &one)).await?;
                    let mut response = facts.response(StatusCode::PARTIAL_CONTENT, body);
                    let value = range::content_range(&one, len);
                    response.headers_mut().insert(header::CONTENT_RANGE, value);
                    response
                }
                Err(several) => facts.multipart(source, &pieces, several, len).await?,
            },
        };
        response
            .headers_mut()
            .insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        Ok(response)
    }

    /// The answer that conditions ask for instead of the thing itself.
    pub(crate) fn condition(&self, facts: &Facts) -> Option<Response<Body>> {
        let status = evaluate(self.method, self.headers, &facts.validators).status()?;
        if status == StatusCode::NOT_MODIFIED {
            return Some(facts.response(status, Body::empty()));
        }
        let what = "the film is not in the state that the request asks for";
        Some(Error::client(status, what).response())
    }
}

impl Facts {
    fn response(&self, status: StatusCode, body: Body) -> Response<Body> {
        let mut response = Response::new(body);
        *response.status_mut() = status;
        let map = response.headers_mut();
        map.reserve(12);
        if status != StatusCode::NOT_MODIFIED {
            map.insert(header::CONTENT_TYPE, self.content_type.clone());
        }
        map.insert(header::CACHE_CONTROL, self.cache.clone());
        self.validators.print(map);
        headers::allow_any_origin(map);
        response
    }

    /// The answer to HEAD: as to GET, but nothing is read.
    fn head(&self, len: u64) -> Response<Body> {
        let mut response = self.response(StatusCode::OK, Body::empty());
        response
            .headers_mut()
            .insert(header::CONTENT_LENGTH, len.into());
        response
    }

    fn unsatisfiable(&self, len: u64) -> Response<Body> {
        let what = format_args!("none of the ranges lies within the {len} bytes");
        let mut response = Error::client(StatusCode::RANGE_NOT_SATISFIABLE, what).response();
        let map = response.headers_mut();
        map.insert(header::CONTENT_RANGE, range::content_range_unsatisfied(len));
        response
    }

    async fn multipart(
        &self,
        source: Source,
        pieces: &[Piece],
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
            all.push(Piece::Made(head.clone()));
            all.extend(pieces::cut(pieces, range));
        }
        all.push(Piece::Made(multipart.tail()));
        let body = pieces::body(source, all).await?;
        let mut response = self.response(StatusCode::PARTIAL_CONTENT, body);
        response
            .headers_mut()
            .insert(header::CONTENT_TYPE, multipart.content_type());
        Ok(response)
    }
}
