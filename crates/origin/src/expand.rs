//! An index MP4 asked for as a file: the film that it stands for, as one progressive MP4.

use crate::catalog::Catalog;
use crate::error;
use crate::indexer::{self, Indexed};
use crate::pieces::{Piece, Source};
use crate::respond::{Ask, Facts};
use crate::title::Title;
use bytes::Bytes;
use http::Response;
use http::header::HeaderValue;
use media::bmff::Header;
use media::mp4::Progressive;
use net::conditional::Validators;
use net::{Body, Error};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, OnceLock};
use store::{Key, Object, Reason};

/// The film may be indexed anew at any time.
const SOON: HeaderValue =
    HeaderValue::from_static("public, max-age=2, stale-while-revalidate=30, stale-if-error=300");
/// Raised whenever the bytes of progressive files change for the same index.
const LAYOUT: u8 = 1;
/// What is read of a file to see whether it may be an index MP4.
const HEAD_BYTES: u64 = 4 << 10;

/// A title's progressive file, made when it is first asked for.
pub(crate) type Made = OnceLock<Result<Arc<Expansion>, Error>>;

/// A progressive file before it is bytes.
pub(crate) struct Expansion {
    pieces: Arc<[Piece]>,
    etag: String,
}

/// Whether a file is an index MP4. One small read says of most files that they are not. Blocks.
pub(crate) fn is_index(key: &Key, object: &Object) -> bool {
    let head = object.read(0..object.len().min(HEAD_BYTES), Reason::Index);
    head.is_ok_and(|head| has_moov_and_little_else(&head, object.len()))
        && matches!(indexer::index(key, object), Ok(Indexed::References(_)))
}

fn has_moov_and_little_else(head: &[u8], len: u64) -> bool {
    let mut at = 0;
    while let Some(rest) = usize::try_from(at).ok().and_then(|at| head.get(at..)) {
        let Ok(Some(header)) = Header::read(rest, len - at) else {
            return false;
        };
        at = at.saturating_add(header.size);
        match &header.name {
            // Text tracks may lie behind it.
            b"moov" => return at <= len && len - at < header.size,
            b"mdat" | b"moof" => return false,
            _ if at >= len => return false,
            _ => {}
        }
    }
    false
}

/// Answers with the film that an index MP4 stands for.
pub(crate) async fn answer(
    catalog: &Arc<Catalog>,
    key: &Key,
    ask: &Ask<'_>,
) -> Result<Response<Body>, Error> {
    let mut title = catalog.title(key).await?;
    if title.overwritten() {
        title = catalog.again(&title).await?;
    }
    let expansion = expansion(&title).await?;
    let source = Source {
        object: title.object(0)?.clone(),
        reason: Reason::Plain,
        touched: ask.touched,
        along: None,
        behind: title
            .files
            .iter()
            .skip(1)
            .map(|file| file.object.clone())
            .collect(),
    };
    let facts = Facts {
        content_type: HeaderValue::from_static("video/mp4"),
        cache: SOON,
        validators: Validators {
            modified: title.modified.clone(),
            ..Validators::strong(&expansion.etag)
        },
        coding: None,
    };
    ask.pieces(&facts, source, expansion.pieces.clone()).await
}

async fn expansion(title: &Arc<Title>) -> Result<Arc<Expansion>, Error> {
    if title.progressive.get().is_none() {
        let title = title.clone();
        let task = tokio::task::spawn_blocking(move || {
            title.progressive.get_or_init(|| make(&title).map(Arc::new));
        });
        task.await.map_err(|e| error::of_task(&e))?;
    }
    match title.progressive.get() {
        Some(made) => made.clone(),
        None => Err(Error::internal("a progressive file was not made")),
    }
}

fn make(title: &Title) -> Result<Expansion, Error> {
    let of_media = |e| error::of_media(title.key.as_str(), &e);
    let made = Progressive::new(&title.hls.files).map_err(of_media)?;
    let mut hasher = DefaultHasher::new();
    (LAYOUT, &made.head).hash(&mut hasher);
    for index in &title.hls.files {
        index.fingerprint.hash(&mut hasher);
    }
    // Several files count as if they lay one behind the other.
    let lens = title.files.iter().map(|file| file.object.len());
    let bases: Vec<u64> = lens
        .scan(0, |base, len| Some(std::mem::replace(base, *base + len)))
        .collect();
    let ranges = made.ranges.into_iter().map(|(file, range)| {
        let base = bases.get(file).copied().unwrap_or(0);
        Piece::Of(range.start + base..range.end + base)
    });
    let pieces = std::iter::once(Piece::Made(Bytes::from(made.head))).chain(ranges);
    Ok(Expansion {
        pieces: pieces.collect(),
        etag: format!("\"p{:016x}\"", hasher.finish()),
    })
}

#[cfg(test)]
mod tests {
    use super::has_moov_and_little_else as may_be;
    use media::bytes::write_box;

    fn boxes(sizes: &[(&[u8; 4], usize)]) -> Vec<u8> {
        let mut out = Vec::new();
        for (name, size) in sizes {
            write_box(&mut out, name, |out| out.resize(out.len() + size - 8, 0));
        }
        out
    }

    #[test]
    fn metadata_and_little_else() {
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
