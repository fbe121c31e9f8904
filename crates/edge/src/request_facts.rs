//! The facts of a request that the edge needs.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::request::Parts;
use http::{Method, Response, StatusCode};
use net::viewers::CmcdCollector;
use net::{Body, Conn, Error};
use store::planted_bugs::is_bug_planted;
use upstream::InterimHandler;

use crate::cache_key::{CacheKey, strip_cmcd, unescape_unreserved};
use crate::cached_object::CachedObject;
use crate::config::EdgeSettings;
use crate::fetch::FetchRequest;
use crate::freshness::{CacheDirectives, FreshnessPolicy};
use crate::headers::{
    add_via_and_loop, cacheable_request_headers, has_looped, interim_headers,
    passed_request_headers,
};

/// A request to be served from the cache or the origin.
pub struct RequestFacts<'a> {
    pub method: &'a Method,
    pub headers: &'a HeaderMap,
    pub directives: CacheDirectives,
    /// Path and query without CMCD, as sent to the origin.
    pub target: Cow<'a, str>,
    /// The target with percent-encoded unreserved characters decoded (RFC 3986), for the cache key
    /// and the rules.
    pub normalized_target: Cow<'a, str>,
    /// Cache key without the header values that select a variant.
    pub primary_key: Cow<'a, str>,
    /// Query as received, including CMCD.
    pub query: &'a str,
    /// Freshness lifetime from a rule's `ttl`.
    pub ttl: Option<Duration>,
    /// Origin pool from a rule; absent for the default pool.
    pub pool: Option<Arc<str>>,
    /// Address of the client, from the connection or a trusted proxy.
    pub client: IpAddr,
    /// Connection of the client, for interim responses.
    pub connection: Option<&'a Conn>,
    /// Host in lower case; empty if the request has none.
    pub host: Cow<'a, str>,
}

/// A request that the edge handles itself.
pub enum LocalRequest {
    Health,
    Ready,
    Metrics,
    /// A request for the CMCD collector.
    Collector,
    Rejected(Box<Response<Body>>),
}

/// Safe methods, which change nothing at the origin (RFC 9110 section 9.2.1).
const READ_METHODS: [Method; 3] = [Method::GET, Method::HEAD, Method::OPTIONS];
/// Methods that the edge refuses, because CONNECT opens a tunnel and TRACE returns the request with
/// its credentials.
const REFUSED_METHODS: [Method; 2] = [Method::CONNECT, Method::TRACE];
/// The usual methods, for the `Allow` header. The edge also passes unknown methods.
const ALLOWED_METHODS: &str = "GET, HEAD, OPTIONS, POST, PUT, PATCH, DELETE";

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

impl<'a> RequestFacts<'a> {
    /// Extracts the facts of a request.
    ///
    /// # Errors
    /// A [`LocalRequest`] when the request is for a local path, or when the edge rejects the request.
    pub fn from_parts(
        parts: &'a Parts,
        settings: &EdgeSettings,
        instance: &HeaderValue,
        client: IpAddr,
    ) -> Result<RequestFacts<'a>, LocalRequest> {
        let reject = |error: Error| LocalRequest::Rejected(Box::new(error.to_response()));
        // The edge serves these paths on the main port only if there is no admin port. Otherwise,
        // the main port forwards requests for these paths to the origin.
        match parts.uri.path() {
            "/healthz" if settings.admin.is_none() => return Err(LocalRequest::Health),
            "/readyz" if settings.admin.is_none() => return Err(LocalRequest::Ready),
            "/metrics" if settings.admin.is_none() => return Err(LocalRequest::Metrics),
            path if settings.common.collector.is_enabled
                && CmcdCollector::takes_request(&parts.method, path) =>
            {
                return Err(LocalRequest::Collector);
            }
            _ => {}
        }
        if REFUSED_METHODS.contains(&parts.method) {
            let what = format_args!("method {} is not supported", parts.method);
            let mut response =
                Error::new_client_error(StatusCode::METHOD_NOT_ALLOWED, what).to_response();
            let allowed = HeaderValue::from_static(ALLOWED_METHODS);
            response.headers_mut().insert(header::ALLOW, allowed);
            return Err(LocalRequest::Rejected(Box::new(response)));
        }
        if has_looped(&parts.headers, instance) {
            let what = "request loop: the origin forwards requests to this edge";
            return Err(reject(Error::new_client_error(
                StatusCode::LOOP_DETECTED,
                what,
            )));
        }
        let target = parts
            .uri
            .path_and_query()
            .map_or("/", |target| target.as_str());
        if !target.starts_with('/') {
            let what = "the request target must be a path";
            return Err(reject(Error::new_client_error(
                StatusCode::BAD_REQUEST,
                what,
            )));
        }
        let target = strip_cmcd(target);
        let host = effective_host(parts);
        let normalized_target = match unescape_unreserved(&target) {
            Cow::Borrowed(_) => target.clone(),
            Cow::Owned(normalized) => normalized.into(),
        };
        let key = if is_bug_planted("key-without-query") {
            parts.uri.path().into()
        } else if settings.client_host {
            format!("{host}{normalized_target}").into()
        } else {
            normalized_target.clone()
        };
        Ok(RequestFacts {
            method: &parts.method,
            headers: &parts.headers,
            directives: CacheDirectives::from_request(&parts.headers),
            target,
            normalized_target,
            primary_key: key,
            query: parts.uri.query().unwrap_or_default(),
            ttl: None,
            pool: None,
            client,
            connection: None,
            host,
        })
    }

    /// Returns whether the method is unsafe, which means that the request may change something at
    /// the origin. Unknown methods count as unsafe. The edge passes an unsafe request once, with
    /// its body.
    pub fn has_unsafe_method(&self) -> bool {
        !READ_METHODS.contains(self.method)
    }

    /// Returns whether the request bypasses the cache because it contains a cookie.
    pub fn bypasses_cache_for_cookies(&self, settings: &EdgeSettings) -> bool {
        settings.passes_cookies && self.headers.contains_key(header::COOKIE)
    }

    /// Selects another pool for the request. Responses of that pool are cached under separate keys.
    pub fn use_pool(&mut self, pool: Arc<str>) {
        let key = CacheKey::for_pool(&self.primary_key, &pool);
        self.primary_key = key.as_str().to_owned().into();
        self.pool = Some(pool);
    }

    /// Returns whether the request has a Range header.
    pub fn has_range(&self) -> bool {
        self.headers.contains_key(header::RANGE)
    }

    /// Returns whether the request has a Range header or a precondition (RFC 9110 section 13).
    pub fn is_partial_or_conditional(&self) -> bool {
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

    /// Returns the client's Host if the settings forward it to the origin.
    pub fn forwarded_host(&self, settings: &EdgeSettings) -> Option<HeaderValue> {
        let wanted = settings.client_host && !self.host.is_empty();
        wanted
            .then(|| HeaderValue::try_from(&*self.host).ok())
            .flatten()
    }

    /// Returns a handler that relays the origin's interim responses to the client. Other clients
    /// that wait for the same fetch do not receive interim responses.
    pub fn interim_handler(&self) -> Option<InterimHandler> {
        let sender = self.connection?.interim_sender();
        Some(InterimHandler::new(move |status, headers| {
            if let Some(headers) = interim_headers(status, headers) {
                sender.send_interim(status, &headers);
            }
        }))
    }

    /// Returns the request headers that a passed request sends to the origin.
    pub fn pass_headers(&self, instance: &HeaderValue) -> HeaderMap {
        let mut headers = passed_request_headers(self.headers);
        add_via_and_loop(&mut headers, instance);
        if let Ok(client) = HeaderValue::try_from(self.client.to_string()) {
            headers.insert(FORWARDED_FOR, client);
        }
        headers
    }

    /// Returns the facts that a fetch needs.
    pub fn to_fetch_request(
        &self,
        worker: usize,
        cached: Option<Arc<CachedObject>>,
        settings: &EdgeSettings,
        instance: &HeaderValue,
    ) -> FetchRequest {
        let mut forward = cacheable_request_headers(self.headers, &settings.forward);
        // `CDN-Loop` lists the previous hops, so that the next hop can detect loops as well.
        for value in self.headers.get_all(crate::headers::CDN_LOOP) {
            forward.append(crate::headers::CDN_LOOP, value.clone());
        }
        add_via_and_loop(&mut forward, instance);
        let span = crate::headers::start_fetch_span(&mut forward);
        FetchRequest {
            span,
            worker,
            pool: self.pool.clone().unwrap_or_default(),
            primary_key: CacheKey::from(self.primary_key.as_ref()),
            target: self.target.to_string(),
            client_headers: self.headers.clone(),
            origin_headers: forward,
            host: self.forwarded_host(settings),
            directives: self.directives,
            cached,
            policy: FreshnessPolicy {
                ttl: self.ttl,
                ..settings.policy
            },
            on_interim: self.interim_handler(),
        }
    }
}

/// Returns the host of a request. The authority of an absolute target, or `:authority`, has
/// precedence over the Host header (RFC 9112 section 3.2.2). The cache key and the request to the
/// origin use the same host. Otherwise, a client could store one host's response under another
/// host's name.
fn effective_host(parts: &Parts) -> Cow<'_, str> {
    let named = parts.uri.authority().map(|authority| authority.as_str());
    let header = || parts.headers.get(header::HOST)?.to_str().ok();
    let host = named.or_else(header).unwrap_or_default();
    match host.bytes().any(|byte| byte.is_ascii_uppercase()) {
        true => host.to_ascii_lowercase().into(),
        false => host.into(),
    }
}

/// Builds a plain-text response for operators and load balancers.
pub fn text_response(text: &'static str) -> Response<Body> {
    let mut response = Response::new(Body::from_bytes(Bytes::from_static(text.as_bytes())));
    let headers = response.headers_mut();
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    headers.insert(header::CONTENT_TYPE, kind);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
