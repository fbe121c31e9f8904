//! The origin: URLs to manifests and segments, packaged as they are asked for.
//!
//! The path of a request, as a list:
//!
//! 1. `serve` hands it over with its connection; [`route`] reads the URL, or it ends here;
//! 2. the catalog gives the title: built once, kept while it is in use and unchanged;
//! 3. a manifest is written once per state of the title; a segment is planned;
//! 4. `respond` applies what all answers share: conditions, ranges, headers;
//! 5. `pieces` brings the bytes: what we made, and slices of the file;
//! 6. when the body has left, `observe` writes the record and counts.
//!
//! What is *not* here: no box, no socket option, no system call.

mod catalog;
pub mod check;
pub mod config;
mod demo;
mod describe;
mod error;
mod expand;
mod indexer;
mod kept;
mod keys;
mod lately;
mod library;
mod manifest;
mod observe;
mod packing;
mod page;
mod pieces;
mod plain;
pub mod prepare;
mod ready;
pub mod reference;
mod respond;
pub mod route;
mod seal;
mod segment;
mod serve;
mod sources;
mod stores;
mod title;

pub use serve::{serve, start};
pub use title::Lengths;

use crate::catalog::Catalog;
use crate::lately::Lately;
use crate::library::Library;
use crate::observe::{Kind, Observer};
use crate::page::Page;
use crate::plain::Files;
use crate::ready::Segments;
use crate::respond::Ask;
use crate::route::Request;
use bytes::Bytes;
use http::header::{self, HeaderValue};
use http::request::Parts;
use http::{Method, Response, StatusCode, Uri};
use net::{Body, Conn, Error, Shutdown, headers};
use std::sync::Arc;

type Answer = Result<Response<Body>, Error>;

/// All that answering needs. One a process.
pub(crate) struct Origin {
    catalog: Arc<Catalog>,
    segments: Arc<Segments>,
    lately: Lately,
    files: Arc<Files>,
    listing: Library,
    page: Page,
    observer: Observer,
    shutdown: Shutdown,
}

impl Origin {
    /// Answers one request, and sees to it that it is recorded.
    pub(crate) fn answer<B>(
        self: Arc<Origin>,
        request: http::Request<B>,
        conn: Conn,
    ) -> impl Future<Output = Response<Body>> + use<B> {
        // Not in the future, which would keep room for it: we read no request's body.
        let (parts, _) = request.into_parts();
        async move {
            let response = self.answer_head(&parts, &conn).await;
            headers::done_with(parts.headers);
            response
        }
    }

    async fn answer_head(&self, parts: &Parts, conn: &Conn) -> Response<Body> {
        let seen = self.observer.begin(parts, conn);
        let touched = conn.touches_bytes(parts.version);
        let ask = Ask {
            method: &parts.method,
            headers: &parts.headers,
            touched,
        };
        let (kind, answer) = match self.again(&parts.uri, &ask).await {
            Some(again) => again,
            // Boxed, as all that a segment asked for again does not need: futures are moved, and
            // are as long as the longest way through them.
            None => Box::pin(self.anew(&parts.uri, &ask)).await,
        };
        let (mut response, error) = match answer {
            Ok(response) => (response, None),
            Err(error) => (error.response(), Some(error)),
        };
        if response.status().is_client_error() || response.status().is_server_error() {
            headers::allow_any_origin(response.headers_mut());
        }
        self.observer.end(seen, kind, response, error)
    }

    /// Answers with a text or a segment that was asked for lately, if that is what the URL names.
    async fn again(&self, uri: &Uri, ask: &Ask<'_>) -> Option<(Kind, Answer)> {
        let path = uri.path();
        let reads = matches!(*ask.method, Method::GET | Method::HEAD);
        if reads && Lately::may_hold(path) {
            let found = self.lately.find(uri, &self.catalog).await;
            let (kind, text) = found?;
            return Some((kind, Ok(text.answer(ask).await)));
        }
        let known = reads && uri.query().is_none();
        let ready = known.then(|| self.segments.get(path)).flatten()?;
        // Boxed: texts need far less room, and two small ones are had faster than a large one.
        let answer = Box::pin(self.segments.answer(path, &ready, &self.catalog, ask));
        Some((ready.kind, answer.await?))
    }

    async fn anew(&self, uri: &Uri, ask: &Ask<'_>) -> (Kind, Answer) {
        let routed = route::parse(uri.path(), uri.query()).map_err(error::of_route);
        let kind = routed.as_ref().map_or(Kind::Other, Kind::of);
        let answer = match (ask.method, routed) {
            (&Method::GET | &Method::HEAD, Ok(request)) => self.route(uri, &request, ask).await,
            (_, Err(error)) => Err(error),
            (&Method::OPTIONS, Ok(_)) => Ok(headers::options()),
            (method, Ok(_)) => Ok(not_allowed(method)),
        };
        (kind, answer)
    }

    async fn route(&self, uri: &Uri, request: &Request, ask: &Ask<'_>) -> Answer {
        match request {
            Request::Segment(segment) => {
                let named = (uri.path(), segment);
                segment::answer(&self.catalog, &self.segments, named, ask).await
            }
            Request::Manifest {
                title,
                manifest,
                file,
            } => {
                if let Some(file) = file
                    && !self.catalog.seals()
                    && self.catalog.may_hold_files(title)
                    && !self.files.are_without(file).await
                {
                    return self.files.answer(&self.catalog, file, ask).await;
                }
                match manifest::find(&self.catalog, title, manifest).await? {
                    manifest::Found::Here(title, text) => {
                        self.lately.keep(uri, request, (&title, &text));
                        Ok(text.answer(ask).await)
                    }
                    manifest::Found::Moved(place) => Ok(manifest::moved(place)),
                }
            }
            Request::Key(title) => keys::answer(&self.catalog, title).await,
            Request::File(_) if self.catalog.seals() => Err(seal::refused("no file is given")),
            Request::File(key) => self.files.answer(&self.catalog, key, ask).await,
            Request::Page => self.page.answer("index.html", ask).await,
            Request::Asset(name) => self.page.answer(name, ask).await,
            Request::Library => self.listing.answer(ask).await,
            Request::Health => Ok(short("ok\n")),
            Request::Ready if self.shutdown.is_draining() => Err(Error {
                status: StatusCode::SERVICE_UNAVAILABLE,
                ..Error::internal("shutting down")
            }),
            Request::Ready => Ok(short("ready\n")),
            Request::Metrics => {
                self.observer.refresh(&self.catalog, &self.segments);
                Ok(self.observer.metrics().response())
            }
        }
    }
}

fn short(text: &'static str) -> Response<Body> {
    let mut response = Response::new(Body::full(Bytes::from_static(text.as_bytes())));
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn not_allowed(method: &Method) -> Response<Body> {
    let what = format_args!("{method} is not something to do here");
    let mut response = Error::client(StatusCode::METHOD_NOT_ALLOWED, what).response();
    let allowed = HeaderValue::from_static("GET, HEAD, OPTIONS");
    response.headers_mut().insert(header::ALLOW, allowed);
    response
}
