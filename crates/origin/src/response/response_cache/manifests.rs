//! The manifest cache, which finds recently served manifests by their URL before the URL is parsed.
//!
//! Parsing the URL of a playlist and finding its title and text costs more than sending the text.
//! The cache stores the text under the canonical spelling of the URL. No static file can have a URL
//! in this spelling. An entry is served only while the catalog contains the same title version.

use crate::resource_kind::ResourceKind;
use crate::response::compressible_text::CompressibleText;
use crate::route::RequestedResource;
use crate::title::catalog::Catalog;
use crate::title::opened_title::Title;
use http::Uri;
use quick_cache::sync::Cache;
use std::sync::{Arc, Weak};
use store::Key;

/// Maximum number of cached URLs.
const ENTRIES_MAX: usize = 4096;

/// Recently served manifests by canonical URL.
pub(crate) struct ManifestCache {
    entries: Cache<Box<str>, Arc<CachedManifest>>,
    is_enabled: bool,
}

/// A manifest, and the title version that it describes.
struct CachedManifest {
    kind: ResourceKind,
    title_key: Key,
    title: Weak<Title>,
    text: Weak<CompressibleText>,
}

impl ManifestCache {
    /// Creates the cache. If titles are not cached, `remembers` is false, and this cache remains
    /// empty.
    pub(crate) fn new(remembers: bool) -> ManifestCache {
        ManifestCache {
            entries: Cache::new(ENTRIES_MAX),
            is_enabled: remembers,
        }
    }

    /// Returns whether a path may name a playlist or an MPD.
    pub(crate) fn is_manifest_path(path: &str) -> bool {
        path.ends_with(".m3u8") || path.ends_with(".mpd")
    }

    /// Returns the manifest for a URL if the title has not changed since the manifest was written.
    pub(crate) async fn get(
        &self,
        uri: &Uri,
        catalog: &Arc<Catalog>,
    ) -> Option<(ResourceKind, Arc<CompressibleText>)> {
        let cached = self.entries.get(uri.path_and_query()?.as_str())?;
        let title = catalog.load_title(&cached.title_key).await.ok()?;
        let same = std::ptr::eq(cached.title.as_ptr(), Arc::as_ptr(&title));
        let text = cached.text.upgrade().filter(|_| same)?;
        Some((cached.kind, text))
    }

    /// Stores a manifest if its URL is in canonical spelling. Other spellings are not stored, so
    /// the cache has at most one entry per manifest.
    pub(crate) fn insert(
        &self,
        uri: &Uri,
        request: &RequestedResource,
        (title, text): (&Arc<Title>, &Arc<CompressibleText>),
    ) {
        let Some(url) = uri.path_and_query().filter(|_| self.is_enabled) else {
            return;
        };
        if request.to_string() == url.as_str() {
            let cached = CachedManifest {
                kind: ResourceKind::from_request(request),
                title_key: title.key.clone(),
                title: Arc::downgrade(title),
                text: Arc::downgrade(text),
            };
            self.entries.insert(url.as_str().into(), Arc::new(cached));
        }
    }
}
