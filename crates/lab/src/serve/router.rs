//! Routes requests by path and method, and handles requests that only read.

use super::manager::WorkflowManager;
use super::nbmp_resource_key::NbmpResourceKey;
use super::response::{json_response, registry_error, run_blocking, workflow_response};
use super::{authorization, change_requests, describe, function_discovery};
use crate::nbmp::DescriptionKind;
use crate::report::ExperimentReport;
use http::header::{self, HeaderMap, HeaderValue};
use http::request::Parts;
use http::{Request, Response, StatusCode};
use net::body::Incoming;
use net::{Body, Error};
use serde_json::{Value, json};
use std::sync::Arc;

/// Content security policy of the page. The page contains its scripts and styles, and connects only
/// to this server.
const POLICY: &str = "default-src 'none'; connect-src 'self'; style-src 'unsafe-inline'; \
                      script-src 'unsafe-inline'; frame-ancestors 'none'";

/// The route of a path.
enum RequestRoute<'a> {
    Fixed(&'static str, &'static [u8]),
    All(DescriptionKind),
    One(DescriptionKind, &'a str),
    Summary(DescriptionKind, &'a str),
    Functions,
    Group,
}

/// Handles one request.
pub(super) async fn handle_request(
    manager: Arc<WorkflowManager>,
    request: Request<Incoming>,
) -> Response<Body> {
    let (head, body) = request.into_parts();
    let mut response = match authorization::authorize_request(&head, &manager.settings) {
        Ok(()) => match dispatch_request(manager, &head, body).await {
            Ok(response) => response,
            Err(error) => error.to_response(),
        },
        Err(error) => {
            let mut response = error.to_response();
            if error.status == StatusCode::UNAUTHORIZED {
                let challenge = HeaderValue::from_static("Basic realm=\"headwater lab\"");
                response
                    .headers_mut()
                    .insert(header::WWW_AUTHENTICATE, challenge);
            }
            response
        }
    };
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    response
}

fn parse_route(path: &str) -> Option<RequestRoute<'_>> {
    let parts: Vec<&str> = path.strip_prefix('/')?.split('/').collect();
    let kind = |name: &str| match name {
        "workflows" => Some(DescriptionKind::Workflow),
        "tasks" => Some(DescriptionKind::Task),
        _ => None,
    };
    Some(match parts.as_slice() {
        [""] => RequestRoute::Fixed("text/html; charset=utf-8", include_bytes!("page.html")),
        ["openapi.json"] => RequestRoute::Fixed("application/json", include_bytes!("openapi.json")),
        ["healthz" | "readyz"] => RequestRoute::Fixed("text/plain; charset=utf-8", b"ok\n"),
        ["discover-functions"] => RequestRoute::Functions,
        ["discover-functions-in-group"] => RequestRoute::Group,
        [of] => RequestRoute::All(kind(of)?),
        [of, id] => RequestRoute::One(kind(of)?, id),
        [of, id, "summary"] => RequestRoute::Summary(kind(of)?, id),
        _ => return None,
    })
}

async fn dispatch_request(
    manager: Arc<WorkflowManager>,
    head: &Parts,
    body: Incoming,
) -> Result<Response<Body>, Error> {
    let path = head.uri.path();
    let Some(what) = parse_route(path) else {
        let what = "not found; use /workflows, /tasks, /discover-functions, /openapi.json or the page at /";
        return Err(Error::new_client_error(StatusCode::NOT_FOUND, what));
    };
    let (methods, kind): (&[&str], _) = match &what {
        RequestRoute::All(kind) => (&["GET", "POST"], Some(*kind)),
        RequestRoute::One(kind, _) => (&["GET", "PATCH", "PUT", "DELETE"], Some(*kind)),
        RequestRoute::Functions | RequestRoute::Group => {
            (&["GET"], Some(DescriptionKind::Function))
        }
        RequestRoute::Summary(..) | RequestRoute::Fixed(..) => (&["GET"], None),
    };
    // GET routes also accept HEAD.
    let method = match head.method.as_str() {
        "HEAD" => "GET",
        method => method,
    };
    if !methods.contains(&method) {
        return Ok(method_not_allowed(methods));
    }
    if let Some(kind) = kind {
        check_accept(&head.headers, kind)?;
    }
    match (what, method) {
        (RequestRoute::Fixed(kind, bytes), _) => Ok(static_response(kind, bytes)),
        (RequestRoute::Functions, _) => {
            function_discovery::discover_functions(head.uri.query().unwrap_or_default())
        }
        (RequestRoute::Group, _) => {
            function_discovery::discover_group(head.uri.query().unwrap_or_default())
        }
        (RequestRoute::All(kind), "GET") => {
            let all = manager
                .registry
                .list_workflows_or_tasks(kind == DescriptionKind::Task);
            let all: Vec<Value> = all.iter().map(describe::describe_workflow).collect();
            Ok(json_response(
                StatusCode::OK,
                "application/json",
                &all.into(),
            ))
        }
        (RequestRoute::All(kind), _) => {
            change_requests::create_workflow(manager, kind, head, body).await
        }
        (RequestRoute::Summary(kind, id), _) => {
            workflow_report_response(manager, NbmpResourceKey::new(kind, id)).await
        }
        (RequestRoute::One(kind, id), "GET") => {
            let entry = manager
                .registry
                .find_entry(&NbmpResourceKey::new(kind, id))
                .map_err(|error| registry_error(error, id))?;
            Ok(workflow_response(StatusCode::OK, &entry))
        }
        (RequestRoute::One(kind, id), "DELETE") => {
            change_requests::remove_workflow(manager, NbmpResourceKey::new(kind, id)).await
        }
        (RequestRoute::One(kind, id), _) => {
            change_requests::update_workflow(manager, kind, id.to_owned(), head, body).await
        }
    }
}

fn method_not_allowed(methods: &[&str]) -> Response<Body> {
    let mut names = methods.join(", ");
    if methods.contains(&"GET") {
        names.push_str(", HEAD");
    }
    let what = format!("method not allowed; use {names}");
    let mut response = Error::new_client_error(StatusCode::METHOD_NOT_ALLOWED, what).to_response();
    if let Ok(allow) = HeaderValue::try_from(names) {
        response.headers_mut().insert(header::ALLOW, allow);
    }
    response
}

/// Checks that the client accepts JSON or the media type of the description.
fn check_accept(headers: &HeaderMap, kind: DescriptionKind) -> Result<(), Error> {
    let all: Vec<&str> = headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .collect();
    let takes = |range: &&str| {
        let mut parts = range.split(';').map(str::trim);
        let essence = parts.next().unwrap_or_default().to_ascii_lowercase();
        let refused =
            parts.any(|p| matches!(p.split_once('='), Some(("q", q)) if q.parse() == Ok(0.0)));
        let accepted_types = [
            kind.media_type(),
            "application/json",
            "application/*",
            "*/*",
        ];
        !refused && accepted_types.contains(&essence.as_str())
    };
    if all.is_empty() || all.iter().any(takes) {
        return Ok(());
    }
    let what = format!(
        "not acceptable; accept {} or application/json",
        kind.media_type()
    );
    Err(Error::new_client_error(StatusCode::NOT_ACCEPTABLE, what))
}

async fn workflow_report_response(
    manager: Arc<WorkflowManager>,
    key: NbmpResourceKey,
) -> Result<Response<Body>, Error> {
    run_blocking(move || {
        let entry = manager
            .registry
            .find_entry(&key)
            .map_err(|error| registry_error(error, &key.id))?;
        let prepared = &entry.prepared;
        let records = manager
            .read_workflow_records(prepared)
            .map_err(Error::new_internal_error)?;
        let machines = manager
            .read_workflow_machines(prepared)
            .map_err(Error::new_internal_error)?;
        let report = ExperimentReport::new(&prepared.plan, &prepared.text, &records, machines);
        Ok(json_response(
            StatusCode::OK,
            "application/json",
            &json!(report),
        ))
    })
    .await
}

fn static_response(kind: &'static str, bytes: &'static [u8]) -> Response<Body> {
    let mut response = Response::new(Body::from_bytes(bytes));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(POLICY),
    );
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_that_accepts_get_also_allows_head() {
        let response = method_not_allowed(&["GET", "POST"]);
        assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED);
        assert_eq!(response.headers()[header::ALLOW], "GET, POST, HEAD");
    }
}
