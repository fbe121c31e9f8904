//! Content keys for players. Anyone who can fetch a title's key can watch the title. Protect the
//! key URL with authorization, or serve the keys from a key server (`aes-key-url`).

use crate::error;
use crate::title::catalog::Catalog;
use bytes::Bytes;
use http::Response;
use http::header::{self, HeaderValue};
use net::{Body, Error, headers};
use std::sync::Arc;
use store::Key;

/// Responds with the 16 bytes of a title's key. Caches must not store the response.
pub(crate) async fn respond_with_key(
    catalog: &Arc<Catalog>,
    title: &Key,
) -> Result<Response<Body>, Error> {
    if !catalog.encrypts_title(title) {
        return Err(error::not_found("this film is not encrypted"));
    }
    let title = catalog.load_title(title).await?;
    let key = title
        .encryption
        .as_ref()
        .and_then(|seal| seal.key_for_players());
    let key = key.ok_or_else(|| error::not_found("this server does not provide keys"))?;
    let mut response = Response::new(Body::from_bytes(Bytes::copy_from_slice(&key)));
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/octet-stream"),
    );
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers::allow_any_origin(headers);
    Ok(response)
}
