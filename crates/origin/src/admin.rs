//! The admin port for operators: metrics, and the probes of the main port.

use crate::request_handler::{RequestHandler, health_response};
use http::{Method, Request, Response, StatusCode};
use net::admin_port::find_refusal;
use net::{Body, Error};
use std::sync::Arc;

/// Handles one request to the admin port.
pub(crate) async fn handle_admin_request<B>(
    origin: Arc<RequestHandler>,
    token: Arc<str>,
    request: Request<B>,
) -> Response<Body> {
    let (parts, _) = request.into_parts();
    let path = match parts.method {
        Method::GET | Method::HEAD => parts.uri.path(),
        _ => "",
    };
    match path {
        // Balancers have no token.
        "/healthz" => return health_response(),
        "/readyz" => return origin.ready_response().unwrap_or_else(|e| e.response()),
        _ => {}
    }
    if let Some(refusal) = find_refusal(&parts.headers, &token, "headwater serve") {
        return refusal;
    }
    match path {
        "/metrics" => origin.metrics_response(&parts.headers),
        _ => {
            let what = "not found; use GET /metrics, /healthz or /readyz";
            Error::client(StatusCode::NOT_FOUND, what).response()
        }
    }
}
