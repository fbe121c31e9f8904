//! Texts asked for lately: what need not be worked out a second time.
//!
//! To read a playlist's URL, and to find title and text, costs more than sending the text. What came
//! of it is kept under the URL in its one canonical spelling, which no real file can have. It is told
//! only while the catalog knows the same state of the title.

use crate::catalog::Catalog;
use crate::manifest::Text;
use crate::observe::Kind;
use crate::route::Request;
use crate::title::Title;
use http::Uri;
use quick_cache::sync::Cache;
use std::sync::{Arc, Weak};
use store::Key;

/// URLs kept.
const KEPT_MAX: usize = 4096;

/// Texts by URL.
pub(crate) struct Lately {
    kept: Cache<Box<str>, Arc<Asked>>,
    remembers: bool,
}

/// What a URL led to.
struct Asked {
    kind: Kind,
    key: Key,
    title: Weak<Title>,
    text: Weak<Text>,
}

impl Lately {
    /// Keeps some URLs; none at all where titles are not remembered.
    pub(crate) fn new(remembers: bool) -> Lately {
        Lately {
            kept: Cache::new(KEPT_MAX),
            remembers,
        }
    }

    /// Whether a path could be that of a playlist or an MPD.
    pub(crate) fn may_hold(path: &str) -> bool {
        path.ends_with(".m3u8") || path.ends_with(".mpd")
    }

    /// The text of a URL, if it was asked for lately and nothing has changed since.
    pub(crate) async fn find(
        &self,
        uri: &Uri,
        catalog: &Arc<Catalog>,
    ) -> Option<(Kind, Arc<Text>)> {
        let asked = self.kept.get(uri.path_and_query()?.as_str())?;
        let title = catalog.title(&asked.key).await.ok()?;
        let same = std::ptr::eq(asked.title.as_ptr(), Arc::as_ptr(&title));
        let text = asked.text.upgrade().filter(|_| same)?;
        Some((asked.kind, text))
    }

    /// Keeps what a URL led to, if it is spelt as we print it: there are no more of those than texts.
    pub(crate) fn keep(
        &self,
        uri: &Uri,
        request: &Request,
        (title, text): (&Arc<Title>, &Arc<Text>),
    ) {
        let Some(url) = uri.path_and_query().filter(|_| self.remembers) else {
            return;
        };
        if request.to_string() == url.as_str() {
            let asked = Asked {
                kind: Kind::of(request),
                key: title.key.clone(),
                title: Arc::downgrade(title),
                text: Arc::downgrade(text),
            };
            self.kept.insert(url.as_str().into(), Arc::new(asked));
        }
    }
}
