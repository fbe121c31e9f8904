//! Responses that several routes share.

use super::describe;
use super::workflow_registry::{RegistryError, WorkflowEntry};
use http::header::{self, HeaderValue};
use http::{Response, StatusCode};
use net::{Body, Error};
use serde_json::Value;

/// Runs work outside the event loop, because the work computes or waits for processes.
pub(super) async fn run_blocking(
    work: impl FnOnce() -> Result<Response<Body>, Error> + Send + 'static,
) -> Result<Response<Body>, Error> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(Error::internal(error)))
}

pub(super) fn registry_error(error: RegistryError, id: &str) -> Error {
    match error {
        RegistryError::AlreadyExists => Error::client(
            StatusCode::CONFLICT,
            format!("{id} exists; PATCH it, or use another id"),
        ),
        RegistryError::NotFound => {
            Error::client(StatusCode::NOT_FOUND, format!("{id} does not exist"))
        }
        RegistryError::StillRunning => {
            let what = format!(
                "{id} is running; PATCH its general.state to idle, then repeat the request"
            );
            Error::client(StatusCode::CONFLICT, what)
        }
        RegistryError::AtCapacity => {
            let what = "the limit of workflows is reached; DELETE some";
            Error::client(StatusCode::SERVICE_UNAVAILABLE, what).with_retry(true)
        }
    }
}

pub(super) fn workflow_response(status: StatusCode, entry: &WorkflowEntry) -> Response<Body> {
    as_json(
        status,
        entry.prepared.kind.media_type(),
        &describe::describe_entry(entry),
    )
}

pub(super) fn as_json(status: StatusCode, kind: &'static str, value: &Value) -> Response<Body> {
    let mut response = Response::new(Body::full(format!("{value}\n")));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static(kind);
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}
