//! The player page and its assets, embedded in the program.

use crate::response::compressible_text::CompressibleText;
use crate::response::responder::ClientRequest;
use http::Response;
use http::header::{self, HeaderValue};
use net::{Body, Error};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

#[derive(rust_embed::RustEmbed)]
#[folder = "../../player"]
#[include = "*.html"]
#[include = "*.js"]
#[include = "*.css"]
#[include = "*.svg"]
#[include = "*.png"]
#[include = "*.webmanifest"]
#[exclude = "node_modules/*"]
#[allow_missing = true]
struct EmbeddedAssets;

/// Content types of the assets by file extension.
const ASSET_TYPES: [(&str, &str); 6] = [
    (".html", "text/html; charset=utf-8"),
    (".js", "text/javascript; charset=utf-8"),
    (".css", "text/css; charset=utf-8"),
    (".svg", "image/svg+xml"),
    (".png", "image/png"),
    (".webmanifest", "application/manifest+json"),
];

/// Asset names contain no version, so caches must revalidate assets.
const REVALIDATE: HeaderValue = HeaderValue::from_static("no-cache");

/// Returns the content security policy of the page. The page runs only scripts of this server, and
/// sends requests only to this server and to license servers. The page may play media from `blob:`
/// and `data:` URLs.
fn content_security_policy(license_origins: &BTreeSet<String>) -> HeaderValue {
    let mut fetched = vec!["'self'"];
    fetched.extend(license_origins.iter().map(String::as_str));
    let policy = format!(
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; \
         media-src 'self' blob: data:; connect-src {}; worker-src 'self' blob:; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'self'",
        fetched.join(" ")
    );
    // Origins consist of visible ASCII characters, so the fallback value is never used.
    HeaderValue::try_from(policy).unwrap_or(HeaderValue::from_static("default-src 'none'"))
}

/// The embedded assets by name.
pub(crate) struct WebAssets {
    assets: HashMap<String, Arc<CompressibleText>>,
    policy: HeaderValue,
}

impl WebAssets {
    pub(crate) fn new(license_origins: &BTreeSet<String>) -> WebAssets {
        let part = |name: std::borrow::Cow<'static, str>| {
            let file = EmbeddedAssets::get(&name)?;
            let known = ASSET_TYPES
                .iter()
                .find(|(suffix, _)| name.ends_with(suffix));
            let content_type = HeaderValue::from_static(known.map_or("text/plain", |(_, t)| t));
            let bytes = bytes::Bytes::from(file.data.into_owned());
            let text = CompressibleText::new(content_type, REVALIDATE, None, bytes);
            Some((name.into_owned(), Arc::new(text)))
        };
        WebAssets {
            assets: EmbeddedAssets::iter().filter_map(part).collect(),
            policy: content_security_policy(license_origins),
        }
    }

    /// Responds with an asset.
    pub(crate) async fn respond_with_asset(
        &self,
        name: &str,
        request: &ClientRequest<'_>,
    ) -> Result<Response<Body>, Error> {
        match self.assets.get(name) {
            Some(text) => {
                let mut response = text.respond_in_preferred_coding(request).await;
                response
                    .headers_mut()
                    .insert(header::CONTENT_SECURITY_POLICY, self.policy.clone());
                Ok(response)
            }
            None => Err(crate::error::not_found("unknown page asset")),
        }
    }
}
