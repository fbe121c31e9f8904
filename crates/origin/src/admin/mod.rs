//! The admin port, which shows operators the status, the metrics and the viewers. It has the same
//! health probes as the main port.

mod status;

use crate::request_handler::{RequestHandler, health_response};
use http::{Method, Request, Response, StatusCode};
use net::admin_port::{json_response, page_response, refuse_without_token};
use net::server::ConnectionInspector;
use net::{Body, Error, viewers};
use std::sync::Arc;
use std::time::Instant;

/// The state of the admin port.
pub(crate) struct AdminState {
    pub(crate) origin: Arc<RequestHandler>,
    pub(crate) token: Arc<str>,
    /// Connections of the main port.
    pub(crate) connections: ConnectionInspector,
    /// Start of the process.
    pub(crate) started_at: Instant,
}

/// Handles one request to the admin port.
pub(crate) async fn handle_admin_request<B>(
    admin: Arc<AdminState>,
    request: Request<B>,
) -> Response<Body> {
    let origin = &admin.origin;
    let (parts, _) = request.into_parts();
    let path = match parts.method {
        Method::GET | Method::HEAD => parts.uri.path(),
        _ => "",
    };
    match path {
        // Health probes are answered without a token, because load balancers send no token.
        "/healthz" => return health_response(),
        "/readyz" => return origin.ready_response().unwrap_or_else(|e| e.to_response()),
        _ => {}
    }
    if let Some(refusal) = refuse_without_token(&parts.headers, &admin.token, "headwater serve") {
        return refusal;
    }
    let collector = origin.collector.as_deref();
    if let Some(response) = viewers::viewers_response(collector, &parts.method, path) {
        return response;
    }
    match path {
        "/" => page_response(include_str!("status.html")),
        "/status" => json_response(&status::build_status(&admin)),
        "/metrics" => origin.metrics_response(&parts.headers),
        _ => {
            let what = "not found; use GET /, /status, /metrics, /viewers, /healthz or /readyz";
            Error::new_client_error(StatusCode::NOT_FOUND, what).to_response()
        }
    }
}
