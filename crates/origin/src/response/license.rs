//! ClearKey licenses (Encrypted Media Extensions, 9.1.4). Anyone who can fetch a title's license
//! can watch the title. Protect the license URL with authorization, or serve the keys from a key
//! server.

use crate::error;
use crate::title::catalog::Catalog;
use crate::title::opened_title::Title;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::header::{self, HeaderValue};
use http::{Response, StatusCode};
use net::{Body, Error, headers};
use std::fmt::Write;
use std::sync::Arc;
use store::Key;

/// Methods of the license URL.
const ALLOWED_METHODS: HeaderValue = HeaderValue::from_static("POST, OPTIONS");

/// Responds with all keys of a title, because one license covers all tracks of the title. The key
/// IDs in the request are ignored.
pub(crate) async fn respond_with_license(
    catalog: &Arc<Catalog>,
    title: &Key,
) -> Result<Response<Body>, Error> {
    let title = load_title_with_served_keys(catalog, title).await?;
    let keys = title.drm.as_ref().map_or(&[][..], |drm| drm.served_keys());
    let mut text = String::from("{\"keys\":[");
    for (n, own) in keys.iter().enumerate() {
        let comma = if n > 0 { "," } else { "" };
        let (id, key) = (
            URL_SAFE_NO_PAD.encode(own.key_id),
            URL_SAFE_NO_PAD.encode(own.key.expose()),
        );
        let _ = write!(
            text,
            "{comma}{{\"kty\":\"oct\",\"kid\":\"{id}\",\"k\":\"{key}\"}}"
        );
    }
    text.push_str("],\"type\":\"temporary\"}");
    Ok(private_response(text.into_bytes()))
}

async fn load_title_with_served_keys(
    catalog: &Arc<Catalog>,
    title: &Key,
) -> Result<Arc<Title>, Error> {
    if !catalog.is_protecting(title) {
        return Err(error::not_found("this film is not encrypted"));
    }
    let title = catalog.load_title(title).await?;
    let is_served = |title: &Title| {
        title
            .drm
            .as_ref()
            .is_some_and(|drm| !drm.served_keys().is_empty())
    };
    match is_served(&title) {
        true => Ok(title),
        false => Err(error::not_found("this server does not provide keys")),
    }
}

/// Allows pages of other origins to request a license.
pub(crate) fn preflight_response() -> Response<Body> {
    let mut response = headers::preflight_response();
    for name in [header::ALLOW, header::ACCESS_CONTROL_ALLOW_METHODS] {
        response.headers_mut().insert(name, ALLOWED_METHODS);
    }
    response
}

/// Responds to a license request with another method.
pub(crate) fn method_not_allowed() -> Response<Body> {
    let what = "a license is requested with POST";
    let mut response = Error::new_client_error(StatusCode::METHOD_NOT_ALLOWED, what).to_response();
    response
        .headers_mut()
        .insert(header::ALLOW, ALLOWED_METHODS);
    response
}

/// Returns a JSON response that caches must not store.
fn private_response(json: Vec<u8>) -> Response<Body> {
    let mut response = Response::new(Body::from_bytes(json));
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers::allow_any_origin(headers);
    response
}
