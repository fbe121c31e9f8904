//! Text resources in memory, in every content coding that clients have requested so far.

use crate::response::responder::{ClientRequest, RepresentationHeaders};
use crate::route::ManifestKind;
use crate::send::body_parts::PlannedPart;
use bytes::Bytes;
use http::header::HeaderValue;
use http::{HeaderMap, Response};
use net::Body;
use net::conditional::{LastModified, Validators};
use net::content_coding::{self, ContentCoding};
use net::headers::SerializedFields;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use store::Arena;

/// Texts up to this size are compressed inline. Longer texts are compressed on a blocking thread.
const COMPRESS_NOW_BYTES_MAX: usize = 4 << 10;
/// Texts of fewer bytes are not compressed, because they fit into one packet anyway.
const COMPRESS_BYTES_MIN: usize = 512;
/// The kernel sends texts of at least this size without a copy. For shorter texts, the preparation
/// for such a send costs more than the copy.
const UNCOPIED_BYTES_MIN: usize = 64 << 10;

/// The manifests of one title that have been written so far. A title has only a few manifests per
/// rendition, so the map stays small.
#[derive(Default)]
pub(crate) struct ManifestTexts {
    by_kind: RwLock<HashMap<ManifestKind, Arc<CompressibleText>>>,
}

/// A text in memory, in all content codings requested so far.
pub(crate) struct CompressibleText {
    identity: EncodedText,
    encodings: [OnceLock<Option<EncodedText>>; 3],
}

/// A text in one content coding, with its headers.
struct EncodedText {
    headers: RepresentationHeaders,
    /// Preformatted headers of a complete response.
    full_response_fields: SerializedFields,
    bytes: Bytes,
    /// Whether the bytes are in an arena, from which the kernel sends them without a copy.
    is_in_arena: bool,
}

impl ManifestTexts {
    pub(crate) fn get(&self, manifest: &ManifestKind) -> Option<Arc<CompressibleText>> {
        let made = self.by_kind.read().unwrap_or_else(PoisonError::into_inner);
        made.get(manifest).cloned()
    }

    pub(crate) fn insert(
        &self,
        manifest: &ManifestKind,
        text: Arc<CompressibleText>,
    ) -> Arc<CompressibleText> {
        let mut made = self.by_kind.write().unwrap_or_else(PoisonError::into_inner);
        made.entry(manifest.clone()).or_insert(text).clone()
    }
}

impl CompressibleText {
    pub(crate) fn new(
        content_type: HeaderValue,
        cache: HeaderValue,
        modified: Option<LastModified>,
        bytes: Bytes,
    ) -> CompressibleText {
        let mut hasher = DefaultHasher::new();
        bytes.hash(&mut hasher);
        let validators = Validators {
            modified,
            ..Validators::from_etag(&format!("\"{:016x}\"", hasher.finish()))
        };
        let facts = RepresentationHeaders {
            content_type,
            cache_control: cache,
            validators,
            content_coding: Some(ContentCoding::Identity),
        };
        CompressibleText {
            identity: EncodedText::new(facts, bytes),
            encodings: Default::default(),
        }
    }

    /// Moves a long text into the arena, from which the kernel sends it without a copy.
    pub(crate) fn move_into_arena(mut self, arena: Option<&Arena>) -> CompressibleText {
        let long = self.identity.bytes.len() >= UNCOPIED_BYTES_MIN;
        let bytes = std::iter::once(&*self.identity.bytes);
        // If the arena is full, the text is copied when it is sent.
        let copied = arena
            .filter(|_| long)
            .map(|arena| arena.copy_into_arena(bytes));
        if let Some(Ok(copied)) = copied {
            self.identity.bytes = copied.bytes().clone();
            self.identity.is_in_arena = true;
        }
        self
    }

    /// Responds in the content coding that the client prefers.
    pub(crate) async fn respond_in_preferred_coding(
        self: &Arc<CompressibleText>,
        request: &ClientRequest<'_>,
    ) -> Response<Body> {
        let text = self.text_in_preferred_coding(request.headers).await;
        request.respond_with_encoded_text(
            &text.headers,
            &text.full_response_fields,
            &text.body_part(),
        )
    }

    /// Returns the text in the client's preferred coding. Returns the uncompressed text if
    /// compression fails or does not make the text shorter.
    async fn text_in_preferred_coding(
        self: &Arc<CompressibleText>,
        headers: &HeaderMap,
    ) -> &EncodedText {
        if self.identity.bytes.len() < COMPRESS_BYTES_MIN {
            return &self.identity;
        }
        let coding = content_coding::choose_coding(headers);
        let Some(slot) = coding_slot(coding).and_then(|place| self.encodings.get(place)) else {
            return &self.identity;
        };
        if slot.get().is_none() && self.identity.bytes.len() > COMPRESS_NOW_BYTES_MAX {
            let text = self.clone();
            let task = tokio::task::spawn_blocking(move || text.compress_once(coding).is_some());
            if task.await.is_err() {
                return &self.identity;
            }
        }
        self.compress_once(coding).unwrap_or(&self.identity)
    }

    /// Returns the text in this coding. Compresses the text on first use.
    fn compress_once(&self, coding: ContentCoding) -> Option<&EncodedText> {
        let slot = self.encodings.get(coding_slot(coding)?)?;
        slot.get_or_init(|| self.identity.compress_as(coding))
            .as_ref()
    }
}

/// Returns the slot of a content coding. Returns `None` for uncompressed text.
fn coding_slot(coding: ContentCoding) -> Option<usize> {
    match coding {
        ContentCoding::Identity => None,
        ContentCoding::Gzip => Some(0),
        ContentCoding::Brotli => Some(1),
        ContentCoding::Zstd => Some(2),
    }
}

impl EncodedText {
    fn new(facts: RepresentationHeaders, bytes: Bytes) -> EncodedText {
        EncodedText {
            full_response_fields: facts.preformat_headers(),
            headers: facts,
            bytes,
            is_in_arena: false,
        }
    }

    fn body_part(&self) -> PlannedPart {
        if self.is_in_arena {
            PlannedPart::Arena(self.bytes.clone())
        } else {
            PlannedPart::Generated(self.bytes.clone())
        }
    }

    /// Compresses the text. The compressed text has its own entity tag.
    fn compress_as(&self, coding: ContentCoding) -> Option<EncodedText> {
        let bytes = content_coding::compress(coding, &self.bytes).ok()?;
        let tag = self.headers.validators.etag.as_ref()?.to_str().ok()?;
        let tag = format!("\"{}-{}\"", tag.trim_matches('"'), coding.name());
        let validators = Validators {
            modified: self.headers.validators.modified.clone(),
            ..Validators::from_etag(&tag)
        };
        let facts = RepresentationHeaders {
            validators,
            content_coding: Some(coding),
            ..self.headers.clone()
        };
        let bytes = Bytes::from(bytes);
        (bytes.len() < self.bytes.len()).then(|| EncodedText::new(facts, bytes))
    }
}
