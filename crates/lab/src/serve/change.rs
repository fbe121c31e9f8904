//! What is posted, changed and taken away.

use super::answer::{Manager, as_json, aside, cannot, described_as};
use super::book::{Name, name};
use super::describe;
use super::prepare::{Prepared, Refused, described, prepared};
use crate::nbmp::{BYTES_MAX, Kind, Offence};
use http::header::{self, HeaderMap, HeaderValue};
use http::request::Parts;
use http::{Response, StatusCode};
use net::body::Incoming;
use net::{Body, Error};
use serde_json::Value;
use std::sync::Arc;

/// `POST`.
pub(super) async fn create(
    manager: Arc<Manager>,
    kind: Kind,
    head: &Parts,
    body: Incoming,
) -> Result<Response<Body>, Error> {
    let scale = scale(head.uri.query().unwrap_or_default())?;
    let body = body_of(&head.headers, body, kind).await?;
    aside(move || {
        let made = described(kind, &body).and_then(|description| {
            prepared(kind, description, scale.as_deref(), &manager.settings)
        });
        let made = match made {
            Ok(made) => made,
            Err(refused) => return Ok(refusal(kind, &refused)),
        };
        let (name, id) = (made.name(), made.id.clone());
        let before = manager.book.add(made).map_err(|not| cannot(not, &id))?;
        let entry = manager.book.get(&name).map_err(|not| cannot(not, &id))?;
        // Others are before it: it is taken, and waits.
        let status = if before == 0 {
            StatusCode::CREATED
        } else {
            StatusCode::ACCEPTED
        };
        let mut response = described_as(status, &entry);
        let location = format!("/{}/{id}", if name.0 { "tasks" } else { "workflows" });
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

/// `PATCH` and `PUT`.
pub(super) async fn update(
    manager: Arc<Manager>,
    kind: Kind,
    id: String,
    head: &Parts,
    body: Incoming,
) -> Result<Response<Body>, Error> {
    let scale = scale(head.uri.query().unwrap_or_default())?;
    let body = body_of(&head.headers, body, kind).await?;
    aside(move || {
        let own = name(kind, &id);
        let not = |not| cannot(not, &id);
        manager.book.get(&own).map_err(not)?;
        let prepare =
            |description| prepared(kind, description, scale.as_deref(), &manager.settings);
        let asked = described(kind, &body).and_then(|asks| asked(asks, &id, prepare));
        let changed = match asked {
            Err(refused) => return Ok(refusal(kind, &refused)),
            Ok(Asked::Removal) => manager.clearing(&own, |clear| manager.book.remove(&own, clear)),
            Ok(Asked::Stop) => manager.book.stop(&own),
            Ok(Asked::Start) => manager.book.start(&own),
            Ok(Asked::Other(made)) => {
                manager.clearing(&own, |clear| manager.book.replace(*made, clear))
            }
        };
        Ok(described_as(StatusCode::OK, &changed.map_err(not)?))
    })
    .await
}

/// What a changed description asks for.
enum Asked {
    Removal,
    Stop,
    Start,
    /// Another description in its place.
    Other(Box<Prepared>),
}

fn asked(
    description: Value,
    id: &str,
    prepare: impl FnOnce(Value) -> Result<Prepared, Refused>,
) -> Result<Asked, Refused> {
    let text = |pointer| description.pointer(pointer).and_then(Value::as_str);
    if text("/general/id") != Some(id) {
        let what = format!("the path says {id}");
        return Err(refused(description, "$.general.id", what));
    }
    let only_state =
        description.get("processing").is_none() && description.get("configuration").is_none();
    match text("/general/state") {
        Some("destroyed") => Ok(Asked::Removal),
        _ if !only_state => prepare(description).map(|made| Asked::Other(Box::new(made))),
        Some("idle") => Ok(Asked::Stop),
        Some("running" | "instantiated") => Ok(Asked::Start),
        _ => {
            let what = "running, idle or destroyed can be asked for".to_owned();
            Err(refused(description, "$.general.state", what))
        }
    }
}

fn refused(description: Value, path: &str, what: String) -> Refused {
    let path = path.into();
    Refused {
        description,
        failed: true,
        offences: vec![Offence { path, what }],
    }
}

/// `DELETE`.
pub(super) async fn remove(manager: Arc<Manager>, own: Name) -> Result<Response<Body>, Error> {
    aside(move || {
        let entry = manager
            .clearing(&own, |clear| manager.book.remove(&own, clear))
            .map_err(|not| cannot(not, &own.1))?;
        Ok(described_as(StatusCode::OK, &entry))
    })
    .await
}

/// `scale=NAME`, and nothing else.
fn scale(query: &str) -> Result<Option<String>, Error> {
    match query.split_once('=') {
        None if query.is_empty() => Ok(None),
        Some(("scale", name)) => Ok(Some(name.to_owned())),
        _ => Err(Error::client(
            StatusCode::BAD_REQUEST,
            "the query is scale=NAME, or nothing",
        )),
    }
}

/// A body's bytes, if it says that it is a description, or JSON, or nothing.
async fn body_of(headers: &HeaderMap, body: Incoming, kind: Kind) -> Result<Vec<u8>, Error> {
    if let Some(said) = headers.get(header::CONTENT_TYPE) {
        let said = said.to_str().unwrap_or_default();
        let essence = said.split(';').next().unwrap_or_default().trim();
        let known = [kind.media_type(), "application/json"];
        if !known
            .iter()
            .any(|known| essence.eq_ignore_ascii_case(known))
        {
            let what = format!("bodies are {} or application/json", kind.media_type());
            return Err(Error::client(StatusCode::UNSUPPORTED_MEDIA_TYPE, what));
        }
    }
    Ok(net::body::read(body, BYTES_MAX as u64).await?.to_vec())
}

/// 400 or 422, with the description; what is wrong with it in words stands in the header.
fn refusal(kind: Kind, refused: &Refused) -> Response<Body> {
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
    let said = Error::client(status, format!("{first}{more}")).response();
    let mut response = as_json(status, kind.media_type(), &describe::refused(refused));
    if let Some(why) = said.headers().get(net::headers::ERROR) {
        response
            .headers_mut()
            .insert(net::headers::ERROR, why.clone());
    }
    response
}
