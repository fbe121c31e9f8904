//! Responses that several routes share.

use super::describe;
use super::workflow_registry::{RegistryError, WorkflowEntry};
use http::header::{self, HeaderValue};
use http::{Response, StatusCode};
use net::{Body, Error};
use serde_json::Value;

/// Runs work outside the event loop, because long computations and waiting for processes would
/// block the event loop.
pub(super) async fn run_blocking(
    work: impl FnOnce() -> Result<Response<Body>, Error> + Send + 'static,
) -> Result<Response<Body>, Error> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(Error::new_internal_error(error)))
}

pub(super) fn registry_error(error: RegistryError, id: &str) -> Error {
    match error {
        RegistryError::AlreadyExists => Error::new_client_error(
            StatusCode::CONFLICT,
            format!("{id} exists; PATCH it, or use another id"),
        ),
        RegistryError::NotFound => {
            Error::new_client_error(StatusCode::NOT_FOUND, format!("{id} does not exist"))
        }
        RegistryError::StillRunning => {
            let what = format!(
                "{id} is running; PATCH its general.state to idle, then repeat the request"
            );
            Error::new_client_error(StatusCode::CONFLICT, what)
        }
        RegistryError::AtCapacity => {
            let what = "the limit of workflows is reached; DELETE some";
            Error::new_client_error(StatusCode::SERVICE_UNAVAILABLE, what).with_retryable(true)
        }
    }
}

pub(super) fn workflow_response(status: StatusCode, entry: &WorkflowEntry) -> Response<Body> {
    json_response(
        status,
        entry.prepared.kind.media_type(),
        &describe::describe_workflow(entry),
    )
}

pub(super) fn json_response(
    status: StatusCode,
    kind: &'static str,
    value: &Value,
) -> Response<Body> {
    let mut response = Response::new(Body::from_bytes(format!("{value}\n")));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static(kind);
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}
