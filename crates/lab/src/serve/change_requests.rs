//! Handles requests that create, change or delete workflows.

use super::describe;
use super::manager::WorkflowManager;
use super::nbmp_resource_key::NbmpResourceKey;
use super::prepare::{PreparedWorkflow, RefusedDescription, parse_description, prepare_workflow};
use super::response::{json_response, registry_error, run_blocking, workflow_response};
use crate::nbmp::{BYTES_MAX, DescriptionKind, NbmpFault};
use http::header::{self, HeaderMap, HeaderValue};
use http::request::Parts;
use http::{Response, StatusCode};
use net::body::Incoming;
use net::{Body, Error};
use serde_json::Value;
use std::sync::Arc;

/// Handles `POST`, which creates a workflow or a task.
pub(super) async fn create_workflow(
    manager: Arc<WorkflowManager>,
    kind: DescriptionKind,
    head: &Parts,
    body: Incoming,
) -> Result<Response<Body>, Error> {
    let scale = parse_scale_query(head.uri.query().unwrap_or_default())?;
    let body = read_description_body(&head.headers, body, kind).await?;
    run_blocking(move || {
        let made = parse_description(kind, &body)
            .and_then(check_initial_state)
            .and_then(|description| {
                prepare_workflow(kind, description, scale.as_deref(), &manager.settings)
            });
        let made = match made {
            Ok(made) => made,
            Err(refused) => return Ok(refusal_response(kind, &refused)),
        };
        let (key, id) = (made.key(), made.id.clone());
        let before = manager
            .registry
            .add_workflow(made)
            .map_err(|error| registry_error(error, &id))?;
        let entry = manager
            .registry
            .find_entry(&key)
            .map_err(|error| registry_error(error, &id))?;
        // If other workflows run first, the status is 202 (Accepted) instead of 201 (Created).
        let status = if before == 0 {
            StatusCode::CREATED
        } else {
            StatusCode::ACCEPTED
        };
        let mut response = workflow_response(status, &entry);
        let location = format!("/{}/{id}", key.collection());
        if let Ok(location) = HeaderValue::try_from(location) {
            response.headers_mut().insert(header::LOCATION, location);
        }
        if before > 0 {
            let later = HeaderValue::from_static("10");
            response.headers_mut().insert(header::RETRY_AFTER, later);
        }
        Ok(response)
    })
    .await
}

/// Refuses the states that a new workflow cannot have.
fn check_initial_state(description: Value) -> Result<Value, RefusedDescription> {
    let state = description
        .pointer("/general/state")
        .and_then(Value::as_str);
    match state {
        Some("in-error" | "destroyed") => {
            let what = "unsupported state; use running or idle".to_owned();
            Err(build_change_refusal(description, "$.general.state", what))
        }
        _ => Ok(description),
    }
}

/// Handles `PATCH` and `PUT`, which change or replace a workflow or a task.
pub(super) async fn update_workflow(
    manager: Arc<WorkflowManager>,
    kind: DescriptionKind,
    id: String,
    head: &Parts,
    body: Incoming,
) -> Result<Response<Body>, Error> {
    let scale = parse_scale_query(head.uri.query().unwrap_or_default())?;
    let body = read_description_body(&head.headers, body, kind).await?;
    run_blocking(move || {
        let key = NbmpResourceKey::new(kind, &id);
        let refuse = |error| registry_error(error, &id);
        manager.registry.find_entry(&key).map_err(refuse)?;
        let prepare =
            |description| prepare_workflow(kind, description, scale.as_deref(), &manager.settings);
        let requested = parse_description(kind, &body)
            .and_then(|description| read_change(description, &id, prepare));
        let changed = match requested {
            Err(refused) => return Ok(refusal_response(kind, &refused)),
            Ok(RequestedChange::Removal) => manager.change_and_delete_results(&key, |clear| {
                manager.registry.stop_and_remove(&key, clear)
            }),
            Ok(RequestedChange::Stop) => manager.registry.stop_workflow(&key),
            Ok(RequestedChange::Start) => manager.registry.enqueue_unless_active(&key),
            Ok(RequestedChange::Other(made)) => manager.change_and_delete_results(&key, |clear| {
                manager.registry.replace_workflow(*made, clear)
            }),
        };
        Ok(workflow_response(StatusCode::OK, &changed.map_err(refuse)?))
    })
    .await
}

/// A change that a description requests.
enum RequestedChange {
    Removal,
    Stop,
    Start,
    /// Replacement by another description.
    Other(Box<PreparedWorkflow>),
}

fn read_change(
    description: Value,
    id: &str,
    prepare: impl FnOnce(Value) -> Result<PreparedWorkflow, RefusedDescription>,
) -> Result<RequestedChange, RefusedDescription> {
    let text = |pointer| description.pointer(pointer).and_then(Value::as_str);
    if text("/general/id") != Some(id) {
        let what = format!("the URL names {id}; write the same identifier");
        return Err(build_change_refusal(description, "$.general.id", what));
    }
    let only_state =
        description.get("processing").is_none() && description.get("configuration").is_none();
    match text("/general/state") {
        Some("destroyed") => Ok(RequestedChange::Removal),
        _ if !only_state => prepare(description).map(|made| RequestedChange::Other(Box::new(made))),
        Some("idle") => Ok(RequestedChange::Stop),
        Some("running" | "instantiated") => Ok(RequestedChange::Start),
        _ => {
            let what = "unsupported state; use running, idle or destroyed".to_owned();
            Err(build_change_refusal(description, "$.general.state", what))
        }
    }
}

fn build_change_refusal(description: Value, path: &str, what: String) -> RefusedDescription {
    let path = path.into();
    RefusedDescription {
        description,
        failed: true,
        offences: vec![NbmpFault { path, what }],
    }
}

/// Handles `DELETE`, which removes a workflow or a task.
pub(super) async fn remove_workflow(
    manager: Arc<WorkflowManager>,
    key: NbmpResourceKey,
) -> Result<Response<Body>, Error> {
    run_blocking(move || {
        let entry = manager
            .change_and_delete_results(&key, |clear| manager.registry.stop_and_remove(&key, clear))
            .map_err(|error| registry_error(error, &key.id))?;
        Ok(workflow_response(StatusCode::OK, &entry))
    })
    .await
}

/// Reads the scale from a query. Accepts `scale=NAME` or an empty query.
fn parse_scale_query(query: &str) -> Result<Option<String>, Error> {
    match query.split_once('=') {
        None if query.is_empty() => Ok(None),
        Some(("scale", name)) => Ok(Some(name.to_owned())),
        _ => Err(Error::new_client_error(
            StatusCode::BAD_REQUEST,
            "invalid query; use scale=NAME or no query",
        )),
    }
}

/// Reads a request body. Accepts the media type of the description, the media type of JSON, or no
/// content type.
async fn read_description_body(
    headers: &HeaderMap,
    body: Incoming,
    kind: DescriptionKind,
) -> Result<Vec<u8>, Error> {
    if let Some(content_type) = headers.get(header::CONTENT_TYPE) {
        let content_type = content_type.to_str().unwrap_or_default();
        let essence = content_type.split(';').next().unwrap_or_default().trim();
        let known = [kind.media_type(), "application/json"];
        if !known
            .iter()
            .any(|known| essence.eq_ignore_ascii_case(known))
        {
            let what = format!(
                "unsupported content type; use {} or application/json",
                kind.media_type()
            );
            return Err(Error::new_client_error(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                what,
            ));
        }
    }
    Ok(net::body::read_request_body(body, BYTES_MAX as u64)
        .await?
        .to_vec())
}

/// Returns a response with status 400 or 422 and the refused description. The header
/// `headwater-error` contains the reason.
fn refusal_response(kind: DescriptionKind, refused: &RefusedDescription) -> Response<Body> {
    let status = match refused.failed {
        true => StatusCode::BAD_REQUEST,
        false => StatusCode::UNPROCESSABLE_ENTITY,
    };
    let first = refused
        .offences
        .first()
        .map(ToString::to_string)
        .unwrap_or_default();
    let more = match refused.offences.len() {
        0 | 1 => String::new(),
        n => format!(" (and {} more)", n - 1),
    };
    let error_response = Error::new_client_error(status, format!("{first}{more}")).to_response();
    let mut response = json_response(
        status,
        kind.media_type(),
        &describe::build_refusal_description(refused),
    );
    if let Some(why) = error_response.headers().get(net::headers::ERROR) {
        response
            .headers_mut()
            .insert(net::headers::ERROR, why.clone());
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_new_workflow_cannot_have_ended() {
        for (state, accepted) in [
            ("null", true),
            ("instantiated", true),
            ("idle", true),
            ("running", true),
            ("in-error", false),
            ("destroyed", false),
        ] {
            let description = json!({"general": {"state": state}});
            assert_eq!(
                check_initial_state(description).is_ok(),
                accepted,
                "{state}"
            );
        }
        assert!(check_initial_state(json!({"general": {}})).is_ok());
    }
}
