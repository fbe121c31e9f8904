//! Progressive download of the film that an index MP4 references. The film is sent as one MP4 file.

use crate::error;
use crate::response::responder::{ClientRequest, RepresentationHeaders};
use crate::send::body_source::BodySource;
use crate::title::catalog::Catalog;
use crate::title::indexer::{self, MediaOrReferences};
use crate::title::opened_title::Title;
use crate::title::progressive_layout::ProgressiveLayout;
use http::Response;
use http::header::HeaderValue;
use media::bmff::BoxHeader;
use net::conditional::Validators;
use net::{Body, Error};
use std::sync::Arc;
use store::{Key, Object, RequestReason};

/// Caches must revalidate the film soon, because it may be indexed again at any time.
const SOON: HeaderValue =
    HeaderValue::from_static("public, max-age=2, stale-while-revalidate=30, stale-if-error=300");
/// Number of bytes that are read to recognise an index MP4.
const HEAD_BYTES: u64 = 4 << 10;

/// Returns whether a file is an index MP4. One small read excludes most other files. Blocks the
/// thread.
pub(crate) fn is_index_mp4(key: &Key, object: &Object) -> bool {
    let head = object.read(0..object.len().min(HEAD_BYTES), RequestReason::Index);
    head.is_ok_and(|head| is_moov_and_little_else(&head, object.len()))
        && matches!(
            indexer::index_file(key, object),
            Ok(MediaOrReferences::References(_))
        )
}

fn is_moov_and_little_else(head: &[u8], len: u64) -> bool {
    let mut at = 0;
    while let Some(rest) = usize::try_from(at).ok().and_then(|at| head.get(at..)) {
        let Ok(Some(header)) = BoxHeader::parse(rest, len - at) else {
            return false;
        };
        at = at.saturating_add(header.box_size);
        match &header.name {
            // In an index MP4, the media of text tracks may follow the `moov`. The file is
            // recognised only if this media is shorter than the `moov`.
            b"moov" => return at <= len && len - at < header.box_size,
            b"mdat" | b"moof" => return false,
            _ if at >= len => return false,
            _ => {}
        }
    }
    false
}

/// Responds with the film that an index MP4 references.
pub(crate) async fn respond_with_film(
    catalog: &Arc<Catalog>,
    key: &Key,
    request: &ClientRequest<'_>,
) -> Result<Response<Body>, Error> {
    let mut title = catalog.load_title(key).await?;
    if title.is_overwritten() {
        title = catalog.reload_title(&title).await?;
    }
    let expansion = progressive_layout(&title).await?;
    let source = BodySource {
        object: title.rendition_file(0)?.clone(),
        reason: RequestReason::Plain,
        is_copied: request.is_copied,
        is_verified: false,
        sibling_ranges: None,
        following_objects: title
            .files
            .iter()
            .skip(1)
            .map(|file| file.object.clone())
            .collect(),
    };
    let facts = RepresentationHeaders {
        content_type: HeaderValue::from_static("video/mp4"),
        cache_control: SOON,
        validators: Validators {
            modified: title.modified.clone(),
            ..Validators::from_etag(&expansion.etag)
        },
        content_coding: None,
    };
    request
        .respond_with_body(&facts, source, expansion.pieces.clone())
        .await
}

async fn progressive_layout(title: &Arc<Title>) -> Result<Arc<ProgressiveLayout>, Error> {
    if title.progressive_layout.get().is_none() {
        let title = title.clone();
        let task = tokio::task::spawn_blocking(move || {
            let objects = title.files.iter().map(|file| &*file.object);
            title.progressive_layout.get_or_init(|| {
                ProgressiveLayout::new(&title.key, &title.hls.files, objects).map(Arc::new)
            });
        });
        task.await.map_err(|e| error::from_task(&e))?;
    }
    match title.progressive_layout.get() {
        Some(made) => made.clone(),
        None => Err(Error::new_internal_error(
            "the progressive layout is missing",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::is_moov_and_little_else as may_be;
    use media::bytes::write_box;

    fn boxes(sizes: &[(&[u8; 4], usize)]) -> Vec<u8> {
        let mut out = Vec::new();
        for (name, size) in sizes {
            write_box(&mut out, name, |out| out.resize(out.len() + size - 8, 0));
        }
        out
    }

    #[test]
    fn files_of_metadata_only_are_recognised() {
        for (sizes, expected) in [
            (&[(b"ftyp", 24), (b"moov", 5000)][..], true),
            (&[(b"moov", 50)], true),
            (
                &[(b"ftyp", 24), (b"free", 90), (b"moov", 500), (b"mdat", 90)],
                true,
            ),
            (&[(b"ftyp", 24), (b"moov", 500), (b"mdat", 500)], false),
            (&[(b"ftyp", 24), (b"mdat", 90), (b"moov", 500)], false),
            (&[(b"ftyp", 24)], false),
            (&[(b"ftyp", 24), (b"free", 5000), (b"moov", 5000)], false),
        ] {
            let file = boxes(sizes);
            let head = &file[..file.len().min(4096)];
            assert_eq!(may_be(head, file.len() as u64), expected, "{sizes:?}");
        }
        let file = boxes(&[(b"ftyp", 24), (b"moov", 500)]);
        for len in 0..file.len() {
            assert!(!may_be(&file[..len], len as u64), "cut at {len}");
        }
        assert!(!may_be(b"#EXTM3U not a film", 18));
    }
}
