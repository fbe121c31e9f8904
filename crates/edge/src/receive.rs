//! What a request wants, as far as an edge has to know.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderValue};
use http::request::Parts;
use http::{Method, Response, StatusCode};
use net::{Body, Error};

use crate::config::Settings;
use crate::fetch::Ask;
use crate::fresh::{Directives, Policy};
use crate::headers::{is_loop, sign, to_keep, to_pass};
use crate::key::{Key, without_cmcd};
use crate::object::Object;

/// A request to relay.
pub struct Received<'a> {
    pub method: &'a Method,
    pub headers: &'a HeaderMap,
    pub said: Directives,
    /// As it is sent on: path and query, without CMCD.
    pub target: Cow<'a, str>,
    /// What it is kept by, variants apart.
    pub key: Cow<'a, str>,
    /// As asked, CMCD and all.
    pub query: &'a str,
    /// For how long a rule wants its answer to be kept.
    pub ttl: Option<Duration>,
}

/// A request that the edge answers itself.
pub enum Own {
    Health,
    Ready,
    Metrics,
    Wrong(Box<Response<Body>>),
}

impl<'a> Received<'a> {
    /// Reads it.
    ///
    /// # Errors
    /// When it is not one to relay.
    pub fn new(
        parts: &'a Parts,
        settings: &Settings,
        instance: &HeaderValue,
    ) -> Result<Received<'a>, Own> {
        let wrong = |error: Error| Own::Wrong(Box::new(error.response()));
        match parts.uri.path() {
            "/healthz" => return Err(Own::Health),
            "/readyz" => return Err(Own::Ready),
            "/metrics" => return Err(Own::Metrics),
            _ => {}
        }
        let known = [Method::GET, Method::HEAD, Method::OPTIONS];
        if !known.contains(&parts.method) {
            let what = format_args!("{} is not passed on", parts.method);
            let mut response = Error::client(StatusCode::METHOD_NOT_ALLOWED, what).response();
            let allowed = HeaderValue::from_static("GET, HEAD, OPTIONS");
            response.headers_mut().insert(header::ALLOW, allowed);
            return Err(Own::Wrong(Box::new(response)));
        }
        if is_loop(&parts.headers, instance) {
            let what = "the request was here before: the origin leads back to this edge";
            return Err(wrong(Error::client(StatusCode::LOOP_DETECTED, what)));
        }
        let target = parts
            .uri
            .path_and_query()
            .map_or("/", |target| target.as_str());
        if !target.starts_with('/') {
            let what = "the target is no path";
            return Err(wrong(Error::client(StatusCode::BAD_REQUEST, what)));
        }
        let target = without_cmcd(target);
        let key = if settings.client_host {
            let host = parts.uri.authority().map(|a| a.as_str()).or_else(|| {
                let host = parts.headers.get(header::HOST)?;
                host.to_str().ok()
            });
            let host = host.unwrap_or_default().to_ascii_lowercase();
            format!("{host}{target}").into()
        } else {
            target.clone()
        };
        Ok(Received {
            method: &parts.method,
            headers: &parts.headers,
            said: Directives::of_request(&parts.headers),
            target,
            key,
            query: parts.uri.query().unwrap_or_default(),
            ttl: None,
        })
    }

    /// Only parts are wanted.
    pub fn has_range(&self) -> bool {
        self.headers.contains_key(header::RANGE)
    }

    /// The client's Host, where it is passed on.
    pub fn host(&self, settings: &Settings) -> Option<&'a HeaderValue> {
        let host = self.headers.get(header::HOST);
        host.filter(|_| settings.client_host)
    }

    /// What the origin is sent, for this client alone.
    pub fn passed(&self, instance: &HeaderValue) -> HeaderMap {
        let mut headers = to_pass(self.headers);
        sign(&mut headers, instance);
        headers
    }

    /// What a fetch has to know.
    pub fn ask(
        &self,
        worker: usize,
        key: Key,
        kept: Option<Arc<Object>>,
        settings: &Settings,
        instance: &HeaderValue,
    ) -> Ask {
        let mut forward = to_keep(self.headers, &settings.forward);
        // Whoever passed it on before us is part of the loop that we look for.
        for value in self.headers.get_all(crate::headers::CDN_LOOP) {
            forward.append(crate::headers::CDN_LOOP, value.clone());
        }
        sign(&mut forward, instance);
        Ask {
            worker,
            key,
            target: self.target.to_string(),
            request: self.headers.clone(),
            forward,
            host: self.host(settings).cloned(),
            said: self.said,
            kept,
            policy: Policy {
                ttl: self.ttl,
                ..settings.policy
            },
        }
    }
}

/// A word for the people who run it.
pub fn short(text: &'static str) -> Response<Body> {
    let mut response = Response::new(Body::full(Bytes::from_static(text.as_bytes())));
    let headers = response.headers_mut();
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    headers.insert(header::CONTENT_TYPE, kind);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
