//! Requests, by path and method; what only looks is answered here.

use super::book::{Book, Entry, Name, Not, name};
use super::{change, describe, discover, door};
use crate::config::serve::Settings;
use crate::experiment::{Machine, Record};
use crate::nbmp::Kind;
use crate::report::Report;
use http::header::{self, HeaderMap, HeaderValue};
use http::request::Parts;
use http::{Request, Response, StatusCode};
use net::body::Incoming;
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

    /// Changes what is known of a workflow. `change` is handed what takes its results out of the way;
    /// they are removed afterwards, which may take long, when nobody waits for the book any more.
    pub(super) fn clearing<T>(&self, name: &Name, change: impl FnOnce(&dyn Fn()) -> T) -> T {
        let folder = self.folder(name);
        // No identifier begins with a dot.
        let gone = folder.with_file_name(format!(".gone-{}", name.1));
        let changed = change(&|| {
            if std::fs::rename(&folder, &gone).is_err() {
                removed(&folder);
            }
        });
        removed(&gone);
        changed
    }
}

fn removed(folder: &std::path::Path) {
    if let Err(error) = std::fs::remove_dir_all(folder)
        && error.kind() != std::io::ErrorKind::NotFound
    {
        tracing::warn!(folder = %folder.display(), %error, "results cannot be removed");
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
        (What::Functions, _) => discover::some(head.uri.query().unwrap_or_default()),
        (What::Group, _) => discover::group(head.uri.query().unwrap_or_default()),
        (What::All(kind), "GET") => {
            let all = manager.book.all(kind == Kind::Task);
            let all: Vec<Value> = all.iter().map(describe::entry).collect();
            Ok(as_json(StatusCode::OK, "application/json", &all.into()))
        }
        (What::All(kind), _) => change::create(manager, kind, head, body).await,
        (What::Summary(kind, id), _) => summarised(manager, name(kind, id)).await,
        (What::One(kind, id), "GET") => {
            let entry = manager
                .book
                .get(&name(kind, id))
                .map_err(|not| cannot(not, id))?;
            Ok(described_as(StatusCode::OK, &entry))
        }
        (What::One(kind, id), "DELETE") => change::remove(manager, name(kind, id)).await,
        (What::One(kind, id), _) => change::update(manager, kind, id.to_owned(), head, body).await,
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

/// Off the event loop: it computes, or waits for processes to end.
pub(super) async fn aside(
    work: impl FnOnce() -> Result<Response<Body>, Error> + Send + 'static,
) -> Result<Response<Body>, Error> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(Error::internal(error)))
}

pub(super) fn cannot(not: Not, id: &str) -> Error {
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

pub(super) fn described_as(status: StatusCode, entry: &Entry) -> Response<Body> {
    as_json(
        status,
        entry.prepared.kind.media_type(),
        &describe::entry(entry),
    )
}

pub(super) fn as_json(status: StatusCode, kind: &'static str, value: &Value) -> Response<Body> {
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
