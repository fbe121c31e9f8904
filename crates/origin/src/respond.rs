//! The rules that all answers with a body share: conditions, ranges, headers.

use crate::pieces::{self, Piece, Source};
use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderValue};
use http::{Method, Response, StatusCode};
use net::conditional::{Validators, evaluate};
use net::encoding::Coding;
use net::headers::Fields;
use net::range::{Multipart, Wanted};
use net::{Body, Error, headers, range};
use std::ops::Range;
use std::sync::Arc;

const ACCEPT_ENCODING: HeaderValue = HeaderValue::from_static("Accept-Encoding");

/// What a request says about how it wants its answer.
pub(crate) struct Ask<'a> {
    pub(crate) method: &'a Method,
    pub(crate) headers: &'a HeaderMap,
    /// Whether the connection looks at the bytes it sends.
    pub(crate) touched: bool,
}

/// What all answers about one thing carry.
#[derive(Clone)]
pub(crate) struct Facts {
    pub(crate) content_type: HeaderValue,
    pub(crate) cache: HeaderValue,
    pub(crate) validators: Validators,
    /// In which of several codings it comes; `None` where there is but one.
    pub(crate) coding: Option<Coding>,
}

impl Ask<'_> {
    /// Answers with text that is in memory, or with a part of it. Ranges count over the coding
    /// that is sent (RFC 9110 section 14.1); several at once get the whole, which is small.
    /// `whole` is the head of a whole answer, as [`Facts::whole`] makes it.
    pub(crate) fn text(&self, facts: &Facts, whole: &Fields, bytes: &Bytes) -> Response<Body> {
        if let Some(response) = self.condition(facts) {
            return response;
        }
        let len = bytes.len() as u64;
        let one = match self.wanted_of_text(facts, len) {
            Wanted::Unsatisfiable => return facts.unsatisfiable(len),
            Wanted::Ranges(ranges) => <[_; 1]>::try_from(ranges).ok(),
            Wanted::Whole => None,
        };
        let Some([one]) = one else {
            return Response::new(Body::full(bytes.clone()).with_fields(whole.clone()));
        };
        // Within the text's length, which is a usize.
        let part = bytes.slice(one.start as usize..one.end as usize);
        let mut response = facts.part(Body::full(part), &one, len);
        accept_ranges(response.headers_mut());
        response
    }

    /// A text's date is that of the film's files: another version of this program may write
    /// another text of them, and all codings share it. So only a tag holds ranges together.
    fn wanted_of_text(&self, facts: &Facts, len: u64) -> Wanted {
        if !self.headers.contains_key(header::RANGE) {
            return Wanted::Whole;
        }
        let tag = Validators {
            modified: None,
            ..facts.validators.clone()
        };
        range::wanted(self.method, self.headers, &tag, len)
    }

    /// Answers with pieces of a file, or with parts of them.
    pub(crate) async fn pieces(
        &self,
        facts: &Facts,
        source: Source,
        pieces: Arc<[Piece]>,
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
                    let body = pieces::body(source, pieces::cut(&pieces, &one).into()).await?;
                    facts.part(body, &one, len)
                }
                Err(several) => Box::pin(facts.multipart(source, &pieces, several, len)).await?,
            },
        };
        accept_ranges(response.headers_mut());
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

fn accept_ranges(headers: &mut HeaderMap) {
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
}

impl Facts {
    /// What the head of an answer with all of it says.
    pub(crate) fn whole(&self) -> Fields {
        let mut response = self.response(StatusCode::OK, Body::empty());
        accept_ranges(response.headers_mut());
        Fields::new(std::mem::take(response.headers_mut()))
    }

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
        if let Some(coding) = self.coding {
            map.insert(header::VARY, ACCEPT_ENCODING);
            if let Some(name) = coding
                .header()
                .filter(|_| status != StatusCode::NOT_MODIFIED)
            {
                map.insert(header::CONTENT_ENCODING, name);
            }
        }
        response
    }

    /// One range.
    fn part(&self, body: Body, range: &Range<u64>, len: u64) -> Response<Body> {
        let mut response = self.response(StatusCode::PARTIAL_CONTENT, body);
        let value = range::content_range(range, len);
        response.headers_mut().insert(header::CONTENT_RANGE, value);
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
        if self.coding.is_some() {
            map.insert(header::VARY, ACCEPT_ENCODING);
        }
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
        let body = pieces::body(source, all.into()).await?;
        let mut response = self.response(StatusCode::PARTIAL_CONTENT, body);
        response
            .headers_mut()
            .insert(header::CONTENT_TYPE, multipart.content_type());
        Ok(response)
    }
}
