//! The admin port for operators. It accepts few connections and requires a token for all requests
//! except health probes.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::header::{
    CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderMap, HeaderValue, WWW_AUTHENTICATE,
};
use http::{Response, StatusCode};

use crate::config::UsageError;
use crate::{
    Body, Error, FatalError, InheritedListener, Limits, Server, ServerOptions, access_token,
};

/// The name of the admin port in the log and in the announcement of its address.
pub const ADMIN: &str = "admin";

/// Maximum number of open connections of the port.
const CONNECTIONS_MAX: usize = 64;
/// The timeout is short, because a client without the token could otherwise occupy all connections.
const IDLE_TIMEOUT: Duration = Duration::from_secs(15);

/// Reads the token and binds the port. `settings` contains the address of the port and the path of
/// the token file. The port stays open while the main port drains, and reports the drain.
///
/// # Errors
/// [`FatalError`] when the token or the address cannot be used.
pub fn bind_admin_port(
    settings: Option<&(String, PathBuf)>,
    inherited: Vec<InheritedListener>,
) -> Result<Option<(Server, Arc<str>)>, FatalError> {
    let Some((listen, token_file)) = settings else {
        return Ok(None);
    };
    let token = access_token::read_token_file(token_file)
        .map_err(|error| FatalError::Usage(UsageError(error.to_string())))?;
    let options = ServerOptions {
        addresses: vec![listen.clone()],
        workers: 1,
        limits: Limits {
            connections_max: CONNECTIONS_MAX,
            idle_timeout: IDLE_TIMEOUT,
            ..Limits::default()
        },
        ..ServerOptions::default()
    };
    let server = Server::bind_inherited(options, inherited);
    let server = server.map_err(FatalError::cannot("--admin"))?;
    Ok(Some((server, token)))
}

/// Returns a 401 response if the request does not contain the token. Browsers then prompt for the
/// token and may show `realm`, which must contain neither quotes nor backslashes.
pub fn refuse_without_token(
    headers: &HeaderMap,
    token: &str,
    realm: &str,
) -> Option<Response<Body>> {
    if access_token::has_valid_token(headers, token) {
        return None;
    }
    let what = "token required; send Authorization: Bearer TOKEN, or the token as the password";
    let mut response = Error::new_client_error(StatusCode::UNAUTHORIZED, what).to_response();
    if let Ok(challenge) = HeaderValue::try_from(format!("Basic realm=\"{realm}\"")) {
        response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    }
    Some(response)
}

/// `Content-Security-Policy` of status pages, which load nothing from other sites.
const PAGE_POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; connect-src 'self'; style-src 'unsafe-inline'; script-src 'unsafe-inline'",
);

/// Returns a response with a status page, which is compiled into the program.
pub fn page_response(page: &'static str) -> Response<Body> {
    let mut response = Response::new(Body::from_bytes(page));
    let headers = response.headers_mut();
    let kind = HeaderValue::from_static("text/html; charset=utf-8");
    headers.insert(CONTENT_TYPE, kind);
    headers.insert(CONTENT_SECURITY_POLICY, PAGE_POLICY);
    response
}

/// Returns a response with a JSON document.
pub fn json_response(value: &serde_json::Value) -> Response<Body> {
    let mut response = Response::new(Body::from_bytes(format!("{value}\n")));
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}
