//! What a request wants, as far as an edge has to know.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::request::Parts;
use http::{Method, Response, StatusCode, Version};
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
    /// Whose origins are asked; none: those of all who name none.
    pub pool: Option<Arc<str>>,
    /// Whose request it is.
    pub client: IpAddr,
    /// In lower case; empty: none was named.
    pub host: Cow<'a, str>,
    pub version: Version,
    /// User code will see the bytes of the answer (see [`net::Conn::touches_bytes`]).
    pub touched: bool,
}

/// A request that the edge answers itself.
pub enum Own {
    Health,
    Ready,
    Metrics,
    Wrong(Box<Response<Body>>),
}

/// Methods that change nothing at the origin (RFC 9110 section 9.2.1).
const READING: [Method; 3] = [Method::GET, Method::HEAD, Method::OPTIONS];
/// Methods that may.
const CHANGING: [Method; 4] = [Method::POST, Method::PUT, Method::PATCH, Method::DELETE];
const ALLOWED: &str = "GET, HEAD, OPTIONS, POST, PUT, PATCH, DELETE";

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

impl<'a> Received<'a> {
    /// Reads it.
    ///
    /// # Errors
    /// When it is not one to relay.
    pub fn new(
        parts: &'a Parts,
        settings: &Settings,
        instance: &HeaderValue,
        client: IpAddr,
    ) -> Result<Received<'a>, Own> {
        let wrong = |error: Error| Own::Wrong(Box::new(error.response()));
        // With an admin port, they are there, and hide nothing of the origin's.
        match parts.uri.path() {
            "/healthz" if settings.admin.is_none() => return Err(Own::Health),
            "/readyz" if settings.admin.is_none() => return Err(Own::Ready),
            "/metrics" if settings.admin.is_none() => return Err(Own::Metrics),
            _ => {}
        }
        if !READING.contains(&parts.method) && !CHANGING.contains(&parts.method) {
            let what = format_args!("{} is not passed on", parts.method);
            let mut response = Error::client(StatusCode::METHOD_NOT_ALLOWED, what).response();
            let allowed = HeaderValue::from_static(ALLOWED);
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
        let host = host(parts);
        let key = if settings.client_host {
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
            pool: None,
            client,
            host,
            version: parts.version,
            touched: true,
        })
    }

    /// It may change something at the origin: it is handed over, with its body, once.
    pub fn changes(&self) -> bool {
        CHANGING.contains(self.method)
    }

    /// Another pool's origins are asked, and their answers kept apart.
    pub fn turn_to(&mut self, pool: Arc<str>) {
        let key = format!("{}\npool:{pool}", self.key);
        self.key = key.into();
        self.pool = Some(pool);
    }

    /// Only parts are wanted.
    pub fn has_range(&self) -> bool {
        self.headers.contains_key(header::RANGE)
    }

    /// Only parts are wanted, or only what has changed.
    pub fn wants_less(&self) -> bool {
        let conditions = [
            header::RANGE,
            header::IF_MATCH,
            header::IF_NONE_MATCH,
            header::IF_MODIFIED_SINCE,
            header::IF_UNMODIFIED_SINCE,
        ];
        conditions
            .iter()
            .any(|name| self.headers.contains_key(name))
    }

    /// The client's Host, where it is passed on.
    pub fn passed_host(&self, settings: &Settings) -> Option<HeaderValue> {
        let wanted = settings.client_host && !self.host.is_empty();
        wanted
            .then(|| HeaderValue::try_from(&*self.host).ok())
            .flatten()
    }

    /// What the origin is sent, for this client alone.
    pub fn passed(&self, instance: &HeaderValue) -> HeaderMap {
        let mut headers = to_pass(self.headers);
        sign(&mut headers, instance);
        if let Ok(client) = HeaderValue::try_from(self.client.to_string()) {
            headers.insert(FORWARDED_FOR, client);
        }
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
            pool: self.pool.clone().unwrap_or_default(),
            key,
            target: self.target.to_string(),
            request: self.headers.clone(),
            forward,
            host: self.passed_host(settings),
            said: self.said,
            kept,
            policy: Policy {
                ttl: self.ttl,
                ..settings.policy
            },
        }
    }
}

/// The host that a request names: that of an absolute target or of `:authority` goes before the
/// Host header (RFC 9112 section 3.2.2), in the key as in what the origin is sent, so that nobody
/// can be given what another host's origin answered.
fn host(parts: &Parts) -> Cow<'_, str> {
    let named = parts.uri.authority().map(|authority| authority.as_str());
    let header = || parts.headers.get(header::HOST)?.to_str().ok();
    let host = named.or_else(header).unwrap_or_default();
    match host.bytes().any(|byte| byte.is_ascii_uppercase()) {
        true => host.to_ascii_lowercase().into(),
        false => host.into(),
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
