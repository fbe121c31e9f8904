//! The page and what it needs, from inside the program.

use crate::manifest::Text;
use crate::respond::Ask;
use http::Response;
use http::header::{self, HeaderValue};
use net::{Body, Error};
use std::collections::HashMap;
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
struct Assets;

/// Content types of the page's parts, by the end of their names.
const TYPES: [(&str, &str); 6] = [
    (".html", "text/html; charset=utf-8"),
    (".js", "text/javascript; charset=utf-8"),
    (".css", "text/css; charset=utf-8"),
    (".svg", "image/svg+xml"),
    (".png", "image/png"),
    (".webmanifest", "application/manifest+json"),
];

/// The page's parts have no version in their names.
const REVALIDATE: HeaderValue = HeaderValue::from_static("no-cache");

/// What the page may do: run and fetch what we serve, and feed the player from memory.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; \
     media-src 'self' blob:; connect-src 'self'; worker-src 'self' blob:; base-uri 'none'; \
     form-action 'none'; frame-ancestors 'self'",
);

/// All parts of the page, by name.
pub(crate) struct Page {
    parts: HashMap<String, Arc<Text>>,
}

impl Page {
    pub(crate) fn new() -> Page {
        let part = |name: std::borrow::Cow<'static, str>| {
            let file = Assets::get(&name)?;
            let known = TYPES.iter().find(|(suffix, _)| name.ends_with(suffix));
            let content_type = HeaderValue::from_static(known.map_or("text/plain", |(_, t)| t));
            let bytes = bytes::Bytes::from(file.data.into_owned());
            let text = Text::new(content_type, REVALIDATE, None, bytes);
            Some((name.into_owned(), Arc::new(text)))
        };
        Page {
            parts: Assets::iter().filter_map(part).collect(),
        }
    }

    /// Answers with a part of the page.
    pub(crate) async fn answer(&self, name: &str, ask: &Ask<'_>) -> Result<Response<Body>, Error> {
        match self.parts.get(name) {
            Some(text) => {
                let mut response = text.answer(ask).await;
                response
                    .headers_mut()
                    .insert(header::CONTENT_SECURITY_POLICY, POLICY);
                Ok(response)
            }
            None => Err(crate::error::not_found("the page has no such part")),
        }
    }
}
