//! Requests, by path and method.

use super::book::{Book, Entry, Name, Not, name};
use super::prepare::{Refused, described, prepared};
use super::{describe, door};
use crate::config::serve::Settings;
use crate::experiment::{Machine, Record};
use crate::nbmp::{BYTES_MAX, Kind, functions::built_in};
use crate::report::Report;
use http::header::{self, HeaderMap, HeaderValue};
use http::request::Parts;
use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use net::{Body, Error};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;

/// Everything that requests have to do with.
pub(crate) struct Manager {
    pub(super) settings: Settings,
    pub(super) book: Arc<Book>,
}

/// The page brings all it needs, and loads nothing from anywhere.
const POLICY: &str = "default-src 'none'; connect-src 'self'; style-src 'unsafe-inline'; \
                      script-src 'unsafe-inline'; frame-ancestors 'none'";

impl Manager {
    /// Where results go.
    pub(super) fn folder(&self, (task, id): &Name) -> PathBuf {
        let kind = if *task { "tasks" } else { "workflows" };
        self.settings.out.join(kind).join(id)
    }

    fn clear(&self, name: &Name) {
        let folder = self.folder(name);
        if let Err(error) = std::fs::remove_dir_all(&folder)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            tracing::warn!(folder = %folder.display(), %error, "results cannot be removed");
        }
    }
}

/// What a path is about.
enum What<'a> {
    Fixed(&'static str, &'static [u8]),
    All(Kind),
    One(Kind, &'a str),
    Summary(Kind, &'a str),
    Functions,
    Group,
}

/// Answers one request.
pub(super) async fn answer(manager: Arc<Manager>, request: Request<Incoming>) -> Response<Body> {
    let (head, body) = request.into_parts();
    let mut response = match door::check(&head, &manager.settings) {
        Ok(()) => match route(manager, &head, body).await {
            Ok(response) => response,
            Err(error) => error.response(),
        },
        Err(error) => {
            let mut response = error.response();
            if error.status == StatusCode::UNAUTHORIZED {
                let ask = HeaderValue::from_static("Basic realm=\"headwater lab\"");
                response.headers_mut().insert(header::WWW_AUTHENTICATE, ask);
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

fn about(path: &str) -> Option<What<'_>> {
    let parts: Vec<&str> = path.strip_prefix('/')?.split('/').collect();
    let kind = |name: &str| match name {
        "workflows" => Some(Kind::Workflow),
        "tasks" => Some(Kind::Task),
        _ => None,
    };
    Some(match parts.as_slice() {
        [""] => What::Fixed("text/html; charset=utf-8", include_bytes!("page.html")),
        ["openapi.json"] => What::Fixed("application/json", include_bytes!("openapi.json")),
        ["healthz" | "readyz"] => What::Fixed("text/plain; charset=utf-8", b"ok\n"),
        ["discover-functions"] => What::Functions,
        ["discover-functions-in-group"] => What::Group,
        [of] => What::All(kind(of)?),
        [of, id] => What::One(kind(of)?, id),
        [of, id, "summary"] => What::Summary(kind(of)?, id),
        _ => return None,
    })
}

async fn route(
    manager: Arc<Manager>,
    head: &Parts,
    body: Incoming,
) -> Result<Response<Body>, Error> {
    let path = head.uri.path();
    let Some(what) = about(path) else {
        let what =
            "there are /workflows, /tasks, /discover-functions, /openapi.json and a page at /";
        return Err(Error::client(StatusCode::NOT_FOUND, what));
    };
    let (methods, kind): (&[&str], _) = match &what {
        What::All(kind) => (&["GET", "POST"], Some(*kind)),
        What::One(kind, _) => (&["GET", "PATCH", "PUT", "DELETE"], Some(*kind)),
        What::Functions | What::Group => (&["GET"], Some(Kind::Function)),
        What::Summary(..) | What::Fixed(..) => (&["GET"], None),
    };
    // Whatever can be had can have its head.
    let method = match head.method.as_str() {
        "HEAD" => "GET",
        method => method,
    };
    if !methods.contains(&method) {
        return Ok(not_allowed(methods));
    }
    if let Some(kind) = kind {
        acceptable(&head.headers, kind)?;
    }
    match (what, method) {
        (What::Fixed(kind, bytes), _) => Ok(fixed(kind, bytes)),
        (What::Functions, _) => discover(head.uri.query().unwrap_or_default()),
        (What::Group, _) => discover_group(head.uri.query().unwrap_or_default()),
        (What::All(kind), "GET") => {
            let all = manager.book.all(kind == Kind::Task);
            let all: Vec<Value> = all.iter().map(describe::entry).collect();
            Ok(as_json(StatusCode::OK, "application/json", &all.into()))
        }
        (What::All(kind), _) => create(manager, kind, head, body).await,
        (What::Summary(kind, id), _) => summarised(manager, name(kind, id)).await,
        (What::One(kind, id), "GET") => {
            let entry = manager
                .book
                .get(&name(kind, id))
                .map_err(|not| cannot(not, id))?;
            Ok(described_as(StatusCode::OK, &entry))
        }
        (What::One(kind, id), "DELETE") => remove(manager, name(kind, id)).await,
        (What::One(kind, id), _) => update(manager, kind, id.to_owned(), head, body).await,
    }
}

fn not_allowed(methods: &[&str]) -> Response<Body> {
    let names = methods.join(", ");
    let what = format!("there are {names} here");
    let mut response = Error::client(StatusCode::METHOD_NOT_ALLOWED, what).response();
    if let Ok(allow) = HeaderValue::try_from(names) {
        response.headers_mut().insert(header::ALLOW, allow);
    }
    response
}

/// Whether the client takes descriptions, or JSON at all.
fn acceptable(headers: &HeaderMap, kind: Kind) -> Result<(), Error> {
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
        let ours = [
            kind.media_type(),
            "application/json",
            "application/*",
            "*/*",
        ];
        !refused && ours.contains(&essence.as_str())
    };
    if all.is_empty() || all.iter().any(takes) {
        return Ok(());
    }
    let what = format!("answers are {} or application/json", kind.media_type());
    Err(Error::client(StatusCode::NOT_ACCEPTABLE, what))
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

async fn create(
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

async fn update(
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
        manager.book.get(&own).map_err(|not| cannot(not, &id))?;
        let description = match described(kind, &body) {
            Ok(description) => description,
            Err(refused) => return Ok(refusal(kind, &refused)),
        };
        if description.pointer("/general/id").and_then(Value::as_str) != Some(id.as_str()) {
            let refused = Refused {
                description,
                failed: true,
                offences: vec![crate::nbmp::Offence {
                    path: "$.general.id".into(),
                    what: format!("the path says {id}"),
                }],
            };
            return Ok(refusal(kind, &refused));
        }
        let state = description
            .pointer("/general/state")
            .and_then(Value::as_str);
        let only_state =
            description.get("processing").is_none() && description.get("configuration").is_none();
        let entry = match state {
            Some("destroyed") => manager
                .book
                .remove(&own, || manager.clear(&own))
                .map_err(|not| cannot(not, &id))?,
            Some("idle") if only_state => {
                manager.book.stop(&own).map_err(|not| cannot(not, &id))?
            }
            _ if only_state => manager.book.start(&own).map_err(|not| cannot(not, &id))?,
            _ => {
                let made = match prepared(kind, description, scale.as_deref(), &manager.settings) {
                    Ok(made) => made,
                    Err(refused) => return Ok(refusal(kind, &refused)),
                };
                manager
                    .book
                    .replace(made, || manager.clear(&own))
                    .map_err(|not| cannot(not, &id))?
            }
        };
        Ok(described_as(StatusCode::OK, &entry))
    })
    .await
}

async fn remove(manager: Arc<Manager>, own: Name) -> Result<Response<Body>, Error> {
    aside(move || {
        let entry = manager
            .book
            .remove(&own, || manager.clear(&own))
            .map_err(|not| cannot(not, &own.1))?;
        Ok(described_as(StatusCode::OK, &entry))
    })
    .await
}

/// Off the event loop: it computes, or waits for processes to end.
async fn aside(
    work: impl FnOnce() -> Result<Response<Body>, Error> + Send + 'static,
) -> Result<Response<Body>, Error> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(Error::internal(error)))
}

fn cannot(not: Not, id: &str) -> Error {
    match not {
        Not::Free => Error::client(
            StatusCode::CONFLICT,
            format!("{id} is there already; PATCH it, or take another id"),
        ),
        Not::There => Error::client(StatusCode::NOT_FOUND, format!("there is no {id}")),
        Not::Still => {
            let what = format!("{id} runs; PATCH its general.state to idle before it is changed");
            Error::client(StatusCode::CONFLICT, what)
        }
        Not::Room => {
            let what = "there are as many as may be; DELETE some";
            Error::client(StatusCode::SERVICE_UNAVAILABLE, what).with_retry(true)
        }
    }
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

async fn summarised(manager: Arc<Manager>, own: Name) -> Result<Response<Body>, Error> {
    aside(move || {
        let entry = manager.book.get(&own).map_err(|not| cannot(not, &own.1))?;
        let folder = manager.folder(&own);
        let records = Record::read_all(&folder.join("runs.jsonl")).map_err(Error::internal)?;
        let machines = Machine::read_all(&folder).map_err(Error::internal)?;
        let prepared = &entry.prepared;
        let report = Report::new(&prepared.plan, &prepared.text, &records, machines);
        Ok(as_json(StatusCode::OK, "application/json", &json!(report)))
    })
    .await
}

/// `id`, `name` and `keyword` narrow it down.
fn discover(query: &str) -> Result<Response<Body>, Error> {
    let wanted: Vec<(&str, &str)> = query
        .split('&')
        .filter_map(|part| part.split_once('='))
        .collect();
    functions(|name, function| {
        wanted.iter().all(|(key, value)| match *key {
            "id" | "name" => name == *value,
            "keyword" | "keywords" => {
                [function.group.as_str(), function.role.as_str()].contains(value)
            }
            _ => true,
        })
    })
}

fn discover_group(query: &str) -> Result<Response<Body>, Error> {
    let group = query
        .split('&')
        .find_map(|part| part.strip_prefix("groupId="));
    functions(|_, function| group == Some(function.group.as_str()))
}

fn functions(
    fits: impl Fn(&str, &crate::nbmp::functions::BuiltIn) -> bool,
) -> Result<Response<Body>, Error> {
    let found = built_in()
        .iter()
        .filter(|(name, function)| fits(name, function));
    let all: Vec<Value> = found
        .map(|(name, function)| function.describe(name))
        .collect();
    if all.is_empty() {
        let groups = built_in().values().map(|function| function.group.as_str());
        let groups: std::collections::BTreeSet<&str> = groups.collect();
        let what = format!("no function is like that; the groups are {groups:?}");
        return Err(Error::client(StatusCode::NOT_FOUND, what));
    }
    Ok(as_json(
        StatusCode::OK,
        Kind::Function.media_type(),
        &all.into(),
    ))
}

fn described_as(status: StatusCode, entry: &Entry) -> Response<Body> {
    as_json(
        status,
        entry.prepared.kind.media_type(),
        &describe::entry(entry),
    )
}

fn as_json(status: StatusCode, kind: &'static str, value: &Value) -> Response<Body> {
    let mut response = Response::new(Body::full(format!("{value}\n")));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static(kind);
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

fn fixed(kind: &'static str, bytes: &'static [u8]) -> Response<Body> {
    let mut response = Response::new(Body::full(bytes));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(POLICY),
    );
    response
}
