//! Responds to requests, and records each request when its response has been sent.

use crate::library_status::LibraryStatus;
use crate::resource_kind::ResourceKind;
use crate::response::library_list::CachedLibraryList;
use crate::response::responder::ClientRequest;
use crate::response::response_cache::manifests::ManifestCache;
use crate::response::response_cache::segments::SegmentCache;
use crate::response::static_files::StaticFiles;
use crate::response::web_assets::WebAssets;
use crate::response::{content_key, license, manifests, text_renditions};
use crate::route::{self, RequestedResource, RouteError};
use crate::segment::hls_aes128;
use crate::telemetry::{RequestInProgress, Telemetry};
use crate::title::catalog::Catalog;
use crate::title::file_names::is_media;
use crate::{error, segment};
use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderValue};
use http::request::Parts;
use http::{Method, Response, StatusCode, Uri};
use net::body::Incoming;
use net::cmcd::CmcdData;
use net::edge_secret::EdgeSecret;
use net::viewers::{CmcdCollector, DISCOVERY_PATH, collector_discovery_response};
use net::{Body, Conn, Error, Shutdown, headers};
use std::sync::Arc;
use store::Key;

type ResponseResult = Result<Response<Body>, Error>;

/// Responds to requests. The process has one instance, which all connections share.
pub(crate) struct RequestHandler {
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) segment_cache: Arc<SegmentCache>,
    pub(crate) manifest_cache: ManifestCache,
    pub(crate) static_files: Arc<StaticFiles>,
    pub(crate) library_list: CachedLibraryList,
    pub(crate) library_status: Arc<LibraryStatus>,
    pub(crate) web_assets: WebAssets,
    pub(crate) telemetry: Telemetry,
    /// The CMCD collector, if it is enabled.
    pub(crate) collector: Option<Arc<CmcdCollector>>,
    pub(crate) shutdown: Shutdown,
    /// Whether `/metrics` is served on the admin port only.
    pub(crate) has_admin_port: bool,
    /// Secret of the edge servers. If the secret is set, requests without the secret are rejected.
    pub(crate) edge_secret: Option<EdgeSecret>,
}

impl RequestHandler {
    /// Responds to one request and records it.
    pub(crate) fn handle_request(
        self: Arc<RequestHandler>,
        request: http::Request<Incoming>,
        conn: Conn,
    ) -> impl Future<Output = Response<Body>> {
        // Drops the request body before the future is created, so that the future does not reserve
        // memory for the body. Only the CMCD collector reads request bodies. A body for the
        // collector is boxed, so that the future stores only a pointer.
        let (parts, body) = request.into_parts();
        let reports = self.is_for_cmcd_collector(&parts).then(|| Box::new(body));
        async move {
            let response = self.respond_to_request(&parts, reports, &conn).await;
            headers::recycle_map(parts.headers);
            response
        }
    }

    fn is_for_cmcd_collector(&self, parts: &Parts) -> bool {
        self.collector.is_some() && CmcdCollector::takes_request(&parts.method, parts.uri.path())
    }

    async fn respond_to_request(
        &self,
        parts: &Parts,
        reports: Option<Box<Incoming>>,
        conn: &Conn,
    ) -> Response<Body> {
        let in_progress = self.telemetry.start_request(parts, conn);
        if self.lacks_secret(parts) {
            let refused = Error::new_client_error(
                StatusCode::FORBIDDEN,
                describe_missing_edge_secret(parts.uri.path()),
            );
            return self.complete_response(in_progress, (ResourceKind::Other, Err(refused)), conn);
        }
        if let Some(body) = reports {
            let result = Box::pin(self.collect_events(parts, *body, conn)).await;
            return self.complete_response(in_progress, (ResourceKind::Other, result), conn);
        }
        if let Some(collector) = &self.collector {
            let data = CmcdData::parse_cmcd(parts.uri.query(), &parts.headers);
            collector.collect_request(&data, parts.uri.path(), conn);
        }
        let client_request = ClientRequest {
            method: &parts.method,
            headers: &parts.headers,
            is_copied: conn.copies_bodies(),
        };
        let responded = match in_progress.trace_of_request() {
            None => self.find_response(&parts.uri, &client_request).await,
            Some(trace) => {
                let found = self.find_response(&parts.uri, &client_request);
                Box::pin(trace::run_with_trace(trace.clone(), found)).await
            }
        };
        self.complete_response(in_progress, responded, conn)
    }

    /// Responds to a request for the CMCD collector.
    async fn collect_events(&self, parts: &Parts, body: Incoming, conn: &Conn) -> ResponseResult {
        match &self.collector {
            Some(collector) => {
                let responded =
                    collector.respond_to_event_request(&parts.method, &parts.headers, body, conn);
                responded.await
            }
            None => Ok(collector_discovery_response(false)),
        }
    }

    fn complete_response(
        &self,
        in_progress: RequestInProgress,
        (kind, mut result): (ResourceKind, ResponseResult),
        conn: &Conn,
    ) -> Response<Body> {
        if let Ok(response) = &mut result
            && let Err(error) = conn.reserve_send_memory(response)
        {
            result = Err(error);
        }
        let (mut response, error) = match result {
            Ok(response) => (response, None),
            Err(error) => (error.to_response(), Some(error)),
        };
        if response.status().is_client_error() || response.status().is_server_error() {
            headers::allow_any_origin(response.headers_mut());
        }
        self.telemetry
            .finish_request(in_progress, kind, &mut response, error);
        response
    }

    /// Returns whether the secret of the edge servers is required, but missing in a request. Health
    /// probes need no secret.
    fn lacks_secret(&self, parts: &Parts) -> bool {
        let Some(secret) = &self.edge_secret else {
            return false;
        };
        !matches!(parts.uri.path(), "/healthz" | "/readyz")
            && !secret.has_valid_secret(&parts.headers)
    }

    async fn find_response(
        &self,
        uri: &Uri,
        client_request: &ClientRequest<'_>,
    ) -> (ResourceKind, ResponseResult) {
        match self.respond_from_cache(uri, client_request).await {
            Some(cached) => cached,
            // The future of this branch is boxed. Otherwise, it would make the whole future larger,
            // and a future is moved as a whole. Responses from a cache do not take this branch.
            None => Box::pin(self.respond_after_cache_miss(uri, client_request)).await,
        }
    }

    /// Responds from a response cache if the URL was served recently.
    async fn respond_from_cache(
        &self,
        uri: &Uri,
        client_request: &ClientRequest<'_>,
    ) -> Option<(ResourceKind, ResponseResult)> {
        let path = uri.path();
        let reads = matches!(*client_request.method, Method::GET | Method::HEAD);
        if reads && ManifestCache::is_manifest_path(path) {
            let found = self.manifest_cache.get(uri, &self.catalog).await;
            let (kind, text) = found?;
            return Some((
                kind,
                Ok(text.respond_in_preferred_coding(client_request).await),
            ));
        }
        // No query parameter changes the response with a segment. Players may send CMCD in the
        // query. URLs that are too long are rejected later.
        let known = reads && !route::is_too_long(path, uri.query());
        let ready = known.then(|| self.segment_cache.get(path)).flatten()?;
        // The future that sends a segment is boxed, because it is much larger than the future that
        // sends a manifest. Without the box, a manifest would need the larger future, too. Two
        // small allocations, for the future of the request and for this box, are faster than one
        // large allocation.
        let result = Box::pin(self.segment_cache.respond_with_cached_segment(
            path,
            &ready,
            &self.catalog,
            client_request,
        ));
        Some((ready.kind(), result.await?))
    }

    async fn respond_after_cache_miss(
        &self,
        uri: &Uri,
        client_request: &ClientRequest<'_>,
    ) -> (ResourceKind, ResponseResult) {
        let routed = route::parse_route(uri.path(), uri.query())
            .and_then(|request| refuse_partial_film_requests(request, uri.query()))
            .map_err(error::from_route_error);
        let kind = routed
            .as_ref()
            .map_or(ResourceKind::Other, ResourceKind::from_request);
        let result = match (client_request.method, routed) {
            (&Method::GET | &Method::HEAD, Ok(request)) => {
                self.respond_to_route(uri, &request, client_request).await
            }
            (&Method::POST, Ok(RequestedResource::License(title))) => {
                license::respond_with_license(&self.catalog, &title).await
            }
            (_, Err(error)) => Err(error),
            (&Method::OPTIONS, Ok(RequestedResource::License(_))) => {
                Ok(license::preflight_response())
            }
            (&Method::OPTIONS, Ok(_)) => Ok(headers::preflight_response()),
            (_, Ok(RequestedResource::License(_))) => Ok(license::method_not_allowed()),
            (method, Ok(_)) => Ok(method_not_allowed(method)),
        };
        (kind, result)
    }

    async fn respond_to_route(
        &self,
        uri: &Uri,
        request: &RequestedResource,
        client_request: &ClientRequest<'_>,
    ) -> ResponseResult {
        match request {
            RequestedResource::Segment(segment) => {
                let named = (uri.path(), segment);
                segment::respond_with_segment(
                    &self.catalog,
                    &self.segment_cache,
                    named,
                    client_request,
                )
                .await
            }
            RequestedResource::Manifest {
                title,
                manifest,
                file,
            } => {
                let path = (uri, request);
                if let Some(file) = file
                    && self.has_static_file(title, file).await?
                {
                    return self.respond_with_file(file, client_request).await;
                }
                let lookup =
                    manifests::find_or_write_manifest(&self.catalog, title, manifest).await?;
                self.respond_with_manifest(path, lookup, client_request)
                    .await
            }
            RequestedResource::Text(url) => {
                text_renditions::respond_with_text_rendition(&self.catalog, url, client_request)
                    .await
            }
            RequestedResource::License(_) => Ok(license::method_not_allowed()),
            RequestedResource::Key(title) => {
                content_key::respond_with_key(&self.catalog, title).await
            }
            RequestedResource::File(key) if self.catalog.is_protecting(key) => Err(
                hls_aes128::unavailable_with_drm("static files are unavailable"),
            ),
            RequestedResource::File(key) if self.catalog.encrypts_title(key) => Err(
                hls_aes128::unavailable_when_encrypted("static files are unavailable"),
            ),
            RequestedResource::File(key) => self.respond_with_file(key, client_request).await,
            // If the collector is enabled, `respond_to_request` has already handled this path.
            RequestedResource::Asset(name) if DISCOVERY_PATH.strip_prefix("/-/") == Some(name) => {
                Ok(collector_discovery_response(false))
            }
            RequestedResource::Page => {
                self.web_assets
                    .respond_with_asset("index.html", client_request)
                    .await
            }
            RequestedResource::Asset(name) => {
                self.web_assets
                    .respond_with_asset(name, client_request)
                    .await
            }
            RequestedResource::Library => {
                self.library_list
                    .respond_with_library_list(client_request)
                    .await
            }
            RequestedResource::Health => Ok(health_response()),
            RequestedResource::Ready => self.ready_response(),
            RequestedResource::Metrics if self.has_admin_port => {
                let what = "metrics are on the admin port";
                Err(Error::new_client_error(StatusCode::NOT_FOUND, what))
            }
            RequestedResource::Metrics => Ok(self.metrics_response(client_request.headers)),
        }
    }

    async fn respond_with_file(
        &self,
        key: &Key,
        client_request: &ClientRequest<'_>,
    ) -> ResponseResult {
        self.static_files
            .respond_with_static_file(&self.catalog, key, client_request)
            .await
    }

    /// Returns whether the library contains a static file at the path of a manifest. This file is
    /// then served instead of the generated manifest.
    async fn has_static_file(&self, title: &Key, file: &Key) -> Result<bool, Error> {
        if self.catalog.encrypts_title(file) || !self.catalog.may_contain_static_files(title) {
            return Ok(false);
        }
        Ok(!self.static_files.is_absent(file).await?)
    }

    async fn respond_with_manifest(
        &self,
        (uri, request): (&Uri, &RequestedResource),
        lookup: manifests::ManifestLookup,
        client_request: &ClientRequest<'_>,
    ) -> ResponseResult {
        match lookup {
            manifests::ManifestLookup::Current(title, text) => {
                self.manifest_cache.insert(uri, request, (&title, &text));
                Ok(text.respond_in_preferred_coding(client_request).await)
            }
            manifests::ManifestLookup::Redirect(place) => Ok(manifests::redirect_to_current(place)),
        }
    }

    /// Responds to `/readyz`. The status is 503 while the process drains, and until a remote
    /// library has been available once.
    pub(crate) fn ready_response(&self) -> ResponseResult {
        if !self.shutdown.is_ready() {
            return Err(Error {
                status: StatusCode::SERVICE_UNAVAILABLE,
                ..Error::new_internal_error("the server is shutting down")
            });
        }
        match self.library_status.unavailable_reason() {
            None => Ok(text_response("ready\n")),
            Some(failure) => Err(Error::new_upstream_error(
                StatusCode::SERVICE_UNAVAILABLE,
                failure,
            )),
        }
    }

    /// Responds to `/metrics` in the format that the request's headers prefer.
    pub(crate) fn metrics_response(&self, request_headers: &HeaderMap) -> Response<Body> {
        self.telemetry
            .refresh_gauges(&self.catalog, &self.segment_cache);
        self.telemetry.metrics().scrape_response(request_headers)
    }
}

/// If a film file is requested, rejects query parameters that would select a part of the film.
fn refuse_partial_film_requests(
    request: RequestedResource,
    query: Option<&str>,
) -> Result<RequestedResource, RouteError> {
    if let RequestedResource::File(key) = &request {
        let name = key.name();
        // A name without a suffix may also be a film. Other files may have query parameters for
        // other purposes, such as a version.
        if is_media(name) || !name.contains('.') {
            route::refuse_selection_parameters(query)?;
        }
    }
    Ok(request)
}

/// Responds to `/healthz`.
pub(crate) fn health_response() -> Response<Body> {
    text_response("ok\n")
}

fn text_response(text: &'static str) -> Response<Body> {
    let mut response = Response::new(Body::from_bytes(Bytes::from_static(text.as_bytes())));
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn method_not_allowed(method: &Method) -> Response<Body> {
    let what = format_args!("method {method} not allowed; use GET, HEAD or OPTIONS");
    let mut response = Error::new_client_error(StatusCode::METHOD_NOT_ALLOWED, what).to_response();
    let allowed = HeaderValue::from_static("GET, HEAD, OPTIONS");
    response.headers_mut().insert(header::ALLOW, allowed);
    response
}

/// Returns the error text for a request without the secret of the edge servers.
fn describe_missing_edge_secret(path: &str) -> &'static str {
    match path {
        "/metrics" => {
            "requests must come through an edge; metrics are on the admin port: \
             set --admin and --admin-token-file"
        }
        _ => "requests must come through an edge",
    }
}
