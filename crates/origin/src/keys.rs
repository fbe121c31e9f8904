//! Keys of titles, for players. Whoever can fetch a title's key can watch it: to ask who that is
//! belongs before this address, or the keys to a server that does (`aes-key-url`).

use crate::catalog::Catalog;
use crate::error;
use bytes::Bytes;
use http::Response;
use http::header::{self, HeaderValue};
use net::{Body, Error, headers};
use std::sync::Arc;
use store::Key;

/// Answers with the sixteen bytes of a title's key; no cache may hold them.
pub(crate) async fn answer(catalog: &Arc<Catalog>, title: &Key) -> Result<Response<Body>, Error> {
    if !catalog.seals() {
        return Err(error::not_found("films are not encrypted here"));
    }
    let title = catalog.title(title).await?;
    let key = title.seal.as_ref().and_then(|seal| seal.key());
    let key = key.ok_or_else(|| error::not_found("keys are not given here"))?;
    let mut response = Response::new(Body::full(Bytes::copy_from_slice(&key)));
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/octet-stream"),
    );
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers::allow_any_origin(headers);
    Ok(response)
}
